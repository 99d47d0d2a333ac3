#include "kube/pod_object.h"

#include <algorithm>
#include <charconv>

#include "kube/json_reading.h"
#include "kube/pod_request.h"
#include "kube/pod_risks.h"
#include "kube/user_stamp.h"
#include "model/exit_code.h"
#include "model/image.h"
#include "model/toleration.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostClaims = 100;

// Names become parts of paths: the API server makes none with other letters.
bool is_path_part(std::string_view name) {
  return !name.empty() && name.size() <= 253 && name.front() != '.' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string_view::npos;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

void refuse(PodWish& wish, std::string why) {
  if (wish.problem.empty()) wish.problem = std::move(why);
}

std::string label(const json::object& pod, std::string_view key) { return text_at(pod, {"metadata", "labels", key}); }
std::string annotation(const json::object& pod, std::string_view key) {
  return text_at(pod, {"metadata", "annotations", key});
}

void read_owner(const json::object& pod, PodObject& object) {
  for (const json::object* owner : objects_at(pod, {"metadata", "ownerReferences"})) {
    if (!true_at(*owner, {"controller"})) continue;
    object.owner_uid = text_at(*owner, {"uid"});
    object.wish.owner_kind = text_at(*owner, {"kind"});
    const std::string version = text_at(*owner, {"apiVersion"});
    if (object.wish.owner_kind == "Job" && !version.empty() && !version.starts_with("batch/"))
      object.wish.owner_kind += " of " + shown(version, 80);  // such as Volcano's: another kind
    object.wish.owner_name = text_at(*owner, {"name"});
  }
}

void read_group(const json::object& pod, PodObject& object) {
  PodWish& wish = object.wish;
  wish.pod_group = text_at(pod, {"spec", "schedulingGroup", "podGroupName"});
  wish.group_name = label(pod, "berth.dev/group");
  const std::string size = label(pod, "berth.dev/group-size");
  if (!wish.group_name.empty() &&
      (!read_number(size, wish.group_size) || wish.group_size < 1 || wish.group_size > kMaxTasksPerJob))
    refuse(wish, "label berth.dev/group-size: '" + shown(size, 40) + "' is no number of pods from 1 to " +
                     std::to_string(kMaxTasksPerJob));
  std::int32_t index = -1;
  for (const std::string_view key : {"batch.kubernetes.io/job-completion-index", "berth.dev/index"}) {
    if (read_number(annotation(pod, key), index) && index >= 0) object.index = index;
  }
}

void read_node_affinity(const json::object& pod, PodWish& wish) {
  const json::object* required =
      object_at(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required == nullptr) return;
  SelectorRead read = read_rule(*required);
  if (!read.problem.empty()) return refuse(wish, "required node affinity with " + read.problem + " is not supported");
  wish.affinity = std::move(read.rule);
}

// Returns the toleration as berth writes it; empty if it tolerates nothing that keeps the pod away.
std::string toleration_of(const json::object& object) {
  const std::string effect = text_at(object, {"effect"});
  const bool exists = text_at(object, {"operator"}) == "Exists";
  Toleration toleration{text_at(object, {"key"}), std::nullopt, enum_from_name<TaintEffect>(effect)};
  if ((toleration.key.empty() && !exists) || (!effect.empty() && !toleration.effect)) return {};
  if (!exists) toleration.value = text_at(object, {"value"});
  std::string text = text_of(toleration);
  const auto read = parse_toleration(text);  // a key that no taint can have says something else, or nothing
  return read && *read == toleration ? text : std::string();
}

void read_nodes(const json::object& pod, PodWish& wish) {
  if (const json::object* selector = object_at(pod, {"spec", "nodeSelector"})) {
    for (const auto& [key, value] : *selector) {
      if (const json::string* text = value.if_string()) wish.node_selector.emplace_back(key, *text);
    }
  }
  read_node_affinity(pod, wish);
  std::sort(wish.node_selector.begin(), wish.node_selector.end());
  wish.node_selector.erase(std::unique(wish.node_selector.begin(), wish.node_selector.end()), wish.node_selector.end());
  for (const json::object* toleration : objects_at(pod, {"spec", "tolerations"})) {
    if (std::string text = toleration_of(*toleration); !text.empty()) wish.tolerations.push_back(std::move(text));
  }
  std::sort(wish.tolerations.begin(), wish.tolerations.end());
  wish.tolerations.erase(std::unique(wish.tolerations.begin(), wish.tolerations.end()), wish.tolerations.end());
}

// Names what decides where a pod may run and berth does not do yet: it is refused, not ignored.
void refuse_what_is_not_supported(const json::object& pod, PodWish& wish) {
  for (const json::object* constraint : objects_at(pod, {"spec", "topologySpreadConstraints"})) {
    if (text_at(*constraint, {"whenUnsatisfiable"}) != "ScheduleAnyway")
      refuse(wish, "topologySpreadConstraints with DoNotSchedule are not supported");
  }
  if (const json::array* claims = array_at(pod, {"spec", "resourceClaims"}); claims != nullptr && !claims->empty())
    refuse(wish, "resourceClaims (dynamic resource allocation) are not supported");
}

void read_ports(const json::object& pod, PodWish& wish) {
  for (const json::object* container : objects_at(pod, {"spec", "containers"})) {
    for (const json::object* port : objects_at(*container, {"ports"})) {
      const std::int64_t number = integer_at(*port, {"hostPort"}, 0);
      if (number > 0 && number <= kLastPort) wish.ports.push_back(static_cast<std::int32_t>(number));
    }
  }
  std::sort(wish.ports.begin(), wish.ports.end());
  wish.ports.erase(std::unique(wish.ports.begin(), wish.ports.end()), wish.ports.end());
}

// The main container is the one that logs are read of, too.
void read_images(const json::object& pod, PodWish& wish) {
  const std::string main = annotation(pod, "kubectl.kubernetes.io/default-container");
  for (const char* list : {"containers", "initContainers"}) {
    for (const json::object* container : objects_at(pod, {"spec", list})) {
      std::string image = text_at(*container, {"image"});
      if (image.empty()) continue;
      if (!well_formed_image(image)) refuse(wish, "image '" + shown(image, 80) + "' is no name of an image");
      const bool is_main = text_at(*container, {"name"}) == main;
      std::erase_if(wish.images, [&](const std::string& known) { return is_main && known == image; });
      if (std::find(wish.images.begin(), wish.images.end(), image) != wish.images.end()) continue;
      wish.images.insert(is_main ? wish.images.begin() : wish.images.end(), std::move(image));
    }
  }
}

void read_terms(const json::object& pod, PodObject& object) {
  PodWish& wish = object.wish;
  for (const std::string_view key : {"berth.dev/queue", "kueue.x-k8s.io/queue-name", "kai.scheduler/queue"}) {
    if (wish.queue.empty()) wish.queue = label(pod, key);
  }
  if (wish.queue.empty()) wish.queue = annotation(pod, "berth.dev/queue");  // paths with '/' are no label values
  wish.priority_class = label(pod, "berth.dev/priority-class");
  wish.class_by_spec = wish.priority_class.empty();
  if (wish.class_by_spec) wish.priority_class = text_at(pod, {"spec", "priorityClassName"});
  wish.topology = {annotation(pod, "berth.dev/topology-required"), annotation(pod, "berth.dev/topology-preferred")};
  if (const std::string word = label(pod, "berth.dev/class"); !word.empty()) {
    wish.job_class = enum_from_name<JobClass>(word);
    if (!wish.job_class)
      refuse(wish, "label berth.dev/class: '" + shown(word, 40) + "' is none of training, inference, dev, batch");
  }
  wish.time_limit_s = std::max<std::int64_t>(0, integer_at(pod, {"spec", "activeDeadlineSeconds"}, 0));
  wish.grace_s = std::clamp<std::int64_t>(integer_at(pod, {"spec", "terminationGracePeriodSeconds"}, 30), 1, 86'400);
  if (const std::string how = annotation(pod, "berth.dev/checkpoint"); !how.empty()) {
    wish.saves_on_signal = how == "on-signal";
    if (!wish.saves_on_signal)
      refuse(wish, "annotation berth.dev/checkpoint: '" + shown(how, 40) + "' is not on-signal");
  }
}

PodPhase phase_of(const json::object& pod) {
  const std::string phase = text_at(pod, {"status", "phase"});
  if (phase == "Running") return PodPhase::kRunning;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  return phase == "Failed" ? PodPhase::kFailed : PodPhase::kPending;
}

// Returns the reason and the message of a status, either of which may be missing; without both, an empty text.
std::string said_by(const json::object& status) {
  const std::string reason = text_at(status, {"reason"});
  std::string message = text_at(status, {"message"});  // of a container it may be its last line
  while (!message.empty() && (message.back() == '\n' || message.back() == '\r')) message.pop_back();
  return shown(reason + (reason.empty() || message.empty() ? "" : " ") + message);
}

// Returns true for the reasons of a pod that its kubelet did not admit, because of what the node has or is. None of its
// containers has run.
bool is_refused_by_its_node(std::string_view reason) {
  return reason == "UnexpectedAdmissionError" || reason.starts_with("OutOf") || reason == "NodeAffinity" ||
         reason == "TopologyAffinityError" || reason == "NodeShutdown";
}

// The first container that failed speaks for the pod.
PodEnd end_of(const json::object& pod, PodPhase phase) {
  PodEnd end;
  if (phase == PodPhase::kSucceeded) return end;
  const json::object* status = object_at(pod, {"status"});
  end = {ExitReason::kExited, 1, status == nullptr ? std::string() : said_by(*status)};
  const std::string why = text_at(pod, {"status", "reason"});
  if (is_refused_by_its_node(why)) {
    end.reason = ExitReason::kStartFailed;
    // Its devices could not be had there; else the node has not the room, or the place, that berth counted with.
    end.code = why == "UnexpectedAdmissionError" ? kNodeShortCode : kNotStartedCode;
  }
  if (why == "DeadlineExceeded") end.reason = ExitReason::kTimeLimit;
  for (const json::object* container : objects_at(pod, {"status", "containerStatuses"})) {
    const json::object* ended = object_at(*container, {"state", "terminated"});
    const std::int64_t code = ended == nullptr ? 0 : integer_at(*ended, {"exitCode"}, 0);
    if (code == 0) continue;
    end.code = static_cast<std::int32_t>(std::clamp<std::int64_t>(code, 1, 255));
    if (text_at(*ended, {"reason"}) == "OOMKilled") end.reason = ExitReason::kOutOfMemory;
    end.message = said_by(*ended);
    break;
  }
  return end;
}

// Returns why a container of a pending pod does not start, if it is more than that it takes a while.
std::string stuck_of(const json::object& pod) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::object* container : objects_at(pod, {"status", list})) {
      const std::string why = text_at(*container, {"state", "waiting", "reason"});
      if (why.empty() || why == "ContainerCreating" || why == "PodInitializing") continue;
      // The image's name comes up to three times before what its registry says.
      return shown(why + ": " + text_at(*container, {"state", "waiting", "message"}), 600);
    }
  }
  // The kubelet mounts before it makes the sandbox, and pulls after that.
  for (const json::object* condition : objects_at(pod, {"status", "conditions"})) {
    if (text_at(*condition, {"type"}) == "PodReadyToStartContainers" && text_at(*condition, {"status"}) == "False")
      return "its volumes, Secrets or network are not ready; `kubectl describe pod` tells which";
  }
  return {};
}

}  // namespace

