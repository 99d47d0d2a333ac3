// Victims of a preemption, a move or a drain leave by the Eviction API, so that a PodDisruptionBudget is heard; a job
// that its quota's owner reclaims, and all others, are deleted (cluster_tasks.cc).
//
// 1. Of a gang the first pod is asked for first. While its budget refuses that, no pod of the gang is touched: it runs
//    on, and is asked again after 10 s, 20 s, 40 s and then every minute, as long as the core wants it to leave.
// 2. When the first one leaves, the gang is broken: the others are asked, and deleted after a minute.
// 3. After a restart the same follows from the tasks that live: a gang whose first task is gone is broken.

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "kube/cluster_impl.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr int kMostDoublings = 3;

// Returns what the API server says about the budget.
std::string refusal_in(std::string_view body) {
  boost::system::error_code error;
  const json::value value = json::parse({body.data(), body.size()}, error);
  const json::object* status = error ? nullptr : value.if_object();
  if (status == nullptr) return shown(body, 300);
  for (const json::object* cause : objects_at(*status, {"details", "causes"})) {
    if (std::string text = text_at(*cause, {"message"}); !text.empty()) return shown(text, 300);
  }
  return shown(text_at(*status, {"message"}), 300);
}

}  // namespace

bool Cluster::Impl::hears_budgets(const std::optional<StopCause>& cause, bool forced) {
  if (!cause) return false;
  switch (*cause) {
    case StopCause::kPreempt:
    case StopCause::kConsolidate:
    case StopCause::kMove:
      return true;
    case StopCause::kDrain:
    case StopCause::kMaintenance:
      return !forced;  // their operator has said until when
    case StopCause::kReclaim:
    case StopCause::kSpotNotice:
    case StopCause::kNodeLost:
    case StopCause::kTimeLimit:
    case StopCause::kUser:
    case StopCause::kTaskFailed:
    case StopCause::kShrink:
      return false;
  }
  return false;
}

// Makes the pod of a task that is stopped leave.
void Cluster::Impl::leave(const TaskKey& key, Task& task, const Pod& pod) {
  if (task.hears_budgets && !task.granted && !pod.object.leaving) return ask_evictions(key.job);
  send_delete(key, task, pod);
}

void Cluster::Impl::ask_evictions(JobId job) {
  std::vector<TaskKey> asked;
  bool broken = false;
  for (auto one = tasks_.lower_bound(TaskKey{job, 0, 0, 0}); one != tasks_.end() && one->first.job == job; ++one) {
    const Task& task = one->second;
    if (!task.stopping || !task.hears_budgets) continue;
    const auto pod = pods_.find(task.pod);
    const bool is_leaving = task.granted || (pod != pods_.end() && pod->second.object.leaving);
    if (asked.empty() && one->first.task != 0 && !broken) broken = true;
    if (is_leaving) broken = true;
    if (task.phase == TaskPhase::kBound && !is_leaving && pod != pods_.end()) asked.push_back(one->first);
  }
  for (const TaskKey& key : asked) {
    Task& task = tasks_.at(key);
    const Pod& pod = pods_.at(task.pod);
    if (broken && !task.refused_since.is_never() && now_ - task.refused_since >= options_.waits.broken_eviction_ms) {
      task.hears_budgets = false;
      send_delete(key, task, pod);
    } else if (now_ >= task.ask_at) {
      send_eviction(key, task, pod);
    }
    if (!broken) return;
  }
}

void Cluster::Impl::evict_answered(const TaskKey& key, Task& task, int status, std::string_view body) {
  const bool for_good = is_denied_for_good(Asked::kEvict, task, status, body);
  if (status == 200 || status == 201) {
    task.granted = true;
    task.marked = true;  // by the API server
    return ask_evictions(key.job);
  }
  if (task.phase != TaskPhase::kBound || !task.stopping || !task.hears_budgets) return;
  const auto pod = pods_.find(task.pod);
  if (pod == pods_.end()) return;
  if (status == 404) return pod_gone(std::string(task.pod));
  if (status == 0 || (status == 403 && !for_good)) return;  // asked again by tick
  if (status == 409) {                                      // the budget, or the pod, has changed meanwhile
    task.ask_at = now_ + 1'000;
    return;
  }
  if (status == 429 || status >= 500) {
    const std::int64_t pause =
        std::min(options_.waits.longest_refused_eviction_ms,
                 options_.waits.first_refused_eviction_ms << std::min(task.refusals++, kMostDoublings));
    task.ask_at = now_ + pause;
    if (task.refused_since.is_never()) task.refused_since = now_;
    return tell_refusal(key, task, pod->second, refusal_in(body));
  }
  warn("the API server allows no eviction of pods, so that no PodDisruptionBudget is heard: " + shown(body, 300));
  task.hears_budgets = false;
  send_delete(key, task, pod->second);
}

// Says why the pod stays, when that has changed.
void Cluster::Impl::tell_refusal(const TaskKey& key, Task& task, const Pod& pod, const std::string& why) {
  const std::string text = "job " + std::to_string(key.job.value()) + " is to make room, but pod " +
                           pod.object.name_space + "/" + pod.object.name + " may not be evicted yet: " + why;
  if (task.refusal == text) return;
  withdraw_refusal(task);
  task.refusal = text;
  warn(text);
  send_event({"v1", "Pod", pod.object.name_space, pod.object.name, pod.object.uid}, "EvictionRefused", text);
}

// It is no warning any more.
void Cluster::Impl::withdraw_refusal(Task& task) {
  if (!task.refusal.empty()) std::erase(warnings_, task.refusal);
  task.refusal.clear();
}

// The core wants the job to run on. A pod that is not leaving yet stays.
void Cluster::Impl::cancel_eviction(const TaskKey& key, Task& task) {
  const auto pod = pods_.find(task.pod);
  const bool is_leaving = task.granted || (pod != pods_.end() && pod->second.object.leaving);
  const bool has_pod = task.phase == TaskPhase::kBinding || task.phase == TaskPhase::kBound;
  if (!has_pod || !task.stopping || !task.hears_budgets || is_leaving) return;
  task.stopping = false;
  task.hears_budgets = false;
  withdraw_refusal(task);
  withdraw_evictions(key);
}

// What is not under way to the API server yet is not sent. All of them count: of two that are equal it is the older
// one that waits to be sent.
void Cluster::Impl::withdraw_evictions(const TaskKey& key) {
  for (auto call = calls_.begin(); call != calls_.end();) {
    const auto at = call++;
    if (at->second.asked != Asked::kEvict || at->second.task != key) continue;
    const std::uint64_t id = at->first;
    if (std::erase_if(output_.requests, [id](const Request& one) { return one.id == id; }) != 0) {
      calls_.erase(at);
    } else {
      output_.withdrawn.push_back(id);
    }
  }
}

void Cluster::Impl::send_eviction(const TaskKey& key, Task& task, const Pod& pod) {
  task.ask_at = now_ + options_.waits.unanswered_eviction_ms;
  const PodObject& object = pod.object;
  const json::object body{
      {"apiVersion", "policy/v1"},
      {"kind", "Eviction"},
      {"metadata", {{"name", object.name}, {"namespace", object.name_space}}},
      {"deleteOptions", {{"gracePeriodSeconds", task.grace_s}, {"preconditions", {{"uid", object.uid}}}}}};
  send({0, Method::kPost, "/api/v1/namespaces/" + object.name_space + "/pods/" + object.name + "/eviction",
        "application/json", json::serialize(body), true},
       Asked::kEvict, key);
}

}  // namespace berth::kube
