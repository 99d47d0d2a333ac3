#pragma once
// A job as it is submitted. Whether a cluster accepts a kind of job is decided when the job is validated
// (control/validate).

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/timestamp.h"
#include "model/ids.h"
#include "model/mig.h"
#include "model/node.h"
#include "model/node_rule.h"
#include "model/resources.h"
#include "model/volume.h"

namespace berth {

inline constexpr std::int32_t kMaxTasksPerJob = 65'536;
inline constexpr std::int32_t kMaxArraySize = 1'000'000;
inline constexpr std::int32_t kMaxRetries = 1000;
inline constexpr std::int32_t kLastPort = 65'535;  // last port of TCP and UDP; the first is 1
inline constexpr std::int64_t kMaxCommentBytes = 1024;
inline constexpr std::int64_t kMaxLatencyObjectiveMs = 3'600'000;

enum class JobKind { kGang, kService, kArray, kInteractive };
BERTH_ENUM_NAMES(JobKind, "gang", "service", "array", "interactive");

enum class JobClass { kTraining, kInference, kDev, kBatch };
BERTH_ENUM_NAMES(JobClass, "training", "inference", "dev", "batch");

// How the processes of a task are started. per-task: one process per task. per-gpu: one rank per GPU, with the
// environment that torchrun would set. torchrun: one torchrun per task, with nnodes, node_rank and a rendezvous.
enum class Launch { kPerTask, kPerGpu, kTorchrun };
BERTH_ENUM_NAMES(Launch, "per-task", "per-gpu", "torchrun");

// From how many NUMA domains of a node the GPUs of one task may come; the words are those of Kubernetes' Topology
// Manager (docs/topology.md). best-effort: as few as the idle GPUs allow. none: NUMA is ignored. restricted: no more
// than an empty node of its kind would need. single-numa-node: one. A task with one GPU or a share of one satisfies all
// of them.
enum class NumaPolicy { kBestEffort, kNone, kRestricted, kSingleNumaNode };
BERTH_ENUM_NAMES(NumaPolicy, "best-effort", "none", "restricted", "single-numa-node");

struct TopologyConstraint {
  std::string required;   // level name; empty: none
  std::string preferred;  // level name; empty: none
  bool operator==(const TopologyConstraint&) const = default;
  static constexpr auto fields() {
    return field_list(field("required", &TopologyConstraint::required),
                      field("preferred", &TopologyConstraint::preferred));
  }
};

struct TaskGroup {
  std::string name = "main";
  std::int32_t count = 1;
  std::int32_t min_count = 0;  // least number of tasks to start with; 0: count
  TaskRequest request;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> env;
  std::string workdir;
  std::string image;  // empty: a plain process, no container
  Launch launch = Launch::kPerTask;
  std::string pool;  // empty: any pool that the queue may use
  Labels node_selector;
  std::vector<std::string> tolerations;  // model/toleration.h
  TopologyConstraint topology;           // for the tasks of this group, inside the job's own constraint
  NumaPolicy numa = NumaPolicy::kBestEffort;
  std::vector<NodeRule> node_rules;  // its nodes are allowed by all of them

