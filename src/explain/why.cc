#include "explain/why.h"

#include <algorithm>
#include <optional>

#include "explain/children.h"
#include "explain/never.h"
#include "explain/pending_reason.h"
#include "explain/preemption.h"
#include "explain/queue_position.h"
#include "explain/shortage.h"
#include "explain/text_list.h"
#include "explain/unavailable.h"
#include "model/document/quantity.h"
#include "sched/backfill/backfill.h"
#include "sched/place/place.h"
#include "sched/queue/quota.h"
#include "sched/start.h"
#include "state/back_off.h"
#include "state/estimate.h"
#include "state/transaction.h"

namespace berth::explain {

using namespace sched;

namespace {

using state::JobState;
using state::QueueState;
using state::State;

std::string thousandths(std::int64_t amount) {
  if (amount < 0) return "-" + thousandths(-amount);
  std::string text = std::to_string(amount / 1000);
  std::int64_t rest = amount % 1000;
  if (rest == 0) return text;
  std::string digits = std::to_string(1000 + rest).substr(1);
  while (digits.back() == '0') digits.pop_back();
  return text + "." + digits;
}

std::string job_name(JobId job) { return "job " + std::to_string(job.value()); }

// "5 x 1 GPU", "1 x 4 CPUs", "2 x 1g.10gb"
std::string tasks_text(const TaskGroup& group) {
  const TaskRequest& request = group.request;
  return std::to_string(group.least()) + " x " +
         (request.gpus == 0              ? counted(kDimCpu, request.cpu_milli)
          : !request.mig_profile.empty() ? request.mig_profile
                                         : counted(kDimGpu, request.total_gpu_milli()));
}

void describe_quota(const State& state, const JobState& job, const Reason& reason, std::vector<std::string>& details) {
  Amounts asked = least_amounts(state, job.spec);
  // An exclusive job counts all that its nodes have.
  if (reason.code == ReasonCode::kQuotaMax) asked[reason.dim] = std::max(asked[reason.dim], reason.asked);
  for (QueueId id = job.queue; id != state.root(); id = state.queue(id).parent) {
    const QueueState& queue = state.queue(id);
    for (const std::size_t dim : {kDimGpu, kDimCpu, kDimMemory}) {
      if (asked[dim] == 0 || (queue.max[dim] == kUnlimited && !queue.guaranteed.states(dim))) continue;
      std::string line = "queue " + queue.path + " uses " + quantity_text(state, dim, queue.usage[dim]);
      if (queue.guaranteed.states(dim)) {
        line += ", guaranteed " + amount_text(dim, queue.guaranteed.amounts[dim]) + " (" +
                amount_text(dim, queue.within_usage[dim]) + " within)";
      }
      if (queue.max[dim] != kUnlimited) line += ", max " + amount_text(dim, queue.max[dim]);
      details.push_back(line + "; the job needs " + amount_text(dim, asked[dim]));
    }
  }
}

void describe_fleet(const State& state, const JobState& job, std::vector<std::string>& details) {
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const TaskGroup& group = job.spec.groups[g];
    const TaskRequirements ask = task_requirements(state, job, g, kAllModels);
    std::int64_t allowed = 0;
    std::int64_t closed = 0;
    bool maintained = false;
    const bool wants_gpus = group.request.gpus > 0;
    std::int64_t idle = 0;  // CPUs, where no GPUs are asked
    std::int64_t most_free = 0;
    for (const state::NodeState& node : state.nodes()) {
      if (!could_hold(state, ask, node)) continue;
      if (!node.takes_tasks()) {
        ++closed;
        maintained = maintained || node.maintained > 0;
        continue;
      }
      ++allowed;
      const auto whole = std::count_if(node.gpus.begin(), node.gpus.end(),
                                       [](const state::GpuSlot& gpu) { return gpu.available_milli() == kMilli; });
      const std::int64_t here = wants_gpus ? whole : std::max<std::int64_t>(0, node.available_cpu_milli());
      idle += here;
      most_free = std::max<std::int64_t>(most_free, here);
    }
    std::string line = "group " + group.name + " needs " + tasks_text(group) + "; " + counted(allowed, "eligible node");
    if (closed > 0) {
      line += " (" + std::to_string(closed) + " more cordoned" + (maintained ? ", under maintenance" : "") +
              " or out of contact)";
    }
    const bool of_parts = group.request.is_share();
    line += ", " + (wants_gpus ? counted(idle, of_parts ? "whole GPU" : "GPU") : counted(kDimCpu, idle)) + " free";
    if (allowed > 1 && idle > 0)
      line +=
          ", at most " + (wants_gpus ? std::to_string(most_free) : amount_text(kDimCpu, most_free)) + " on one node";
    details.push_back(line);
  }
}

// Returns the victims of the nomination that have not left yet, or not scaled down.
std::vector<const JobState*> still_leaving(const State& state, const JobState& preemptor) {
  std::vector<const JobState*> leaving;
  for (const JobId id : preemptor.nomination->victims) {
    const JobState* victim = state.job(id);
    if (victim == nullptr || !victim->attempt || !victim->attempt->stop) continue;
    const JobId beneficiary = victim->attempt->stop->preemptor;  // none if it stops for another cause by now
    if (beneficiary == preemptor.id || !beneficiary.valid()) leaving.push_back(victim);
  }
  return leaving;
}

std::int64_t tasks_given_back(const JobState& gang) {
  return static_cast<std::int64_t>(gang.attempt->tasks.size()) - std::int64_t{gang.attempt->stop->keep};
}

// The reason of a nominated job: how many victims leave, how many only scale down, and by how many tasks.
Reason waits_for(const State& state, const JobState& preemptor) {
  Reason why;
  why.code = ReasonCode::kWaitsForVictims;
  for (const JobState* victim : still_leaving(state, preemptor)) {
    if (!why.job.valid()) why.job = victim->id;
    const bool goes_on = victim->attempt->shrinking();
    why.limit += goes_on ? 0 : 1;
    why.used += goes_on ? 1 : 0;
    why.asked += goes_on ? tasks_given_back(*victim) : 0;
  }
  return why;
}

std::string waits_for_text(const Reason& why) {
  if (why.limit == 0 && why.used == 0) return "nominated; all its victims have left";
  std::string text = "nominated; waits for ";
  if (why.limit > 0) text += counted(why.limit, "job") + " to checkpoint and leave";
  if (why.used == 0) return text;
  return text + (why.limit > 0 ? " and for " : "") + counted(why.used, "job") + " to scale down by " +
         counted(why.asked, "task");
}

// "n3", "n3, n4"
std::string node_names(const State& state, const std::vector<TaskPlacement>& placements) {
  std::string text;
  NodeId before;
  for (const TaskPlacement& one : placements) {
    if (one.node != before) text += (text.empty() ? "" : ", ") + state.node(one.node).spec.name;
    before = one.node;
  }
  return text;
}

// " leaves", " moves to n3"
std::string leaves_text(const State& state, const JobState& victim) {
  const auto& to = victim.attempt->stop->to;
  return to.empty() ? " leaves" : " moves to " + state.node(to.front().node).spec.name;
}

// "being stopped (reclaim)", "moving to n3 so that job 4 fits (consolidate)", "scaling down by 2 of 4 tasks (preempt)"
std::string stopping_text(const State& state, const JobState& job) {
  const std::string cause = " (" + std::string(name_of(job.attempt->stop->cause)) + ")";
  const auto& to = job.attempt->stop->to;
  if (!to.empty()) {
    const JobId preemptor = job.attempt->stop->preemptor;
    return "moving to " + node_names(state, to) +
           (preemptor.valid() ? " so that " + job_name(preemptor) + " fits" : ", as ordered") + cause;
  }
  if (!job.attempt->shrinking()) return "being stopped" + cause;
  return "scaling down by " + std::to_string(tasks_given_back(job)) + " of " +
         counted(static_cast<std::int64_t>(job.attempt->tasks.size()), "task") + cause;
}

Reason blocking_reason(State& state, const JobState& job, Timestamp now) {
  if (job.nomination) return waits_for(state, job);
  SearchStats work;
  return pending_reason(state, job, now, work).value_or(Reason());
}

// Returns what would refuse the job if quota did not, backfill reservations included; nothing if it would find places.
std::optional<Reason> refused_beside_quota(State& state, const JobState& job, Timestamp now) {
  SearchStats work;
  const Admission no_quota{kAllModels, {}};
  state::Transaction transaction(state);
  StartAnswer answer = try_start(transaction, {state, job, now, work, &no_quota, QuotaOfPlaces::kUnchecked});
  return answer ? std::nullopt : std::optional(std::move(answer.why));
}

// For a job that quota refuses, adds whether places are free for it: the refusal of quota may hide that there are none.
void describe_others(State& state, const JobState& job, const Reason& first, Timestamp now,
                     std::vector<std::string>& details) {
  if (!is_quota_reason(first.code)) return;
  const auto refused = refused_beside_quota(state, job, now);
  details.push_back("quota aside: " +
                    (refused ? sentence_with_what_is_short(state, job, *refused) : "places are free for the job"));
}

// Returns true if preemption or reclaim could help a job with this reason.
bool claims_help(ReasonCode code) {
  return lacks_places(code) || code == ReasonCode::kQuotaMax || code == ReasonCode::kQuotaLentOut ||
         code == ReasonCode::kWouldDelayReservation;
}

// How long the job is expected to run. Beside backfill reservations the expectation at its submission or last start
// counts, so that a job parked behind one stays parked until the reservation changes.
std::vector<std::string> expected_run(const State& state, const JobState& job) {
  const auto now = state::estimate(state, job);
  if (!now.known()) return {};
  const std::string text = "expected to run " + state::estimate_text(now);
  if (now.seconds == job.expected_s || state.reservations().empty()) return {text};
  return {text + "; beside backfill reservations " + document::duration_text(job.expected_s) +
          " counts, the expectation at submission"};
}

void append(std::vector<std::string>& details, const std::vector<std::string>& more) {
  details.insert(details.end(), more.begin(), more.end());
}

}  // namespace

