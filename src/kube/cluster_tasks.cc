// Tasks: each is one pod, from its binding to its end.

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "kube/cluster_impl.h"
#include "kube/denial.h"
#include "kube/json_reading.h"
#include "kube/pod_risks.h"
#include "model/exit_code.h"

namespace berth::kube {
namespace {

std::string at_path(const PodObject& pod) { return pod.name_space + "/" + pod.name; }

}  // namespace

void Cluster::Impl::perform(const Effect& effect) {
  if (!open_) {
    held_.push_back(effect);
    return;
  }
  if (const auto* one = std::get_if<StartTask>(&effect)) return start(*one);
  if (const auto* one = std::get_if<ForgetTask>(&effect)) return forget(one->key);
  if (const auto* one = std::get_if<KillTask>(&effect)) {
    if (one->cause == StopCause::kTaskFailed) tell_unwound(one->key);
    return stop(one->key, one->grace_ms / 1000, hears_budgets(one->cause, true));
  }
  const auto& signal = std::get<SignalTask>(effect);
  const auto task = tasks_.find(signal.key);
  // A user's signal: there is none for a pod but the one that it is stopped by.
  if (task != tasks_.end() && signal.signal != task->second.start.stop_signal)
    return warn("signal " + std::to_string(signal.signal) + " was not sent to job " +
                std::to_string(signal.key.job.value()) + ": a pod gets no other than the one that it is stopped by");
  stop(signal.key, task == tasks_.end() ? 0 : task->second.start.grace_ms / 1000, hears_budgets(signal.cause, false));
}

void Cluster::Impl::start(const StartTask& effect) {
  const TaskKey& key = effect.key;
  const auto [at, fresh] = tasks_.try_emplace(key);
  Task& task = at->second;
  if (!fresh) {  // known: what is known of it is told again
    cancel_eviction(key, task);
    if (task.exit) command(ReportTaskExited{*task.exit});
    if (!task.exit && task.started_told) command(ReportTaskStarted{key.job, key.attempt, key.task, key.incarnation});
    return;
  }
  task.start = effect;
  task.own = !effect.image.empty() && effect.source.cell.empty();
  if (!task.own) {
    task.start.env.clear();
    task.start.ranks.clear();
    task.start.command.clear();
  }
  task.since = now_;
  learn_from_start(effect);
  if (adopt(key, task)) return;
  if (effect.was_running) {
    exit_task(key, task, {ExitReason::kSupervisorLost, 1, "its pod is gone"});
    return;
  }
  if (task.own) return create(key, task);
  const auto group = group_of_job_.find(key.job);
  if (has_lost_its_pod(key)) {
    const bool gone = !pods_.contains(group->second.substr(kAlone.size()));
    exit_task(key, task,
              gone ? PodEnd{ExitReason::kKilled, 137, "its pod was deleted"}
                   : PodEnd{ExitReason::kStartFailed, kNotStartedCode, "its pod is over, or was bound by another"});
    return command(CancelJob{key.job, "kubernetes"});
  }
  waiting_tasks_.insert(key);
  try_bind(key, task);
  if (group != group_of_job_.end()) settle_suspension(group->second);
}

// Returns true if the job of the task is one pod, and that is not there any more to be bound. No other will ever be it.
bool Cluster::Impl::has_lost_its_pod(const TaskKey& key) const {
  const auto group = group_of_job_.find(key.job);
  if (group == group_of_job_.end() || !group->second.starts_with(kAlone)) return false;
  const auto pod = pods_.find(group->second.substr(kAlone.size()));
  return pod == pods_.end() || is_over(pod->second.object) || !pod->second.object.node.empty();
}

// Takes the pod that carries the key of the task already, from before a restart.
bool Cluster::Impl::adopt(const TaskKey& key, Task& task) {
  for (auto one = bound_.lower_bound({key, {}}); one != bound_.end() && one->first == key; ++one) {
    const std::string uid = one->second;
    Pod& pod = pods_.at(uid);
    if (pod.assigned || pod.object.node != task.start.node || pod.object.devices != devices_in(task.start.gpu_uuids))
      continue;  // the key was written into a pod that is not what the core decided
    task.pod = uid;
    task.phase = TaskPhase::kBound;
    pod.assigned = key;
    waiting_tasks_.erase(key);
    count_foreign(pod);
    if (task.own) send_parts(key, task);
    if (task.stopping) leave(key, task, pod);
    follow(uid, pod);
    return true;
  }
  return false;
}

// Whether the pod asks for what the task was given, on a node that it selects, and for nothing that a rule forbids and
// that no pod of the job had asked for. Pods that joined the group after it was submitted were not seen by the core.
bool Cluster::Impl::may_be(const Pod& pod, const Task& task) const {
  const TaskRequest& request = pod.object.request;
  const PodWish& wish = pod.object.wish;
  if (!waits_to_be_bound(pod) || !wish.problem.empty() || request.cpu_milli != task.start.cpu_milli ||
      request.memory_mib != task.start.memory_mib || request.countables != task.start.countables ||
      pod.object.devices != devices_in(task.start.gpu_uuids))
    return false;
  // Nobody's pod is charged to another user, by joining its group.
  if (stamps_ && task.start.user != user_of_namespace(pod) && task.start.user != user_of(pod)) return false;
  if (!beyond(wish.risks, task.start.pod_risks, task.start.forbidden).empty()) return false;
  const auto node = nodes_.find(task.start.node);
  return node == nodes_.end() || allows_node(pod, node->second);
}

std::string told_of(const PodRisk& risk) {
  return std::string(name_of(risk.option)) + (risk.where.empty() ? "" : " of '" + risk.where + "'");
}

// Returns what a pod of the group asks for that a rule forbids and that no pod of the job had asked for; empty: none.
std::string Cluster::Impl::what_is_beyond(const TaskKey& key, const Task& task) const {
  const auto group = group_of_job_.find(key.job);
  if (group == group_of_job_.end()) return {};
  for (const std::string& uid : groups_.at(group->second).pods) {
    const Pod& pod = pods_.at(uid);
    if (!waits_to_be_bound(pod)) continue;
    const auto more = beyond(pod.object.wish.risks, task.start.pod_risks, task.start.forbidden);
    if (!more.empty()) return told_of(more.front());
  }
  return {};
}

// Tells a pod that joined the group of the task why it is not started as a part of it, if that is for a rule.
void Cluster::Impl::tell_what_is_beyond(Pod& pod, const Task& task) {
  if (!waits_to_be_bound(pod)) return;
  const auto more = beyond(pod.object.wish.risks, task.start.pod_risks, task.start.forbidden);
  if (more.empty()) return;
  tell(pod, "NotAccepted",
       "it joins the group of job " + std::to_string(task.start.key.job.value()) +
           " and asks for what a rule forbids and no pod of the job had asked for: " + told_of(more.front()) +
           ". Make it as the others are",
       true);
}

// Returns the pod of the group that the task is to be: of those that ask for what the task was given, the one with the
// task's number, else the first of those whose nodes are the most restricted.
Cluster::Impl::Pod* Cluster::Impl::pod_for(const TaskKey& key, const Task& task) {
  const auto group = group_of_job_.find(key.job);
  if (group == group_of_job_.end()) return nullptr;
  const Group& of = groups_.at(group->second);
  if (!of.renewed_at.is_never() || of.job != key.job) return nullptr;  // its job is being given up, or was replaced
  Pod* best = nullptr;
  std::size_t most = 0;
  for (const std::string& uid : groups_.at(group->second).pods) {
    Pod& pod = pods_.at(uid);
    if (!may_be(pod, task)) {
      tell_what_is_beyond(pod, task);
      continue;
    }
    if (pod.rank == static_cast<std::int64_t>(key.task)) return &pod;
    const std::size_t asks =
        pod.object.wish.node_selector.size() + pod.object.claims.size() + (pod.object.wish.affinity ? 1 : 0);
    if (best != nullptr && (asks < most || (asks == most && !comes_before(pod, *best)))) continue;
    best = &pod;
    most = asks;
  }
  return best;
}

void Cluster::Impl::try_bind(const TaskKey& key, Task& task) {
  if (task.phase != TaskPhase::kWaitsForPod || task.stopping) return;
  if (needs_no_pod(key)) {
    command(ReportTaskStarted{key.job, key.attempt, key.task, key.incarnation});
    return exit_task(key, task, {ExitReason::kExited, 0, "its completion index has succeeded before"});
  }
  Pod* pod = pod_for(key, task);
  if (pod == nullptr || attaches_too_many(key, task, *pod)) return;
  task.pod = pod->object.uid;
  pod->assigned = key;
  waiting_tasks_.erase(key);
  const auto group = groups_.find(pod->group);
  const bool is_gang = group != groups_.end() && (group->second.size > 1 || group->second.claiming != 0);
  if (!is_gang) return bind(key, task, *pod);
  task.phase = TaskPhase::kWaitsForGang;
  task.since = now_;
  count_attached(*pod);
  unsettled_.insert(key.job);
}

void Cluster::Impl::bind(const TaskKey& key, Task& task, Pod& pod) {
  task.phase = TaskPhase::kBinding;
  task.since = now_;
  task.denied_since = Timestamp::never();  // that its claims could not be written for a while says nothing of this
  if (const auto group = groups_.find(pod.group); group != groups_.end()) group->second.start_failure.clear();
  count_attached(pod);
  send_binding(key, task, pod);
}

void Cluster::Impl::bind_answered(const TaskKey& key, Task& task, int status, std::string_view body) {
  if (task.phase != TaskPhase::kBinding) return;
  const auto pod = pods_.find(task.pod);
  if (pod == pods_.end()) return;  // its end was told when it went
  if (status == 200 || status == 201) {
    task.phase = TaskPhase::kBound;
    if (task.stopping) leave(key, task, pod->second);
    return follow(task.pod, pod->second);
  }
  if (status == 0 || status == 409 || status == 429 || status >= 500) return send_look(key, pod->second);
  task.since = now_;
  if (waits_out_denial(task, status, body)) return;  // looked for, and bound again, by tick
  fail_start(key, task,
             "the API server refused to bind pod " + at_path(pod->second.object) + " to node " + task.start.node +
                 " (" + std::to_string(status) + "): " + shown(body, 300));
}

// Returns true if the answer is a refusal that may be over in a moment, and has not lasted long yet.
bool Cluster::Impl::waits_out_denial(Task& task, int status, std::string_view body) const {
  if (!is_denied_for_now(status, body)) return false;
  if (task.denied_since.is_never()) task.denied_since = now_;
  return now_ - task.denied_since < options_.waits.denial_ms;
}

// Decides by the pod itself whether a binding has happened that was not confirmed.
void Cluster::Impl::look_answered(const TaskKey& key, Task& task, int status, std::string_view body) {
  if (task.phase != TaskPhase::kBinding) return;
  if (task.own) return own_look_answered(key, task, status, body);
  const auto pod = pods_.find(task.pod);
  if (pod == pods_.end()) return;
  if (status == 404) return pod_gone(std::string(task.pod));
  if (status != 200) return;  // asked again by tick
  boost::system::error_code error;
  const boost::json::value json = boost::json::parse({body.data(), body.size()}, error);
  const boost::json::object* object = error ? nullptr : json.if_object();
  if (object == nullptr) return;
  auto read = read_pod(*object, options_.scheduler, options_.devices);
  if (!read || read->uid != task.pod) return pod_gone(std::string(task.pod));
  if (read->node.empty()) {
    if (task.stopping) return fail_start(key, task, "it was stopped before its pod was bound");
    task.since = now_;
    return send_binding(key, task, pod->second);
  }
  if (read->task != key)
    return fail_start(key, task,
                      "pod " + at_path(*read) + " was bound to node " + shown(read->node, 80) + " by another");
  task.phase = TaskPhase::kBound;
  if (task.stopping) leave(key, task, pod->second);
  follow(task.pod, pod->second);
}

// The pod is free again, if it is there and not bound.
void Cluster::Impl::release_pod(Task& task) {
  if (const auto pod = pods_.find(task.pod); pod != pods_.end()) {
    pod->second.assigned.reset();
    count_foreign(pod->second);
    count_attached(pod->second);
  }
  task.pod.clear();
}

// Ends the start of the task, and so of its gang. The job is not to blame: it is tried again, after a pause.
void Cluster::Impl::fail_start(const TaskKey& key, Task& task, const std::string& why) {
  release_pod(task);
  note_start_failure(key, why);
  exit_task(key, task, {ExitReason::kStartFailed, kNotStartedCode, why});
}

// The kubelet did not admit the pod. Its node is avoided for a while. A pod alone is over with that: its controller, if
// it has one, makes another, which is another job.
void Cluster::Impl::fail_admission(const TaskKey& key, Task& task, const Pod& pod) {
  PodEnd end = pod.object.end;
  end.message = "node " + task.start.node + " did not admit pod " + at_path(pod.object) + ": " + end.message;
  if (!task.own && has_lost_its_pod(key)) end.code = 1;
  note_start_failure(key, end.message);
  if (const auto node = nodes_.find(task.start.node); node != nodes_.end()) node->second.refused_at = now_;
  exit_task(key, task, end);  // tells of the node, too
}

void Cluster::Impl::note_start_failure(const TaskKey& key, const std::string& why) {
  const auto group = group_of_job_.find(key.job);
  if (group != group_of_job_.end()) groups_.at(group->second).start_failure = why;
}

// A gang starts whole: where the start of one of its pods has failed, those that were bound are deleted. They say why.
void Cluster::Impl::tell_unwound(const TaskKey& key) {
  const auto task = tasks_.find(key);
  const auto group = group_of_job_.find(key.job);
  if (task == tasks_.end() || group == group_of_job_.end() || task->second.phase != TaskPhase::kBound) return;
  const std::string& why = groups_.at(group->second).start_failure;
  const auto pod = pods_.find(task->second.pod);
  if (why.empty() || pod == pods_.end() || pod->second.object.leaving) return;
  const PodObject& object = pod->second.object;
  send_event({"v1", "Pod", object.name_space, object.name, object.uid}, "GangUnwound",
             "it is deleted, as its gang of job " + std::to_string(key.job.value()) +
                 " starts whole or not at all: " + why + ". If it has no controller, make it anew");
}

// Reports what the watch shows of a pod that is a task.
void Cluster::Impl::follow(const std::string& uid, Pod& pod) {
  if (!open_) return;
  const PodObject& object = pod.object;
  if (!pod.assigned) {
    if (!object.task || !object.ours || object.node.empty()) return;
    const auto waits = tasks_.find(*object.task);
    const bool is_awaited =
        waits != tasks_.end() && (waits->second.phase == TaskPhase::kWaitsForPod ||
                                  (waits->second.own && waits->second.phase == TaskPhase::kBinding));
    if (is_awaited && carries_its_task(uid, pod)) {
      adopt(waits->first, waits->second);
    } else if (!is_over(object) && now_ - opened_ >= kUnclaimedMs && !object.leaving) {
      send_stray_delete(pod);
    }
    return;
  }
  const auto found = tasks_.find(*pod.assigned);
  if (found == tasks_.end()) return;
  const TaskKey& key = found->first;
  Task& task = found->second;
  if (task.pod != uid || task.phase == TaskPhase::kExited) return;
  if (task.phase == TaskPhase::kBinding || task.phase == TaskPhase::kWaitsForGang) {
    if (object.node.empty()) return;
    if (object.task != key)
      return fail_start(key, task,
                        "pod " + at_path(object) + " was bound to node " + shown(object.node, 80) + " by another");
    task.phase = TaskPhase::kBound;
    if (task.stopping) leave(key, task, pod);
  }
  if (is_over(object) && object.end.reason == ExitReason::kStartFailed) return fail_admission(key, task, pod);
  if (is_over(object)) return exit_task(key, task, object.end);
  if (object.phase == PodPhase::kRunning && !task.started_told) {
    task.started_told = true;
    command(ReportTaskStarted{key.job, key.attempt, key.task, key.incarnation});
  }
}

void Cluster::Impl::exit_task(const TaskKey& key, Task& task, const PodEnd& seen) {
  if (task.phase == TaskPhase::kExited) return;
  const PodEnd end = task.given_up.value_or(seen);
  task.phase = TaskPhase::kExited;
  withdraw_refusal(task);
  waiting_tasks_.erase(key);
  unsettled_.insert(key.job);  // its gang may need no more pods now
  task.exit = TaskExited{key.job, key.attempt, key.task, key.incarnation, end.reason, end.code, end.message};
  task.exit_told = now_;
  command(ReportTaskExited{*task.exit});
  if (const auto node = nodes_.find(task.start.node); node != nodes_.end()) update_node(node->first, node->second);
}

// Ends the task. `hears`: a PodDisruptionBudget may keep it.
void Cluster::Impl::stop(const TaskKey& key, std::int64_t grace_s, bool hears) {
  const auto found = tasks_.find(key);
  if (found == tasks_.end() || found->second.phase == TaskPhase::kExited) return;
  Task& task = found->second;
  task.grace_s = std::max<std::int64_t>(1, task.stopping ? std::min(task.grace_s, grace_s) : grace_s);
  const bool again = task.stopping;
  task.hears_budgets = hears && (!again || task.hears_budgets);
  task.stopping = true;
  const bool is_left_to_its_controller = leaves_by_suspension(key) && !again;
  if (task.phase == TaskPhase::kWaitsForPod)
    return exit_task(key, task, {ExitReason::kKilled, 137, "it was stopped before it had a pod"});
  if (task.phase == TaskPhase::kWaitsForGang) {
    release_pod(task);
    return exit_task(key, task, {ExitReason::kKilled, 137, "it was stopped before its pod was bound"});
  }
  if (task.phase == TaskPhase::kBinding) return;  // its end follows the answer
  if (is_left_to_its_controller) {
    task.delete_asked = now_;  // if it is still there some seconds later, it is deleted as others are
    return;
  }
  if (const auto pod = pods_.find(task.pod); pod != pods_.end()) leave(key, task, pod->second);
}

// Returns true if the answer is a denial that will not be over in a moment. Whether it will is known of the namespace,
// so that where berth lacks the right only the first pod waits.
bool Cluster::Impl::is_denied_for_good(Asked asked, const Task& task, int status, std::string_view body) {
  const auto pod = pods_.find(task.pod);
  const auto which = std::pair(asked, pod == pods_.end() ? std::string() : pod->second.object.name_space);
  if (status >= 200 && status < 300) denials_.erase(which);
  if (status != 403) return false;
  if (!is_denied_for_now(status, body)) return true;
  const auto [at, fresh] = denials_.try_emplace(which, Denial{now_, now_});
  Denial& denial = at->second;
  if (now_ - denial.last > options_.waits.denial_forgotten_ms) denial.since = now_;
  denial.last = now_;
  return now_ - denial.since >= options_.waits.denial_ms;
}

// A refusal does not keep the pod: it is deleted without the mark. Without an answer both are sent again.
void Cluster::Impl::mark_answered(const TaskKey& key, Task& task, int status, std::string_view body) {
  if (status == 0 || status == 429 || status >= 500) return;
  const bool for_good = is_denied_for_good(Asked::kMark, task, status, body);
  if (status == 403 && !for_good) return;
  task.marked = true;
  if (task.phase != TaskPhase::kBound || !task.stopping) return;
  if (const auto pod = pods_.find(task.pod); pod != pods_.end()) send_delete(key, task, pod->second);
}

void Cluster::Impl::delete_answered(const TaskKey& key, Task& task, int status) {
  static_cast<void>(key);
  if (task.phase == TaskPhase::kExited) return;
  if (status == 404 || status == 409) return pod_gone(std::string(task.pod));  // gone, or another of this name
  if (status == 200 || status == 202) task.delete_asked = Timestamp::never();
}

void Cluster::Impl::forget(const TaskKey& key) {
  waiting_tasks_.erase(key);
  const auto found = tasks_.find(key);
  if (found == tasks_.end()) return;
  const std::string uid = found->second.pod;
  tasks_.erase(found);
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.assigned != key) return;
  pod->second.assigned.reset();  // where its node was lost it may still be there, and use what it had
  count_foreign(pod->second);
}