std::string text_of_task(const TaskKey& key) {
  return std::to_string(key.job.value()) + "/" + std::to_string(key.attempt) + "/" + std::to_string(key.task) + "/" +
         std::to_string(key.incarnation);
}

std::optional<TaskKey> task_of_text(std::string_view text) {
  TaskKey key;
  std::uint64_t job = 0;
  const auto read_part = [&text](auto& number, bool last) {
    const std::size_t end = last ? text.size() : text.find('/');
    if (end == std::string_view::npos || !read_number(text.substr(0, end), number)) return false;
    text.remove_prefix(std::min(end + 1, text.size()));
    return true;
  };
  if (!read_part(job, false) || !read_part(key.attempt, false) || !read_part(key.task, false) ||
      !read_part(key.incarnation, true))
    return {};
  key.job = JobId(job);
  return key;
}

Result<PodObject> read_pod(const json::object& pod, std::string_view scheduler,
                           const std::vector<std::string>& vendors) {
  PodObject object;
  object.uid = text_at(pod, {"metadata", "uid"});
  object.name_space = text_at(pod, {"metadata", "namespace"});
  object.name = text_at(pod, {"metadata", "name"});
  if (object.uid.empty() || !is_path_part(object.name) || !is_path_part(object.name_space))
    return Error{ErrorCode::kInvalid, "a Pod without metadata.uid, or whose namespace or name is none"};
  object.created = text_at(pod, {"metadata", "creationTimestamp"});
  object.node = text_at(pod, {"spec", "nodeName"});
  object.ours = text_at(pod, {"spec", "schedulerName"}) == scheduler;
  object.leaving = !text_at(pod, {"metadata", "deletionTimestamp"}).empty();
  object.gated = !objects_at(pod, {"spec", "schedulingGates"}).empty();
  object.phase = phase_of(pod);
  if (object.phase == PodPhase::kSucceeded || object.phase == PodPhase::kFailed) object.end = end_of(pod, object.phase);
  if (object.phase == PodPhase::kPending && !object.node.empty()) object.stuck = stuck_of(pod);
  object.task = task_of_text(annotation(pod, kTaskAnnotation));
  object.log = annotation(pod, kLogAnnotation);
  auto request = read_request(pod, vendors);
  object.unreadable = !request;
  if (!request) {
    refuse(object.wish, request.error().message);
  } else {
    object.request = std::move(request->request);
    object.devices = std::move(request->devices);
    if (!request->unknown.empty()) refuse(object.wish, "resource " + request->unknown + " is not supported");
  }
  read_owner(pod, object);
  object.member = membership_of(pod);
  read_group(pod, object);
  read_nodes(pod, object.wish);
  read_ports(pod, object.wish);
  read_terms(pod, object);
  object.wish.stamp = annotation(pod, kStampAnnotation);
  read_images(pod, object.wish);
  if (object.ours && object.node.empty()) object.wish.risks = risks_of(pod, vendors);  // else it is judged no more
  refuse_what_is_not_supported(pod, object.wish);
  object.wish.terms = read_pod_terms(pod);
  if (!object.wish.terms.problem.empty()) refuse(object.wish, object.wish.terms.problem + " is not supported");
  object.claims = claims_of(pod);
  if (object.claims.size() > kMostClaims)
    refuse(object.wish, "it has " + std::to_string(object.claims.size()) + " PersistentVolumeClaims; the most is " +
                            std::to_string(kMostClaims));
  return object;
}

}  // namespace berth::kube