std::string amount_text(std::size_t dim, std::int64_t amount) {
  if (amount == kUnlimited) return "unlimited";
  if (dim == kDimMemory)
    return amount % 1024 == 0 ? std::to_string(amount / 1024) + " GiB" : std::to_string(amount) + " MiB";
  if (dim == kDimGpuEquivalent) return thousandths(amount / 1000);
  return thousandths(amount);
}

std::string queue_name(const State& state, QueueId queue) {
  return queue == state.root() ? std::string("the cluster") : "queue " + state.queue(queue).path;
}

std::string quantity_text(const State& state, std::size_t dim, std::int64_t amount) {
  if (dim == kDimGpu || dim == kDimCpu || dim == kDimMemory) return counted(dim, amount);
  const std::string number = amount_text(dim, amount);
  const std::string what =
      dim == kDimGpuEquivalent ? "GPU-equivalent" : state.gpu_models()[dim - kDimFirstModel].name + " GPU";
  return number + " " + what + (number == "1" ? "" : "s");
}

std::string dim_name(const State& state, std::size_t dim) {
  if (dim == kDimGpu) return "gpus";
  if (dim == kDimCpu) return "cpus";
  if (dim == kDimMemory) return "memory";
  if (dim == kDimGpuEquivalent) return "gpu-equivalents";
  const std::size_t model = dim - kDimFirstModel;
  return model < state.gpu_models().size() ? "gpus." + state.gpu_models()[model].name : "?";
}

