#pragma once
// A Pod of the API server: what it asks for, to which group of pods it belongs, and how far it has come.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/device.h"
#include "kube/node_rule.h"
#include "kube/pod_affinity.h"
#include "kube/volume_object.h"
#include "kube/workload.h"
#include "model/effect.h"
#include "model/event.h"
#include "model/job.h"
#include "model/pod_risk.h"

namespace berth::kube {

inline constexpr std::string_view kTaskAnnotation = "berth.dev/task";
inline constexpr std::string_view kLogAnnotation = "berth.dev/log";

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed };

// How a pod ended.
struct PodEnd {
  ExitReason reason = ExitReason::kExited;
  std::int32_t code = 0;
  std::string message;
};

// What only a pod that is not bound yet needs.
struct PodWish {
  std::string queue;           // empty: the namespace's default
  std::string priority_class;  // empty: berth's default
  bool class_by_spec = false;  // it is spec.priorityClassName, which the API server writes where a pod names none
  std::string owner_kind;      // of its controller; empty: none
  std::string owner_name;
  std::string group_name;  // group by label or PodGroup
  std::int32_t group_size = 0;
  std::string pod_group;  // name of its PodGroup; empty: none
  Labels node_selector;
  std::optional<NodeRule> affinity;      // required node affinity
  PodTerms terms;                        // between pods
  std::vector<std::string> tolerations;  // model/toleration.h
  std::vector<std::int32_t> ports;
  TopologyConstraint topology;
  std::optional<JobClass> job_class;
  std::int64_t time_limit_s = 0;
  std::int64_t grace_s = 30;
  bool saves_on_signal = false;
  std::string stamp;                // as it stands in the annotation (user_stamp.h)
  std::vector<std::string> images;  // each once; that of the main container is the first
  std::vector<PodRisk> risks;       // what of it admission rules may forbid (pod_risks.h)
  std::string problem;              // what berth does not understand or support; the pod is not scheduled
};

struct PodObject {
  std::string uid;
  std::string name_space;
  std::string name;
  std::string created;      // RFC 3339
  std::string owner_uid;    // of its controller; empty: none
  std::string node;         // empty: not bound
  bool ours = false;        // it names our scheduler
  bool gated = false;       // scheduling gates keep it from being bound
  bool leaving = false;     // it is being deleted
  bool unreadable = false;  // it cannot be told what it asks for: it counts as nothing, and is not scheduled
  std::int32_t index = -1;
  Membership member;  // of the workload of an operator
  PodPhase phase = PodPhase::kPending;
  std::string stuck;            // why a container does not start, such as ImagePullBackOff; empty: nothing is known
  PodEnd end;                   // succeeded and failed pods
  std::optional<TaskKey> task;  // of the annotation that a binding of ours has put on it
  std::string log;              // likewise: of the log that decided it
  TaskRequest request;
  Devices devices;               // that it asks for
  std::vector<PodClaim> claims;  // of its volumes
  PodWish wish;
};

inline bool is_over(const PodObject& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}

// Reads a Pod. `vendors`: resources that count as devices besides NVIDIA's. Error: it has no name or uid.
Result<PodObject> read_pod(const boost::json::object& pod, std::string_view scheduler,
                           const std::vector<std::string>& vendors = {});

// The key of a task as an annotation: job/attempt/task/incarnation.
std::string text_of_task(const TaskKey& key);
std::optional<TaskKey> task_of_text(std::string_view text);

}  // namespace berth::kube
