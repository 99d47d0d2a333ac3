// The five steps that tell which floor is used, idle or lent at one instant (billing/ledger.h).

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "billing/ledger.h"

namespace berth::billing {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& amounts) {
  return std::accumulate(amounts.begin(), amounts.end(), std::int64_t{0});
}

// Shares `total` out in proportion to `weights`, by running sums in this order. Requires: total <= the sum of weights,
// so that no share is above its weight.
std::vector<std::int64_t> in_proportion(std::int64_t total, const std::vector<std::int64_t>& weights) {
  const std::int64_t all = sum_of(weights);
  if (total == all) return weights;
  std::vector<std::int64_t> shares(weights.size());
  std::int64_t weight = 0;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < weights.size() && total > 0; ++i) {
    weight += weights[i];
    const auto until = static_cast<std::int64_t>(Int128{total} * weight / all);
    shares[i] = until - given;
    given = until;
  }
  return shares;
}

std::int64_t stated_for(const ResourceAmounts& amounts, const std::string& model) {
  for (const auto& [name, milli] : amounts.model_gpu_milli) {
    if (name == model) return milli;
  }
  return 0;
}

// The GPUs of the guarantee in all: those that it states for any model, or for single ones.
std::int64_t gpus_of(const ResourceAmounts& amounts) {
  std::int64_t of_models = 0;
  for (const auto& [name, milli] : amounts.model_gpu_milli) of_models = checked_add(of_models, milli);
  return std::max(of_models, amounts.gpu_milli.value_or(0));
}

}  // namespace

void Ledger::configure_floors() {
  std::vector<std::vector<std::uint32_t>> children(queues_.size());
  for (std::uint32_t q = 0; q < queues_.size(); ++q) {
    if (queues_[q].parent) children[*queues_[q].parent].push_back(q);
    for (const auto& [name, milli] : queues_[q].guaranteed.model_gpu_milli) model(name_index(name));
  }
  for (std::uint32_t q = 0; q < queues_.size(); ++q) set_floor(queues_[q], children[q]);
  dirty_ = true;
}

// What is stated for models is never more than the floor has in all.
void Ledger::set_floor(Queue& queue, const std::vector<std::uint32_t>& children) {
  const auto less_children = [&](std::int64_t mine, auto&& of_child) {
    for (const std::uint32_t child : children) mine -= of_child(queues_[child].guaranteed);
    return std::max<std::int64_t>(mine, 0);
  };
  std::int64_t left = less_children(gpus_of(queue.guaranteed), gpus_of);
  queue.own_floor.assign(names_.size(), 0);
  for (const std::uint16_t index : models_by_name_) {
    const auto stated = [&](const ResourceAmounts& amounts) { return stated_for(amounts, names_[index]); };
    queue.own_floor[index] = std::min(left, less_children(stated(queue.guaranteed), stated));
    left -= queue.own_floor[index];
  }
  queue.own_any = left;
}

void Ledger::share_out() {
  dirty_ = false;
  new_shares_.clear();
  std::vector<std::vector<std::int64_t>> backed(names_.size());
  back_floors(backed);
  for (const std::uint16_t index : models_by_name_) share_model(index, backed[index], models_.at(index));
  replace_shares();
}

