// The queue tree: limits from the configuration, and the sums of what runs below each queue.

#include <algorithm>
#include <iterator>

#include "base/checked.h"
#include "base/planted.h"
#include "state/attained_service.h"
#include "state/state.h"

namespace berth::state {

namespace {

// Calls `set` with the dimension and the amount of each named amount that is stated.
template <class Set>
void resolve(const ResourceAmounts& named, const State& state, Set&& set) {
  if (named.gpu_milli) set(kDimGpu, *named.gpu_milli);
  if (named.cpu_milli) set(kDimCpu, *named.cpu_milli);
  if (named.memory_mib) set(kDimMemory, *named.memory_mib);
  for (const auto& [model, milli] : named.model_gpu_milli) {
    const auto id = state.gpu_model_named(model);
    BERTH_CHECK(id.has_value());
    set(dim_of(*id), milli);
  }
}

std::int64_t half_life_ms(const ClusterConfig& config) {
  return checked_multiply(config.scheduling.usage_half_life_s, 1000);
}

}  // namespace

TrustDomainId State::trust_domain_id(const std::string& name) {
  const auto found = std::find(trust_domains_.begin(), trust_domains_.end(), name);
  const auto index = found - trust_domains_.begin();
  if (found == trust_domains_.end()) trust_domains_.push_back(name);
  return TrustDomainId(static_cast<std::uint16_t>(index));
}

void State::configure_limits(QueueState& queue, const QueueConfig& config) {
  QuotaAmounts configured;
  resolve(config.guaranteed, *this, [&](std::size_t dim, std::int64_t amount) { configured.state(dim, amount); });
  const std::int64_t window_ms = checked_multiply(config.guarantee_decay_s, 1000);
  // A decayed guarantee stays decayed until an operator changes this guarantee or its window. Other changes of the
  // configuration do not restore it.
  if (!(configured == queue.configured) || window_ms != queue.guarantee_decay_ms) {
    queue.guaranteed = queue.configured = configured;
    queue.guarantee_decay_ms = window_ms;
    forget_guarantee_use(queue);
  }
  queue.max = Amounts::unlimited();
  resolve(config.max, *this, [&](std::size_t dim, std::int64_t amount) { queue.max[dim] = amount; });
  queue.lending_limit = Amounts::unlimited();
  queue.limits_lending = false;
  resolve(config.lending_limit, *this, [&](std::size_t dim, std::int64_t amount) {
    queue.lending_limit[dim] = amount;
    queue.limits_lending = true;
  });
  queue.max_jobs_per_user = config.max_jobs_per_user.value_or(kUnlimited);
  queue.max_gpu_milli_per_user = config.max_gpu_milli_per_user.value_or(kUnlimited);
  queue.max_submitted_per_user = config.max_submitted_per_user.value_or(kUnlimited);
  queue.weight = config.weight;
  queue.policy = config.policy;
  const AttainedServiceConfig order = config.attained_service.value_or(AttainedServiceConfig());
  queue.service_thresholds.clear();
  for (const std::int64_t gpu_s : order.thresholds_gpu_s) {
    queue.service_thresholds.push_back(checked_multiply(gpu_s, kMilli * 1000));
  }
  queue.promote_after_ms = order.promote_after_s * 1000;
  queue.trust_domain =
      config.trust_domain.empty() ? queues_[queue.parent.index()].trust_domain : trust_domain_id(config.trust_domain);
}

namespace {

// A mark of another budget says nothing of this one.
void configure_budget(std::optional<BudgetState>& budget, const std::optional<BudgetConfig>& config) {
  if (!config)
    budget.reset();
  else if (!budget || budget->config != *config)
    budget = BudgetState{*config, {}};
}

}  // namespace

// Sets the eviction terms of the queue. A term that it does not state is its parent's.
void State::configure_eviction(QueueState& queue, const EvictionTermsConfig& terms) {
  const QueueState& parent = queues_[queue.parent.index()];
  EvictionTerms& mine = queue.eviction;
  mine = parent.eviction;
  const auto say = [&](const std::optional<std::int64_t>& own, std::int64_t& seconds, QueueId& of) {
    if (!own || planted(Bug::kTermsIgnored)) return;
    seconds = *own;
    of = queue.id;
  };
  say(terms.min_runtime_s, mine.min_runtime_s, mine.min_runtime_of);
  say(terms.cooldown_s, mine.cooldown_s, mine.cooldown_of);
  say(terms.grace_s, mine.grace_s, mine.grace_of);
  mine.evictions_per_hour = terms.evictions_per_hour;
  if (mine.evictions_per_hour > 0)
    mine.limited_by = queue.id;
  else
    queue.evictions = {};
}

// Renames queues, those below them, and what names them: their jobs and tokens, and what was reported for them. Usage
// and history before that keep the old name.
void State::move_queues(const std::vector<QueueMove>& moves) {
  if (moves.empty()) return;
  std::map<std::string, QueueId> renamed;  // by the new path
  for (QueueState& queue : queues_) {
    if (std::string path = moved_path(queue.path, moves); path != queue.path) {
      queue_paths_.erase(queue.path);
      former_paths_[queue.path] = queue.id;
      former_paths_.erase(path);  // it has got its old name back
      queue.path = path;
      renamed.emplace(std::move(path), queue.id);
    }
  }
  queue_paths_.insert(renamed.begin(), renamed.end());
  jobs_.for_each([&](JobState& job) {
    if (job.spec.queue == queue(job.queue).path) return;
    job.spec.queue = queue(job.queue).path;
    if (job.running_row != kNoRow) running_table_.set(job);
  });
  for (auto& [name, token] : tokens_) token.queue = moved_path(token.queue, moves);
  for (auto& [id, report] : quantity_reports_) report.queue = moved_path(report.queue, moves);
  std::map<RoleBinding, BindingOrigin> granted;
  for (const auto& [binding, origin] : granted_)
    granted.emplace(RoleBinding{binding.subject, binding.role, moved_path(binding.queue, moves)}, origin);
  granted_ = std::move(granted);
}

// Sets the queues from the configuration. Queue ids are never reused. A queue that is no longer configured is marked as
// removed (control checks that it is empty).
void State::configure_queues(const ClusterConfig& config) {
  for (QueueState& queue : queues_) {
    queue.removed = queue.id != root();
    queue.children.clear();
    queue.keepers.clear();
  }
  const SchedulingConfig& rules = config.scheduling;
  const EvictionTerms of_cluster{rules.min_runtime_s, rules.cooldown_s, rules.default_grace_s, root(), root(), root()};
  queue_mut(root()).eviction = of_cluster;
  queue_mut(root()).admission = config.admission;
  for (const QueueConfig& one : config.queues) {
    const std::size_t slash = one.path.rfind('/');
    const QueueId parent = queue_paths_.at(slash == std::string::npos ? std::string() : one.path.substr(0, slash));
    auto found = queue_paths_.find(one.path);
    if (found == queue_paths_.end()) {
      QueueState fresh;
      fresh.id = QueueId(static_cast<std::uint32_t>(queues_.size()));
      fresh.path = one.path;
      queues_.push_back(std::move(fresh));
      found = queue_paths_.emplace(one.path, queues_.back().id).first;
    }
    QueueState& queue = queue_mut(found->second);
    queue.removed = false;
    queue.parent = parent;
    queue.depth = queues_[parent.index()].depth + 1;
    queue_mut(parent).children.push_back(queue.id);
    configure_limits(queue, one);
    configure_eviction(queue, one.eviction);
    configure_budget(queue.budget(BudgetKind::kBudget), one.budget);
    configure_budget(queue.budget(BudgetKind::kGrant), one.grant);
    queue.admission = one.admission;
    if (queue.limits_lending) queue_mut(parent).keepers.push_back(queue.id);
    roomier_.insert(queue.id);
  }
  for (QueueState& queue : queues_) {
    if (!queue.removed) continue;
    queue.guaranteed = queue.configured = {};  // it may be configured again without these
    queue.guarantee_decay_ms = 0;
    queue.eviction = of_cluster;
    queue.evictions = {};
    queue.budgets = {};
    queue.admission.clear();
    queue.own_admission.clear();
    forget_guarantee_use(queue);
  }
}

// Sets the pools from the configuration. A pool that is no longer configured keeps its number and is open to all
// queues.
void State::configure_pools() {
  has_burst_pools_ = false;
  for (PoolState& pool : pools_) pool = PoolState{pool.name};
  for (const PoolConfig& pool : config_.pools) {
    PoolState& mine = pools_[pool_index(pool.name)];
    for (const std::string& path : pool.queues) mine.queues.push_back(queue_paths_.at(path));
    mine.classes = pool.classes;
    mine.gpu_levels = pool.gpu_levels;
    mine.burst = pool.burst;
    const auto& levels = config_.topology_levels;
    if (!pool.trust_domain_isolation.empty())
      mine.trust_domain_isolation = static_cast<std::size_t>(
          std::find(levels.begin(), levels.end(), pool.trust_domain_isolation) - levels.begin());
    has_burst_pools_ = has_burst_pools_ || pool.burst;
  }
}

bool State::is_open_to(QueueId queue_id, std::uint32_t pool) const {
  const auto& tops = pools_[pool].queues;
  return tops.empty() || std::any_of(tops.begin(), tops.end(), [&](QueueId top) { return is_below(queue_id, top); });
}

bool State::may_use(QueueId queue_id, JobClass job_class, std::uint32_t pool) const {
  const bool admits = pools_[pool].admits(job_class) || planted(Bug::kPoolClassIgnored);
  return admits && is_open_to(queue_id, pool);
}

void State::on(const GuaranteeChanged& event) {
  QueueState& queue = queue_mut(queue_paths_.find(event.queue)->second);
  queue.guaranteed = {};
  resolve(event.to, *this, [&](std::size_t dim, std::int64_t amount) { queue.guaranteed.state(dim, amount); });
  forget_guarantee_use(queue);
  touched_loads_.insert(queue.id);
  roomier_.insert(queue.id);
  configure_quota_paths();
  waits_.activate_all();
  ++opportunity_;
}

void State::on(const ClusterConfigured& event) {
  const QueueEdits edits = edits_after(event.config, event.moves);
  config_version_ = event.version;
  if (edits.empty()) {
    configure(event.config, event.moves);
  } else {
    configure(with_edits(event.config, edits), event.moves);
  }
  set_edits(edits, event.config);
  std::erase_if(granted_, [&](const auto& granted) { return queue_at(granted.first.queue) == nullptr; });
}

// Puts a configuration in force, as it is with the changes by command.
void State::configure(const ClusterConfig& config, const std::vector<QueueMove>& moves) {
  for (QueueState& queue : queues_) queue.past.average = past_usage(queue, now_);  // up to now by the old half-life
  std::vector<JobId> waiting;  // their keys depend on the old limits; listed again below
  jobs_.for_each([&](JobState& job) {
    if (!job.in_pending) return;
    strike_pending(job);
    waiting.push_back(job.id);
  });
  config_ = config;
  // A GPU model that is no longer configured gets the defaults, as after a checkpoint is loaded.
  for (GpuModelState& model : models_) model = {model.name};
  for (const GpuModelConfig& model : config.gpu_models) {
    GpuModelState& known = models_[model_id(model.name).index()];
    known.weight_permille = model.weight_permille;
    known.mig = mig_geometry(model.mig);
  }
  move_queues(moves);
  configure_queues(config);
  configure_pools();
  configure_quota_paths();
  configure_topology();
  recount_capacity();
  recount_charges();
  for (const JobId id : waiting) {
    JobState& job = existing(id);
    job.shape = eq_class_of(job);
    job.urgent = urgent_from(job.spec) <= now_;
    job.level = level_of(queue(job.queue), job, now_);
    list_pending(job);
    waits_.activate({job.queue, job.shape});
  }
  for (QueueState& queue : queues_) {
    queue.demand = {};
    if (queue.guarantee_decay_ms > 0) touched_loads_.insert(queue.id);
  }
  for (const JobId id : waiting) count_demand(existing(id), +1);
  if (!maintenance_.empty()) {
    for (const JobId id : running_) reset_departure(existing(id));
  }
  const bool remembers = config_.scheduling.usage_half_life_s > 0;
  for (QueueState& queue : queues_) {
    queue.past = remembers ? PastUsage{queue.past.average, shared_part(queue.usage), now_} : PastUsage();
  }
  unreconciled_.insert(nominated_.begin(), nominated_.end());  // a ceiling may be below what is nominated
  waits_.activate_all();
  ++opportunity_;
}

// Computes all charges and sums again, because GPU weights may have changed.
void State::recount_charges() {
  for (QueueState& queue : queues_) {
    queue.usage = {};
    queue.within_usage = {};
    queue.nominated = queue.nominated_within = {};
    queue.burst_usage = {};
    queue.borrowed.clear();
    queue.stack = {};
    queue.running_below = 0;
    queue.users.clear();
  }
  for (const JobId id : running_) {
    JobState& job = existing(id);
    for (std::uint32_t i = 0; i < job.attempt->charges.size(); ++i) {
      Charge& charge = job.attempt->charges[i];
      std::vector<TaskPlacement> placements;
      for (std::uint32_t t = 0; t < charge.tasks; ++t) {
        placements.push_back(job.attempt->tasks[charge.first_task + t].placement);
      }
      charge.amounts = amounts_of(job.spec, placements);
      charge.burst = burst_amounts_of(job.spec, placements);
      charge_queues(job, charge, i, +1);
    }
  }
  for (const JobId id : nominated_) {
    JobState& job = existing(id);
    job.nomination->amounts = amounts_of(job.spec, job.nomination->placements);
    nominate_queues(job, job.nomination->amounts, job.nomination->within, +1);
  }
  jobs_.for_each([&](const JobState& job) { count_submitted(job, +1); });
}

std::vector<QueueId> State::path_to(QueueId queue_id) const {
  std::vector<QueueId> path(queue(queue_id).depth + 1);
  for (std::size_t i = path.size(); i-- > 0; queue_id = queue(queue_id).parent) path[i] = queue_id;
  return path;
}

bool State::is_below(QueueId queue_id, QueueId ancestor) const {
  while (queue_id.valid() && queue(queue_id).depth > queue(ancestor).depth) queue_id = queue(queue_id).parent;
  return queue_id == ancestor;
}

Amounts State::amounts_of(const JobSpec&, std::span<const TaskPlacement> placements) const {
  Amounts amounts;
  for (const TaskPlacement& placement : placements) {
    amounts[kDimCpu] += placement.cpu_milli;
    amounts[kDimMemory] += placement.memory_mib;
    for (const std::uint8_t index : placement.gpus) {
      const GpuModelId model = node(placement.node).gpus[index].model;
      amounts[kDimGpu] += placement.gpu_milli;
      amounts[kDimGpuEquivalent] += placement.gpu_milli * models_[model.index()].weight_permille;
      amounts[dim_of(model)] += placement.gpu_milli;
    }
  }
  return amounts;
}

std::optional<Amounts> State::burst_amounts_of(const JobSpec& spec, std::span<const TaskPlacement> placements) const {
  if (!has_burst_pools_) return std::nullopt;
  std::optional<Amounts> amounts;
  for (const TaskPlacement& placement : placements) {
    if (!is_burst(placement.node)) continue;
    if (!amounts) amounts.emplace();
    *amounts += amounts_of(spec, {&placement, 1});
  }
  return amounts;
}

std::uint64_t State::within_mask(QueueId queue_id, const Amounts& amounts, const Nomination* own) const {
  std::uint64_t mask = 1;  // every charge is within at the root
  for (QueueId q = queue_id; q != root(); q = queue(q).parent) {
    if (queue(q).guaranteed.stated == 0) continue;
    const std::uint64_t bit = std::uint64_t{1} << queue(q).depth;
    Amounts filled = queue(q).within_or_nominated();
    if (own != nullptr && (own->within & bit) != 0) filled -= own->amounts;
    if (inside_guarantee(filled, amounts, queue(q).guaranteed)) mask |= bit;
  }
  return mask;
}

std::uint64_t State::within_when_started(const JobState& job, const Amounts& amounts, const Nomination* own) const {
  std::uint64_t mask = within_mask(job.queue, amounts, own);
  if (!job.nomination || !job.nomination->has_moved()) return mask;
  const std::uint64_t stood = job.past.back().within;
  for (QueueId q = job.queue; q != root(); q = queue(q).parent) {
    const std::uint64_t bit = std::uint64_t{1} << queue(q).depth;
    if ((stood & bit) != 0 && inside_guarantee(queue(q).within_usage, amounts, queue(q).guaranteed)) mask |= bit;
  }
  return mask;
}

bool State::guaranteed(QueueId queue_id, std::uint64_t within) const {
  bool stated = false;
  for (QueueId q = queue_id; q != root(); q = queue(q).parent) {
    if (queue(q).guaranteed.stated == 0) continue;
    stated = true;
    if ((within >> queue(q).depth & 1U) == 0) return false;
  }
  return stated;
}

namespace {

// Removes the key. A transaction removes the last key first, so the last one is tried before a search.
void unstack(std::set<BorrowedKey>& borrowed, const BorrowedKey& key) {
  BERTH_CHECK(!borrowed.empty());
  if (const auto top = std::prev(borrowed.end()); *top == key)
    borrowed.erase(top);
  else
    BERTH_CHECK(borrowed.erase(key) == 1);
}

void add(Amounts& sum, const Amounts& amounts, int sign) {
  if (sign > 0)
    sum += amounts;
  else
    sum -= amounts;
}

// Adds the charge to the stack of the queue, or removes it. `below`: the charge belongs to a queue below this one.
void count_in_stack(QueueState& queue, const Charge& charge, const BorrowedKey& key, bool below, int sign) {
  if (queue.configured.stated == 0) return;
  const bool within = (charge.within >> queue.depth & 1U) != 0;
  const bool within_at_child = (charge.within >> (queue.depth + 1) & 1U) != 0;
  Stack& stack = queue.stack;
  if (within) {
    const bool within_above = (charge.within >> (queue.depth - 1) & 1U) != 0;
    if (below && !within_at_child) add(stack.idle_usage, charge.amounts, sign);
    if (within_above) add(stack.within_above, charge.amounts, sign);
    return;
  }
  if (sign > 0) {
    if (!charge.burst) stack.borrowed_of[charge.amounts].insert(key);
    if (key.charge == 0 && within_at_child) stack.entitled.insert(key);
    return;
  }
  stack.entitled.erase(key);
  const auto alike = stack.borrowed_of.find(charge.amounts);
  if (charge.burst || alike == stack.borrowed_of.end()) return;
  alike->second.erase(key);
  if (alike->second.empty()) stack.borrowed_of.erase(alike);
}

}  // namespace

void State::charge_queues(const JobState& job, const Charge& charge, std::uint32_t index, int sign) {
  for (QueueId id = job.queue; id.valid(); id = queue(id).parent) {
    QueueState& q = queue_mut(id);
    const bool within = (charge.within >> q.depth & 1U) != 0;
    const BorrowedKey key{charge.order, job.id, index};
    count_in_stack(q, charge, key, id != job.queue, sign);
    count_user(q, job.spec.user, {index == 0 ? 1 : 0, charge.amounts[kDimGpu], 0}, sign);
    if (charge.burst && sign > 0) q.burst_usage += *charge.burst;
    if (charge.burst && sign < 0) q.burst_usage -= *charge.burst;
    if (sign > 0) {
      q.usage += charge.amounts;
      if (within)
        q.within_usage += charge.amounts;
      else
        q.borrowed.insert(q.borrowed.end(), key);  // it is mostly the last in start order
      if (index == 0) ++q.running_below;
    } else {
      q.usage -= charge.amounts;
      if (within)
        q.within_usage -= charge.amounts;
      else
        unstack(q.borrowed, key);
      if (index == 0) --q.running_below;
      mark_freed(id);
    }
  }
}

SharedAmounts State::past_usage(const QueueState& queue, Timestamp now) const {
  const std::int64_t half_life = half_life_ms(config_);
  return half_life == 0 ? SharedAmounts{} : average_at(queue.past, now, half_life);
}

void State::note_usage(QueueId queue_id) {
  if (config_.scheduling.usage_half_life_s == 0) return;
  for (QueueId id = queue_id; id.valid(); id = queue(id).parent) {
    QueueState& q = queue_mut(id);
    q.past = {past_usage(q, now_), shared_part(q.usage), now_};
  }
}

void State::count_user(QueueState& queue, const std::string& user, const UserUsage& more, int sign) {
  if (!queue.limits_users()) return;
  UserUsage& used = queue.users[user];
  used.jobs += sign * more.jobs;
  used.gpu_milli += sign * more.gpu_milli;
  used.submitted += sign * more.submitted;
  if (used == UserUsage()) queue.users.erase(user);
}

// Counts a submitted job of its user. Replicas and elements do not count; their service or array does.
void State::count_submitted(const JobState& job, int sign) {
  if (job.parent.valid()) return;
  for (QueueId id = job.queue; id.valid(); id = queue(id).parent) {
    count_user(queue_mut(id), job.spec.user, {0, 0, 1}, sign);
  }
}

void State::nominate_queues(const JobState& job, const Amounts& amounts, std::uint64_t within, int sign) {
  for (QueueId id = job.queue; id.valid(); id = queue(id).parent) {
    count_user(queue_mut(id), job.spec.user, {1, amounts[kDimGpu], 0}, sign);
    QueueState& queue = queue_mut(id);
    const bool is_within = (within >> queue.depth & 1U) != 0;
    if (sign > 0) {
      queue.nominated += amounts;
      if (is_within) queue.nominated_within += amounts;
    } else {
      queue.nominated -= amounts;
      if (is_within) queue.nominated_within -= amounts;
      mark_freed(id);
    }
  }
}

}  // namespace berth::state
