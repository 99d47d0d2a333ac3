#pragma once
// Further nodes: which jobs that wait for places would start if so many more nodes of a kind were there. The nodes
// are put there on the undo log (state/transaction.h), and the waiting jobs are asked in the order of the moment with
// the functions that decide in the cycle, each taking its places before the next is asked; nobody is stopped for them.
//
// The number that is told is minimal: it starts all that kMostScaleUp nodes would start (of these the first
// kMostScaleUpStarts), and with one node fewer one of them does not start. The work is bounded and never timed.

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
  std::vector<JobId> jobs;  // in the order in which they would start
  std::int64_t gpu_milli = 0;
  std::vector<std::pair<NodeId, JobId>> beside;  // nodes that are there now, of which those jobs would use something
};

struct ScaleUpEffort {
  std::size_t asks = 400;  // of jobs at one number of nodes
  std::uint64_t nodes_scored = 1'000'000;
};

class ScaleUpSearch {
 public:
  // `state` is scratch paper.
  ScaleUpSearch(state::State& state, Timestamp now, const ScaleUpEffort& effort);

  struct Asked {
    JobId job;
    std::vector<TaskPlacement> places;  // where it would start; none: it waits for places
    bool never = false;                 // and none come free by themselves, however many leave
  };
  // Those who start or wait for places with the nodes that are there, in the order in which they are asked.
  const std::vector<Asked>& now() const { return at_first_.asked; }

  // Nothing where such nodes start nobody, or where the effort is spent.
  std::optional<ScaleUpStarts> with(const NodeSpec& like);

  // Whether all were asked that wait, and everything was worked out.
  bool complete() const { return complete_; }

 private:
  struct Pass {
    std::vector<Asked> asked;
    bool spent = false;  // before the end
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