// Steps 1 and 2. `backed` by model, then by queue in the order of the paths.
void Ledger::back_floors(std::vector<std::vector<std::int64_t>>& backed) const {
  const std::size_t count = queues_by_path_.size();
  std::vector<std::int64_t> any(count);
  for (std::size_t i = 0; i < count; ++i) any[i] = queues_[queues_by_path_[i]].own_any;
  std::map<std::uint16_t, std::int64_t> left;  // of the pool, by model
  for (const std::uint16_t index : models_by_name_) {
    std::vector<std::int64_t>& unused = backed[index];
    unused.assign(count, 0);
    std::int64_t pool = models_.at(index).idle;
    for (std::size_t i = 0; i < count; ++i) {
      const Queue& queue = queues_[queues_by_path_[i]];
      const PerModel use = index < queue.use.size() ? queue.use[index] : PerModel();
      const std::int64_t floor = index < queue.own_floor.size() ? queue.own_floor[index] : 0;
      unused[i] = std::max<std::int64_t>(floor - use.within, 0);
      any[i] -= std::max<std::int64_t>(use.within - floor, 0);
      pool += use.borrowed;
    }
    unused = in_proportion(std::min(pool, sum_of(unused)), unused);
    left[index] = pool - sum_of(unused);
  }
  for (std::int64_t& one : any) one = std::max<std::int64_t>(one, 0);
  for (const std::uint16_t index : models_by_name_) {
    const std::vector<std::int64_t> more = in_proportion(std::min(left[index], sum_of(any)), any);
    for (std::size_t i = 0; i < count; ++i) {
      backed[index][i] += more[i];
      any[i] -= more[i];
    }
  }
}

// Steps 3 to 5.
void Ledger::share_model(std::uint16_t index, const std::vector<std::int64_t>& backed, Model& model) {
  const std::size_t count = queues_by_path_.size();
  std::vector<std::int64_t> unused(queues_.size());
  for (std::size_t i = 0; i < count; ++i) unused[queues_by_path_[i]] = backed[i];
  std::vector<std::int64_t> borrowed(count);
  std::int64_t pool = model.idle;
  std::int64_t in_burst_pools = 0;
  std::int64_t own = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t leaf = queues_by_path_[i];
    if (index >= queues_[leaf].use.size()) continue;
    const PerModel& use = queues_[leaf].use[index];
    pool += use.borrowed;
    in_burst_pools += use.borrowed_in_burst;
    borrowed[i] = use.borrowed;
    for (std::optional<std::uint32_t> q = leaf; q && borrowed[i] > 0; q = queues_[*q].parent) {
      const std::int64_t taken = std::min(unused[*q], borrowed[i]);
      if (taken == 0) continue;
      unused[*q] -= taken;
      borrowed[i] -= taken;
      own += taken;
      new_shares_.push_back({{*q, leaf, index, false, true}, taken, {}});
    }
  }
  const std::int64_t surplus = pool - sum_of(backed);
  const std::int64_t burst = std::min(surplus, sum_of(borrowed));
  const std::vector<std::int64_t> beside = in_proportion(burst, borrowed);
  for (std::size_t i = 0; i < count; ++i) borrowed[i] -= beside[i];
  std::vector<std::int64_t> lendable(count);
  for (std::size_t i = 0; i < count; ++i) lendable[i] = unused[queues_by_path_[i]];
  std::vector<std::int64_t> lent = in_proportion(sum_of(borrowed), lendable);
  for (std::size_t i = 0; i < count; ++i) {
    if (lendable[i] > lent[i])
      new_shares_.push_back({{queues_by_path_[i], queues_by_path_[i], index, true, false}, lendable[i] - lent[i], {}});
  }
  const std::int64_t lent_to_others = sum_of(lent);
  for (std::size_t lender = 0, borrower = 0; lender < count && borrower < count;) {
    const std::int64_t amount = std::min(lent[lender], borrowed[borrower]);
    if (amount > 0)
      new_shares_.push_back({{queues_by_path_[lender], queues_by_path_[borrower], index, false, false}, amount, {}});
    lent[lender] -= amount;
    borrowed[borrower] -= amount;
    if (lent[lender] == 0)
      ++lender;
    else
      ++borrower;
  }
  FleetAccounts& now = model.now;
  now.floor_used = model.within;
  now.floor_lent = own + lent_to_others;
  now.floor_idle = sum_of(lendable) - lent_to_others;
  now.burst = burst + in_burst_pools;
  now.unowned = surplus - burst + model.idle_in_burst;
  now.drained = model.drained;
  now.failed = model.failed;
  now.foreign = model.foreign;
  now.capacity = model.capacity;
}

}  // namespace berth::billing
