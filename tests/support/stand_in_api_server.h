#pragma once
// A stand-in for the API server of a Kubernetes cluster, for tests: it keeps objects, answers the requests that
// src/kube writes as kube-apiserver 1.37 does, and has a kubelet and a controller of Jobs that act when told to.
// A Binding to a missing node is accepted; a wrong uid, a gated or a bound pod is refused with 409.

#include <boost/json.hpp>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "kube/cluster.h"

namespace berth::kube {

struct StandInServer {
  struct Change {
    Kind kind;
    boost::json::object object;
    bool deleted = false;
  };
  struct Answer {
    int status = 0;
    std::string body;
  };
  using Objects = std::map<std::string, boost::json::object>;  // by namespace/name

  std::map<Kind, Objects> objects;
  std::deque<Change> changes;  // the watches, all in one
  std::int64_t version = 0;
  std::int64_t uids = 0;
  Timestamp now{1'700'000'000'000};
  std::map<std::string, int> bindings;        // how often each uid was bound
  std::vector<boost::json::object> events;    // as posted
  std::map<std::string, std::string> waits;   // message of the condition PodScheduled=False, by namespace/name
  std::map<std::string, std::int64_t> grace;  // of the last deletion, by uid
  bool replaces_leaving = false;              // the controller of Jobs makes another pod at once for one that leaves
  std::map<std::string, Answer> refused;  // answers to bindings of pods that an admission refuses, by namespace/name

  static std::string key(const boost::json::object& object) {
    const auto& metadata = object.at("metadata").as_object();
    const auto* space = metadata.if_contains("namespace");
    return (space == nullptr ? "" : std::string(space->as_string())) + "/" +
           std::string(metadata.at("name").as_string());
  }
  static std::string uid_of(const boost::json::object& object) {
    return std::string(object.at("metadata").as_object().at("uid").as_string());
  }
  static std::string node_of(const boost::json::object& pod) {
    const auto* node = pod.at("spec").as_object().if_contains("nodeName");
    return node == nullptr ? "" : std::string(node->as_string());
  }

  void put(Kind kind, boost::json::object object) {
    auto& metadata = object["metadata"].as_object();
    if (!metadata.contains("uid")) metadata["uid"] = "uid-" + std::to_string(++uids);
    if (!metadata.contains("creationTimestamp")) metadata["creationTimestamp"] = to_iso8601(now);
    metadata["resourceVersion"] = std::to_string(++version);
    objects[kind][key(object)] = object;
    changes.push_back({kind, std::move(object)});
  }
  void remove(Kind kind, const std::string& name) {
    const auto found = objects[kind].find(name);
    if (found == objects[kind].end()) return;
    boost::json::object object = std::move(found->second);
    objects[kind].erase(found);
    object["metadata"].as_object()["resourceVersion"] = std::to_string(++version);
    changes.push_back({kind, std::move(object), true});
  }
  boost::json::object& pod(const std::string& name) { return objects[Kind::kPod].at(name); }
  bool has_pod(const std::string& name) { return objects[Kind::kPod].contains(name); }

