#include "explain/reason_text.h"

#include <algorithm>

#include "explain/eligibility.h"
#include "explain/nominated.h"
#include "explain/shortage.h"
#include "explain/text_list.h"
#include "explain/unavailable.h"
#include "explain/why.h"
#include "model/document/quantity.h"
#include "state/impossible.h"

namespace berth::explain {

namespace {

using state::JobState;
using state::State;

// Returns the words for the job that keeps this one from a node, by anti-affinity or a port: "job 7"; or "another job"
// if the reason names none.
std::string other_job(const Words& words, const Reason& reason) {
  return reason.job.valid() ? words.job(reason.job) : std::string("another job");
}

// "2026-12-01", or the instant if it is not the begin of a day.
std::string day_text(Timestamp time) {
  const std::string text = to_iso8601(time);
  constexpr std::int64_t kDayMs = 86'400'000;
  return time.ms % kDayMs == 0 ? text.substr(0, 10) : text;
}

// "waits: the budget of queue research is used up until 2026-12-01: 20012.5 of 20000 GPU-hours of 2026-11"
// "waits: the grant of queue research is used up: 5003 of 5000 GPU-hours from 2026-11-01 until 2027-03-01"
// "waits: the grant of queue research ended on 2027-03-01: 4100 of 5000 GPU-hours were used"
std::string budget_text(const Words& words, const Reason& reason) {
  const BudgetKind kind = reason.code == ReasonCode::kBudget ? BudgetKind::kBudget : BudgetKind::kGrant;
  const auto& budget = words.state().queue(reason.queue).budget(kind);
  if (!budget) return "waits: the " + std::string(name_of(kind)) + " of " + words.queue(reason.queue) + " is used up";
  const bool money = budget->config.is_money();
  const auto amount = [&](std::int64_t n) { return money ? money_text(n) : document::milli_text(n); };
  const bool borrows = budget->config.when_used_up == BudgetAction::kStopBorrowing;
  const std::string head = "waits: " + std::string(borrows ? "it would borrow, and " : "") + "the " +
                           std::string(name_of(kind)) + " of " + words.queue(reason.queue);
  const std::string used = amount(reason.used) + " of " + amount(reason.limit) + " " +
                           (money ? words.state().prices().currency : std::string("GPU-hours"));
  if (budget->mark.ended) return head + " ended on " + day_text(budget->config.until) + ": " + used + " were used";
  if (kind == BudgetKind::kGrant)
    return head + " is used up: " + used + " from " + day_text(budget->config.from) + " until " +
           day_text(budget->config.until);
  return head + " is used up until " + day_text(budget->mark.until) + ": " + used + " of " + budget->mark.month;
}

// "waits: it would fit on node n1, but "
std::string would_fit_on(const Words& words, const Reason& reason) {
  return "waits: it would fit on node " + words.state().node(reason.node).spec.name + ", but ";
}

// "64 GPUs within one rack; z1/b1/r3 comes closest: 52 free, 48 of them in pieces that its tasks can use"
std::string domain_text(const Words& words, const Reason& reason) {
  const State& state = words.state();
  const bool node = reason.node.valid();
  const auto& levels = state.topology().levels();
  const std::string level = node ? "node" : levels[state.topology().domain(reason.domain).level];
  const std::string name = node ? state.node(reason.node).spec.name : state.topology().domain(reason.domain).path;
  const std::size_t dim = is_never(reason.code) ? reason.dim : kDimGpu;
  const std::string needed = reason.asked > 0 ? counted(dim, reason.asked) + " " : std::string();
  if (is_never(reason.code)) {
    return (reason.asked > 0 ? "asks for " + needed : std::string("has to be ")) + "within one " + level + ", and no " +
           level + " could hold that, even if empty";
  }
  std::string text =
      (reason.asked > 0 ? needed : std::string("room ")) + "within one " + level + "; " + name + " comes closest: ";
  if (reason.asked == 0) return text + "its tasks need more than is free there";
  text += amount_text(kDimGpu, reason.limit) + " free";
  if (reason.used < std::min(reason.limit, reason.asked))
    return text + ", " + amount_text(kDimGpu, reason.used) + " of them in pieces that its tasks can use";
  return text + (reason.limit >= reason.asked ? ", but too little CPU or memory beside them" : "");
}

std::string topology_text(const Words& words, const Reason& reason) {
  if (reason.rule == PlaceRule::kGroups)
    return "waits: each of its groups alone fits in a domain of its required level, but not beside the others";
  const bool closest = reason.domain.valid() || reason.node.valid();
  if (!closest) return "waits: enough is free, but no node is in a domain of the required level";
  const bool of_group = reason.rule == PlaceRule::kGroup;
  const std::string text = domain_text(words, reason);
  if (is_never(reason.code)) return "can never start: " + (of_group ? reason.wish : std::string("it")) + " " + text;
  return (of_group ? "waits: " + reason.wish + " needs " : std::string("waits for ")) + text;
}

// Of a dependency that can never start, because one that it depends on did not succeed: the chain that leads there.
std::string hopeless_dependency(const Words& words, JobId id) {
  constexpr int kMostLinks = 64;
  const State& state = words.state();
  std::string text;
  for (int links = 0; links < kMostLinks; ++links) {
    const JobState* job = state.job(id);
    if (job == nullptr || job->attempt) return {};
    if (const auto broken = state.broken_dependency(*job)) {
      const std::string name =
          words.viewer().sees_everything() ? "job " + std::to_string(broken->value()) : "a job that it needs";
      return text + ", which can never start: " + name + " did not succeed";
    }
    const auto waits = std::find_if(job->spec.dependencies.begin(), job->spec.dependencies.end(), [&](const auto& one) {
      return one.kind == DependencyKind::kAfterOk && state.job(one.job) != nullptr;
    });
    if (waits == job->spec.dependencies.end()) return {};
    id = waits->job;
    text += ", which waits for " + words.job(id);
  }
  return {};
}

// The owner has named the job that hers depends on, so its number is no secret.
std::string dependency_text(const Words& words, const JobState& job, const Reason& reason) {
  const auto& all = job.spec.dependencies;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.job == reason.job; });
  std::string until;
  if (found != all.end()) {
    until = found->kind == DependencyKind::kAfterOk ? " to succeed"
            : found->kind == DependencyKind::kAfter ? " to start"
                                                    : " to end";
  }
  return "waits for job " + std::to_string(reason.job.value()) + until + hopeless_dependency(words, reason.job);
}

