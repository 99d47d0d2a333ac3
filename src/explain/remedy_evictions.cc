// Remedies that change others: limits to raise, jobs to evict, elastic gangs to scale down.

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "explain/what_if.h"
#include "sched/place/affinity.h"
#include "sched/preempt/preempt.h"

namespace berth::explain {

using namespace sched;

using state::JobState;
using state::NodeState;
using state::QueueState;
using state::Transaction;

namespace {

constexpr std::size_t kMostRaises = 16;

bool is_affinity_reason(ReasonCode code) {
  return code == ReasonCode::kTrustDomain || code == ReasonCode::kAffinity || code == ReasonCode::kPorts;
}

}  // namespace

// --- limits ---

// Raises limits, the innermost first, as long as quota is what refuses.
Remedy WhatIf::raise_limits() {
  Remedy change;
  change.kind = RemedyKind::kQuota;
  Reason why;
  bool enough = false;
  while (!spent() && !(enough = starts(change, &why))) {
    if (change.raises.size() >= kMostRaises || !is_quota_reason(why.code) || !add_raise(change, why)) break;
  }
  if (enough && !change.raises.empty()) tighten(change);
  return change;
}

bool WhatIf::add_raise(Remedy& change, const Reason& why) const {
  if (why.code == ReasonCode::kQuotaMax) {
    change.raises.push_back({why.queue, false, why.dim, why.limit, checked_add(why.used, why.asked)});
    return true;
  }
  if (why.code == ReasonCode::kUserLimit) {
    change.raises.push_back({why.queue, false, why.dim, why.limit, checked_add(why.used, why.asked), true});
    return true;
  }
  std::int64_t missing = why.used + why.asked - why.limit;
  for (const QueueId id : state_.queue(why.queue).children) {
    const QueueState& child = state_.queue(id);
    const bool limits = child.limits_lending && child.lending_limit[why.dim] != kUnlimited;
    if (missing <= 0 || state_.is_below(job_.queue, id) || !limits) continue;
    const std::int64_t idle = child.guaranteed.amounts[why.dim] - (child.usage[why.dim] - child.burst_usage[why.dim]) -
                              child.nominated[why.dim];
    const std::int64_t more = std::min(missing, idle - child.lending_limit[why.dim]);
    const Raise raise{id, true, why.dim, child.lending_limit[why.dim], child.lending_limit[why.dim] + more};
    if (more <= 0 || std::find(change.raises.begin(), change.raises.end(), raise) != change.raises.end()) continue;
    change.raises.push_back(raise);
    missing -= more;
  }
  return missing < why.used + why.asked - why.limit;
}

// No raise that can be spared, and each as small as it can be.
void WhatIf::tighten(Remedy& change) {
  leave_out(change, &Remedy::raises);
  for (std::size_t i = 0; i < change.raises.size(); ++i) {
    std::int64_t refused = change.raises[i].from;
    std::int64_t probe = change.raises[i].to - 1;  // as a rule the raise was exact
    while (change.raises[i].to - refused > 1 && !spent()) {
      Remedy less = change;
      less.raises[i].to = probe;
      if (starts(less))
        change = std::move(less);
      else
        refused = probe;
      probe = refused + (change.raises[i].to - refused) / 2;
    }
  }
}

// --- victims ---

bool WhatIf::may_leave(JobId id, const Remedy& change) const {
  return state_.job(id)->phase == JobPhase::kRunning &&
         std::find(change.victims.begin(), change.victims.end(), id) == change.victims.end();
}

std::optional<Shrink> WhatIf::all_growth_of(JobId id) const {
  const JobState& job = *state_.job(id);
  if (job.phase != JobPhase::kRunning || !state_.elastic().contains(id)) return std::nullopt;
  const auto tasks = static_cast<std::uint32_t>(job.attempt->tasks.size());
  const std::uint32_t least = job.attempt->base_tasks();
  return least < tasks ? std::optional(Shrink{id, least, tasks}) : std::nullopt;
}

// Scales each gang down by no more tasks than needed. A victim that is an elastic gang is scaled down instead, if
// enough.
void WhatIf::keep_most(Remedy& change) {
  for (std::size_t i = change.victims.size(); i-- > 0;) {
    const auto growth = all_growth_of(change.victims[i]);
    if (!growth) continue;
    Remedy less = change;
    less.victims.erase(less.victims.begin() + static_cast<std::ptrdiff_t>(i));
    less.shrinks.push_back(*growth);
    if (starts(less)) change = std::move(less);
  }
  for (std::size_t i = 0; i < change.shrinks.size(); ++i) {
    std::uint32_t refused = change.shrinks[i].tasks;
    while (refused - change.shrinks[i].keep > 1 && !spent()) {
      Remedy less = change;
      less.shrinks[i].keep += (refused - change.shrinks[i].keep) / 2;
      if (starts(less))
        change = std::move(less);
      else
        refused = less.shrinks[i].keep;
    }
  }
}

// Drops each eviction and scale-down that is not needed, until none is left to drop: beside a gang that is only scaled
// down, another victim may no longer be needed.
void WhatIf::spare(Remedy& change) {
  bool again = true;
  while (again && !spent()) {
    const Remedy before = change;
    leave_out(change, &Remedy::victims);
    leave_out(change, &Remedy::shrinks);
    keep_most(change);
    again = !change.shrinks.empty() && (change.victims != before.victims || change.shrinks != before.shrinks);
  }
}

// The cycle's order of victims: the job whose eviction costs least comes first.
WhatIf::Cost WhatIf::cost_of(const state::RunningRow& row) const {
  return {row.priority, loss_of_stopping(row, now_), -row.started.ms, row.job};
}

// Of two that cost the same the later one.
bool WhatIf::leaves_first(const Cost& a, const Cost& b) {
  return std::tie(a.priority, a.loss, a.negated_start, b.job) < std::tie(b.priority, b.loss, b.negated_start, a.job);
}

void WhatIf::order_victims(std::vector<JobId>& victims) const {
  std::vector<Cost> costs;
  for (const JobId id : victims) costs.push_back(cost_of(state_.running_table().rows()[state_.job(id)->running_row]));
  std::sort(costs.begin(), costs.end(), leaves_first);
  for (std::size_t i = 0; i < costs.size(); ++i) victims[i] = costs[i].job;
}

void WhatIf::mark_below(QueueId id, std::vector<bool>& below) const {
  below[id.index()] = true;
  for (const QueueId child : state_.queue(id).children) mark_below(child, below);
}

bool WhatIf::add_victims_below(Remedy& change, const Reason& why) const {
  // How much of the missing amount the job frees.
  const auto gives = [&](const JobState& job) {
    if (why.code == ReasonCode::kUserLimit && job.spec.user != job_.spec.user) return std::int64_t{0};
    if (why.dim == kDims) return std::int64_t{1};
    std::int64_t amount = 0;
    for (const state::Charge& charge : job.attempt->charges) amount += charge.amounts[why.dim];
    return amount;
  };
  std::vector<bool> below(state_.queues().size());
  mark_below(why.queue, below);
  const bool by_gpus = why.code != ReasonCode::kUserLimit && why.dim == kDimGpu;
  std::vector<Cost> costs;
  for (const state::RunningRow& row : state_.running_table().rows()) {
    if (!below[row.queue.index()] || row.stopping || (by_gpus && row.gpu_milli == 0)) continue;
    const bool gives_any = by_gpus || gives(*state_.job(row.job)) > 0;
    if (gives_any && may_leave(row.job, change) && !is_company(job_, *state_.job(row.job)))
      costs.push_back(cost_of(row));
  }
  // Few of them are needed: a heap gives them without sorting the rest.
  const auto leaves_later = [](const Cost& a, const Cost& b) { return leaves_first(b, a); };
  std::make_heap(costs.begin(), costs.end(), leaves_later);
  const bool any = !costs.empty();
  std::int64_t missing = why.used + why.asked - why.limit;
  while (!costs.empty() && missing > 0 && change.victims.size() <= kMostVictims) {
    std::pop_heap(costs.begin(), costs.end(), leaves_later);
    const JobId id = costs.back().job;
    costs.pop_back();
    missing -= gives(*state_.job(id));
    change.victims.push_back(id);
  }
  return any;
}

// Nodes that could hold a task of the group, those of the domain that comes closest first, then those that lack the
// fewest GPUs for it.
std::vector<NodeId> WhatIf::nearly_fitting_nodes(const Reason& why, std::size_t group) const {
  const auto outside = [&](NodeId node) {
    const auto domains = state_.topology().of_node(node);
    const bool in_domain = std::find(domains.begin(), domains.end(), why.domain) != domains.end();
    return (why.node.valid() && node != why.node) || (why.domain.valid() && !in_domain);
  };
  const TaskRequest& request = job_.spec.groups[group].request;
  const TaskRequirements ask = task_requirements(state_, job_, group, kAllModels);
  std::vector<std::tuple<bool, std::int64_t, NodeId>> by_need;
  for (const NodeState& node : state_.nodes()) {
    if (!node.takes_tasks() || node.tasks.empty() || !could_hold(state_, ask, node)) continue;
    const auto fitting = std::count_if(node.gpus.begin(), node.gpus.end(), [&](const state::GpuSlot& gpu) {
      return gpu.available_milli() >= request.gpu_milli;
    });
    by_need.emplace_back(outside(node.id), std::max<std::int64_t>(0, request.gpus - fitting), node.id);
  }
  std::sort(by_need.begin(), by_need.end());
  std::vector<NodeId> nodes;
  for (const auto& [away, need, node] : by_need) nodes.push_back(node);
  return nodes;
}

bool WhatIf::add_affinity_victims(Remedy& change, NodeId node) const {
  const std::size_t before = change.victims.size();
  for (const JobId id : AffinityFilter(state_, job_).in_the_way(node)) {
    if (state_.job(id)->attempt && may_leave(id, change)) change.victims.push_back(id);
  }
  return change.victims.size() > before;
}

// Adds the jobs that close, by affinity, the first node that could hold a task of the group. Another rule may be
// what refuses (NUMA, fragments), and more nodes help against that, too.
bool WhatIf::add_affinity_victims_somewhere(Remedy& change, std::size_t group) {
  Transaction transaction(state_);
  if (job_.nomination) transaction.lift_nomination(job_.id);
  apply(transaction, state_, change, now_);
  const AffinityFilter neighbours(state_, job_);
  const TaskRequirements ask = task_requirements(state_, job_, group, kAllModels);
  std::size_t tried = 0;
  for (const NodeState& node : state_.nodes()) {
    if (!node.takes_tasks() || !could_hold(state_, ask, node) || neighbours.allows(node.id)) continue;
    if (add_affinity_victims(change, node.id)) return true;
    if (++tried == kMostNodes) return false;
  }
  return false;
}

bool WhatIf::add_victims_on_nodes(Remedy& change, const std::vector<NodeId>& nodes, std::size_t& next,
                                  std::size_t many) const {
  const std::size_t before = change.victims.size();
  for (; next < nodes.size() && many > 0 && change.victims.size() <= kMostVictims; ++next) {
    const std::size_t known = change.victims.size();
    for (const auto& [job, task] : state_.node(nodes[next]).tasks) {
      if (may_leave(job, change) && !is_company(job_, *state_.job(job))) change.victims.push_back(job);
    }
    if (change.victims.size() > known) --many;
  }
  return change.victims.size() > before;
}

// A sufficient set first, along what refuses: jobs below the queue whose limit is reached, jobs on the nodes that come
// closest, jobs that it must be away from. Then each is spared beside which the job fits, the most expensive first.
std::optional<Remedy> WhatIf::evict(std::vector<Raise> raises) {
  Remedy change;
  change.kind = RemedyKind::kEvict;
  change.raises = std::move(raises);
  std::vector<std::vector<NodeId>> nodes(job_.spec.groups.size());
  std::vector<std::size_t> next(nodes.size(), 0);
  std::size_t many = 1;
  Reason why;
  while (!starts(change, &why)) {
    if (spent() || change.victims.size() > kMostVictims) return std::nullopt;
    bool more = is_quota_reason(why.code) && add_victims_below(change, why);
    // The quota of one GPU model does not bind on nodes of another, and whole nodes count differently on other nodes.
    const bool by_node = why.dim < kDims && (why.dim >= kDimGpuEquivalent || job_.spec.exclusive);
    // Lending limits do not bind in burst pools.
    const bool in_burst = why.code == ReasonCode::kQuotaLentOut && state_.has_burst_pools();
    const bool elsewhere = !is_quota_reason(why.code) || by_node || in_burst;
    if (!more && is_affinity_reason(why.code)) more = add_affinity_victims(change, why.node);
    if (!more && elsewhere) {
      // The group that does not fit comes first, but the solution may be to move another group.
      const auto refused = static_cast<std::size_t>(why.group);
      for (std::size_t i = 0; i < nodes.size() && !more; ++i) {
        const std::size_t group = (refused + i) % nodes.size();
        if (nodes[group].empty()) nodes[group] = nearly_fitting_nodes(why, group);
        more = add_victims_on_nodes(change, nodes[group], next[group], many) ||
               add_affinity_victims_somewhere(change, group);
      }
      many *= 2;
    }
    if (!more) return std::nullopt;
  }
  if (change.victims.empty()) return std::nullopt;
  order_victims(change.victims);
  spare(change);
  if (!change.raises.empty()) tighten(change);
  return change;
}

}  // namespace berth::explain
