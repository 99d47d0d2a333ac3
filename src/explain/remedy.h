#pragma once
// A Remedy: something that would let a waiting job start now, as values, so that it can be tried and told. What it
// changes of the job is tried on a copy of it, what it changes of the cluster on the state's undo log.

#include <cstdint>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "model/ids.h"
#include "state/estimate.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::explain {

enum class RemedyKind {
  kRelease,     // the job is let go
  kPriority,    // `to` instead of `from`: ahead of the head of its strict queue
  kTimeLimit,   // `to` seconds: gone before a start that is held for somebody else, or a maintenance window
  kWait,        // until `at`, when the running jobs that end by then are gone
  kUncordon,    // `nodes` take tasks again
  kModel,       // group `group` may also run on `name`
  kPool,        // the group asks pool `name`
  kTolerate,    // the group tolerates taint `name`
  kSelect,      // the group does not select label `name`
  kShareNodes,  // the job does not ask for whole nodes
  kLevel,       // it requires one domain of level `name`, or of none when it is empty
  kGpus,        // `to` milli-GPUs per task instead of `from`, and what `shrinks` says
  kTasks,       // `to` tasks instead of `from`, likewise
  kCpus,        // `to` milli-cores per task
  kMemory,      // `to` MiB per task
  kQuota,       // `raises`
  kEvict,       // `victims` leave, `shrinks` give back, and what `raises` says
  kGroupLevel,  // group `group` requires one domain of level `name`, or of none when it is empty
  kNoTerm,      // it does without the term `from` of affinity, or, counted on, of anti-affinity
  kNuma,        // the group's NUMA policy is best-effort
  kNoImage,     // the group has no image
  kProfile,     // the group asks instances of MIG profile `name`, which count `to` milli-GPUs instead of `from`
  kOtherPorts,  // it listens on a port that nobody has instead of `from`, or, where that is 0, instead of each of its
                // own
};
}  // namespace berth::explain

namespace berth {
BERTH_ENUM_NAMES(explain::RemedyKind, "release", "priority", "time-limit", "wait", "uncordon", "model", "pool",
                 "tolerate", "select", "share-nodes", "level", "gpus", "tasks", "cpus", "memory", "quota", "evict",
                 "group-level", "no-term", "numa", "no-image", "profile", "other-ports");
}  // namespace berth

namespace berth::explain {

// A limit of a queue, in the unit of its dimension.
struct Raise {
  QueueId queue;
  bool lending = false;  // the lending limit; else the max
  std::size_t dim = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool per_user = false;  // what one user may have: jobs where dim is kDims, else GPUs
  bool operator==(const Raise&) const = default;
};

// An elastic gang that gives back all but its first `keep` tasks.
struct Shrink {
  JobId job;
  std::uint32_t keep = 0;
  std::uint32_t tasks = 0;  // that it has now
  bool operator==(const Shrink&) const = default;
};

struct Remedy {
  RemedyKind kind = RemedyKind::kQuota;  // without raises: as things are
  std::size_t group = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::string name;
  std::vector<Raise> raises;
  std::vector<JobId> victims;
  std::vector<Shrink> shrinks;
  std::vector<NodeId> nodes;
  Timestamp at;
  JobId taken_by =
      JobId::none();  // who is asked before the job, and would take its places; none() where nobody is known to
  std::string text;   // completes "it would start now if ", and for kWait "it would start "
};

// The job with what the change alters of it.
state::JobState changed(state::JobState job, const Remedy& change);

// Tries what the change alters of the cluster: limits, cordons, victims, and for kWait all that end by then.
void apply(state::Transaction& transaction, const state::State& state, const Remedy& change, Timestamp now);

// When the running job is gone at the latest, but not before now: the deadline of its stop, its time limit, else its
// estimate or, where it has run longer, what `late` says; or when it has left for a maintenance window, if that is
// earlier. never() when nothing says so.
Timestamp ends_by(const state::State& state, const state::RunningRow& row, Timestamp now, state::ExpectedEnds& late);
// When a gang that is asked to give back its last tasks, and goes on, has done so at the latest; never() of all others.
Timestamp gives_back_by(const state::State& state, const state::RunningRow& row, Timestamp now);

// "it would start now if node n3 were uncordoned, but job 7 is asked before it and would take its places"
std::string would_start(const Remedy& change);

std::string text_of(const state::State& state, const state::JobState& job, const Remedy& change);

}  // namespace berth::explain