void Cluster::Impl::tick_task(const TaskKey& key, Task& task) {
  if (task.phase == TaskPhase::kExited) {
    if (now_ - task.exit_told < options_.waits.tell_exit_again_ms) return;
    task.exit_told = now_;
    return command(ReportTaskExited{*task.exit});
  }
  if (task.phase == TaskPhase::kWaitsForPod) {
    try_bind(key, task);
    if (task.phase != TaskPhase::kWaitsForPod || now_ - task.since < options_.pod_wait_s * 1000) return;
    const std::string what = what_is_beyond(key, task);
    return fail_start(key, task,
                      "there was no pod for it within " + std::to_string(options_.pod_wait_s) + " s" +
                          (what.empty() ? "" : ": one asks for what a rule forbids and its job did not, " + what));
  }
  if (task.phase == TaskPhase::kWaitsForGang) return tick_gang(key, task);
  if (task.own && task.phase == TaskPhase::kBinding) return tick_own(key, task);
  const auto pod = pods_.find(task.pod);
  if (pod == pods_.end()) return;
  if (task.phase == TaskPhase::kBinding && now_ - task.since >= options_.waits.look_again_ms) {
    task.since = now_;
    return send_look(key, pod->second);
  }
  if (task.phase == TaskPhase::kBound && task.stopping && task.hears_budgets && !task.granted)
    evicting_.insert(key.job);
  if (task.phase == TaskPhase::kBound && task.stopping && !task.delete_asked.is_never() &&
      now_ - task.delete_asked >= options_.waits.look_again_ms)
    send_delete(key, task, pod->second);
}

