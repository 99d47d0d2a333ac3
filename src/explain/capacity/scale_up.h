#pragma once
// Scale-up: which pending jobs would start if some nodes of one kind were added. The nodes are added on the undo log
// (state/transaction.h). Pending jobs are tried in the order of the cycle, with its functions, and each job that starts
// takes its places before the next is tried. No job is evicted.
//
// The returned number of nodes is minimal. It starts all jobs that kMostScaleUp nodes would start (at most the first
// kMostScaleUpStarts). With one node fewer, one of these jobs does not start. Work is limited by counts, never by time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/timestamp.h"
#include "model/job.h"
#include "model/node.h"
#include "sched/place/place.h"
#include "state/state.h"

namespace berth::explain {

constexpr std::int32_t kMostScaleUp = 64;
constexpr std::size_t kMostScaleUpStarts = 100;

struct ScaleUpStarts {
  std::int32_t nodes = 0;
  std::vector<JobId> jobs;  // in the order in which they start
  std::int64_t gpu_milli = 0;
  std::vector<std::pair<NodeId, JobId>> beside;  // existing nodes that these jobs would use, too, and the job
};

struct ScaleUpEffort {
  std::size_t asks = 400;  // the most jobs that are tried for one number of nodes
  std::uint64_t nodes_scored = 1'000'000;
};

class ScaleUpSearch {
 public:
  // Tries the pending jobs once without added nodes. `state` is changed during the search and restored.
  ScaleUpSearch(state::State& state, Timestamp now, const ScaleUpEffort& effort);

  struct Asked {
    JobId job;
    std::vector<TaskPlacement> places;  // where the job starts; empty: it waits for places
    bool never = false;                 // without added nodes it cannot start, even if all running jobs end
  };
  // Returns the pending jobs that start now or wait for places, in the order in which they are tried.
  const std::vector<Asked>& now() const { return at_first_.asked; }

  // Returns the smallest useful number of nodes like `like` and the jobs that they start. Returns nothing if they start
  // no job, or if the limit of work is used up.
  std::optional<ScaleUpStarts> with(const NodeSpec& like);

  // Returns true if all pending jobs were tried within the limit of work.
  bool complete() const { return complete_; }

 private:
  struct Pass {
    std::vector<Asked> asked;
    bool spent = false;  // the limit of work was used up
  };
  Pass pass(const NodeSpec* like, std::int32_t nodes);
  std::vector<Asked> helped(const Pass& pass) const;
  bool could_help(const NodeSpec& like);

  state::State& state_;
  Timestamp now_;
  ScaleUpEffort effort_;
  sched::SearchStats work_;
  bool complete_ = true;
  Pass at_first_;
};

}  // namespace berth::explain
