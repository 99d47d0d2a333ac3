#include "kube/workload.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "kube/json_reading.h"
#include "kube/owner_object.h"
#include "model/job.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr std::string_view kLeaderWorkerSet = "leaderworkerset/";
constexpr std::string_view kVolcano = "volcano-podgroup/";
constexpr std::string_view kKai = "kai-podgroup/";
constexpr std::string_view kCoscheduling = "coscheduling-podgroup/";

constexpr std::array kKinds{
    WorkloadKind{Kind::kJobSet, "/apis/jobset.x-k8s.io/v1alpha2/jobsets", "jobset/", "JobSet"},
    WorkloadKind{Kind::kLeaderWorkerSet, "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets", kLeaderWorkerSet,
                 "LeaderWorkerSet"},
    WorkloadKind{Kind::kPyTorchJob, "/apis/kubeflow.org/v1/pytorchjobs", "pytorchjob/", "PyTorchJob"},
    WorkloadKind{Kind::kTfJob, "/apis/kubeflow.org/v1/tfjobs", "tfjob/", "TFJob"},
    WorkloadKind{Kind::kMpiJob, "/apis/kubeflow.org/v1/mpijobs", "mpijob/", "MPIJob"},
    WorkloadKind{Kind::kXgBoostJob, "/apis/kubeflow.org/v1/xgboostjobs", "xgboostjob/", "XGBoostJob"},
    WorkloadKind{Kind::kPaddleJob, "/apis/kubeflow.org/v1/paddlejobs", "paddlejob/", "PaddleJob"},
    WorkloadKind{Kind::kJaxJob, "/apis/kubeflow.org/v1/jaxjobs", "jaxjob/", "JAXJob"},
    WorkloadKind{Kind::kRayCluster, "/apis/ray.io/v1/rayclusters", "raycluster/", "RayCluster"},
    WorkloadKind{Kind::kVolcanoPodGroup, "/apis/scheduling.volcano.sh/v1beta1/podgroups", kVolcano, "PodGroup"},
    WorkloadKind{Kind::kKaiPodGroup, "/apis/scheduling.run.ai/v2alpha2/podgroups", kKai, "PodGroup"},
    WorkloadKind{Kind::kCoschedulingPodGroup, "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", kCoscheduling,
                 "PodGroup"}};

std::int32_t bounded(std::int64_t count) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(count, 0, kMaxTasksPerJob));
}
std::int32_t product(std::int32_t a, std::int32_t b) { return bounded(std::int64_t{a} * b); }

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& letter : small) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return small;
}

std::int32_t number_of(const std::string& text) {
  std::int32_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 && number <= kMaxTasksPerJob ? number
                                                                                                              : -1;
}

void read_job_set(const json::object& object, Workload& workload) {
  workload.apart = text_at(object, {"spec", "startupPolicy", "startupPolicyOrder"}) == "InOrder";
  for (const json::object* one : objects_at(object, {"spec", "replicatedJobs"})) {
    if (!objects_at(*one, {"dependsOn"}).empty()) workload.apart = true;
    const std::int32_t width = bounded(integer_at(*one, {"template", "spec", "parallelism"}, 1));
    const std::int32_t replicas = bounded(integer_at(*one, {"replicas"}, 1));
    workload.roles.push_back({text_at(*one, {"name"}), product(width, replicas), width});
  }
}

// The replica specs are one member of the spec, such as pytorchReplicaSpecs. Rank 0 is the one that leads.
void read_training_job(const json::object& object, Workload& workload) {
  const json::object* spec = object_at(object, {"spec"});
  if (spec == nullptr) return;
  for (const auto& [key, value] : *spec) {
    const json::object* replicas = value.if_object();
    if (replicas == nullptr || !std::string_view(key).ends_with("ReplicaSpecs")) continue;
    for (const auto& [name, role] : *replicas) {
      if (const json::object* one = role.if_object())
        workload.roles.push_back({lower(name), bounded(integer_at(*one, {"replicas"}, 1)), 1});
    }
  }
  const auto leads = [](const Role& role) {
    return role.name == "chief" || role.name == "master" || role.name == "launcher";
  };
  std::sort(workload.roles.begin(), workload.roles.end(),
            [&](const Role& a, const Role& b) { return leads(a) != leads(b) ? leads(a) : a.name < b.name; });
}

