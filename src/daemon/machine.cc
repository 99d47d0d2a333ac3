#include "daemon/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "control/node_contact.h"
#include "executor/process.h"
#include "model/document/quantity.h"
#include "model/name.h"
#include "telemetry/nvml.h"
#include "telemetry/simulated_gpus.h"

namespace berth::daemon {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "localhost";
  return name.data();
}

Result<std::string> name_of_node(const std::string& given) {
  std::string name = given.empty() ? host_name() : given;
  if (well_formed_name(name)) return name;
  return invalid((given.empty() ? "this machine's host name is no name for a node, so give one by --node-name: "
                                : "--node-name: this is not a name: ") +
                 std::string(kNameRule));
}

// Returns the NVLink island of the GPU: GPUs connected over NVLink are one island, numbered by its first member.
std::int32_t island_of(const std::vector<telemetry::GpuFound>& gpus, std::size_t index) {
  const auto& peers = gpus[index].nvlink_peers;
  for (std::size_t i = 0; i < index; ++i) {
    if (std::find(peers.begin(), peers.end(), gpus[i].uuid) != peers.end()) return static_cast<std::int32_t>(i);
  }
  return static_cast<std::int32_t>(index);
}

std::string figures(const NodeSpec& node) {
  return std::to_string(node.cpu_milli / 1000) + " CPUs and " + document::memory_text(node.memory_mib);
}

// Declares CPUs and memory if the GPUs are declared, too: enough to use each GPU. The label of the node and the
// returned note say so; the note is empty if the machine has enough.
std::string declare_the_rest(NodeSpec& node, std::size_t gpus) {
  const std::string real = figures(node);
  const std::int64_t cpu_milli = node.cpu_milli;
  const std::int64_t memory_mib = node.memory_mib;
  node.cpu_milli = std::max(cpu_milli, static_cast<std::int64_t>(gpus) * 8000);
  node.memory_mib = std::max(memory_mib, static_cast<std::int64_t>(gpus) * 16 * 1024);
  if (node.cpu_milli == cpu_milli && node.memory_mib == memory_mib) return "";
  const std::string_view what = node.memory_mib == memory_mib ? "cpus"
                                : node.cpu_milli == cpu_milli ? "memory"
                                                              : "cpus-and-memory";
  node.labels.emplace_back(kSimulatedLabel, what);
  return "CPUs and memory are simulated with them: the node counts " + figures(node) + " of memory, this machine has " +
         real;
}

}  // namespace

Result<Machine> describe_machine(const std::string& node_name, const std::string& simulate) {
  Machine machine;
  auto name = name_of_node(node_name);
  if (!name) return name.error();
  machine.node.name = std::move(*name);
  machine.node.labels.emplace_back(control::kBootLabel, executor::boot_id());
  machine.node.cpu_milli = std::max<std::int64_t>(1, ::sysconf(_SC_NPROCESSORS_ONLN)) * 1000;
  machine.node.memory_mib = ::sysconf(_SC_PHYS_PAGES) / 1024 * (::sysconf(_SC_PAGESIZE) / 1024);
  std::vector<telemetry::GpuFound> found;
  if (simulate.empty()) {
    const telemetry::GpuDiscovery discovery = telemetry::discover_gpus();
    found = discovery.gpus;
    machine.notes = discovery.warnings;
    if (!discovery.absence.empty()) machine.notes.push_back(discovery.absence);
  } else {
    auto declared = telemetry::parse_simulated_gpus(simulate, machine.node.name);
    if (!declared) return declared.error();
    found = std::move(*declared);
    machine.simulated_gpus = true;
    machine.notes.push_back(found.size() == 1 ? "1 GPU is simulated: it is shared out, but does not compute"
                                              : std::to_string(found.size()) +
                                                    " GPUs are simulated: they are shared out, but do not compute");
    if (auto note = declare_the_rest(machine.node, found.size()); !note.empty()) {
      machine.notes.push_back(std::move(note));
    }
  }
  if (found.size() > kMaxGpusPerNode) {
    return invalid("this machine has " + std::to_string(found.size()) + " GPUs; one node has at most " +
                   std::to_string(kMaxGpusPerNode));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    Gpu gpu;
    gpu.uuid = found[i].uuid;
    gpu.model = found[i].model;
    gpu.memory_mib = found[i].memory_mib;
    gpu.numa = std::max(0, found[i].numa_node);
    gpu.nvlink_island = island_of(found, i);
    gpu.simulated = found[i].simulated;
    machine.node.gpus.push_back(std::move(gpu));
  }
  // The executor makes no MIG instances; a simulated GPU needs none.
  machine.node.cuts_gpus =
      !found.empty() && std::all_of(found.begin(), found.end(), [](const auto& gpu) { return gpu.simulated; });
  return machine;
}

}  // namespace berth::daemon
