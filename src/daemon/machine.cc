#include "daemon/machine.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "base/hash.h"
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

constexpr std::size_t kIdBytes = 16;

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Error failed(const std::string& path, const char* action) {
  return {ErrorCode::kIo,
          path + ": cannot " + action + ": " + std::error_code(errno, std::generic_category()).message()};
}

Result<std::string> random_id() {
  std::array<unsigned char, kIdBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return failed("getrandom", "read");
  std::string id;
  for (const unsigned char byte : bytes) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    id += digits.data();
  }
  return id;
}

}  // namespace

Result<std::string> id_of_directory(const std::string& data_dir) {
  const std::string path = data_dir + "/machine";
  if (std::string id = first_line_of(path); !id.empty()) return id;
  auto id = random_id();
  if (!id) return id;
  const std::string fresh = path + ".new";
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return failed(fresh, "create");
  const std::string line = *id + "\n";
  const bool written =
      ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && ::fsync(file) == 0;
  ::close(file);
  if (!written) return failed(fresh, "write");
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failed(path, "create");
  return id;
}

Result<void> identify(Machine& machine, const std::string& data_dir) {
  const auto directory = id_of_directory(data_dir);
  if (!directory) return directory.error();
  const std::uint64_t high = Hasher().add(first_line_of("/etc/machine-id")).add(*directory).digest();
  const std::uint64_t low = Hasher().add(high).add(*directory).digest();
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  machine.node.machine = text.data();
  if (!machine.simulated_gpus) return {};
  for (std::size_t i = 0; i < machine.node.gpus.size(); ++i) {
    Gpu& gpu = machine.node.gpus[i];
    gpu.uuid = telemetry::simulated_uuid(machine.node.machine, gpu.model, i);
  }
  return {};
}

void keep_simulated_uuids(Machine& machine, const NodeSpec& recorded) {
  if (!recorded.machine.empty() && recorded.machine != machine.node.machine) return;
  std::vector<Gpu>& gpus = machine.node.gpus;
  const bool same = std::equal(
      gpus.begin(), gpus.end(), recorded.gpus.begin(), recorded.gpus.end(),
      [](const Gpu& gpu, const Gpu& known) { return gpu.simulated && known.simulated && gpu.model == known.model; });
  for (std::size_t i = 0; same && i < gpus.size(); ++i) gpus[i].uuid = recorded.gpus[i].uuid;
}

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