namespace {

// "needs 64 GPUs within one rack; z1/b1/r3 comes closest: 52 free, 48 of them in pieces that its tasks can use"
std::string topology_sentence(const State& state, const Reason& reason) {
  if (reason.rule == PlaceRule::kGroups)
    return "each of its groups alone fits in a domain of its required level, but not beside the others";
  if (!reason.domain.valid() && !reason.node.valid())
    return "enough is free, but no node is in a domain of the required level";
  const bool node = reason.node.valid();
  const auto& levels = state.topology().levels();
  const std::string level = node ? "node" : levels[state.topology().domain(reason.domain).level];
  const std::string name = node ? state.node(reason.node).spec.name : state.topology().domain(reason.domain).path;
  std::string text = (reason.rule == PlaceRule::kGroup ? reason.wish + " needs " : "needs ") +
                     (reason.asked > 0 ? counted(kDimGpu, reason.asked) : std::string("to be")) + " within one " +
                     level;
  if (is_never(reason.code)) return text + "; no " + level + " could hold that, even if empty";
  text += "; " + name + " comes closest: ";
  if (reason.asked == 0) return text + "its tasks need more than is free there";
  text += amount_text(kDimGpu, reason.limit) + " free";
  if (reason.used < std::min(reason.limit, reason.asked))
    text += ", " + amount_text(kDimGpu, reason.used) + " of them in pieces that its tasks can use";
  else if (reason.limit >= reason.asked)
    text += ", but too little CPU or memory beside them";
  return text;
}

// Of a dependency that can never start, because one that it depends on did not succeed: the chain that leads there.
std::string hopeless_dependency(const State& state, JobId id) {
  constexpr int kMostLinks = 64;
  std::string text;
  for (int links = 0; links < kMostLinks; ++links) {
    const JobState* job = state.job(id);
    if (job == nullptr || job->attempt) return {};
    if (const auto broken = state.broken_dependency(*job)) {
      return text + ", which can never start: " + job_name(*broken) + " did not succeed";
    }
    const auto waits = std::find_if(job->spec.dependencies.begin(), job->spec.dependencies.end(), [&](const auto& one) {
      return one.kind == DependencyKind::kAfterOk && state.job(one.job) != nullptr;
    });
    if (waits == job->spec.dependencies.end()) return {};
    id = waits->job;
    text += ", which waits for " + job_name(id);
  }
  return {};
}

// Of an exclusive task, which gets all GPUs of its node.
std::string numa_sentence_of_nodes(const Reason& reason) {
  if (reason.limit == 0) return "its tasks would find idle nodes, but not each with all GPUs in one NUMA domain";
  return counted(reason.limit, "idle eligible node") + ", but none with all its GPUs in one NUMA domain";
}

// "4 GPUs free on 2 eligible nodes, but not in one NUMA domain"
std::string numa_sentence(const Reason& reason) {
  if (reason.asked == 0) return numa_sentence_of_nodes(reason);
  const std::string gpus = counted(kDimGpu, reason.asked * kMilli);
  const std::string domains = reason.wish == name_of(NumaPolicy::kSingleNumaNode)
                                  ? "in one NUMA domain"
                                  : "in as few NUMA domains as an empty node would need";
  if (reason.limit == 0) return "its tasks of " + gpus + " would find room, but not each " + domains;
  return gpus + " free on " + counted(reason.limit, "eligible node") + ", but not " + domains;
}

// "needs containers for its image; 1 of 4 nodes that could hold a task runs them, too few for all tasks even if empty"
std::string containers_sentence(const Reason& reason) {
  return (reason.wish.empty() ? "" : reason.wish + " ") + "needs containers for its image; " +
         std::to_string(reason.limit) + " of " + counted(reason.used, "node") + " that could hold a task " +
         (reason.limit == 1 ? "runs" : "run") + " them" +
         (reason.limit == 0 ? "" : ", too few for all tasks even if empty");
}

std::string level_text(const State& state, std::size_t level) {
  return level == state.topology().levels().size() ? "node" : state.topology().levels()[level];
}

std::string apart_sentence(const State& state, const Reason& reason) {
  const state::PoolState& pool = state.pools()[state.node(reason.node).pool];
  std::string text = "would fit on node " + state.node(reason.node).spec.name + ", but pool " + pool.name +
                     " keeps trust domains apart within one " + level_text(state, *pool.trust_domain_isolation);
  if (reason.job.valid()) text += ", and " + job_name(reason.job) + " of another trust domain is there";
  return text;
}

std::string ports_sentence(const State& state, const Reason& reason) {
  if (reason.rule == PlaceRule::kAlone)
    return "its tasks all listen on " + reason.wish + ", so each needs a node of its own, and too few nodes have room";
  return "would fit on node " + state.node(reason.node).spec.name + ", but " +
         (reason.job.valid() ? job_name(reason.job) : std::string("another job")) + " has " + reason.wish + " there";
}

std::string affinity_sentence(const State& state, const Reason& reason) {
  const std::string there = "would fit on node " + state.node(reason.node).spec.name + ", but ";
  const std::string other = reason.job.valid() ? job_name(reason.job) : std::string("another job");
  switch (reason.rule) {
    case PlaceRule::kAway:
      return there + "must be away from " + reason.wish + ", and " + other + " is there";
    case PlaceRule::kExcluded:
      return there + other + " keeps jobs like this one away within one " + reason.wish;
    case PlaceRule::kAlone:
      return "its tasks must be away from each other (" + reason.wish + "), and too few such places have room";
    case PlaceRule::kTogether:
      return "its tasks must be together (" + reason.wish + "), and no such place has room for all";
    case PlaceRule::kNear:
    case PlaceRule::kJob:
    case PlaceRule::kGroup:
    case PlaceRule::kGroups:
    case PlaceRule::kNuma:
      return there + "must be near " + reason.wish + ", and no such job with room beside it is there";
  }
  return {};
}

}  // namespace

