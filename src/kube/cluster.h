#pragma once
// What berth knows of one Kubernetes cluster, and what it wants to write there. It takes objects from watches, effects
// from the core and answers to its own requests; it gives commands for the core and requests for the API server. It
// reads no clock and does no I/O: src/backend/kubernetes sends and receives.
//
// Rules:
// 1. A node of the API server is a node of berth; its GPUs are counted (the kubelet chooses the devices), MIG instances
//    and shares by the name of their resource.
// 2. Pods that name our scheduler form groups: by label, PodGroup or owner, else each alone. A group is submitted as
//    one job when as many pods wait as it needs. Its key names the group, so that a repeat is no second job.
//    Its user is that which its pods are stamped with (user_stamp.h), else that of their namespace.
//    Pods beyond the least size of a group that grows are jobs of their own. Pods that a controller has made anew for
//    those on a node out of contact are another job; the old one is cancelled, and over when its pods are gone.
// 3. A StartTask is one Binding of the task's pod, which carries the task's key as an annotation. If the pod does not
//    exist yet (its controller makes a new one after an eviction), the start waits for it, for a bounded time.
//    No pod of a gang is bound before each of its tasks has one.
//    A start with an image is a job of berth's own: its pod is made, with the key, bound to its node (own_pod.h).
//    Where pods of a gang have claims, none is bound before the claims of all are: a claim that waits for its consumer
//    is told the chosen node first (volume_object.h, docs/decisions/0038).
// 4. A pod that is bound with our key is that task, after any restart. All else that uses a node is foreign use.
// 5. A request without an answer may have happened. It is decided by what the watch shows, or by reading the object.
// 6. A victim of a preemption or a move leaves by the Eviction API, which a PodDisruptionBudget may refuse: then it
//    runs on until the budget allows it. All others who are stopped are deleted (cluster_evictions.cc).
// 7. An object that cannot be understood changes nothing, and is told by name (warnings, an Event on the pod).

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/timestamp.h"
#include "kube/own_pod.h"
#include "kube/user_stamp.h"
#include "kube/waits.h"
#include "model/command.h"
#include "model/effect.h"

namespace berth::kube {

// The kinds of objects that are watched.
enum class Kind {
  kNode,
  kNamespace,
  kPod,
  kJob,
  kPodGroup,
  kPriorityClass,
  kStorageClass,
  kPersistentVolume,
  kPersistentVolumeClaim,
  kCsiNode,
  // of operators (workload.h)
  kJobSet,
  kLeaderWorkerSet,
  kPyTorchJob,
  kTfJob,
  kMpiJob,
  kXgBoostJob,
  kPaddleJob,
  kJaxJob,
  kRayCluster,
  kVolcanoPodGroup,
  kKaiPodGroup,
  kCoschedulingPodGroup,
};

// One kind as the API server serves it.
struct Resource {
  Kind kind;
  std::string_view path;      // such as /api/v1/pods: list and watch, all namespaces
  std::string_view selector;  // query of the list, such as fieldSelector=...; empty: none
  bool optional;              // the API server may not serve it: 404 is an empty list
  bool extra = false;         // berth runs without the right to read it; then the kind counts as absent
};
// Returns the kinds that the cluster wants to see, in the order in which they are to be listed at first.
std::vector<Resource> watched();

enum class Method { kGet, kPost, kPatch, kDelete };

// One request to the API server.
struct Request {
  std::uint64_t id = 0;  // ascending from 1; names it in `answered`
  Method method = Method::kGet;
  std::string path;
  std::string content_type;  // empty without a body
  std::string body;
  bool urgent = false;  // bindings and deletions: before events and conditions
};

// A node that the core has from before, and its machine (uid of its Node object).
struct KnownNode {
  std::string name;
  std::string machine;
  bool lost = false;
};

struct Options {
  std::string cell = "kubernetes";
  std::string scheduler = "berth";         // spec.schedulerName of the pods that it takes
  std::vector<std::string> topology = {};  // label keys of the configured levels, outermost first
  std::int64_t pod_wait_s = 120;           // how long a start waits for its pod, and for claims it has, to exist
  std::int64_t volume_wait_s = 600;        // how long a start waits for the volumes of the chosen node
  std::int64_t pull_wait_s = 600;          // how long a bound pod keeps its places while its container does not start
  std::vector<std::string> levels = {};    // names of these levels, as far as there are
  std::vector<StampedName> stamped = {};   // users that pods may be stamped with; empty: no stamp is believed
  std::vector<std::string> devices = {};   // resources that count as GPUs besides NVIDIA's (device.h)
  std::string log = {};                    // id of the log; pods that are bound by another are foreign
  OwnPods own = {};
  std::vector<KnownNode> nodes = {};  // those of the fleet, also lost ones
  Waits waits = {};
};

struct Output {
  std::vector<Command> commands;
  std::vector<Request> requests;
  std::vector<std::uint64_t> withdrawn;  // ids of requests from before: one that was not sent yet is not to be sent
};

// Where the pod of a task is.
struct PodPlace {
  std::string space;
  std::string name;
  std::string uid;
  bool own = false;  // berth made it
};

class Cluster {
 public:
  explicit Cluster(Options options);
  ~Cluster();
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  // An object was added or has changed, or (`deleted`) is gone. `now` is the server's clock.
  void observe(Kind kind, const boost::json::object& object, bool deleted, Timestamp now);
  // The observations since begin_list are a whole list of this kind: what is not in it is gone.
  void begin_list(Kind kind);
  void end_list(Kind kind, Timestamp now);
  // The kind may not be read, until it is listed.
  void denied(Kind kind);
  void perform(const Effect& effect, Timestamp now);
  // The job of a group was accepted under this id (the reply to its SubmitJob). After a start it is called first, for
  // each live job of this cell. If the job is over already, `finished` follows.
  void submitted(const std::string& key, JobId job, Timestamp now);
  // The job was refused; the reason is told on its pods.
  void refused(const std::string& key, const std::string& why, Timestamp now);
  // The job has finished in berth, or was cancelled there.
  void finished(JobId job, bool cancelled, Timestamp now);
  // Why the job waits, for the condition of its pods. Given only when it changes.
  void waits(JobId job, const std::string& why, Timestamp now);
  // The answer to a request. Status 0: none came.
  void answered(std::uint64_t id, int status, std::string_view body, Timestamp now);
  // Stamps with the users of pods are believed by these rules from now on; nothing: none is. Required once before
  // anything is reported, where Options.stamped has names.
  void believe(std::optional<StampRules> rules, Timestamp now);
  // Lets time pass: waits that are over, repeats of unanswered requests. To be called about once a second. More than
  // 10 s without any call are a pause, and count for no wait.
  void tick(Timestamp now);

  // Takes what has gathered, in order. Nothing is reported before each kind was listed once; nodes come first.
  Output take();
  // Returns the pod of the task, as long as the API server has it and berth saw it bound.
  std::optional<PodPlace> place_of(JobId job, std::uint32_t attempt, std::uint32_t task) const;
  std::vector<std::string> warnings() const;  // at most 100

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::kube
