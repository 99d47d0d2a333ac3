// Requests to the API server.

#include <boost/json/serialize.hpp>

#include "kube/cluster_impl.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

namespace json = boost::json;
constexpr std::string_view kJson = "application/json";
constexpr std::size_t kMostMessage = 1024;  // of an Event

std::string path_of(const PodObject& pod) { return "/api/v1/namespaces/" + pod.name_space + "/pods/" + pod.name; }

// As Kubernetes writes a time.
std::string seconds_of(Timestamp time) { return to_iso8601(time).substr(0, 19) + "Z"; }

}  // namespace

// Returns the id of the request.
std::uint64_t Cluster::Impl::send(Request request, Asked asked, const TaskKey& task) {
  request.id = next_id_++;
  calls_[request.id] = {asked, task};
  output_.requests.push_back(std::move(request));
  return output_.requests.back().id;
}

void Cluster::Impl::send_binding(const TaskKey& key, const Task& task, const Pod& pod) {
  const PodObject& object = pod.object;
  const json::object body{{"apiVersion", "v1"},
                          {"kind", "Binding"},
                          {"metadata",
                           {{"name", object.name},
                            {"namespace", object.name_space},
                            {"uid", object.uid},
                            {"annotations", {{kTaskAnnotation, text_of_task(key)}, {kLogAnnotation, options_.log}}}}},
                          {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", task.start.node}}}};
  send({0, Method::kPost, path_of(object) + "/binding", std::string(kJson), json::serialize(body), true}, Asked::kBind,
       key);
}

void Cluster::Impl::send_look(const TaskKey& key, const Pod& pod) {
  send({0, Method::kGet, path_of(pod.object), "", "", true}, Asked::kLook, key);
}

// A Job with a podFailurePolicy that ignores this condition does not count the pod as failed.
void Cluster::Impl::send_mark(const TaskKey& key, const Pod& pod) {
  const json::object condition{{"type", "DisruptionTarget"},
                               {"status", "True"},
                               {"reason", "PreemptionByScheduler"},
                               {"message", "berth stops task " + text_of_task(key)},
                               {"lastTransitionTime", seconds_of(now_ + paused_ms_)}};
  send({0, Method::kPatch, path_of(pod.object) + "/status", "application/strategic-merge-patch+json",
        json::serialize(json::object{{"metadata", {{"uid", pod.object.uid}}},
                                     {"status", {{"conditions", json::array{condition}}}}}),
        true},
       Asked::kMark, key);
}

// The deletion follows the mark.
void Cluster::Impl::send_delete(const TaskKey& key, Task& task, const Pod& pod) {
  task.delete_asked = now_;
  if (!task.marked) return send_mark(key, pod);
  const json::object body{{"apiVersion", "v1"},
                          {"kind", "DeleteOptions"},
                          {"gracePeriodSeconds", task.grace_s},
                          {"preconditions", {{"uid", pod.object.uid}}}};
  send({0, Method::kDelete, path_of(pod.object), std::string(kJson), json::serialize(body), true}, Asked::kDelete, key);
}

// Deletes a pod that was bound as a task which does not run: its binding took effect after it was given up.
void Cluster::Impl::send_stray_delete(Pod& pod) {
  constexpr std::int64_t kGraceS = 30;
  if (!pod.delete_asked.is_never() && now_ - pod.delete_asked < options_.waits.delete_again_ms) return;
  pod.delete_asked = now_;
  const json::object body{{"apiVersion", "v1"},
                          {"kind", "DeleteOptions"},
                          {"gracePeriodSeconds", kGraceS},
                          {"preconditions", {{"uid", pod.object.uid}}}};
  send({0, Method::kDelete, path_of(pod.object), std::string(kJson), json::serialize(body), true}, Asked::kTell, {});
}

// Writes into the pod's condition PodScheduled why it waits, when that has changed; with an Event, too, if wanted.
void Cluster::Impl::tell(Pod& pod, const std::string& reason, const std::string& text, bool with_event) {
  const std::string message = shown(text, kMostMessage);
  if (pod.told == message) return;
  pod.told = message;
  const PodObject& object = pod.object;
  const json::object condition{{"type", "PodScheduled"}, {"status", "False"}, {"reason", reason}, {"message", message}};
  send({0, Method::kPatch, path_of(object) + "/status", "application/strategic-merge-patch+json",
        json::serialize(json::object{{"status", {{"conditions", json::array{condition}}}}}), false},
       Asked::kTell, {});
  if (with_event) send_event({"v1", "Pod", object.name_space, object.name, object.uid}, reason, message);
}

void Cluster::Impl::send_event(const Subject& subject, const std::string& reason, const std::string& message) {
  const std::string time = seconds_of(now_ + paused_ms_);
  const json::object event{
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"generateName", subject.name.substr(0, 200) + "."}, {"namespace", subject.name_space}}},
      {"involvedObject",
       {{"apiVersion", subject.api_version},
        {"kind", subject.kind},
        {"name", subject.name},
        {"namespace", subject.name_space},
        {"uid", subject.uid}}},
      {"reason", reason},
      {"message", shown(message, kMostMessage)},
      {"type", reason == "Waiting" ? "Normal" : "Warning"},
      {"source", {{"component", options_.scheduler}}},
      {"firstTimestamp", time},
      {"lastTimestamp", time},
      {"count", 1}};
  send({0, Method::kPost, "/api/v1/namespaces/" + subject.name_space + "/events", std::string(kJson),
        json::serialize(event), false},
       Asked::kTell, {});
}

}  // namespace berth::kube
