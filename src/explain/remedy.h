#pragma once
// A Remedy is a change with which a pending job would start now. It is a plain value, so that it can be tried and told.
// A change of the job is tried on a copy of the job, a change of the cluster on the undo log of the state.

#include <cstdint>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "explain/words.h"
#include "model/ids.h"
#include "model/why_answer.h"
#include "state/estimate.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::explain {

enum class RemedyKind {
  kRelease,     // the hold on the job is released
  kPriority,    // priority `to` instead of `from`, which puts it before the head of its strict queue
  kTimeLimit,   // time limit `to` seconds: it ends before a reserved start of another job, or a maintenance window
  kWait,        // it waits until `at`, when running jobs have ended
  kUncordon,    // `nodes` are uncordoned
  kModel,       // group `group` also accepts GPU model `name`
  kPool,        // group `group` requests pool `name`
  kTolerate,    // the group tolerates taint `name`
  kSelect,      // the group does not select label `name`
  kShareNodes,  // the job is not exclusive
  kLevel,       // it requires one domain of level `name`, or no domain if `name` is empty
  kGpus,        // `to` milli-GPUs per task instead of `from`, and the scale-downs in `shrinks`
  kTasks,       // `to` tasks instead of `from`, and the scale-downs in `shrinks`
  kCpus,        // `to` milli-cores per task
  kMemory,      // `to` MiB per task
  kQuota,       // the limits in `raises` are raised
  kEvict,       // `victims` leave, `shrinks` scale down, and the limits in `raises` are raised
  kGroupLevel,  // group `group` requires one domain of level `name`, or none if `name` is empty
  kNoTerm,      // without the affinity term with index `from`; anti-affinity terms are counted after the affinity terms
  kNuma,        // the NUMA policy of the group is best-effort
  kNoImage,     // the group runs its command without an image
  kProfile,     // the group requests MIG profile `name`, which is `to` milli-GPUs instead of `from`
  kOtherPorts,  // a free port instead of port `from`; if `from` is 0, instead of each of its ports
  kNoRule,      // the group does without its node rule with index `from`
};
}  // namespace berth::explain

namespace berth {
BERTH_ENUM_NAMES(explain::RemedyKind, "release", "priority", "time-limit", "wait", "uncordon", "model", "pool",
                 "tolerate", "select", "share-nodes", "level", "gpus", "tasks", "cpus", "memory", "quota", "evict",
                 "group-level", "no-term", "numa", "no-image", "profile", "other-ports", "no-rule");
}  // namespace berth

namespace berth::explain {

// A raised limit of a queue, in the unit of its dimension.
struct Raise {
  QueueId queue;
  bool lending = false;  // true: the lending limit; false: max
  std::size_t dim = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool per_user = false;  // true: a user limit, of running jobs if `dim` is kDims, else of GPUs
  bool operator==(const Raise&) const = default;
};

// An elastic gang that scales down to its first `keep` tasks.
struct Shrink {
  JobId job;
  std::uint32_t keep = 0;
  std::uint32_t tasks = 0;  // the number of tasks that it has now
  bool operator==(const Shrink&) const = default;
};

struct Remedy {
  RemedyKind kind = RemedyKind::kQuota;  // the default, with empty `raises`, changes nothing
  std::size_t group = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::string name;
  std::vector<Raise> raises;
  std::vector<JobId> victims;
  std::vector<Shrink> shrinks;
  std::vector<NodeId> nodes;
  Timestamp at;
  // The job that is tried earlier and would take the freed places; none() if no such job was found.
  JobId taken_by = JobId::none();
};

// Returns a copy of the job with those changes of the remedy that concern the job.
state::JobState changed(state::JobState job, const Remedy& change);

// Applies to the transaction those changes of the remedy that concern the cluster: limits, cordons and victims, and for
// kWait the end of all jobs that end by `at`.
void apply(state::Transaction& transaction, const state::State& state, const Remedy& change, Timestamp now);

// Returns when the running job ends at the latest, and at least `now`; never() if that is not known. It is the deadline
// of its stop, else its time limit, else its estimate. `late` estimates the end of a job that has outrun its estimate.
// If the job has to leave earlier for a maintenance window, that counts.
Timestamp ends_by(const state::State& state, const state::RunningRow& row, Timestamp now, state::ExpectedEnds& late);
// Returns when a gang that scales down has lost its last tasks at the latest; never() for all other jobs.
Timestamp gives_back_by(const state::State& state, const state::RunningRow& row, Timestamp now);

// Returns who can carry it out: the owner of the job changes the job, an operator the cluster.
RemedyBy remedy_by(const Remedy& change);

// Returns what completes "the job would start now if": "node n3 were uncordoned, but job 7 goes first and would take
// those places". Requires: the kind is not kWait.
std::string remedy_text(const Words& words, const state::JobState& job, const Remedy& change);

// Returns what changes in the document of the job, as a JSON merge patch (RFC 7396); empty if the remedy is not one of
// the job's document, or leaves open what has to be in it. Of kPriority it is the priority as a number.
std::string remedy_patch(const state::JobState& job, const Remedy& change);

// Returns when a job starts that waits (kWait), as a time that others can delay or that is likely.
WhyAnswer::Start start_of(const Words& words, const Remedy& wait);

}  // namespace berth::explain