std::string sentence(const State& state, const Reason& reason) {
  const auto needs = [&] { return "needs " + quantity_text(state, reason.dim, reason.asked) + "; "; };
  const auto used_of_limit = [&] {
    return amount_text(reason.dim, reason.used) + " of " +
           amount_text(reason.dim, std::max<std::int64_t>(0, reason.limit));
  };
  const std::string group = reason.wish.empty() ? "" : reason.wish + " ";
  switch (reason.code) {
    case ReasonCode::kNone:
      return "nothing blocks it; starts in the next cycle";
    case ReasonCode::kHeld:
      return "on hold; 'berth release' ends the hold";
    case ReasonCode::kEarliestStart:
      return "does not start before " + to_iso8601({reason.limit});
    case ReasonCode::kDependency:
      return "waits for " + job_name(reason.job) + hopeless_dependency(state, reason.job);
    case ReasonCode::kDependencyNever:
      return "needs " + job_name(reason.job) + " to succeed, which did not";
    case ReasonCode::kQuotaMax:
      return needs() + queue_name(state, reason.queue) + " uses " + used_of_limit() + " (max)";
    case ReasonCode::kQuotaLentOut:
      return needs() + queue_name(state, reason.queue) + " uses " + used_of_limit() +
             " that the lending_limit of its queues leaves";
    case ReasonCode::kNoEligibleNode:
      return "no eligible node" + (reason.wish.empty() ? "" : " for " + reason.wish) +
             ": none in a pool open to it has the labels that it selects and only taints that it tolerates";
    case ReasonCode::kInsufficientResources:
    case ReasonCode::kFragmented:
      return group + "needs " + counted(reason.dim, reason.asked) + "; " + amount_text(reason.dim, reason.limit) +
             " free on eligible nodes" +
             (reason.asked == 0 || reason.limit < reason.asked ? "" : ", but too scattered for its tasks");
    case ReasonCode::kTopology:
      return topology_sentence(state, reason);
    case ReasonCode::kNeverFits:
      if (reason.domain.valid() || reason.node.valid()) return topology_sentence(state, reason);
      if (reason.rule == PlaceRule::kAlone) {
        return "its tasks must be away from each other " + reason.wish +
               ", and too few such places could hold one, even if empty";
      }
      if (reason.rule == PlaceRule::kNuma)
        return "the fleet could not hold " + (reason.wish.empty() ? "it" : reason.wish) +
               " under its NUMA policy, even if empty";
      if (!reason.wish.empty() && reason.rule != PlaceRule::kGroup) {
        return "must be within " + reason.wish +
               (reason.limit == 0 ? ", but no node that could hold one of its tasks is"
                                  : ", but the nodes that are could not hold its tasks, even if empty");
      }
      return "the fleet could not hold " + (reason.wish.empty() ? "it" : reason.wish) + " even if empty";
    case ReasonCode::kWaitsForVictims:
      return waits_for_text(reason);
    case ReasonCode::kWouldDelayReservation:
      return "would fit only where " + job_name(reason.job) + " has a backfill reservation at " +
             to_iso8601({reason.limit}) + ", and might still run then";
    case ReasonCode::kBehindQueueHead:
      return "behind " + job_name(reason.job) + ", the head of its strict queue";
    case ReasonCode::kArrayLimit:
      return "its array runs as many elements as array.running allows";
    case ReasonCode::kUserLimit:
      if (reason.dim == kDims) {
        return "its user runs " + counted(reason.used, "job") + " of " + std::to_string(reason.limit) + " in " +
               queue_name(state, reason.queue) + " (max_jobs_per_user)";
      }
      return needs() + "its user has " + used_of_limit() + " in " + queue_name(state, reason.queue) +
             " (max_gpus_per_user)";
    case ReasonCode::kTrustDomain:
      return apart_sentence(state, reason);
    case ReasonCode::kAffinity:
      return affinity_sentence(state, reason);
    case ReasonCode::kPorts:
      return ports_sentence(state, reason);
    case ReasonCode::kMaintenance:
      return maintenance_sentence(state, reason);
    case ReasonCode::kNuma:
      return numa_sentence(reason);
    case ReasonCode::kContainers:
      return containers_sentence(reason);
    case ReasonCode::kParent:
      return "runs through its replicas or elements";
  }
  return {};
}