// A cluster that scales itself is a gang of its least size; what it adds later comes and goes.
void read_ray_cluster(const json::object& object, Workload& workload) {
  workload.grows = true_at(object, {"spec", "enableInTreeAutoscaling"});
  workload.roles.push_back({"headgroup", 1, 1});
  for (const json::object* group : objects_at(object, {"spec", "workerGroupSpecs"})) {
    const std::int32_t least = bounded(integer_at(*group, {"minReplicas"}, 0));
    const std::int32_t now = bounded(integer_at(*group, {"replicas"}, least));
    const std::int32_t hosts = std::max(1, bounded(integer_at(*group, {"numOfHosts"}, 1)));
    const std::int32_t replicas = true_at(*group, {"suspend"}) ? 0 : workload.grows ? least : std::max(least, now);
    workload.roles.push_back({text_at(*group, {"groupName"}), product(replicas, hosts), hosts});
  }
}

void read_least_members(const json::object& object, Workload& workload) {
  const std::int32_t least = bounded(integer_at(object, {"spec", "minMember"}, 0));
  if (least > 0) workload.roles.push_back({"", least, 1});
  workload.grows = true;
}

// Reads completion indexes as a Job writes them: "0-2,5".
std::set<std::int32_t> indexes_of(const std::string& text) {
  std::set<std::int32_t> indexes;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t dash = part.find('-');
    const std::int32_t first = number_of(part.substr(0, dash));
    const std::int32_t last = dash == std::string::npos ? first : number_of(part.substr(dash + 1));
    if (first < 0) return indexes;
    for (std::int32_t index = first; index <= last; ++index) indexes.insert(index);
    begin = end + 1;
  }
  return indexes;
}

void read_job(const json::object& object, Workload& workload) {
  workload.roles.push_back({"", gang_size_of_job(object), 1});
  if (text_at(object, {"spec", "completionMode"}) == "Indexed")
    workload.done = indexes_of(text_at(object, {"status", "completedIndexes"}));
}

bool is_over(const json::object& object) {
  for (const json::object* condition : objects_at(object, {"status", "conditions"})) {
    const std::string type = text_at(*condition, {"type"});
    const bool last = type == "Complete" || type == "Completed" || type == "Succeeded" || type == "Failed";
    if (last && text_at(*condition, {"status"}) == "True") return true;
  }
  return false;
}

Membership member(const json::object& pod, std::string_view prefix, std::string_view kind, std::string name) {
  Membership member;
  member.owner = std::string(prefix) + text_at(pod, {"metadata", "namespace"}) + "/" + name;
  member.kind = kind;
  member.name = std::move(name);
  return member;
}

// The controller of the pod, if it is of this API group; else null.
const json::object* controller_of(const json::object& pod, std::string_view group) {
  for (const json::object* owner : objects_at(pod, {"metadata", "ownerReferences"})) {
    if (true_at(*owner, {"controller"}) && text_at(*owner, {"apiVersion"}).starts_with(group)) return owner;
  }
  return nullptr;
}

Membership of_job_set(const json::object& pod, std::string name) {
  Membership one = member(pod, "jobset/", "JobSet", std::move(name));
  one.role = label_at(pod, "jobset.sigs.k8s.io/replicatedjob-name");
  one.job = number_of(label_at(pod, "jobset.sigs.k8s.io/job-index"));
  one.index = number_of(annotation_at(pod, "batch.kubernetes.io/job-completion-index"));
  return one;
}

Membership of_leader_worker_set(const json::object& pod, std::string name) {
  Membership one = member(pod, kLeaderWorkerSet, "LeaderWorkerSet", std::move(name));
  one.part = label_at(pod, "leaderworkerset.sigs.k8s.io/group-index");
  one.index = number_of(label_at(pod, "leaderworkerset.sigs.k8s.io/worker-index"));
  one.role = one.index == 0 ? "leader" : "worker";
  one.size = std::max(0, number_of(annotation_at(pod, "leaderworkerset.sigs.k8s.io/size")));
  one.serves = true;
  return one;
}

Membership of_ray_cluster(const json::object& pod, const json::object& owner) {
  Membership one = member(pod, "raycluster/", "RayCluster", text_at(owner, {"name"}));
  one.role =
      text_at(pod, {"metadata", "labels", "ray.io/node-type"}) == "head" ? "headgroup" : label_at(pod, "ray.io/group");
  one.job = number_of(label_at(pod, "ray.io/worker-group-replica-index"));
  one.index = one.role == "headgroup" ? 0 : number_of(label_at(pod, "ray.io/replica-host-index"));
  if (one.job >= 0 && one.index < 0) one.index = 0;
  one.serves = label_at(pod, "ray.io/originated-from-crd") == "RayService";
  return one;
}

