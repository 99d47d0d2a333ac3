#pragma once
// A node as its backend reports it: its resources, its place in the topology, its labels and taints. The state keeps
// what of it is free.

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "model/countable.h"
#include "model/ids.h"

namespace berth {

inline constexpr std::size_t kMaxGpusPerNode = 16;

using Labels = std::vector<std::pair<std::string, std::string>>;  // sorted by key

struct Gpu {
  std::string uuid;
  std::string model;
  std::int64_t memory_mib = 0;
  std::int32_t numa = 0;
  std::int32_t nvlink_island = 0;  // GPUs of one island are connected by NVLink
  bool healthy = true;
  bool simulated = false;
  bool fenced = false;     // unhealthy until an operator lifts it, whatever the node reports
  std::string fault = {};  // why it is fenced
  bool failed = false;  // of a fenced one: its node reports it as unhealthy, and it stays so once the fence is lifted

  bool operator==(const Gpu&) const = default;
  static constexpr auto fields() {
    return field_list(field("uuid", &Gpu::uuid), field("model", &Gpu::model), field("memory_mib", &Gpu::memory_mib),
                      field("numa", &Gpu::numa), field("nvlink_island", &Gpu::nvlink_island),
                      field("healthy", &Gpu::healthy), field("simulated", &Gpu::simulated),
                      field_if_set("fenced", &Gpu::fenced), field_if_set("fault", &Gpu::fault),
                      field_if_set("failed", &Gpu::failed));
  }
};

// What a taint does to tasks that do not tolerate it: both keep them away; Kubernetes also evicts what runs on a node
// that gets a NoExecute taint.
enum class TaintEffect { kNoSchedule, kNoExecute };
BERTH_ENUM_NAMES(TaintEffect, "NoSchedule", "NoExecute");

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  auto operator<=>(const Taint&) const = default;
  static constexpr auto fields() {
    return field_list(field("key", &Taint::key), field("value", &Taint::value), field_if_set("effect", &Taint::effect));
  }
};

struct NodeSpec {
  std::string name;
  std::string pool = "default";
  std::string cell = "local";
  Labels labels;
  std::vector<Taint> taints;
  std::vector<std::string> topology;  // outermost first, one name per configured level above the node
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int32_t numa_nodes = 1;
  std::vector<Gpu> gpus;
  std::string address = "127.0.0.1";  // address for traffic between its tasks
  bool containers = false;            // it can run containers; tasks with an image need such a node
  std::vector<std::string> images;    // images on the node, sorted (model/image.h); empty without containers
  bool cuts_gpus = false;             // it can create and remove MIG instances, so models that are cut may be on it
  std::string machine;                // id of the machine, whatever the node's name; empty: not known
  Countables countables = {};         // what it has beside CPUs, memory and GPUs

  bool operator==(const NodeSpec&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &NodeSpec::name), field("pool", &NodeSpec::pool), field("cell", &NodeSpec::cell),
                      field("labels", &NodeSpec::labels), field("taints", &NodeSpec::taints),
                      field("topology", &NodeSpec::topology), field("cpu_milli", &NodeSpec::cpu_milli),
                      field("memory_mib", &NodeSpec::memory_mib), field("numa_nodes", &NodeSpec::numa_nodes),
                      field("gpus", &NodeSpec::gpus), field("address", &NodeSpec::address),
                      field("containers", &NodeSpec::containers), field("images", &NodeSpec::images),
                      field("cuts_gpus", &NodeSpec::cuts_gpus), field_if_set("machine", &NodeSpec::machine),
                      field_if_set("countables", &NodeSpec::countables));
  }
};

// What others use of a node: pods of another scheduler, or processes that berth did not start. berth starts nothing on
// it, and evicts nothing for it. It may be more than the node has left beside berth's own tasks.
struct ForeignUse {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::vector<std::uint8_t> gpus;  // indexes on the node, ascending: those that others use, or that stand for as many
  Countables countables;

  bool operator==(const ForeignUse&) const = default;
  static constexpr auto fields() {
    return field_list(field("cpu_milli", &ForeignUse::cpu_milli), field("memory_mib", &ForeignUse::memory_mib),
                      field("gpus", &ForeignUse::gpus), field("countables", &ForeignUse::countables));
  }
};

// ready: it takes tasks. unknown: contact is lost, and its tasks stay charged. lost: it is provably dead, and its tasks
// have ended.
enum class NodeStatus { kReady, kUnknown, kLost };
BERTH_ENUM_NAMES(NodeStatus, "ready", "unknown", "lost");

}  // namespace berth
