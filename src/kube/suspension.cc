#include "kube/suspension.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "kube/json_reading.h"
#include "kube/workload.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

struct Template {
  std::string role;
  const json::object* pod = nullptr;
};

std::vector<Template> templates_of(Kind kind, const json::object& object) {
  std::vector<Template> all;
  if (kind == Kind::kJob) all.push_back({"", object_at(object, {"spec", "template"})});
  if (kind == Kind::kJobSet) {
    for (const json::object* one : objects_at(object, {"spec", "replicatedJobs"}))
      all.push_back({text_at(*one, {"name"}), object_at(*one, {"template", "spec", "template"})});
  }
  return all;
}

// The object above a JobSet whose own `suspend` is written over that of the JobSet.
const json::object* owner_of(const json::object& object) {
  for (const json::object* owner : objects_at(object, {"metadata", "ownerReferences"})) {
    if (true_at(*owner, {"controller"})) return owner;
  }
  return nullptr;
}

std::string path_of(Kind kind, const json::object& object) {
  const std::string space = "/namespaces/" + text_at(object, {"metadata", "namespace"});
  const std::string name = text_at(object, {"metadata", "name"});
  if (kind == Kind::kJob) return "/apis/batch/v1" + space + "/jobs/" + name;
  const json::object* owner = owner_of(object);
  if (owner == nullptr) return "/apis/jobset.x-k8s.io/v1alpha2" + space + "/jobsets/" + name;
  const bool is_train_job =
      text_at(*owner, {"kind"}) == "TrainJob" && text_at(*owner, {"apiVersion"}).starts_with("trainer.kubeflow.org/");
  if (!is_train_job) return {};
  return "/apis/trainer.kubeflow.org/v1alpha1" + space + "/trainjobs/" + text_at(*owner, {"name"});
}

// Returns the pod that the template makes.
std::optional<PodObject> pod_of(const Template& one, const json::object& object, std::string_view scheduler,
                                const std::vector<std::string>& vendors) {
  if (one.pod == nullptr) return std::nullopt;
  json::object pod = *one.pod;
  json::object& metadata =
      pod["metadata"].is_object() ? pod["metadata"].get_object() : pod["metadata"].emplace_object();
  metadata["namespace"] = text_at(object, {"metadata", "namespace"});
  metadata["name"] = text_at(object, {"metadata", "name"});
  metadata["uid"] = text_at(object, {"metadata", "uid"});
  auto read = read_pod(pod, scheduler, vendors);
  if (!read) return std::nullopt;
  read->member = {};
  read->member.role = one.role;
  read->wish.owner_kind = "Job";
  std::erase_if(read->claims, [](const PodClaim& claim) { return claim.ephemeral; });  // of pods that do not exist yet
  return std::move(*read);
}

// The whole of what is admitted has to be known before it starts.
void read_roles(Kind kind, const json::object& object, Suspension& suspension) {
  const Workload workload = read_workload(kind, object);
  suspension.roles = workload.roles;
  if (workload.apart)
    suspension.problem = "a JobSet that starts its replicated jobs in order is not admitted; create it without suspend";
  if (kind != Kind::kJob) return;
  const std::int64_t parallelism = integer_at(object, {"spec", "parallelism"}, 1);
  const std::int64_t completions = integer_at(object, {"spec", "completions"}, parallelism);
  if (completions > parallelism)
    suspension.problem =
        "a suspended Job of more completions than parallelism is not admitted; create it without suspend";
  suspension.roles = {{"", static_cast<std::int32_t>(std::clamp<std::int64_t>(completions, 0, kMaxTasksPerJob)), 1}};
}

}  // namespace

std::optional<Suspension> read_suspension(Kind kind, const json::object& object, std::string_view scheduler,
                                          const std::vector<std::string>& vendors) {
  if (kind != Kind::kJob && kind != Kind::kJobSet) return std::nullopt;
  if (kind == Kind::kJob && owner_of(object) != nullptr) return std::nullopt;  // its owner decides
  if (read_workload(kind, object).queue.empty()) return std::nullopt;
  const auto templates = templates_of(kind, object);
  for (const Template& one : templates) {
    if (one.pod == nullptr || text_at(*one.pod, {"spec", "schedulerName"}) != scheduler) return std::nullopt;
  }
  Suspension suspension;
  suspension.path = path_of(kind, object);
  if (templates.empty() || suspension.path.empty()) return std::nullopt;
  suspension.suspended = true_at(object, {"spec", "suspend"});
  suspension.cancelled = !annotation_at(object, kCancelledAnnotation).empty();
  suspension.generation = integer_at(object, {"metadata", "generation"}, 0);
  suspension.api_version = kind == Kind::kJob ? "batch/v1" : "jobset.x-k8s.io/v1alpha2";
  suspension.kind = kind == Kind::kJob ? "Job" : "JobSet";
  suspension.name_space = text_at(object, {"metadata", "namespace"});
  suspension.name = text_at(object, {"metadata", "name"});
  suspension.uid = text_at(object, {"metadata", "uid"});
  read_roles(kind, object, suspension);
  for (const Template& one : templates) {
    auto pod = suspension.suspended ? pod_of(one, object, scheduler, vendors) : std::nullopt;
    if (suspension.suspended && !pod) return std::nullopt;
    if (pod) suspension.pods.push_back(std::move(*pod));
  }
  return suspension;
}

std::string suspend_patch(bool suspend, const std::string& cancelled) {
  json::object patch{{"spec", {{"suspend", suspend}}}};
  if (!cancelled.empty()) patch["metadata"] = json::object{{"annotations", {{kCancelledAnnotation, cancelled}}}};
  return json::serialize(patch);
}

}  // namespace berth::kube