// "4 GPUs are free on 2 nodes that it may use, but not in one NUMA domain"
std::string numa_text(const Reason& reason) {
  if (reason.asked == 0) {  // an exclusive task gets all GPUs of its node
    if (reason.limit == 0)
      return "waits: its tasks would find idle nodes, but not each with all GPUs in one NUMA domain";
    return "waits: " + counted(reason.limit, "node") + (reason.limit == 1 ? " is idle" : " are idle") +
           ", but none has all its GPUs in one NUMA domain";
  }
  const std::string gpus = counted(kDimGpu, reason.asked * kMilli);
  const std::string domains = reason.wish == name_of(NumaPolicy::kSingleNumaNode)
                                  ? "in one NUMA domain"
                                  : "in as few NUMA domains as an empty node would need";
  if (reason.limit == 0) return "waits: its tasks of " + gpus + " would find room, but not each " + domains;
  return "waits: " + gpus + (is_one(kDimGpu, reason.asked * kMilli) ? " is" : " are") + " free on " +
         counted(reason.limit, "node") + " that it may use, but not " + domains;
}

// "1 of 4 nodes that could hold a task runs them, too few for all tasks even if empty"
std::string containers_text(const Reason& reason) {
  return "can never start: " + (reason.wish.empty() ? "it" : reason.wish) + " needs containers for its image, and " +
         (reason.limit == 0 ? "none" : std::to_string(reason.limit)) + " of " + counted(reason.used, "node") +
         " that could hold a task " + (reason.limit <= 1 ? "runs" : "run") + " them" +
         (reason.limit == 0 ? "" : ", too few for all tasks even if empty");
}

std::string isolation_text(const Words& words, const Reason& reason) {
  const State& state = words.state();
  const state::PoolState& pool = state.pools()[state.node(reason.node).pool];
  const std::size_t level = *pool.trust_domain_isolation;
  const auto& levels = state.topology().levels();
  std::string text = would_fit_on(words, reason) + "pool " + pool.name + " keeps trust domains apart within one " +
                     (level == levels.size() ? "node" : levels[level]);
  if (reason.job.valid()) text += ", and " + words.job(reason.job) + " there is of another trust domain";
  return text;
}

