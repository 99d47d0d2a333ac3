#pragma once
// This machine as a node: its CPUs, memory and GPUs, found by NVML or declared by a flag.

#include <string>
#include <vector>

#include "base/result.h"
#include "model/node.h"

namespace berth::daemon {

// The label of a node whose GPUs, CPUs and memory are declared.
inline constexpr const char* kSimulatedLabel = "berth.simulated";

struct Machine {
  NodeSpec node;
  bool simulated_gpus = false;
  std::vector<std::string> notes;  // what was found and what not, one sentence each
};

// `simulate` is such as `8xH100-SXM5-80GB`; empty: ask NVML.
Result<Machine> describe_machine(const std::string& node_name, const std::string& simulate);

}  // namespace berth::daemon