namespace {

// " (back-off: 4s after the end of attempt 3, failed)", or nothing if the job does not wait for its back-off.
std::string pause_after_end(const JobState& job, ReasonCode code) {
  if (code != ReasonCode::kEarliestStart || job.past.empty()) return {};
  const state::AttemptRecord& last = job.past.back();
  const std::int64_t pause_ms = state::back_off_ms(job);
  if (last.ended + pause_ms != job.not_before) return {};
  return " (back-off: " + document::duration_text(pause_ms / 1000) + " after the end of attempt " +
         std::to_string(last.number) + ", " + std::string(name_of(last.outcome)) + ")";
}

}  // namespace

Explanation why_briefly(State& state, const JobState& job, Timestamp now) {
  Explanation explanation;
  explanation.job = job.id;
  explanation.reason = blocking_reason(state, job, now);
  const Reason& reason = explanation.reason;
  if (reason.code == ReasonCode::kParent) {
    explanation.summary = explain_children(state, job, now);
    return explanation;
  }
  const std::vector<std::string> notes = unavailable_notes(state, job, reason.code);
  const std::string lacks = what_the_fleet_lacks(state, job, reason) + pause_after_end(job, reason.code);
  explanation.summary = (lacks.empty() ? sentence_with_what_is_short(state, job, reason, notes)
                                       : sentence(state, reason) + lacks + in_parentheses(notes)) +
                        closed_pools(state, job, reason.code);
  return explanation;
}