  void add_namespace(const std::string& name, const std::string& queues) {
    put(Kind::kNamespace, {{"metadata", {{"name", name}, {"annotations", {{"berth.dev/queues", queues}}}}}});
  }
  static boost::json::object node(const std::string& name, int gpus) {
    const boost::json::object amounts{
        {"cpu", "64"}, {"memory", "512Gi"}, {"pods", "110"}, {"nvidia.com/gpu", std::to_string(gpus)}};
    return {{"metadata",
             {{"name", name},
              {"labels", {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"}, {"nvidia.com/gpu.memory", "81559"}}}}},
            {"spec", boost::json::object()},
            {"status",
             {{"capacity", amounts},
              {"allocatable", amounts},
              {"conditions", boost::json::array{{{"type", "Ready"}, {"status", "True"}}}}}}};
  }
  // A pod with one container that requests GPUs and one CPU.
  static boost::json::object pod_of(const std::string& space, const std::string& name, int gpus) {
    const boost::json::object requests{{"cpu", "1"}, {"nvidia.com/gpu", std::to_string(gpus)}};
    return {{"metadata", {{"namespace", space}, {"name", name}, {"labels", boost::json::object()}}},
            {"spec",
             {{"schedulerName", "berth"},
              {"terminationGracePeriodSeconds", 30},
              {"containers", boost::json::array{{{"name", "main"}, {"resources", {{"requests", requests}}}}}}}},
            {"status", {{"phase", "Pending"}}}};
  }
  void add_gang_pod(const std::string& space, const std::string& name, const std::string& group, int size, int gpus,
                    const std::string& claim = "") {
    boost::json::object object = pod_of(space, name, gpus);
    auto& labels = object["metadata"].as_object()["labels"].as_object();
    labels["berth.dev/group"] = group;
    labels["berth.dev/group-size"] = std::to_string(size);
    if (!claim.empty()) claim_in(object, claim);
    put(Kind::kPod, std::move(object));
  }
  void add_job(const std::string& space, const std::string& name, int size) {
    put(Kind::kJob, {{"metadata", {{"namespace", space}, {"name", name}}},
                     {"spec", {{"parallelism", size}, {"completions", size}, {"completionMode", "Indexed"}}}});
  }

  void add_storage_class(const std::string& name) {
    put(Kind::kStorageClass, {{"metadata", {{"name", name}}},
                              {"provisioner", "csi.example.com"},
                              {"volumeBindingMode", "WaitForFirstConsumer"}});
  }
  void add_claim(const std::string& space, const std::string& name, const std::string& storage_class) {
    put(Kind::kPersistentVolumeClaim, {{"metadata", {{"namespace", space}, {"name", name}}},
                                       {"spec", {{"storageClassName", storage_class}}},
                                       {"status", {{"phase", "Pending"}}}});
  }
  // The pod has a volume of the claim.
  static void claim_in(boost::json::object& pod, const std::string& claim) {
    const boost::json::object volume{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", claim}}}};
    pod["spec"].as_object()["volumes"] = boost::json::array{volume};
  }
  static std::string selected_node(const boost::json::object& claim) {
    const auto* notes = claim.at("metadata").as_object().if_contains("annotations");
    const auto* node =
        notes == nullptr ? nullptr : notes->as_object().if_contains("volume.kubernetes.io/selected-node");
    return node == nullptr || !node->is_string() ? "" : std::string(node->as_string());
  }
  // The provisioner and the controller of volumes: a claim with a chosen node gets a volume that only that node has.
  // Returns false if no node was chosen, or it has one.
  bool provision(const std::string& name) {
    boost::json::object claim = objects[Kind::kPersistentVolumeClaim].at(name);
    const std::string node = selected_node(claim);
    if (node.empty() || claim.at("status").at("phase").as_string() == "Bound") return false;
    const std::string volume = "pv-" + std::to_string(++uids);
    const boost::json::object here{
        {"key", "metadata.name"}, {"operator", "In"}, {"values", boost::json::array{boost::json::string(node)}}};
    const boost::json::object term{{"matchFields", boost::json::array{here}}};
    put(Kind::kPersistentVolume,
        {{"metadata", {{"name", volume}}},
         {"spec",
          {{"claimRef", {{"namespace", name.substr(0, name.find('/'))}, {"name", name.substr(name.find('/') + 1)}}},
           {"nodeAffinity", {{"required", {{"nodeSelectorTerms", boost::json::array{term}}}}}}}}});
    claim["spec"].as_object()["volumeName"] = volume;
    claim["status"].as_object()["phase"] = "Bound";
    put(Kind::kPersistentVolumeClaim, std::move(claim));
    return true;
  }

  // The controller of Jobs: a pod for each index that has neither a pod that lives nor one that has succeeded.
  void control_jobs(int gpus) {
    for (const auto& [name, job] : objects[Kind::kJob]) {
      const std::string space = name.substr(0, name.find('/'));
      std::map<std::string, bool> have;
      for (const auto& [pod_name, one] : objects[Kind::kPod]) {
        const auto& metadata = one.at("metadata").as_object();
        const auto* owners = metadata.if_contains("ownerReferences");
        if (owners == nullptr || owners->as_array()[0].at("uid").as_string() != uid_of(job)) continue;
        if (one.at("status").at("phase").as_string() == "Failed") continue;
        if (replaces_leaving && metadata.contains("deletionTimestamp")) continue;
        have[std::string(metadata.at("annotations").at("batch.kubernetes.io/job-completion-index").as_string())] = true;
      }
      const auto size = job.at("spec").at("completions").as_int64();
      for (std::int64_t i = 0; i < size; ++i) {
        const std::string index = std::to_string(i);
        if (have.contains(index)) continue;
        const std::string short_name = name.substr(name.find('/') + 1);
        boost::json::object one = pod_of(space, short_name + "-" + index + "-" + std::to_string(uids), gpus);
        one["metadata"].as_object()["annotations"] = {{"batch.kubernetes.io/job-completion-index", index}};
        const boost::json::object owner{{"apiVersion", "batch/v1"},
                                        {"kind", "Job"},
                                        {"name", short_name},
                                        {"uid", uid_of(job)},
                                        {"controller", true}};
        one["metadata"].as_object()["ownerReferences"] = boost::json::array{owner};
        put(Kind::kPod, std::move(one));
      }
    }
  }

  bool is_ready(const std::string& node) const {
    const auto all = objects.find(Kind::kNode);
    const auto found = all == objects.end() ? Objects::const_iterator() : all->second.find("/" + node);
    if (all == objects.end() || found == all->second.end()) return false;
    return found->second.at("status").at("conditions").at(0).at("status").as_string() == "True";
  }
  // The node's kubelet says nothing any more, or does again. The pods of a silent node are deleted, and stay.
  void set_ready(const std::string& name, bool ready) {
    boost::json::object node = objects[Kind::kNode].at("/" + name);
    node["status"].as_object()["conditions"].as_array()[0].as_object()["status"] = ready ? "True" : "Unknown";
    put(Kind::kNode, std::move(node));
    if (ready) return;
    for (const auto& [key, pod] : Objects(objects[Kind::kPod])) {
      if (node_of(pod) != name) continue;
      boost::json::object leaving = pod;
      leaving["metadata"].as_object()["deletionTimestamp"] = to_iso8601(now);
      put(Kind::kPod, std::move(leaving));
    }
  }

  // Kubelets: bound pods run, and pods that are being deleted are gone.
  void run_kubelets() {
    std::vector<std::string> names;
    for (const auto& [name, one] : objects[Kind::kPod]) names.push_back(name);
    for (const std::string& name : names) run_kubelet(name);
  }
  void run_kubelet(const std::string& name) {
    boost::json::object one = pod(name);
    if (node_of(one).empty() || !is_ready(node_of(one))) return;
    if (one.at("metadata").as_object().contains("deletionTimestamp")) return remove(Kind::kPod, name);
    if (one.at("status").at("phase").as_string() != "Pending") return;
    one["status"].as_object()["phase"] = "Running";
    put(Kind::kPod, std::move(one));
  }
  void end(const std::string& name, int code) {
    boost::json::object one = pod(name);
    const boost::json::object ended{{"exitCode", code}, {"reason", code == 0 ? "Completed" : "Error"}};
    one["status"] = {{"phase", code == 0 ? "Succeeded" : "Failed"},
                     {"containerStatuses", boost::json::array{{{"name", "main"}, {"state", {{"terminated", ended}}}}}}};
    put(Kind::kPod, std::move(one));
  }

  // The kubelet of the pod's node does not admit it.
  void refuse_pod(const std::string& name, const std::string& reason) {
    boost::json::object one = pod(name);
    one["status"] = {{"phase", "Failed"}, {"reason", reason}, {"message", "Pod was rejected"}};
    put(Kind::kPod, std::move(one));
  }
  // Another scheduler binds the pod.
  void take_pod(const std::string& name, const std::string& node) {
    boost::json::object one = pod(name);
    one["spec"].as_object()["nodeName"] = node;
    put(Kind::kPod, std::move(one));
  }
  // Texts of the Events of the pod.
  std::string events_of(const std::string& name) const {
    std::string all;
    for (const boost::json::object& event : events) {
      const auto& about = event.at("involvedObject").as_object();
      if (std::string(about.at("namespace").as_string()) + "/" + std::string(about.at("name").as_string()) == name)
        all += std::string(event.at("message").as_string()) + "\n";
    }
    return all;
  }

  static Answer status(int code, const std::string& message) {
    return {code,
            boost::json::serialize(boost::json::object{{"kind", "Status"}, {"code", code}, {"message", message}})};
  }

  Answer answer(const Request& request) {
    const std::string prefix = "/api/v1/namespaces/";
    if (!request.path.starts_with(prefix)) return status(404, "no such path");
    const std::string rest = request.path.substr(prefix.size());
    constexpr std::string_view kClaims = "/persistentvolumeclaims/";
    if (const std::size_t at = rest.find(kClaims); at != std::string::npos)
      return patch_claim(rest.substr(0, at) + "/" + rest.substr(at + kClaims.size()),
                         boost::json::parse(request.body).as_object());
    if (rest.ends_with("/pods")) return make_pod(boost::json::parse(request.body).as_object());
    const std::size_t pods_at = rest.find("/pods/");
    if (pods_at == std::string::npos) {
      events.push_back(boost::json::parse(request.body).as_object());
      return {201, request.body};
    }
    std::string name = rest.substr(0, pods_at) + "/" + rest.substr(pods_at + 6);
    const bool binds = name.ends_with("/binding");
    const bool evicts = name.ends_with("/eviction");
    if (evicts) name.resize(name.size() - 9);
    const bool patches = name.ends_with("/status");
    if (binds) name.resize(name.size() - 8);
    if (patches) name.resize(name.size() - 7);
    if (!has_pod(name)) return status(404, "pods \"" + name + "\" not found");
    if (request.method == Method::kGet) return {200, boost::json::serialize(pod(name))};
    const boost::json::object body = boost::json::parse(request.body).as_object();
    if (binds && refused.contains(name)) return refused.at(name);
    if (binds) return bind(name, body);
    if (evicts) return erase(name, body.at("deleteOptions").as_object());
    if (patches) {
      const auto& condition = body.at("status").at("conditions").as_array()[0].as_object();
      if (condition.at("type") == "DisruptionTarget") {
        boost::json::object one = pod(name);
        one["status"].as_object()["conditions"] = boost::json::array{condition};
        put(Kind::kPod, one);
        return {200, boost::json::serialize(one)};
      }
      waits[name] = body.at("status").at("conditions").as_array()[0].at("message").as_string();
      return {200, boost::json::serialize(pod(name))};
    }
    return erase(name, body);
  }
  Answer patch_claim(const std::string& name, const boost::json::object& body) {
    auto& claims = objects[Kind::kPersistentVolumeClaim];
    if (!claims.contains(name)) return status(404, "persistentvolumeclaims \"" + name + "\" not found");
    boost::json::object one = claims.at(name);
    const auto& given = body.at("metadata").as_object();
    auto& metadata = one["metadata"].as_object();
    for (const char* key : {"uid", "resourceVersion"}) {
      if (given.at(key) != metadata.at(key)) return status(409, "the object has been modified");
    }
    if (!metadata.contains("annotations")) metadata["annotations"] = boost::json::object();
    for (const auto& [key, value] : given.at("annotations").as_object())
      metadata["annotations"].as_object()[key] = value;
    put(Kind::kPersistentVolumeClaim, one);
    return {200, boost::json::serialize(one)};
  }
  Answer make_pod(boost::json::object one) {
    const std::string name = key(one);
    if (has_pod(name)) return status(409, "pods \"" + name + "\" already exists");
    one["status"] = {{"phase", "Pending"}};
    put(Kind::kPod, std::move(one));
    return {201, boost::json::serialize(pod(name))};
  }
  Answer bind(const std::string& name, const boost::json::object& body) {
    boost::json::object one = pod(name);
    if (body.at("metadata").at("uid").as_string() != uid_of(one)) return status(409, "Precondition failed: UID");
    if (!node_of(one).empty()) return status(409, "pod is already assigned to node");
    if (one.at("metadata").as_object().contains("deletionTimestamp")) return status(409, "pod is being deleted");
    if (one.at("spec").as_object().contains("schedulingGates")) return status(409, "pod has non-empty schedulingGates");
    ++bindings[uid_of(one)];
    one["spec"].as_object()["nodeName"] = body.at("target").at("name");
    auto& notes = one["metadata"].as_object()["annotations"];
    if (!notes.is_object()) notes = boost::json::object();
    for (const auto& [key, value] : body.at("metadata").at("annotations").as_object()) notes.as_object()[key] = value;
    put(Kind::kPod, std::move(one));
    return status(201, "");
  }
  Answer erase(const std::string& name, const boost::json::object& body) {
    boost::json::object one = pod(name);
    if (body.at("preconditions").at("uid").as_string() != uid_of(one)) return status(409, "Precondition failed: UID");
    grace[uid_of(one)] = body.at("gracePeriodSeconds").as_int64();
    const std::string answer = boost::json::serialize(one);
    if (node_of(one).empty()) {
      remove(Kind::kPod, name);
    } else {
      one["metadata"].as_object()["deletionTimestamp"] = to_iso8601(now);
      put(Kind::kPod, std::move(one));
    }
    return {200, answer};
  }
};

}  // namespace berth::kube
