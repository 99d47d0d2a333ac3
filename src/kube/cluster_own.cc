// Tasks of berth's own jobs: each is a pod that is made for it, bound to its node.

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "kube/cluster_impl.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostBody = 1 << 20;  // what the API server stores

json::object object_of(std::string_view body) {
  boost::system::error_code error;
  const json::value value = json::parse({body.data(), body.size()}, error);
  return error || !value.is_object() ? json::object() : value.get_object();
}

}  // namespace

bool Cluster::Impl::is_own(const PodObject& pod) const {
  if (!pod.task || pod.name != name_of_pod(*pod.task, options_.log)) return false;
  const std::vector<std::string> spaces = spaces_of(options_.own);
  return std::find(spaces.begin(), spaces.end(), pod.name_space) != spaces.end();
}

std::string Cluster::Impl::own_path(const Task& task) const {
  return "/api/v1/namespaces/" + space_of_queue(options_.own, queue_of_start(task.start)) + "/pods";
}

// Makes the pod of the task. It may be there already: then the answer is 409, and the pod itself decides.
void Cluster::Impl::create(const TaskKey& key, Task& task) {
  if (options_.own.space.empty())
    return exit_task(key, task, {ExitReason::kStartFailed, 1, "this server makes no pods (--job-namespace)"});
  if (!task.start.cannot_start.empty())
    return exit_task(key, task, {ExitReason::kStartFailed, 1, task.start.cannot_start});
  for (const TaskSecret& one : task.start.secrets) {
    const std::string gone = "secret '" + one.secret.name + "' has no Secret of Kubernetes any more (kubernetes: NAME)";
    if (one.secret.kubernetes.empty()) return exit_task(key, task, {ExitReason::kStartFailed, 1, gone});
  }
  const auto node = nodes_.find(task.start.node);
  const std::vector<Taint> taints = node == nodes_.end() ? std::vector<Taint>() : node->second.object.spec.taints;
  std::string body = json::serialize(pod_of(task.start, options_.own, taints, options_.scheduler, options_.log));
  task.phase = TaskPhase::kBinding;
  task.missing = false;
  task.look = 0;
  task.since = now_;
  if (body.size() > kMostBody)
    return exit_task(key, task, {ExitReason::kStartFailed, 1, "its command and environment are larger than 1 MiB"});
  send({0, Method::kPost, own_path(task), "application/json", std::move(body), true}, Asked::kCreate, key);
}

void Cluster::Impl::create_answered(const TaskKey& key, Task& task, int status, std::string_view body) {
  if (task.phase != TaskPhase::kBinding) return;
  if (status == 200 || status == 201) return made(key, task, text_at(object_of(body), {"metadata", "uid"}));
  if (status == 0 || status == 409 || status == 429 || status >= 500) return look_for_own(key, task);
  const std::string why = "the API server refused its pod (" + std::to_string(status) +
                          "): " + shown(text_at(object_of(body), {"message"}), 500);
  if (!waits_out_denial(task, status, body)) return exit_task(key, task, {ExitReason::kStartFailed, 1, why});
  task.missing = true;  // made again by tick
}

// The watch shows the pod, or has shown it.
void Cluster::Impl::made(const TaskKey& key, Task& task, const std::string& uid) {
  task.pod = uid;
  task.look = 0;
  task.since = now_;
  send_parts(key, task);
}

// What belongs to a pod, and is its property: it goes when the pod is deleted. Sent again it is there already.
void Cluster::Impl::send_parts(const TaskKey& key, const Task& task) {
  send_save_token(key, task);
  send_service(key, task);
}

// The kubelet starts no container before it has the Secret.
void Cluster::Impl::send_save_token(const TaskKey& key, const Task& task) {
  if (task.pod.empty() || options_.own.saves.server.empty()) return;
  const std::string space = space_of_queue(options_.own, queue_of_start(task.start));
  send({0, Method::kPost, "/api/v1/namespaces/" + space + "/secrets", "application/json",
        json::serialize(save_secret_of(task.start, options_.own, options_.log, task.pod)), true},
       Asked::kServe, key);
}

// Other tasks find the gang by the name of task 0: without it they wait for ever.
void Cluster::Impl::send_service(const TaskKey& key, const Task& task) {
  if (key.task != 0 || task.pod.empty() || !has_gang(task.start)) return;
  const std::string space = space_of_queue(options_.own, queue_of_start(task.start));
  const json::object service = service_of(task.start, options_.log, space, name_of_pod(key, options_.log), task.pod);
  send({0, Method::kPost, "/api/v1/namespaces/" + space + "/services", "application/json", json::serialize(service),
        true},
       Asked::kServe, key);
}

// 409 is that it is there.
void Cluster::Impl::serve_answered(const TaskKey& key, int status, std::string_view body) {
  if (status == 403)
    warn("the API server allows no Service of a gang, or Secret of a pod that berth has made: " +
         shown(text_at(object_of(body), {"message"}), 200));
  if (status == 0 || status == 403 || status == 429 || status >= 500)
    serve_at_[key] = now_ + options_.waits.make_again_ms;
}

