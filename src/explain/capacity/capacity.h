#pragma once
// Capacity: what an autoscaler wants to know. Which idle nodes could go, and which further nodes would help those who
// wait (docs/capacity.md).
//
// 1. Nodes are told in kinds: alike in pool, taints, GPUs by model, cores and memory.
// 2. What may go may go together: all nodes with IdleNode::kept_for of kNothing at once leave as much of the guarantees
//    backed as now (explain/capacity/guarantee_coverage.h), and nobody who is promised, held or about to get something
//    there, or who waits for places and could use one of these nodes, loses it.
// 3. What would help was tried (explain/capacity/scale_up.h). Each kind by itself: they are alternatives.
// 4. The state is scratch paper and is as before afterwards. Work is bounded, and equal states get equal answers.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/timestamp.h"
#include "explain/capacity/scale_up.h"
#include "state/state.h"

namespace berth::explain {

// Why an idle node stays; the first that applies. recent: it is not idle for long enough. promised, held: to or for
// `job`. wanted: `job` waits and could use it, or would with further nodes. guaranteed: guarantees count on it.
enum class KeptFor { kNothing, kRecent, kPromised, kHeld, kWanted, kGuaranteed };

struct IdleNode {
  NodeId node;
  Timestamp since;
  KeptFor kept_for = KeptFor::kNothing;
  JobId job;
};

struct NodeKind {
  std::uint32_t pool = 0;
  std::string model;  // "H100", of several "A100+H100", "" without GPUs
  std::int64_t gpus = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::vector<Taint> taints;
  bool containers = false;
  std::size_t nodes = 0;       // that are not lost
  std::vector<IdleNode> idle;  // in contact and not under maintenance; the longest idle first
  std::optional<ScaleUpStarts> wanted;

  std::size_t releasable() const;
};

struct Capacity {
  std::vector<NodeKind> kinds;  // by pool, model and size
  bool complete = true;         // all that wait were asked, for all kinds
};

constexpr std::int64_t kIdleForMs = 600'000;  // what an operator gets who states nothing
constexpr std::size_t kMostKinds = 16;        // for which further nodes are tried, those of the most nodes

Capacity capacity_of(state::State& state, Timestamp now, std::int64_t idle_for_ms = kIdleForMs,
                     const ScaleUpEffort& effort = {});

}  // namespace berth::explain

namespace berth {
BERTH_ENUM_NAMES(explain::KeptFor, "nothing", "recent", "nominated", "reserved", "wanted", "guaranteed");
}
