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

std::string queue_name(const State& state, QueueId queue) {
  return queue == state.root() ? std::string("the cluster") : "queue " + state.queue(queue).path;
}

std::string job_name(JobId job) { return "job " + std::to_string(job.value()); }

void describe_quota(const State& state, const JobState& job, const Reason& reason, std::vector<std::string>& details) {
  Amounts asked = least_amounts(state, job.spec);
  // An exclusive job counts all that its nodes have.
  if (reason.code == ReasonCode::kQuotaMax) asked[reason.dim] = std::max(asked[reason.dim], reason.asked);
  for (QueueId id = job.queue; id != state.root(); id = state.queue(id).parent) {
    const QueueState& queue = state.queue(id);
    for (const std::size_t dim : {kDimGpu, kDimCpu, kDimMemory}) {
      if (asked[dim] == 0 || (queue.max[dim] == kUnlimited && !queue.guaranteed.states(dim))) continue;
      std::string line =
          "queue " + queue.path + ": " + dim_name(state, dim) + " used " + amount_text(dim, queue.usage[dim]);
      if (queue.guaranteed.states(dim)) {
        line += ", guaranteed " + amount_text(dim, queue.guaranteed.amounts[dim]) + " (within " +
                amount_text(dim, queue.within_usage[dim]) + ")";
      }
      if (queue.max[dim] != kUnlimited) line += ", max " + amount_text(dim, queue.max[dim]);
      details.push_back(line + "; asks " + amount_text(dim, asked[dim]));
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
    std::string line =
        "group " + group.name + ": " + counted(group.least(), "task") + " of " +
        (wants_gpus ? counted(kDimGpu, group.request.total_gpu_milli()) : counted(kDimCpu, group.request.cpu_milli)) +
        "; " + std::to_string(allowed) + (allowed == 1 ? " node could hold one" : " nodes could hold one");
    if (closed > 0) {
      line += " (" + std::to_string(closed) + " more " + (closed == 1 ? "is" : "are") + " cordoned" +
              (maintained ? ", under maintenance" : "") + " or out of contact)";
    }
    if (wants_gpus) {
      line += "; " + std::to_string(idle) + (idle == 1 ? " whole GPU is" : " whole GPUs are") +
              " free there, at most " + std::to_string(most_free) + " on one node";
    } else {
      line += "; " + counted(kDimCpu, idle) + (idle == kMilli ? " is" : " are") + " free there, at most " +
              amount_text(kDimCpu, most_free) + " on one node";
    }
    details.push_back(line);
  }
}

// Those of whom a claimant was promised places that have not left yet, or not given back.
std::vector<const JobState*> still_leaving(const State& state, const JobState& preemptor) {
  std::vector<const JobState*> leaving;
  for (const JobId id : preemptor.nomination->victims) {
    const JobState* victim = state.job(id);
    if (victim == nullptr || !victim->attempt || !victim->attempt->stop) continue;
    const JobId whom = victim->attempt->stop->preemptor;  // none if it is asked to leave for another cause by now
    if (whom == preemptor.id || !whom.valid()) leaving.push_back(victim);
  }
  return leaving;
}

std::int64_t tasks_given_back(const JobState& gang) {
  return static_cast<std::int64_t>(gang.attempt->tasks.size()) - std::int64_t{gang.attempt->stop->keep};
}

// How many leave, how many only give back, and how many tasks.
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
  std::string text = "it is promised its GPUs";
  if (why.limit > 0) text += " and waits for " + counted(why.limit, "job") + " to checkpoint and leave";
  if (why.used == 0) return text + (why.limit == 0 ? "; who had to leave for them has left" : "");
  return text + (why.limit > 0 ? " and for " : " and waits for ") + counted(why.used, "job") + " to give back " +
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

// "it is being stopped (reclaim)"
std::string stopping_text(const State& state, const JobState& job) {
  const std::string cause = " (" + std::string(name_of(job.attempt->stop->cause)) + ")";
  const auto& to = job.attempt->stop->to;
  if (!to.empty()) {
    const JobId preemptor = job.attempt->stop->preemptor;
    return "it moves to " + node_names(state, to) +
           (preemptor.valid() ? " so that " + job_name(preemptor) + " fits" : ", as it was told to") + cause;
  }
  if (!job.attempt->shrinking()) return "it is being stopped" + cause;
  return "it gives back " + std::to_string(tasks_given_back(job)) + " of its " +
         std::to_string(job.attempt->tasks.size()) + " tasks" + cause + " and goes on with the others";
}

Reason blocking_reason(State& state, const JobState& job, Timestamp now) {
  if (job.nomination) return waits_for(state, job);
  SearchStats work;
  return pending_reason(state, job, now, work).value_or(Reason());
}

// What would refuse it if there were quota, or nothing: there are places, also beside the starts held for others.
std::optional<Reason> refused_beside_quota(State& state, const JobState& job, Timestamp now) {
  SearchStats work;
  Reason why;
  const auto placements = place(state, job, kAllModels, work, why);
  if (!placements) return why;
  const std::vector<JobId> owners = not_passed(state, job, now);
  const JobId delayed = first_delayed(state, job.queue, owners, *placements);
  if (!delayed.valid()) return std::nullopt;
  state::Transaction transaction(state);
  for (const JobId owner : owners) transaction.set_aside(owner, state.job(owner)->reservation->placements);
  if (place(state, job, kAllModels, work, why)) return std::nullopt;
  return would_delay(state, delayed);
}

// What else would refuse it, were the first constraint lifted: quota may hide that nothing is free.
void describe_others(State& state, const JobState& job, const Reason& first, Timestamp now,
                     std::vector<std::string>& details) {
  if (first.code != ReasonCode::kQuotaMax && first.code != ReasonCode::kQuotaLentOut &&
      first.code != ReasonCode::kUserLimit)
    return;
  const auto refused = refused_beside_quota(state, job, now);
  details.push_back(refused ? "were there quota: " + sentence_with_what_is_short(state, job, *refused)
                            : "were there quota, it would find its places");
}

bool claims_help(ReasonCode code) {
  return lacks_places(code) || code == ReasonCode::kQuotaMax || code == ReasonCode::kQuotaLentOut ||
         code == ReasonCode::kWouldDelayReservation;
}

// How long it is expected to run, and what was when it was submitted or last started: by that it may start before
// starts that are held, so that who sleeps behind one sleeps until the hold changes.
std::vector<std::string> expected_run(const State& state, const JobState& job) {
  const auto now = state::estimate(state, job);
  if (!now.known()) return {};
  const std::string text = "it is expected to run " + state::estimate_text(now);
  if (now.seconds == job.expected_s || state.reservations().empty()) return {text};
  return {text + "; at starts that are held for others " + document::duration_text(job.expected_s) +
          " counts, which was expected when it was submitted"};
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

std::string dim_name(const State& state, std::size_t dim) {
  if (dim == kDimGpu) return "gpus";
  if (dim == kDimCpu) return "cpus";
  if (dim == kDimMemory) return "memory";
  if (dim == kDimGpuEquivalent) return "gpu-equivalents";
  const std::size_t model = dim - kDimFirstModel;
  return model < state.gpu_models().size() ? "gpus." + state.gpu_models()[model].name : "?";
}

namespace {

// "it asks 64 GPUs within one rack; z1/b1/r3 comes closest: 52 are free there, 48 of them in pieces its tasks can use"
std::string topology_sentence(const State& state, const Reason& reason) {
  if (reason.rule == PlaceRule::kGroups)
    return "each of its groups finds the domain that it requires, but not beside the others";
  if (!reason.domain.valid() && !reason.node.valid())
    return "enough is free, but no node is in a domain of the level it requires";
  const bool node = reason.node.valid();
  const auto& levels = state.topology().levels();
  const std::string level = node ? "node" : levels[state.topology().domain(reason.domain).level];
  const std::string name = node ? state.node(reason.node).spec.name : state.topology().domain(reason.domain).path;
  std::string text = reason.rule == PlaceRule::kGroup ? "its " + reason.wish + " asks " : "it asks ";
  if (reason.asked > 0) text += counted(kDimGpu, reason.asked) + " ";
  text += "within one " + level;
  if (is_never(reason.code)) return text + ", and no " + level + " could hold that, even if it were empty";
  text += "; " + name + " comes closest: ";
  if (reason.asked == 0) return text + "its tasks need more than is free there";
  text += amount_text(kDimGpu, reason.limit) + (reason.limit == kMilli ? " is free there" : " are free there");
  if (reason.used < std::min(reason.limit, reason.asked))
    text += ", " + amount_text(kDimGpu, reason.used) + " of them in pieces that its tasks can use";
  else if (reason.limit >= reason.asked)
    text += ", but with too little CPU or memory beside them";
  return text;
}

// Of a job that others wait for and that can never start, because what it waits for itself has failed.
std::string hopeless_dependency(const State& state, JobId id) {
  constexpr int kMostLinks = 64;
  std::string text;
  for (int links = 0; links < kMostLinks; ++links) {
    const JobState* job = state.job(id);
    if (job == nullptr || job->attempt) return {};
    if (const auto broken = state.broken_dependency(*job)) {
      return text + ", which can never start: it depends on the success of " + job_name(*broken) +
             ", which did not succeed";
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

// An exclusive task gets all GPUs of its node, whatever it asks.
std::string numa_sentence_of_nodes(const Reason& reason) {
  if (reason.limit == 0) return "its tasks would find idle nodes, but not each with all GPUs in one NUMA domain";
  if (reason.limit == 1) return "1 node is idle for it, but not all GPUs of that are in one NUMA domain";
  return std::to_string(reason.limit) + " nodes are idle for it, but none has all its GPUs in one NUMA domain";
}

// "2 nodes have 4 idle GPUs, but not in one NUMA domain"
std::string numa_sentence(const Reason& reason) {
  if (reason.asked == 0) return numa_sentence_of_nodes(reason);
  const std::string gpus = counted(kDimGpu, reason.asked * kMilli);
  const std::string domains = reason.wish == name_of(NumaPolicy::kSingleNumaNode)
                                  ? "in one NUMA domain"
                                  : "in as few NUMA domains as an empty node would need";
  if (reason.limit == 0) return "its tasks of " + gpus + " would find room, but not each " + domains;
  return std::to_string(reason.limit) + (reason.limit == 1 ? " node has " : " nodes have ") + gpus +
         " idle for it, but not " + domains;
}

// "it has an image, and none of the 4 nodes that could hold a task of it runs containers"
std::string containers_sentence(const Reason& reason) {
  const std::string has = (reason.wish.empty() ? "it" : "its " + reason.wish) + " has an image, and ";
  const std::string could = " that could hold a task of it ";
  if (reason.limit == 0 && reason.used == 1) return has + "the only node" + could + "runs no containers";
  const std::string nodes = "of the " + std::to_string(reason.used) + " nodes" + could;
  if (reason.limit == 0) return has + "none " + nodes + "runs containers";
  return has + "only " + std::to_string(reason.limit) + " " + nodes + (reason.limit == 1 ? "runs" : "run") +
         " containers, too few for all its tasks, even if they were empty";
}

std::string level_text(const State& state, std::size_t level) {
  return level == state.topology().levels().size() ? "node" : state.topology().levels()[level];
}

std::string apart_sentence(const State& state, const Reason& reason) {
  const state::PoolState& pool = state.pools()[state.node(reason.node).pool];
  std::string text = "it would fit on node " + state.node(reason.node).spec.name + ", but pool " + pool.name +
                     " keeps trust domains apart within one " + level_text(state, *pool.trust_domain_isolation);
  if (reason.job.valid()) text += ", and " + job_name(reason.job) + " of another one is there";
  return text;
}

std::string ports_sentence(const State& state, const Reason& reason) {
  if (reason.rule == PlaceRule::kAlone)
    return "its tasks listen on the same " + reason.wish + ", each on a node of its own, and too few nodes have room";
  return "it would fit on node " + state.node(reason.node).spec.name + ", but " +
         (reason.job.valid() ? job_name(reason.job) : std::string("somebody")) + " has " + reason.wish + " there";
}

std::string affinity_sentence(const State& state, const Reason& reason) {
  const std::string there = "it would fit on node " + state.node(reason.node).spec.name + ", but ";
  const std::string who = reason.job.valid() ? job_name(reason.job) : std::string("somebody");
  switch (reason.rule) {
    case PlaceRule::kAway:
      return there + "keeps away from " + reason.wish + ", and " + who + " is there";
    case PlaceRule::kExcluded:
      return there + who + " keeps jobs like it away within one " + reason.wish;
    case PlaceRule::kAlone:
      return "its tasks keep away from each other (" + reason.wish + "), and too few such places have room";
    case PlaceRule::kTogether:
      return "its tasks have to be together (" + reason.wish + "), and no such place has room for all";
    case PlaceRule::kNear:
    case PlaceRule::kJob:
    case PlaceRule::kGroup:
    case PlaceRule::kGroups:
    case PlaceRule::kNuma:
      return there + "has to be near " + reason.wish + ", and nothing like that with room beside it is there";
  }
  return {};
}

}  // namespace

std::string sentence(const State& state, const Reason& reason) {
  const auto quota = [&](const std::string& what) {
    return queue_name(state, reason.queue) + " " + what + " " +
           amount_text(reason.dim, std::max<std::int64_t>(0, reason.limit)) + " " + dim_name(state, reason.dim) +
           ", uses " + amount_text(reason.dim, reason.used) + ", and the job asks " +
           amount_text(reason.dim, reason.asked);
  };
  // "it", or the one of its groups that is meant.
  const std::string who = reason.wish.empty() ? "it" : "its " + reason.wish;
  switch (reason.code) {
    case ReasonCode::kNone:
      return "nothing blocks it; it starts in the next cycle";
    case ReasonCode::kHeld:
      return "it is held; 'berth release' lets it go";
    case ReasonCode::kEarliestStart:
      return "it does not start before " + to_iso8601({reason.limit});
    case ReasonCode::kDependency:
      return "it waits for " + job_name(reason.job) + hopeless_dependency(state, reason.job);
    case ReasonCode::kDependencyNever:
      return "it depends on the success of " + job_name(reason.job) + ", which did not succeed";
    case ReasonCode::kQuotaMax:
      return quota("has max");
    case ReasonCode::kQuotaLentOut:
      return quota("has, after what its queues keep for themselves,");
    case ReasonCode::kNoEligibleNode:
      return "no node of a pool that " + who + " may use has the labels it asks for and taints it tolerates";
    case ReasonCode::kInsufficientResources:
    case ReasonCode::kFragmented: {
      const std::string is = is_one(reason.dim, reason.limit) ? " is" : " are";
      if (reason.asked == 0 || reason.limit < reason.asked) {
        const bool several = reason.wish.starts_with("groups ");
        return (reason.wish.empty() ? "the job" : who) + (several ? " ask " : " asks ") +
               counted(reason.dim, reason.asked) + " and " + amount_text(reason.dim, reason.limit) + is +
               " free where it may run";
      }
      return counted(reason.dim, reason.limit) + is + " free where it may run, but not together as its tasks need them";
    }
    case ReasonCode::kTopology:
      return topology_sentence(state, reason);
    case ReasonCode::kNeverFits:
      if (reason.domain.valid() || reason.node.valid()) return topology_sentence(state, reason);
      if (reason.rule == PlaceRule::kAlone) {
        return "its tasks keep away from each other " + reason.wish +
               ", and too few such places could hold one, even if they were empty";
      }
      if (reason.rule == PlaceRule::kNuma)
        return "no set of nodes in this fleet can hold " + who + " by its NUMA policy, even if all were empty";
      if (!reason.wish.empty() && reason.rule != PlaceRule::kGroup) {
        return "it has to be within " + reason.wish +
               (reason.limit == 0 ? ", and no node that could hold one of its tasks is"
                                  : ", and the nodes that are could not hold its tasks, even if they were empty");
      }
      return "no set of nodes in this fleet can hold " + who + ", even if all were empty";
    case ReasonCode::kWaitsForVictims:
      return waits_for_text(reason);
    case ReasonCode::kWouldDelayReservation:
      return "where it would fit, " + job_name(reason.job) + " is held a start at " + to_iso8601({reason.limit}) +
             ", and it is not known to be gone by then";
    case ReasonCode::kBehindQueueHead:
      return "its queue is strict and " + job_name(reason.job) + " is at the head";
    case ReasonCode::kArrayLimit:
      return "its array runs as many elements as it may";
    case ReasonCode::kUserLimit:
      if (reason.dim == kDims) {
        return queue_name(state, reason.queue) + " lets one user run " + counted(reason.limit, "job") +
               " at once, and its user runs " + std::to_string(reason.used);
      }
      return queue_name(state, reason.queue) + " lets one user have " + amount_text(reason.dim, reason.limit) + " " +
             dim_name(state, reason.dim) + ", its user has " + amount_text(reason.dim, reason.used) +
             ", and the job asks " + amount_text(reason.dim, reason.asked);
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
      return "it runs through its replicas or elements";
  }
  return {};
}

namespace {

// ", 4s after the end of attempt 3 (failed)", where it waits because it came to its own end.
std::string pause_after_end(const JobState& job, ReasonCode code) {
  if (code != ReasonCode::kEarliestStart || job.past.empty()) return {};
  const state::AttemptRecord& last = job.past.back();
  const std::int64_t pause_ms = state::back_off_ms(job);
  if (last.ended + pause_ms != job.not_before) return {};
  return ", " + document::duration_text(pause_ms / 1000) + " after the end of attempt " + std::to_string(last.number) +
         " (" + std::string(name_of(last.outcome)) + ")";
}

}  // namespace

Explanation why_briefly(State& state, const JobState& job, Timestamp now) {
  Explanation explanation;
  explanation.job = job.id;
  explanation.reason = blocking_reason(state, job, now);
  const ReasonCode code = explanation.reason.code;
  explanation.summary = code == ReasonCode::kParent
                            ? explain_children(state, job, now)
                            : sentence_with_what_is_short(state, job, explanation.reason) +
                                  what_the_fleet_lacks(state, job, explanation.reason) + pause_after_end(job, code) +
                                  closed_by_windows(state, job, code) + closed_nodes(state, job, code) +
                                  failed_gpus(state, job, code) + closed_to_images(state, job, code) +
                                  closed_pools(state, job, code);
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
                              : "it runs since " + to_iso8601(job->attempt->started) + tasks_of_all(*job);
    if (!job->attempt->stop && job->is_elastic()) explanation.details = explain_growth(state, *job, now);
    return explanation;
  }
  state.pass_deadlines(now);
  explanation = why_briefly(state, *job, now);
  if (explanation.reason.code == ReasonCode::kWaitsForVictims) {
    for (const JobState* victim : still_leaving(state, *job)) {
      const std::int64_t tasks = victim->attempt->shrinking() ? tasks_given_back(*victim) : 0;
      explanation.details.push_back(
          job_name(victim->id) + " of queue " + state.queue(victim->queue).path +
          (tasks > 0 ? " gives back " + counted(tasks, "task") : leaves_text(state, *victim)) + " by " +
          to_iso8601(victim->attempt->stop->deadline));
    }
  }
  if (job->spec.deadline) {
    explanation.details.push_back("its deadline is " + to_iso8601(*job->spec.deadline) + "; it is urgent from " +
                                  to_iso8601(state.urgent_from(job->spec)) + " on");
  }
  if (!job->is_parent()) {
    describe_quota(state, *job, explanation.reason, explanation.details);
    describe_fleet(state, *job, explanation.details);
    append(explanation.details, pool_rules(state, *job));
    describe_others(state, *job, explanation.reason, now, explanation.details);
    append(explanation.details, explain_position(state, *job, now));
    if (job->reservation) {
      explanation.details.push_back("a start is held for it at " + to_iso8601(job->reservation->start) +
                                    (job->reservation->start > job->reservation->first_start
                                         ? ", first at " + to_iso8601(job->reservation->first_start)
                                         : ""));
    }
    append(explanation.details, expected_run(state, *job));
    if (claims_help(explanation.reason.code)) append(explanation.details, explain_preemption(state, *job, now));
    explanation.changes = smallest_remedies(state, id, now);
  }
  return explanation;
}

}  // namespace berth::explain
