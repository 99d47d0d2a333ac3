#pragma once
// This machine as a node: its CPUs, memory and GPUs, found by NVML or declared where there are none.

#include <string>
#include <vector>

#include "base/result.h"
#include "model/node.h"

namespace berth::daemon {

// The label of a node whose CPUs and memory are declared, as its GPUs are.
inline constexpr const char* kSimulatedLabel = "berth.simulated";

struct Machine {
  NodeSpec node;
  bool simulated_gpus = false;
  std::vector<std::string> notes;  // what was found or not, one sentence each
};

// `simulate` as in `8xH100-SXM5-80GB`; empty: ask NVML.
Result<Machine> describe_machine(const std::string& node_name, const std::string& simulate);

}  // namespace berth::daemon
