#include "explain/remedy.h"

#include <algorithm>

#include "explain/text_list.h"
#include "explain/why.h"
#include "model/document/quantity.h"
#include "model/node_rule.h"
#include "sched/place/affinity.h"
#include "state/replicas.h"

namespace berth::explain {

using namespace sched;

using state::JobState;
using state::State;
using state::Transaction;

namespace {

void resize(TaskGroup& group, const Remedy& change) {
  const auto to = static_cast<std::int32_t>(change.to);
  switch (change.kind) {
    case RemedyKind::kTasks:
      group.count = to;
      group.min_count = to;
      break;
    case RemedyKind::kGpus:
      if (group.request.is_share())
        group.request.gpu_milli = to;
      else
        group.request.gpus = static_cast<std::int32_t>(to / kMilli);
      break;
    case RemedyKind::kCpus:
      group.request.cpu_milli = change.to;
      break;
    case RemedyKind::kMemory:
      group.request.memory_mib = change.to;
      break;
    case RemedyKind::kModel:
      group.request.gpu_models.push_back(change.name);
      break;
    case RemedyKind::kPool:
      group.pool = change.name;
      break;
    case RemedyKind::kTolerate:
      group.tolerations.push_back(change.name);
      break;
    case RemedyKind::kSelect:
      std::erase_if(group.node_selector, [&](const auto& label) { return label.first == change.name; });
      break;
    case RemedyKind::kNoRule:
      group.node_rules.erase(group.node_rules.begin() + change.from);
      break;
    case RemedyKind::kGroupLevel:
      group.topology.required = change.name;
      break;
    case RemedyKind::kNuma:
      group.numa = NumaPolicy::kBestEffort;
      break;
    case RemedyKind::kNoImage:
      group.image.clear();
      break;
    case RemedyKind::kProfile:
      group.request.mig_profile = change.name;
      group.request.gpu_milli = to;
      break;
    case RemedyKind::kRelease:
    case RemedyKind::kPriority:
    case RemedyKind::kTimeLimit:
    case RemedyKind::kWait:
    case RemedyKind::kUncordon:
    case RemedyKind::kShareNodes:
    case RemedyKind::kNoTerm:
    case RemedyKind::kOtherPorts:
    case RemedyKind::kLevel:
    case RemedyKind::kQuota:
    case RemedyKind::kEvict:
      break;
  }
}

std::string user_raise_text(const Words& words, const Raise& raise) {
  if (raise.dim == kDims) {
    return words.queue(raise.queue) + " had max_jobs_per_user " + std::to_string(raise.to) + " instead of " +
           std::to_string(raise.from);
  }
  return words.queue(raise.queue) + " had max_gpus_per_user " + amount_text(raise.dim, raise.to) + " instead of " +
         amount_text(raise.dim, raise.from);
}

std::string raise_text(const Words& words, const Raise& raise) {
  if (raise.per_user) return user_raise_text(words, raise);
  return words.queue(raise.queue) + (raise.lending ? " had lending_limit " : " had max ") +
         quantity_text(words.state(), raise.dim, raise.to) + " instead of " + amount_text(raise.dim, raise.from) +
         " (" + amount_text(raise.dim, raise.to - raise.from) + " more)";
}

// A port that no job can have: ports begin at 1.
constexpr std::int32_t kNobodysPort = 0;

std::string term_text(const JobSpec& spec, std::size_t at) {
  const bool near = at < spec.affinity.size();
  const AffinityTerm& term = near ? spec.affinity[at] : spec.anti_affinity[at - spec.affinity.size()];
  const std::string labels = listed(term.labels, [](const auto& label) { return label.first + "=" + label.second; });
  return std::string("the job did not have to be ") + (near ? "near " : "away from ") + labels + " within one " +
         term.level;
}

// "job 1 (train, queue a) and 2 jobs of other queues"
std::string victims_text(const Words& words, const std::vector<JobId>& victims) {
  std::vector<std::string> names;
  std::int64_t hidden = 0;
  for (const JobId id : victims) {
    if (words.sees_job(id))
      names.push_back(words.job_in_full(id));
    else
      ++hidden;
  }
  if (hidden > 0) names.push_back(hidden == 1 ? "a job" : std::to_string(hidden) + " jobs");
  return listed(names, [](const std::string& name) { return name; }) + (hidden == 0   ? ""
                                                                        : hidden == 1 ? " of another queue"
                                                                                      : " of other queues");
}

// "job 1 (train, queue a) and job 2 (web, queue b) left, and job 3 (sweep, queue a) scaled down by 3 of its 4 tasks"
std::string leaving_text(const Words& words, const Remedy& change) {
  std::string text;
  if (!change.victims.empty()) text = victims_text(words, change.victims) + " left";
  if (change.shrinks.empty()) return text;
  return text + (text.empty() ? "" : ", and ") + listed(change.shrinks, [&](const Shrink& shrink) {
           return words.job_in_full(shrink.job) + " scaled down by " + std::to_string(shrink.tasks - shrink.keep) +
                  " of its " + std::to_string(shrink.tasks) + " tasks";
         });
}

std::string beside_text(const Words& words, const Remedy& change) {
  return change.shrinks.empty() ? "" : ", and " + leaving_text(words, change);
}

// An estimate longer than the time limit is refused, so the estimate has to change with it.
std::string time_limit_text(const JobSpec& spec, const Remedy& change) {
  const std::string text = "its time_limit were " + document::duration_text(change.to) + " or less" +
                           (change.from > 0 ? " instead of " + document::duration_text(change.from) : "");
  if (spec.estimate_s <= change.to) return text;
  return text + ", and its estimate too instead of " + document::duration_text(spec.estimate_s);
}

std::string asked_text(std::size_t dim, const std::string& what, const Remedy& change) {
  return "each task asked for " + amount_text(dim, change.to) + what + " instead of " + amount_text(dim, change.from);
}

}  // namespace

JobState changed(JobState job, const Remedy& change) {
  if (change.kind == RemedyKind::kRelease) job.held = false;
  if (change.kind == RemedyKind::kPriority) job.priority = static_cast<std::int32_t>(change.to);
  if (change.kind == RemedyKind::kTimeLimit) {
    job.spec.time_limit_s = job.expected_s = change.to;
    job.spec.estimate_s = std::min(job.spec.estimate_s, change.to);  // a longer one than the limit is refused
  }
  if (change.kind == RemedyKind::kShareNodes) job.spec.exclusive = false;
  if (change.kind == RemedyKind::kLevel) job.spec.topology.required = change.name;
  if (change.kind == RemedyKind::kNoTerm) {
    const auto at = static_cast<std::size_t>(change.from);
    const std::size_t near = job.spec.affinity.size();
    auto& terms = at < near ? job.spec.affinity : job.spec.anti_affinity;
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(at < near ? at : at - near));
  }
  if (change.kind == RemedyKind::kOtherPorts) {
    std::erase_if(job.spec.ports, [&](std::int32_t port) { return change.from == 0 || port == change.from; });
    job.spec.ports.insert(job.spec.ports.begin(), kNobodysPort);
  }
  if (!job.spec.groups.empty()) resize(job.spec.groups[change.group], change);
  return job;
}

