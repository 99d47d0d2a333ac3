#pragma once
// For tests: a stand-in for the API server and the core around one Cluster. It keeps pods and nodes, answers requests
// as the real server does (docs of the calls: Binding, Eviction, delete with preconditions), and loses answers or whole
// requests when told to.

#include <doctest/doctest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kube/cluster.h"
#include "kube/json_reading.h"
#include "kube/pod_object.h"
#include "kube/workload.h"

namespace berth::kube {

struct Answer {
  int status = 200;
  std::string body;
};

class ApiStandIn {
 public:
  explicit ApiStandIn(Options options = {})
      : options_(std::move(options)), cluster_(std::make_unique<Cluster>(options_)) {}

  static boost::json::object json(const std::string& text) { return boost::json::parse(text).as_object(); }

  void node(const std::string& name, int gpus, const std::string& more = "") {
    boost::json::object object =
        json(R"({"metadata":{"name":")" + name + R"(","uid":"node-)" + name +
             R"(","labels":{"nvidia.com/gpu.product":"H100"}},"status":{"allocatable":{"cpu":"64",)"
             R"("memory":"512Gi","nvidia.com/gpu":")" +
             std::to_string(gpus) + R"("},"conditions":[{"type":"Ready","status":"True"}]}})");
    if (!more.empty()) object["spec"] = json(more);
    nodes_[name] = object;
    cluster_->observe(Kind::kNode, object, false, now_);
  }
  void name_space(const std::string& name, const std::string& queues, const std::string& classes = "*") {
    namespaces_[name] = json(R"({"metadata":{"name":")" + name + R"(","annotations":{"berth.dev/queues":")" + queues +
                             R"(","berth.dev/priority-classes":")" + classes + R"("}}})");
    cluster_->observe(Kind::kNamespace, namespaces_[name], false, now_);
  }
  // Makes a pod; `labels` and `spec` are members of those objects, as JSON without braces.
  void pod(const std::string& name, int gpus, const std::string& labels = "", const std::string& spec = "",
           const std::string& metadata = "") {
    const std::string uid = name + "-" + std::to_string(++made_);
    pods_[uid] =
        json(R"({"metadata":{"name":")" + name + R"(","namespace":"team","uid":")" + uid +
             R"(","creationTimestamp":"2026-01-01T00:00:)" + (made_ % 60 < 10 ? "0" : "") + std::to_string(made_ % 60) +
             R"(Z","labels":{)" + labels + "}" + (metadata.empty() ? "" : "," + metadata) +
             R"(},"spec":{"schedulerName":"berth",)" + (spec.empty() ? "" : spec + ",") +
             R"("containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":)" + std::to_string(gpus) +
             R"(}}}]},"status":{"phase":"Pending"}})");
    show(uid);
  }
  // Makes or changes an object of a kind of an operator, or a Job.
  void owner(Kind kind, const std::string& text) {
    const boost::json::object object = json(text);
    const std::string name = text_at(object, {"metadata", "name"});
    (kind == Kind::kJob ? jobs_ : workloads_[kind])[name] = object;
    cluster_->observe(kind, object, false, now_);
  }
  // Makes or changes a claim of namespace `team`, a volume or a StorageClass; `more` are further members, as JSON.
  void storage(Kind kind, const std::string& name, const std::string& more) {
    const bool is_claim = kind == Kind::kPersistentVolumeClaim;
    const boost::json::object object =
        json(R"({"metadata":{"name":")" + name + R"(","uid":"uid-)" + name + R"(","resourceVersion":")" +
             std::to_string(++made_) + R"(")" + (is_claim ? R"(,"namespace":"team")" : "") + "}" +
             (more.empty() ? "" : "," + more) + "}");
    storage_[kind][name] = object;
    if (shows) cluster_->observe(kind, object, false, now_);
  }
  void remove_storage(Kind kind, const std::string& name) {
    const boost::json::object object = storage_[kind].at(name);
    storage_[kind].erase(name);
    cluster_->observe(kind, object, true, now_);
  }
  std::string selected_node(const std::string& claim) const {
    return text_at(storage_.at(Kind::kPersistentVolumeClaim).at(claim),
                   {"metadata", "annotations", "volume.kubernetes.io/selected-node"});
  }
  std::string uid_of(const std::string& name) const {
    for (const auto& [uid, pod] : pods_) {
      if (text_at(pod, {"metadata", "name"}) == name) return uid;
    }
    return {};
  }
  std::string node_of(const std::string& name) const {
    const auto found = pods_.find(uid_of(name));
    return found == pods_.end() ? "" : text_at(found->second, {"spec", "nodeName"});
  }
  void phase(const std::string& uid, const std::string& phase, int code = 0) {
    boost::json::object& state = pods_.at(uid)["status"].as_object();
    state["phase"] = phase;
    if (code != 0)
      state["containerStatuses"] = boost::json::parse(R"([{"state":{"terminated":{"exitCode":)" + std::to_string(code) +
                                                      R"(,"reason":"Error"}}}])");
    show(uid);
  }
  void run_all() {
    for (auto& [uid, pod] : pods_) {
      if (!text_at(pod, {"spec", "nodeName"}).empty() && text_at(pod, {"status", "phase"}) == "Pending")
        phase(uid, "Running");
    }
  }
  void remove(const std::string& uid) {
    const boost::json::object pod = pods_.at(uid);
    pods_.erase(uid);
    if (shows) cluster_->observe(Kind::kPod, pod, true, now_);
  }
  void show(const std::string& uid) {
    if (shows) cluster_->observe(Kind::kPod, pods_.at(uid), false, now_);
  }
  // A whole list of everything, as after the start and after 410.
  void list() {
    const auto give = [this](Kind kind, const std::map<std::string, boost::json::object>& objects) {
      cluster_->begin_list(kind);
      for (const auto& [id, object] : objects) cluster_->observe(kind, object, false, now_);
      cluster_->end_list(kind, now_);
    };
    if (pods_first) give(Kind::kPod, pods_);
    give(Kind::kNamespace, namespaces_);
    give(Kind::kPriorityClass, workloads_[Kind::kPriorityClass]);
    give(Kind::kNode, nodes_);
    give(Kind::kJob, jobs_);
    give(Kind::kPodGroup, {});
    for (const WorkloadKind& kind : workload_kinds()) give(kind.kind, workloads_[kind.kind]);
    for (const Kind kind : {Kind::kStorageClass, Kind::kPersistentVolume, Kind::kPersistentVolumeClaim, Kind::kCsiNode})
      give(kind, storage_[kind]);
    if (!pods_first) give(Kind::kPod, pods_);
    settle();
  }
  // Kills the server and starts another, which knows only what the core has stored.
  void restart() {
    cluster_ = std::make_unique<Cluster>(options_);
    for (const auto& [key, job] : jobs_of_core_) cluster_->submitted(key, job, now_);
    std::vector<StartTask> live;
    for (auto& [key, start] : started_) {
      if (exited_.contains(key)) continue;
      start.was_running = running_.contains(key);
      cluster_->perform(start, now_);
    }
    list();
  }

  void start(const TaskKey& key, const std::string& node, int gpus, int first = 0) {
    StartTask start;
    start.key = key;
    start.node = node;
    start.grace_ms = 30'000;
    for (int gpu = 0; gpu < gpus; ++gpu) start.gpu_uuids.push_back("node-" + node + ":" + std::to_string(first + gpu));
    this->start(start);
  }
  void start(const StartTask& start) {
    started_[start.key] = start;
    cluster_->perform(start, now_);
    settle();
  }
  void perform(const Effect& effect) {
    cluster_->perform(effect, now_);
    settle();
  }
  void pass(std::int64_t seconds) {
    for (std::int64_t second = 0; second < seconds; ++second) {
      now_ = now_ + 1000;
      cluster_->tick(now_);
      settle();
    }
  }
  // Requests whose path ends so get no answer yet; the last of them is `sent`, for the test to answer.
  void keep_under_way(const std::string& end, Request& sent) {
    fault = [this, end, &sent](const Request& request) {
      if (!request.path.ends_with(end)) return serve(request);
      sent = request;
      return Answer{kOnItsWay, ""};
    };
  }
  // The server and its machine are paused.
  void pause(std::int64_t seconds) { now_ = now_ + seconds * 1000; }
  // What others leave of the node's CPUs.
  std::int64_t free_cpu(const std::string& node) const {
    return registered.at(node).cpu_milli - foreign.at(node).cpu_milli;
  }
  // Hands over what the cluster gives until it gives nothing.
  void settle() {
    for (int round = 0; round < 100; ++round) {
      const Output output = cluster_->take();
      withdrawn.insert(output.withdrawn.begin(), output.withdrawn.end());
      if (output.commands.empty() && output.requests.empty()) return;
      for (const Command& command : output.commands) take(command);
      for (const Request& request : output.requests) {
        requests.push_back(request);
        const Answer answer = fault ? fault(request) : serve(request);
        if (answer.status == kOnItsWay) continue;
        cluster_->answered(request.id, answer.status, answer.body, now_);
      }
    }
    FAIL("the cluster does not come to rest");
  }

  Answer serve(const Request& request) {
    const std::string pods = "/api/v1/namespaces/team/pods/";
    if (request.method == Method::kPost && request.path + "/" == pods) return make(json(request.body));
    const std::string claims = "/api/v1/namespaces/team/persistentvolumeclaims/";
    if (request.path.starts_with(claims)) return select(request.path.substr(claims.size()), json(request.body));
    if (!request.path.starts_with(pods)) return {201, "{}"};
    std::string name = request.path.substr(pods.size());
    const std::string part = name.find('/') == std::string::npos ? "" : name.substr(name.find('/') + 1);
    name = name.substr(0, name.find('/'));
    const std::string uid = uid_of(name);
    if (uid.empty()) return {404, "not found"};
    if (request.method == Method::kGet) return {200, boost::json::serialize(pods_.at(uid))};
    if (request.method == Method::kPatch) return {200, "{}"};
    const boost::json::object body = json(request.body);
    if (part == "binding") return bind(uid, body);
    if (part == "eviction") return evict(name, uid, body);
    if (text_at(body, {"preconditions", "uid"}) != uid) return {409, "uid"};
    deleted.push_back(uid);
    remove(uid);
    return {200, "{}"};
  }

  const std::vector<SubmitJob>& jobs() const { return submitted_; }
  bool is_running(const TaskKey& key) const { return running_.contains(key); }
  const TaskExited* exit_of(const TaskKey& key) const {
    const auto found = exited_.find(key);
    return found == exited_.end() ? nullptr : &found->second;
  }
  int binds_of(const std::string& uid) const {
    const auto found = binds_.find(uid);
    return found == binds_.end() ? 0 : found->second;
  }
  std::string told(const std::string& pod) const {
    std::string last;
    for (const Request& request : requests) {
      if (request.method == Method::kPatch && request.path.ends_with("/" + pod + "/status")) last = request.body;
    }
    return last;
  }
  Cluster& cluster() { return *cluster_; }
  Timestamp now() const { return now_; }

  static constexpr int kOnItsWay = -1;          // a status of `fault`: the test hands the answer over later
  std::function<Answer(const Request&)> fault;  // instead of serve()
  bool pods_first = false;                      // a list gives the pods before all else
  bool shows = true;                            // the watch shows changes
  bool refuses = false;                         // the core refuses jobs
  std::vector<Request> requests;
  std::set<std::uint64_t> withdrawn;  // ids of requests
  std::vector<std::string> deleted;
  std::vector<std::string> evicted;
  std::set<std::string> budgets;  // names of pods that a disruption budget keeps
  std::vector<Command> commands;
  // NOLINTBEGIN(readability-identifier-naming): functions have the names without the underscore
  std::map<std::string, boost::json::object> pods_, nodes_, namespaces_, jobs_;
  std::map<Kind, std::map<std::string, boost::json::object>> workloads_;  // of operators
  std::map<Kind, std::map<std::string, boost::json::object>> storage_;    // claims, volumes, classes
  std::map<std::string, JobId> jobs_of_core_;
  // NOLINTEND(readability-identifier-naming)
  std::map<std::string, NodeSpec> registered;
  std::map<std::string, ForeignReport> foreign;  // by node
  bool answers = true;                           // submissions are answered
  std::map<std::string, NodeStatus> status;
  std::set<std::string> removed;  // nodes that are no more part of the cluster

 private:
  Answer select(const std::string& name, const boost::json::object& body) {
    auto& all = storage_[Kind::kPersistentVolumeClaim];
    if (!all.contains(name)) return {404, "not found"};
    boost::json::object& claim = all.at(name);
    if (text_at(body, {"metadata", "resourceVersion"}) != text_at(claim, {"metadata", "resourceVersion"}))
      return {409, "the object has been modified"};
    claim["metadata"].as_object()["annotations"] = *object_at(body, {"metadata", "annotations"});
    claim["metadata"].as_object()["resourceVersion"] = std::to_string(++made_);
    const boost::json::object copy = claim;
    if (shows) cluster_->observe(Kind::kPersistentVolumeClaim, copy, false, now_);
    return {200, boost::json::serialize(copy)};
  }
  Answer evict(const std::string& name, const std::string& uid, const boost::json::object& body) {
    if (budgets.contains(name)) {
      return {429,
              R"({"reason":"TooManyRequests","message":"Cannot evict pod as it would violate the pod's disruption )"
              R"(budget.","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget b )"
              R"(needs 1 healthy pods and has 1 currently"}]}})"};
    }
    if (text_at(body, {"deleteOptions", "preconditions", "uid"}) != uid) return {409, "uid"};
    evicted.push_back(uid);
    remove(uid);
    return {201, "{}"};
  }
  Answer bind(const std::string& uid, const boost::json::object& body) {
    boost::json::object& pod = pods_.at(uid);
    if (text_at(body, {"metadata", "uid"}) != uid) return {409, "uid"};
    if (!text_at(pod, {"spec", "nodeName"}).empty()) return {409, "already bound"};
    const std::string node = text_at(body, {"target", "name"});
    pod["spec"].as_object()["nodeName"] = node;
    boost::json::object& metadata = pod["metadata"].as_object();
    metadata["annotations"] = *object_at(body, {"metadata", "annotations"});
    ++binds_[uid];
    show(uid);
    return {201, "{}"};
  }
  Answer make(boost::json::object pod) {
    const std::string name = text_at(pod, {"metadata", "name"});
    if (!uid_of(name).empty()) return {409, R"({"reason":"AlreadyExists"})"};
    const std::string uid = name + "-" + std::to_string(++made_);
    pod["metadata"].as_object()["uid"] = uid;
    pod["status"] = json(R"({"phase":"Pending"})");
    pods_[uid] = pod;
    show(uid);
    return {201, boost::json::serialize(pod)};
  }
  void take(const Command& command) {
    commands.push_back(command);
    if (const auto* one = std::get_if<SubmitJob>(&command)) {
      submitted_.push_back(*one);
      if (refuses) return cluster_->refused(one->key, "queue 'q' does not exist", now_);
      const JobId id(jobs_of_core_.size() + 1);
      jobs_of_core_.try_emplace(one->key, id);
      if (answers) cluster_->submitted(one->key, jobs_of_core_.at(one->key), now_);
    }
    if (const auto* one = std::get_if<RegisterNode>(&command)) {
      registered[one->spec.name] = one->spec;
      foreign[one->spec.name] = one->foreign;
      status[one->spec.name] = NodeStatus::kReady;
    }
    if (const auto* one = std::get_if<ReportForeignUse>(&command)) foreign[one->node] = one->use;
    if (const auto* one = std::get_if<ReportNodeStatus>(&command)) {
      status[one->node] = one->status;
      if (one->removed) removed.insert(one->node);
    }
    if (const auto* one = std::get_if<ReportTaskStarted>(&command))
      running_.insert({one->job, one->attempt, one->task, one->incarnation});
    if (const auto* one = std::get_if<ReportTaskExited>(&command))
      exited_[{one->exit.job, one->exit.attempt, one->exit.task, one->exit.incarnation}] = one->exit;
  }

  Options options_;
  std::unique_ptr<Cluster> cluster_;
  Timestamp now_{1'000'000};
  int made_ = 0;
  std::vector<SubmitJob> submitted_;
  std::map<TaskKey, StartTask> started_;
  std::set<TaskKey> running_;
  std::map<TaskKey, TaskExited> exited_;
  std::map<std::string, int> binds_;
};

}  // namespace berth::kube