  std::int32_t least() const { return min_count == 0 ? count : min_count; }
  bool operator==(const TaskGroup&) const = default;
  static constexpr auto fields() {
    return field_list(
        field("name", &TaskGroup::name), field("count", &TaskGroup::count), field("min_count", &TaskGroup::min_count),
        field("request", &TaskGroup::request), field("command", &TaskGroup::command), field("env", &TaskGroup::env),
        field("workdir", &TaskGroup::workdir), field("image", &TaskGroup::image), field("launch", &TaskGroup::launch),
        field("pool", &TaskGroup::pool), field("node_selector", &TaskGroup::node_selector),
        field("tolerations", &TaskGroup::tolerations), field("topology", &TaskGroup::topology),
        field("numa", &TaskGroup::numa), field_if_set("node_rules", &TaskGroup::node_rules));
  }
};

// The checkpoint contract of a job. On eviction `signal` is sent to every rank. Task 0 acknowledges for the whole job,
// by writing ack.json in BERTH_CHECKPOINT_DIR, which is `place` where that is given.
struct CheckpointContract {
  bool on_signal = false;       // the job saves its work and exits when signalled
  std::int32_t signal = 15;     // POSIX number; 15 SIGTERM, 10 SIGUSR1
  std::int64_t grace_s = 0;     // 0: as its queue's eviction terms say
  std::int64_t interval_s = 0;  // 0: no periodic saves
  VolumePlace place = {};
  bool operator==(const CheckpointContract&) const = default;
  static constexpr auto fields() {
    return field_list(field("on_signal", &CheckpointContract::on_signal), field("signal", &CheckpointContract::signal),
                      field("grace_s", &CheckpointContract::grace_s),
                      field("interval_s", &CheckpointContract::interval_s),
                      field_if_set("place", &CheckpointContract::place));
  }
};

enum class DependencyKind { kAfter, kAfterOk, kAfterAny };
BERTH_ENUM_NAMES(DependencyKind, "after", "afterok", "afterany");

struct Dependency {
  DependencyKind kind = DependencyKind::kAfterOk;
  JobId job;
  bool operator==(const Dependency&) const = default;
  static constexpr auto fields() {
    return field_list(field("kind", &Dependency::kind), field("job", &Dependency::job));
  }
};

// An affinity term: run near to, or away from, tasks of jobs that have all these labels (docs/affinity.md).
struct AffinityTerm {
  Labels labels;      // sorted by key; at least one
  std::string level;  // what counts as near: one domain of this topology level, or `node`
  bool required = true;
  auto operator<=>(const AffinityTerm&) const = default;
  static constexpr auto fields() {
    return field_list(field("labels", &AffinityTerm::labels), field("level", &AffinityTerm::level),
                      field("required", &AffinityTerm::required));
  }
};

// The backend that has submitted a job for objects that it watches, and what they are called there. Nobody else sets
// it.
struct JobSource {
  std::string cell;  // empty: the job was submitted by a user
  std::string key;   // of the submission
  bool operator==(const JobSource&) const = default;
  static constexpr auto fields() { return field_list(field("cell", &JobSource::cell), field("key", &JobSource::key)); }
};

struct JobSpec {
  std::string name;
  std::string queue;
  std::string user;
  JobKind kind = JobKind::kGang;
  JobClass job_class = JobClass::kTraining;
  std::string priority_class;  // empty: the cluster's default
  std::vector<TaskGroup> groups;
  TopologyConstraint topology;
  std::int64_t time_limit_s = 0;  // 0: none
  std::int64_t estimate_s = 0;    // 0: none given
  CheckpointContract checkpoint;
  std::int32_t retries = 0;  // failed attempts that are retried; evictions do not count
  std::vector<Dependency> dependencies;
  std::optional<Timestamp> deadline;
  std::optional<Timestamp> earliest_start;
  bool held = false;
  bool exclusive = false;            // whole nodes
  bool spread = false;               // one task or replica per node, as far as possible
  std::int32_t array_size = 0;       // arrays: number of elements
  std::int32_t array_running = 0;    // arrays: limit on running elements; 0: no limit
  std::int32_t max_unavailable = 0;  // services: limit on unavailable replicas by drains and updates; 0: none stated
  Labels labels;                     // sorted by key; matched by affinity terms of other jobs
  std::vector<AffinityTerm> affinity;
  std::vector<AffinityTerm> anti_affinity;
  std::vector<std::int32_t> ports;  // ascending; each task needs these ports of its node to itself
  std::string comment;              // for people; no decision reads it
  JobSource source = {};
  std::vector<Mount> mounts = {};         // for all tasks
  std::vector<SecretMount> secrets = {};  // for all tasks
  std::int64_t shm_mib = 0;               // size of /dev/shm of each task; 0: none stated
  VolumePlace outputs = {};               // BERTH_OUTPUT_DIR
  // Returns true if its tasks need a view of the file system of their own.
  bool has_mounts() const {
    return !mounts.empty() || !secrets.empty() || shm_mib != 0 || !outputs.volume.empty() ||
           !checkpoint.place.volume.empty();
  }
  // What it is to answer within; 0: it states none. Such a job shares no GPU but by MIG (model/sharing.h).
  std::int64_t latency_objective_ms = 0;
  // Returns true if the job has affinity, anti-affinity or ports: then the jobs that run on a node decide, too, whether
  // it may run there.
  bool has_terms() const { return !affinity.empty() || !anti_affinity.empty() || !ports.empty(); }
  bool operator==(const JobSpec&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &JobSpec::name), field("queue", &JobSpec::queue), field("user", &JobSpec::user),
                      field("kind", &JobSpec::kind), field("class", &JobSpec::job_class),
                      field("priority_class", &JobSpec::priority_class), field("groups", &JobSpec::groups),
                      field("topology", &JobSpec::topology), field("time_limit_s", &JobSpec::time_limit_s),
                      field("estimate_s", &JobSpec::estimate_s), field("checkpoint", &JobSpec::checkpoint),
                      field("retries", &JobSpec::retries), field("dependencies", &JobSpec::dependencies),
                      field("deadline", &JobSpec::deadline), field("earliest_start", &JobSpec::earliest_start),
                      field("held", &JobSpec::held), field("exclusive", &JobSpec::exclusive),
                      field("spread", &JobSpec::spread), field("array_size", &JobSpec::array_size),
                      field("array_running", &JobSpec::array_running),
                      field("max_unavailable", &JobSpec::max_unavailable), field("labels", &JobSpec::labels),
                      field("affinity", &JobSpec::affinity), field("anti_affinity", &JobSpec::anti_affinity),
                      field("ports", &JobSpec::ports), field_if_set("comment", &JobSpec::comment),
                      field_if_set("source", &JobSpec::source), field_if_set("mounts", &JobSpec::mounts),
                      field_if_set("secrets", &JobSpec::secrets), field_if_set("shm_mib", &JobSpec::shm_mib),
                      field_if_set("outputs", &JobSpec::outputs),
                      field_if_set("latency_objective_ms", &JobSpec::latency_objective_ms));
  }
};