Timestamp gives_back_by(const State& state, const state::RunningRow& row, Timestamp now) {
  if (!row.stopping) return Timestamp::never();
  const state::AttemptState& attempt = *state.job(row.job)->attempt;
  return attempt.shrinking() ? std::max(now, attempt.stop->deadline) : Timestamp::never();
}

namespace {

// The latest time by which the job has left for a maintenance window: one grace after it is asked to stop. A replica
// may stay into the window as far as max_unavailable of its service says so.
Timestamp leaves_by(const State& state, const JobState& job, Timestamp now) {
  if (job.departure.is_never()) return Timestamp::never();
  const JobState* service = state::service_of(state, job);
  if (service != nullptr && service->spec.max_unavailable > 0) return Timestamp::never();
  return std::max(now, job.departure) + state.grace_ms(job);
}

Timestamp ends_by_itself(const state::RunningRow& row, Timestamp now, state::ExpectedEnds& late) {
  if (row.timed && row.on_signal) return late.of(row);  // it may save after its limit
  if (row.end.is_never() || row.end > now) return row.end;
  return row.timed ? now : late.of(row);
}

}  // namespace

Timestamp ends_by(const State& state, const state::RunningRow& row, Timestamp now, state::ExpectedEnds& late) {
  if (!gives_back_by(state, row, now).is_never()) {  // its row ends when its stop does, but the gang goes on
    const JobState& gang = *state.job(row.job);
    const bool known = gang.spec.time_limit_s > 0 || gang.spec.estimate_s > 0;
    return known ? state::expected_end(state, gang, now) : Timestamp::never();
  }
  const Timestamp end = ends_by_itself(row, now, late);
  if (state.departures().empty()) return end;
  return std::min(end, leaves_by(state, *state.job(row.job), now));
}

