#pragma once
// Capacity, for an autoscaler: which idle nodes can be released, and which added nodes would start pending jobs
// (docs/capacity.md).
//
// 1. Nodes are grouped in kinds: same pool, taints, GPU models, cores, memory and containers.
// 2. All nodes with kept_for kNothing can be released together. Without them as much of the guarantees is backed as now
//    (explain/capacity/guarantee_coverage.h). No job loses a nomination, a backfill reservation or a start on them, and
//    no pending job could use them.
// 3. Each scale-up was tried (explain/capacity/scale_up.h). The kinds are tried one by one, so their results are
//    alternatives.
// 4. `state` is changed during the search and restored. Work is limited by counts, so equal states give equal answers.

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

// Why an idle node is kept, the first cause that applies:
//
// - kRecent: it has not been idle for long enough;
// - kPromised: `job` is nominated for it, or moves to it;
// - kHeld: `job` has a backfill reservation on it;
// - kWanted: `job` is pending and could use it, or would start on it beside added nodes;
// - kGuaranteed: guarantees need it.
enum class KeptFor { kNothing, kRecent, kNominated, kReserved, kWanted, kGuaranteed };

struct IdleNode {
  NodeId node;
  Timestamp since;
  KeptFor kept_for = KeptFor::kNothing;
  JobId job;
};

struct NodeKind {
  std::uint32_t pool = 0;
  std::string model;  // "H100"; several models: "A100+H100"; without GPUs: ""
  std::int64_t gpus = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::vector<Taint> taints;
  bool containers = false;
  std::size_t nodes = 0;       // nodes that are not lost
  std::vector<IdleNode> idle;  // nodes in contact and not under maintenance; the longest idle first
  std::optional<ScaleUpStarts> wanted;

  std::size_t releasable() const;
};

struct Capacity {
  std::vector<NodeKind> kinds;  // by pool, model and size
  bool complete = true;         // false if the limit of work left out some pending jobs or kinds
};

constexpr std::int64_t kIdleForMs = 600'000;  // the default minimum idle time
constexpr std::size_t kMostKinds = 16;        // the most kinds for which a scale-up is tried, those with the most nodes

Capacity capacity_of(state::State& state, Timestamp now, std::int64_t idle_for_ms = kIdleForMs,
                     const ScaleUpEffort& effort = {});

}  // namespace berth::explain

namespace berth {
BERTH_ENUM_NAMES(explain::KeptFor, "nothing", "recent", "nominated", "reserved", "wanted", "guaranteed");
}