std::string ports_of_reason(const Words& words, const Reason& reason) {
  if (reason.rule == PlaceRule::kAlone)
    return "waits: its tasks all listen on " + reason.wish +
           ", so each needs a node of its own, and too few nodes have room";
  return would_fit_on(words, reason) + other_job(words, reason) + " has " + reason.wish + " there";
}

std::string affinity_text(const Words& words, const Reason& reason) {
  const std::string there = would_fit_on(words, reason);
  switch (reason.rule) {
    case PlaceRule::kAway:
      return there + "must be away from " + reason.wish + ", and " + other_job(words, reason) + " is there";
    case PlaceRule::kExcluded:
      return there + other_job(words, reason) + " keeps jobs like this one away within one " + reason.wish;
    case PlaceRule::kAlone:
      return "waits: its tasks must be away from each other (" + reason.wish + "), and too few such places have room";
    case PlaceRule::kTogether:
      return "waits: its tasks must be together (" + reason.wish + "), and no such place has room for all";
    case PlaceRule::kNear:
    case PlaceRule::kJob:
    case PlaceRule::kGroup:
    case PlaceRule::kGroups:
    case PlaceRule::kNuma:
      return there + "must be near " + reason.wish + ", and no such job with room beside it is there";
  }
  return {};
}

std::string never_fits_text(const Words& words, const Reason& reason) {
  if (words.state().nodes().empty()) return "can never start: the cluster has no nodes";
  if (reason.domain.valid() || reason.node.valid()) return topology_text(words, reason);
  if (reason.rule == PlaceRule::kAlone) {
    return "can never start: its tasks must be away from each other " + reason.wish +
           ", and too few such places could hold one, even if empty";
  }
  const std::string what = reason.wish.empty() ? "it" : reason.wish;
  if (reason.rule == PlaceRule::kNuma)
    return "can never start: the fleet could not hold " + what + " under its NUMA policy, even if empty";
  if (!reason.wish.empty() && reason.rule != PlaceRule::kGroup) {
    return "can never start: it must be within " + reason.wish +
           (reason.limit == 0 ? ", but no node that could hold one of its tasks is"
                              : ", but the nodes that are could not hold its tasks, even if empty");
  }
  return "can never start: the fleet could not hold " + what + ", even if empty";
}

std::string countable_text(const Words& words, const Reason& reason) {
  if (reason.wish == kPodsCountable)
    return "waits: the nodes with room for it run as many pods as they take (" + reason.wish + ")";
  const std::string waits = "waits for " + reason.wish + ": a task asks for " + std::to_string(reason.asked) + ", and ";
  if (reason.limit == 0) return waits + "none is free on a node that it could use";
  const std::string most = "the most that is free on one node is " + std::to_string(reason.limit) + " (" +
                           words.state().node(reason.node).spec.name + ")";
  if (reason.limit < reason.asked) return waits + most;
  return waits + "what is free on the nodes that it could use is enough for " + counted(reason.used, "task") + "; " +
         most;
}

// "waits for quota: it asks for 1 GPU, and "
std::string quota_asks(const Words& words, const Reason& reason) {
  return "waits for quota: it asks for " + quantity_text(words.state(), reason.dim, reason.asked) + ", and ";
}

std::string user_limit_text(const Words& words, const JobState& job, const Reason& reason) {
  const std::string in = " in " + words.queue(reason.queue);
  if (reason.dim == kDims) {
    return "waits: its user " + job.spec.user + " runs " + std::to_string(reason.used) + " of at most " +
           counted(reason.limit, "job") + in + " (max_jobs_per_user)";
  }
  return quota_asks(words, reason) + "its user " + job.spec.user + " has " + amount_text(reason.dim, reason.used) +
         " of at most " + amount_text(reason.dim, reason.limit) + in + " (max_gpus_per_user)";
}

std::string reservation_text(const Words& words, const Reason& reason) {
  const bool seen = words.sees_job(reason.job);
  return "waits so that it does not delay " + words.job(reason.job) + ": it would fit only where " +
         (seen ? words.job(reason.job) : "that job") + " has a backfill reservation at " +
         words.time_and_span({reason.limit}) + ", and might still run then";
}

}  // namespace