void Cluster::Impl::answered(std::uint64_t id, int status, std::string_view body) {
  const auto call = calls_.find(id);
  if (call == calls_.end()) return;
  const Call asked = call->second;
  calls_.erase(call);
  if (asked.asked == Asked::kTell) {
    if (status == 403) warn("the API server allows no events or conditions of pods: " + shown(body, 200));
    return;
  }
  if (asked.asked == Asked::kSuspend) {
    if (status >= 400) warn("the API server does not let berth suspend an object: " + shown(body, 300));
    return;
  }
  const auto found = tasks_.find(asked.task);
  if (found == tasks_.end()) return;
  if (asked.asked == Asked::kBind) bind_answered(found->first, found->second, status, body);
  if (asked.asked == Asked::kCreate) create_answered(found->first, found->second, status, body);
  if (asked.asked == Asked::kServe) serve_answered(found->first, status, body);
  if (asked.asked == Asked::kLook && found->second.own && found->second.look != id) return;
  if (asked.asked == Asked::kLook) look_answered(found->first, found->second, status, body);
  if (asked.asked == Asked::kSelect) select_answered(found->first, found->second, asked.claim, status, body);
  if (asked.asked == Asked::kEvict) evict_answered(found->first, found->second, status, body);
  if (asked.asked == Asked::kMark) mark_answered(found->first, found->second, status, body);
  if (asked.asked == Asked::kDelete) delete_answered(found->first, found->second, status);
}

}  // namespace berth::kube
