#include "control/config_change.h"

#include <algorithm>
#include <map>

namespace berth::control {

namespace {

using state::BorrowedKey;
using state::Charge;
using state::JobState;
using state::QueueState;
using state::State;

QuotaAmounts resolved(const State& state, const ResourceAmounts& named) {
  QuotaAmounts amounts;
  if (named.gpu_milli) amounts.state(kDimGpu, *named.gpu_milli);
  if (named.cpu_milli) amounts.state(kDimCpu, *named.cpu_milli);
  if (named.memory_mib) amounts.state(kDimMemory, *named.memory_mib);
  for (const auto& [model, milli] : named.model_gpu_milli) {
    if (const auto id = state.gpu_model_named(model)) amounts.state(dim_of(*id), milli);  // no job has another one
  }
  return amounts;
}

// A queue that is there, with its new guarantee and the charges in it and below it.
struct Recount {
  QueueConsequence change;
  QuotaAmounts guaranteed;
  std::vector<BorrowedKey> charges = {};
};

using Recounts = std::map<QueueId, Recount>;

// Notes each charge of each running job at those of its queues whose guarantee changes.
void note_charges(const State& state, Recounts& recounts) {
  for (const JobId id : state.running()) {
    const JobState& job = *state.job(id);
    for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
      const auto found = recounts.find(q);
      if (found == recounts.end()) continue;
      for (std::uint32_t c = 0; c < job.attempt->charges.size(); ++c) {
        const Charge& charge = job.attempt->charges[c];
        if (!charge.burst) found->second.charges.push_back({charge.order, id, c});
      }
    }
  }
}

void sort_once(std::vector<JobId>& jobs) {
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
}

// Counts the charges of a queue again: first those within its guarantee, then those beyond it, in start order.
void count_again(const State& state, Recount& recount) {
  const std::uint64_t bit = std::uint64_t{1} << state.queue(recount.change.queue).depth;
  std::sort(recount.charges.begin(), recount.charges.end());
  Amounts used;
  for (const bool within : {true, false}) {
    for (const BorrowedKey& key : recount.charges) {
      const Charge& charge = state.job(key.job)->attempt->charges[key.charge];
      if (((charge.within & bit) != 0) != within) continue;
      const bool fits = inside_guarantee(used, charge.amounts, recount.guaranteed);
      if (fits) used += charge.amounts;
      if (within && !fits) recount.change.borrowed.push_back(key.job);
      if (!within && fits) recount.change.guaranteed.push_back(key.job);
    }
  }
  sort_once(recount.change.borrowed);
  sort_once(recount.change.guaranteed);
}

bool is_above(const QueueState& queue, const QuotaAmounts& max) {
  for (std::size_t d = 0; d < kDims; ++d) {
    if (max.states(d) && max.amounts[d] < queue.max[d] && queue.usage[d] > max.amounts[d]) return true;
  }
  return false;
}

// Returns the queue as it is now, under its old name if it is renamed, or null.
const QueueState* queue_before(const State& state, const QueueConfig& one) {
  const QueueState* queue = state.queue_at(one.path);
  return queue != nullptr || one.moved_from.empty() ? queue : state.queue_at(one.moved_from);
}

}  // namespace

// What is in force already is not refused: it was known when it was put in force.
Result<void> check_budgets(const State& state, const ClusterConfig& config,
                           const std::optional<Timestamp>& log_begins) {
  constexpr std::int64_t kDayMs = 86'400'000;
  for (const QueueConfig& one : config.queues) {
    const QueueState* before = queue_before(state, one);
    for (const std::optional<BudgetConfig>& budget : {one.budget, one.grant}) {
      if (!budget) continue;
      const auto* known = before == nullptr ? nullptr : &before->budget(budget->kind());
      if (known != nullptr && *known && (*known)->config == *budget) continue;
      const std::string where = "queue '" + one.path + "'." + std::string(name_of(budget->kind()));
      // The first configuration comes before any prices.
      if (budget->is_money() && state.price_version() == 0 && state.config_version() > 0)
        return invalid(where +
                       ".money: no prices are in force, so what costs money is not known; apply a price book first "
                       "(berth prices apply FILE), or give gpu_hours");
      if (budget->kind() == BudgetKind::kGrant && log_begins && budget->from.ms < log_begins->ms / kDayMs * kDayMs)
        return invalid(where + ".from: " + to_iso8601(budget->from) + " lies before the first event of the log, of " +
                       to_iso8601(*log_begins) + ", so what was used then is not known; begin it at " +
                       to_iso8601({log_begins->ms / kDayMs * kDayMs}).substr(0, 10) + " or later");
    }
  }
  return {};
}

ConfigConsequences consequences_of(const State& state, const ClusterConfig& config,
                                   const std::optional<Timestamp>& log_begins) {
  ConfigConsequences all;
  if (auto ok = check_config_change(state, config, log_begins); !ok) all.refusal = ok.error();
  Recounts recounts;
  for (const QueueConfig& one : config.queues) {
    const QueueState* queue = queue_before(state, one);
    if (queue == nullptr) continue;
    const QuotaAmounts guaranteed = resolved(state, one.guaranteed);
    if (!(guaranteed == queue->configured)) recounts[queue->id] = {{queue->id}, guaranteed};
  }
  note_charges(state, recounts);
  for (const QueueConfig& one : config.queues) {
    const QueueState* queue = queue_before(state, one);
    if (queue == nullptr) continue;
    QueueConsequence change{queue->id};
    if (const auto found = recounts.find(queue->id); found != recounts.end()) {
      count_again(state, found->second);
      change = std::move(found->second.change);
    }
    change.above_max = is_above(*queue, resolved(state, one.max));
    if (!change.borrowed.empty() || !change.guaranteed.empty() || change.above_max)
      all.queues.push_back(std::move(change));
  }
  return all;
}

}  // namespace berth::control