void apply(Transaction& transaction, const State& state, const Remedy& change, Timestamp now) {
  for (const Raise& raise : change.raises) {
    if (raise.per_user)
      transaction.set_user_limit(raise.queue, raise.dim, raise.to);
    else if (raise.lending)
      transaction.set_lending_limit(raise.queue, raise.dim, raise.to);
    else
      transaction.set_max(raise.queue, raise.dim, raise.to);
  }
  for (const NodeId node : change.nodes) transaction.uncordon(node);
  for (const JobId victim : change.victims) transaction.remove(victim);
  for (const Shrink& shrink : change.shrinks) transaction.shrink(shrink.job, shrink.keep);
  if (change.kind != RemedyKind::kWait) return;
  transaction.end_windows(change.at);
  state::ExpectedEnds late(state, now);
  for (const state::RunningRow& row : state.running_table().rows()) {
    if (ends_by(state, row, now, late) <= change.at)
      transaction.remove(row.job);
    else if (gives_back_by(state, row, now) <= change.at)
      transaction.shrink(row.job, state.job(row.job)->attempt->stop->keep);
  }
}

namespace {

std::string change_text(const Words& words, const JobState& job, const Remedy& change) {
  const std::string group =
      job.spec.groups.size() > 1 ? " in group " + job.spec.groups[change.group].name : std::string();
  switch (change.kind) {
    case RemedyKind::kRelease:
      return "its hold were released";
    case RemedyKind::kPriority:
      return "its priority were " + std::to_string(change.to) + " instead of " + std::to_string(change.from);
    case RemedyKind::kTimeLimit:
      return time_limit_text(job.spec, change);
    case RemedyKind::kWait:
      break;
    case RemedyKind::kUncordon:
      return listed(change.nodes, [&](NodeId node) { return "node " + words.state().node(node).spec.name; }) +
             (change.nodes.size() == 1 ? " were" : " were all") + " uncordoned";
    case RemedyKind::kModel:
      return "the job could also run on " + change.name + group;
    case RemedyKind::kPool:
      return "the job asked for pool " + change.name + " instead of " + job.spec.groups[change.group].pool + group;
    case RemedyKind::kTolerate:
      return "the job tolerated the taint " + change.name + group;
    case RemedyKind::kSelect:
      return "the job did not select nodes by the label " + change.name + group;
    case RemedyKind::kNoRule: {
      const auto& rules = job.spec.groups[change.group].node_rules;
      return "the job did not ask for nodes with " + text_of(rules[static_cast<std::size_t>(change.from)]) + group;
    }
    case RemedyKind::kShareNodes:
      return "the job did not ask for whole nodes";
    case RemedyKind::kLevel:
      if (change.name.empty()) return "the job did not have to be within one " + job.spec.topology.required;
      return "the job had to be within one " + change.name + " instead of one " + job.spec.topology.required;
    case RemedyKind::kGroupLevel: {
      const TaskGroup& one = job.spec.groups[change.group];
      const std::string had = "group " + one.name + " did not have to be within one " + one.topology.required;
      return change.name.empty() ? had : had + " but within one " + change.name;
    }
    case RemedyKind::kNuma:
      return "its NUMA policy were best-effort instead of " + std::string(name_of(job.spec.groups[change.group].numa)) +
             group;
    case RemedyKind::kNoImage:
      return "the job ran its command as a plain process, without an image" + group;
    case RemedyKind::kProfile:
      return "the job asked for profile " + change.name + " instead of " +
             job.spec.groups[change.group].request.mig_profile + group;
    case RemedyKind::kOtherPorts:
      return change.from != 0 ? "the job listened on another port than " + std::to_string(change.from)
                              : "the job listened on other ports than " + ports_text(job.spec.ports);
    case RemedyKind::kNoTerm:
      return term_text(job.spec, static_cast<std::size_t>(change.from));
    case RemedyKind::kGpus:
      return asked_text(kDimGpu, change.to == kMilli ? " GPU" : " GPUs", change) + group + beside_text(words, change);
    case RemedyKind::kTasks:
      return "the job had " + counted(change.to, "task") + " instead of " + std::to_string(change.from) + group +
             beside_text(words, change);
    case RemedyKind::kCpus:
      return asked_text(kDimCpu, change.to == kMilli ? " CPU" : " CPUs", change) + group;
    case RemedyKind::kMemory:
      return asked_text(kDimMemory, " of memory", change) + group;
    case RemedyKind::kQuota:
      return listed(change.raises, [&](const Raise& raise) { return raise_text(words, raise); });
    case RemedyKind::kEvict: {
      std::string text = leaving_text(words, change);
      if (!change.raises.empty()) {
        text += ", and " + listed(change.raises, [&](const Raise& raise) { return raise_text(words, raise); });
      }
      return text;
    }
  }
  return {};
}

}  // namespace

