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

// Returns the random id of the data directory. It is made on the first start.
Result<std::string> id_of_directory(const std::string& data_dir);

// Gives the node the id of this machine: a hash of /etc/machine-id and of a random id that the data directory has, so
// that two servers on one machine are two nodes, and a directory that moves to another machine is a new one. The uuids
// of simulated GPUs follow from it.
Result<void> identify(Machine& machine, const std::string& data_dir);

// Keeps the UUIDs that the simulated GPUs have in the record of this machine, which an earlier release made of the
// node's name, if they are the same GPUs otherwise. With other UUIDs, a running job would be on GPUs that are gone, and
// as many new ones would be free. Changes nothing if `recorded` is another machine.
void keep_simulated_uuids(Machine& machine, const NodeSpec& recorded);

}  // namespace berth::daemon