Membership of_training_job(const json::object& pod, const WorkloadKind& kind, std::string name) {
  Membership one = member(pod, kind.prefix, kind.name, std::move(name));
  one.role = lower(label_at(pod, "training.kubeflow.org/replica-type"));
  one.index = number_of(label_at(pod, "training.kubeflow.org/replica-index"));
  return one;
}

}  // namespace

std::span<const WorkloadKind> workload_kinds() { return kKinds; }

const WorkloadKind* workload_kind(Kind kind) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& one) { return one.kind == kind; });
  return found == kKinds.end() ? nullptr : &*found;
}

bool owns_pods(Kind kind) { return kind == Kind::kJob || kind == Kind::kPodGroup || workload_kind(kind) != nullptr; }

std::int32_t Workload::size() const {
  std::int64_t sum = 0;
  for (const Role& role : roles) sum += role.count;
  return bounded(sum);
}

const Role* Workload::role(std::string_view name) const {
  const auto found = std::find_if(roles.begin(), roles.end(), [&](const Role& one) { return one.name == name; });
  return found == roles.end() ? nullptr : &*found;
}

std::int32_t Workload::place_of(std::string_view name) const {
  const auto found = std::find_if(roles.begin(), roles.end(), [&](const Role& one) { return one.name == name; });
  return static_cast<std::int32_t>(found - roles.begin());
}

std::int32_t Workload::offset_of(std::string_view name) const {
  std::int64_t sum = 0;
  for (const Role& role : roles) {
    if (role.name == name) break;
    sum += role.count;
  }
  return bounded(sum);
}

Workload read_workload(Kind kind, const json::object& object) {
  Workload workload;
  for (const std::string_view key : {"berth.dev/queue", "kueue.x-k8s.io/queue-name"}) {
    if (workload.queue.empty()) workload.queue = label_at(object, key);
  }
  workload.over = is_over(object);
  switch (kind) {
    case Kind::kJob:
      read_job(object, workload);
      break;
    case Kind::kPodGroup:
      if (const std::int32_t least = gang_size_of_pod_group(object); least > 0)
        workload.roles.push_back({"", least, 1});
      workload.grows = true;
      break;
    case Kind::kJobSet:
      read_job_set(object, workload);
      break;
    case Kind::kLeaderWorkerSet:  // the size is on its pods
      workload.apart = text_at(object, {"spec", "startupPolicy"}) == "LeaderReady";
      break;
    case Kind::kPyTorchJob:
    case Kind::kTfJob:
    case Kind::kMpiJob:
    case Kind::kXgBoostJob:
    case Kind::kPaddleJob:
    case Kind::kJaxJob:
      read_training_job(object, workload);
      break;
    case Kind::kRayCluster:
      read_ray_cluster(object, workload);
      break;
    case Kind::kVolcanoPodGroup:
    case Kind::kKaiPodGroup:
    case Kind::kCoschedulingPodGroup:
      read_least_members(object, workload);
      break;
    case Kind::kNode:
    case Kind::kNamespace:
    case Kind::kPod:
    case Kind::kPriorityClass:
    case Kind::kStorageClass:
    case Kind::kPersistentVolume:
    case Kind::kPersistentVolumeClaim:
    case Kind::kCsiNode:
      break;
  }
  return workload;
}

Membership membership_of(const json::object& pod) {
  if (std::string name = annotation_at(pod, "scheduling.k8s.io/group-name"); !name.empty())
    return member(pod, kVolcano, "PodGroup", std::move(name));
  if (std::string name = annotation_at(pod, "pod-group-name"); !name.empty())
    return member(pod, kKai, "PodGroup", std::move(name));
  if (std::string name = label_at(pod, "scheduling.x-k8s.io/pod-group"); !name.empty())
    return member(pod, kCoscheduling, "PodGroup", std::move(name));
  if (std::string name = label_at(pod, "jobset.sigs.k8s.io/jobset-name"); !name.empty())
    return of_job_set(pod, std::move(name));
  if (std::string name = label_at(pod, "leaderworkerset.sigs.k8s.io/name"); !name.empty())
    return of_leader_worker_set(pod, std::move(name));
  if (const json::object* owner = controller_of(pod, "ray.io/")) return of_ray_cluster(pod, *owner);
  if (const json::object* owner = controller_of(pod, "kubeflow.org/")) {
    const std::string kind = text_at(*owner, {"kind"});
    for (const WorkloadKind& one : kKinds) {
      if (one.name == kind) return of_training_job(pod, one, text_at(*owner, {"name"}));
    }
  }
  return {};
}

}  // namespace berth::kube