std::string remedy_text(const Words& words, const JobState& job, const Remedy& change) {
  const std::string text = change_text(words, job, change);
  if (!change.taken_by.valid()) return text;
  return text + ", but " + words.job(change.taken_by) + " goes first and would take those places";
}

RemedyBy remedy_by(const Remedy& change) {
  switch (change.kind) {
    case RemedyKind::kUncordon:
    case RemedyKind::kQuota:
    case RemedyKind::kEvict:
      return RemedyBy::kOperator;
    case RemedyKind::kRelease:
    case RemedyKind::kPriority:
    case RemedyKind::kTimeLimit:
    case RemedyKind::kWait:
    case RemedyKind::kModel:
    case RemedyKind::kPool:
    case RemedyKind::kTolerate:
    case RemedyKind::kSelect:
    case RemedyKind::kShareNodes:
    case RemedyKind::kLevel:
    case RemedyKind::kGpus:
    case RemedyKind::kTasks:
    case RemedyKind::kCpus:
    case RemedyKind::kMemory:
    case RemedyKind::kGroupLevel:
    case RemedyKind::kNoTerm:
    case RemedyKind::kNuma:
    case RemedyKind::kNoImage:
    case RemedyKind::kProfile:
    case RemedyKind::kOtherPorts:
    case RemedyKind::kNoRule:
      return change.shrinks.empty() ? RemedyBy::kOwner : RemedyBy::kOperator;
  }
  return RemedyBy::kOwner;
}

// Maintenance windows count that begin by then: jobs leave for them, or they are over.
WhyAnswer::Start start_of(const Words& words, const Remedy& wait) {
  WhyAnswer::Start start;
  start.at = wait.at;
  const std::string when = words.time_and_span(wait.at);
  if (wait.taken_by.valid()) {
    start.bound = StartBound::kNotBefore;
    start.text = "not before " + when + ", and " + words.job(wait.taken_by) + " will probably take those places";
    return start;
  }
  const auto counts = [&](const auto& one) { return one.second.from <= wait.at; };
  const auto& planned = words.state().maintenance();
  const bool windows = std::any_of(planned.begin(), planned.end(), counts);
  start.bound = StartBound::kProbably;
  start.text = "probably at " + when + ", if time limits" +
               (windows ? ", estimates and maintenance windows hold" : " and estimates hold");
  return start;
}

}  // namespace berth::explain
