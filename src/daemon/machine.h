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

// Gives the node the id of this machine: a hash of /etc/machine-id and of a random id that the data directory has, so
// that two servers on one machine are two nodes, and a directory that moves to another machine is a new one. The uuids
// of simulated GPUs follow from it.
Result<void> identify(Machine& machine, const std::string& data_dir);

}  // namespace berth::daemon