void Cluster::Impl::serve_again() {
  for (auto one = serve_at_.begin(); one != serve_at_.end();) {
    if (one->second > now_) {
      ++one;
      continue;
    }
    const TaskKey key = one->first;
    one = serve_at_.erase(one);
    const auto task = tasks_.find(key);
    if (task != tasks_.end() && task->second.phase != TaskPhase::kExited) send_parts(key, task->second);
  }
}

void Cluster::Impl::look_for_own(const TaskKey& key, Task& task) {
  task.since = now_;
  task.look =
      send({0, Method::kGet, own_path(task) + "/" + name_of_pod(key, options_.log), "", "", true}, Asked::kLook, key);
}

// Decides by the pod itself whether it was made.
void Cluster::Impl::own_look_answered(const TaskKey& key, Task& task, int status, std::string_view body) {
  task.since = now_;
  if (status == 404) {
    if (!task.pod.empty()) return exit_task(key, task, {ExitReason::kKilled, 137, "its pod was deleted"});
    task.missing = true;  // made again by tick
    return;
  }
  if (status != 200) return;  // asked again by tick
  const auto pod = read_pod(object_of(body), options_.scheduler, options_.devices);
  if (!pod) return;
  if (pod->task != key || pod->log != options_.log || !is_own(*pod))
    return exit_task(key, task,
                     {ExitReason::kStartFailed, 1,
                      "there is a pod " + pod->name_space + "/" + pod->name + " that is not berth's; delete it"});
  if (pod->node != task.start.node || pod->devices != devices_in(task.start.gpu_uuids))
    return exit_task(key, task,
                     {ExitReason::kStartFailed, 1,
                      "pod " + pod->name_space + "/" + pod->name + " was changed by an admission webhook"});
  made(key, task, pod->uid);
}

void Cluster::Impl::tick_own(const TaskKey& key, Task& task) {
  if (now_ - task.since < options_.waits.make_again_ms) return;
  if (!task.missing) return look_for_own(key, task);
  if (task.stopping) return exit_task(key, task, {ExitReason::kKilled, 137, "it was stopped before it had a pod"});
  create(key, task);
}

// A pull may fail for a while. If the container has not started after `pull_wait_s`, its start has failed: the pod is
// deleted, and the task has ended when the pod is gone, as its kubelet has its devices until then. A pod that berth has
// made has all its parts, so what the kubelet does not even try fails sooner; a pod of others may get its Secret later.
// On a node out of contact the container may have started, so nothing is decided there.
void Cluster::Impl::watch_stuck(Pod& pod) {
  const std::string& why = pod.object.stuck;
  const auto node = nodes_.find(pod.object.node);
  if (why.empty() || !pod.assigned || node == nodes_.end() || !node->second.object.ready) {
    pod.stuck_since = Timestamp::never();
    return;
  }
  if (pod.stuck_since.is_never()) pod.stuck_since = now_;
  const bool is_hopeless = pod.own && (why.starts_with("InvalidImageName:") || why.starts_with("ErrImageNeverPull:") ||
                                       why.starts_with("CreateContainerConfigError:"));
  if (now_ - pod.stuck_since < (is_hopeless ? options_.waits.hopeless_ms : options_.pull_wait_s * 1000)) return;
  const auto task = tasks_.find(*pod.assigned);
  if (task == tasks_.end() || task->second.stopping || task->second.phase == TaskPhase::kExited) return;
  const PodObject& object = pod.object;
  send_event({"v1", "Pod", object.name_space, object.name, object.uid}, "StartGivenUp",
             "it is deleted, as its container has not started for " + std::to_string((now_ - pod.stuck_since) / 1000) +
                 " s and others wait for its place: " + why);
  task->second.given_up = PodEnd{ExitReason::kStartFailed, 1, "its container does not start: " + why};
  task->second.marked = true;  // a failure of its own, which its controller is to count
  stop(task->first, 1, false);
}

// Deletes the pods that have ended, whose end is durable, and that are too old or too many. Until then their logs are
// there to be read.
void Cluster::Impl::sweep_own() {
  std::vector<std::pair<Timestamp, std::string>> over;
  for (auto& [uid, pod] : pods_) {
    watch_stuck(pod);
    if (!pod.own || pod.assigned || pod.object.leaving || !is_over(pod.object)) continue;
    if (pod.over_since.is_never()) pod.over_since = now_;
    over.emplace_back(pod.over_since, uid);
  }
  std::sort(over.begin(), over.end());
  std::size_t left = over.size();
  for (const auto& [since, uid] : over) {
    if (left <= options_.own.keep && now_ - since < options_.own.keep_s * 1000) break;
    --left;
    send_stray_delete(pods_.at(uid));
  }
}

}  // namespace berth::kube