// Where one task runs: which GPUs of which node. Its index in a list of placements is the task's number, in rank order.
struct TaskPlacement {
  NodeId node;
  std::uint16_t group = 0;
  std::int32_t gpu_milli = 1000;   // per GPU in `gpus`
  std::vector<std::uint8_t> gpus;  // indexes on the node, ascending
  // As bound: the request, or the whole node's for an exclusive job. The same holds for memory.
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  MigSlices slices = 0;        // MIG: slices of the instance on its one GPU; 0: the whole GPU
  Countables countables = {};  // as bound
  bool operator==(const TaskPlacement&) const = default;
  static constexpr auto fields() {
    return field_list(field("node", &TaskPlacement::node), field("group", &TaskPlacement::group),
                      field("gpu_milli", &TaskPlacement::gpu_milli), field("gpus", &TaskPlacement::gpus),
                      field("cpu_milli", &TaskPlacement::cpu_milli), field("memory_mib", &TaskPlacement::memory_mib),
                      field("slices", &TaskPlacement::slices), field_if_set("countables", &TaskPlacement::countables));
  }
};

// Why an attempt is stopped. The first nine and kMove are the causes of eviction in P5.
enum class StopCause {
  kReclaim,
  kPreempt,
  kConsolidate,
  kDrain,
  kMaintenance,
  kSpotNotice,
  kNodeLost,
  kTimeLimit,
  kUser,
  kTaskFailed,
  kShrink,
  kMove,  // an operator ordered a move
};
BERTH_ENUM_NAMES(StopCause, "reclaim", "preempt", "consolidate", "drain", "maintenance", "spot-notice", "node-lost",
                 "time-limit", "user", "task-failed", "shrink", "move");
// Returns true if the job is stopped to start again at places reserved for it.
constexpr bool is_move(StopCause cause) { return cause == StopCause::kConsolidate || cause == StopCause::kMove; }

// How an attempt or a job ended.
enum class Outcome { kSucceeded, kFailed, kPreempted, kNodeLost, kTimeLimit, kCancelled, kStartFailed };
BERTH_ENUM_NAMES(Outcome, "succeeded", "failed", "preempted", "node-lost", "time-limit", "cancelled", "start-failed");

enum class JobPhase { kPending, kRunning, kStopping, kFinished };
BERTH_ENUM_NAMES(JobPhase, "pending", "running", "stopping", "finished");

enum class TaskPhase { kBound, kRunning, kExited };
BERTH_ENUM_NAMES(TaskPhase, "bound", "running", "exited");

}  // namespace berth