std::string impossible_text(const Words& words, const JobState& job) {
  const State& state = words.state();
  const auto limit = state::impossible_limit(state, job.queue, job.spec);
  if (!limit) return {};
  const std::string queue = words.queue(limit->queue);
  if (limit->dim == kDims)
    return "can never start: a user may run no job in " + queue + " (max_jobs_per_user 0). Use another queue";
  const std::string most = amount_text(limit->dim, limit->limit);
  const std::string asks = "can never start: it asks for " + quantity_text(state, limit->dim, limit->asked) + ", and ";
  const bool mig = std::any_of(job.spec.groups.begin(), job.spec.groups.end(),
                               [](const TaskGroup& group) { return !group.request.mig_profile.empty(); });
  const std::string less = mig && limit->dim >= kDimFirstModel ? "a smaller profile" : most;
  const std::string advice =
      (limit->limit == 0 ? std::string(". Use") : ". Ask for " + less + ", or use") + " another queue";
  if (limit->of_user)
    return asks + "a user may have at most " + most + " in " + queue + " (max_gpus_per_user)" + advice;
  return asks + queue + " may use at most " + most + " (max)" +
         (limit->on_each_model ? "; no other model that it accepts allows more" : "") + advice;
}

std::string reason_text(const Words& words, const JobState& job, const Reason& reason) {
  const auto used_of_limit = [&](const std::string& of) {
    const std::int64_t limit = std::max<std::int64_t>(0, reason.limit);
    return amount_text(reason.dim, reason.used) + of + amount_text(reason.dim, limit);
  };
  switch (reason.code) {
    case ReasonCode::kNone:
      return "starts in the next cycle: nothing holds it back";
    case ReasonCode::kHeld:
      return "is on hold; 'berth release " + std::to_string(job.id.value()) + "' ends that";
    case ReasonCode::kEarliestStart:
      return "waits for its earliest start";
    case ReasonCode::kDependency:
      return dependency_text(words, job, reason);
    case ReasonCode::kDependencyNever:
      return "can never start: it needs job " + std::to_string(reason.job.value()) + " to succeed, which did not";
    case ReasonCode::kQuotaMax:
      return quota_asks(words, reason) + words.queue(reason.queue) + " uses " + used_of_limit(" of at most ") +
             " (max)";
    case ReasonCode::kQuotaLentOut:
      return quota_asks(words, reason) + words.queue(reason.queue) + " uses " + used_of_limit(" of the ") +
             " that others do not keep back (lending_limit)";
    case ReasonCode::kUserLimit:
      return user_limit_text(words, job, reason);
    case ReasonCode::kNoEligibleNode:
      return "can never start: " + (reason.wish.empty() ? std::string() : "for " + reason.wish + ", ") +
             no_eligible_node(words, job, static_cast<std::size_t>(reason.group));
    case ReasonCode::kInsufficientResources:
    case ReasonCode::kFragmented:
      return text_with_what_is_short(words, job, reason);
    case ReasonCode::kTopology:
      return topology_text(words, reason);
    case ReasonCode::kNeverFits:
      return never_fits_text(words, reason);
    case ReasonCode::kWaitsForVictims:
      return nominated_text(words, job);
    case ReasonCode::kWouldDelayReservation:
      return reservation_text(words, reason);
    case ReasonCode::kBehindQueueHead:
      return "waits behind " + words.job(reason.job) + ": " + words.queue(job.queue) +
             " is strict, so nothing passes its first job";
    case ReasonCode::kArrayLimit:
      return "waits: its array runs as many elements as array.running allows";
    case ReasonCode::kTrustDomain:
      return isolation_text(words, reason);
    case ReasonCode::kAffinity:
      return affinity_text(words, reason);
    case ReasonCode::kMaintenance:
      return "waits: " + maintenance_text(words, reason);
    case ReasonCode::kNuma:
      return numa_text(reason);
    case ReasonCode::kContainers:
      return containers_text(reason);
    case ReasonCode::kPorts:
      return ports_of_reason(words, reason);
    case ReasonCode::kBudget:
    case ReasonCode::kGrant:
      return budget_text(words, reason);
    case ReasonCode::kCountable:
      return countable_text(words, reason);
    case ReasonCode::kParent:
      return "runs through its replicas or elements";
  }
  return {};
}

}  // namespace berth::explain