Explanation why(State& state, JobId id, Timestamp now) {
  Explanation explanation;
  explanation.job = id;
  const JobState* job = state.job(id);
  if (job == nullptr) {
    explanation.summary = "no such job";
    return explanation;
  }
  if (job->attempt) {
    explanation.summary = job->attempt->stop
                              ? stopping_text(state, *job)
                              : "running since " + to_iso8601(job->attempt->started) + tasks_of_all(*job);
    if (!job->attempt->stop && job->is_elastic()) explanation.details = explain_growth(state, *job, now);
    return explanation;
  }
  state.pass_deadlines(now);
  explanation = why_briefly(state, *job, now);
  if (explanation.reason.code == ReasonCode::kWaitsForVictims) {
    for (const JobState* victim : still_leaving(state, *job)) {
      const std::int64_t tasks = victim->attempt->shrinking() ? tasks_given_back(*victim) : 0;
      explanation.details.push_back(
          job_name(victim->id) + " (queue " + state.queue(victim->queue).path + ")" +
          (tasks > 0 ? " scales down by " + counted(tasks, "task") : leaves_text(state, *victim)) + " by " +
          to_iso8601(victim->attempt->stop->deadline));
    }
  }
  if (job->spec.deadline) {
    explanation.details.push_back("deadline " + to_iso8601(*job->spec.deadline) + "; urgent from " +
                                  to_iso8601(state.urgent_from(job->spec)));
  }
  if (!job->is_parent()) {
    describe_quota(state, *job, explanation.reason, explanation.details);
    describe_fleet(state, *job, explanation.details);
    append(explanation.details, pool_rules(state, *job));
    describe_others(state, *job, explanation.reason, now, explanation.details);
    append(explanation.details, explain_position(state, *job, now));
    if (job->reservation) {
      explanation.details.push_back("has a backfill reservation at " + to_iso8601(job->reservation->start) +
                                    (job->reservation->start > job->reservation->first_start
                                         ? ", at first at " + to_iso8601(job->reservation->first_start)
                                         : ""));
    }
    append(explanation.details, expected_run(state, *job));
    if (claims_help(explanation.reason.code)) append(explanation.details, explain_preemption(state, *job, now));
    explanation.changes = smallest_remedies(state, id, now);
  }
  return explanation;
}

}  // namespace berth::explain
