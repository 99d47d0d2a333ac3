#pragma once
// The GPUs of a machine, as found by NVML or as declared for simulation, and what they report while they run. Plain
// values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::telemetry {

enum class MigMode { kUnsupported, kOff, kOn };

struct GpuFound {
  std::string uuid;   // "GPU-..." as CUDA_VISIBLE_DEVICES takes it; simulated ones begin with "GPU-SIM-"
  std::string name;   // as the driver says it
  std::string model;  // as berth's configuration says it: "H100-SXM5-80GB"
  std::int64_t memory_mib = 0;
  std::string pci_bus_id;                 // "0000:3b:00.0"; empty when simulated
  int numa_node = -1;                     // -1: not known
  std::vector<std::string> nvlink_peers;  // uuids of the GPUs that it reaches over NVLink
  MigMode mig = MigMode::kUnsupported;
  bool simulated = false;
};

// What was found, or why nothing was: a machine without GPUs is no error.
struct GpuDiscovery {
  std::vector<GpuFound> gpus;  // in the driver's order
  std::string driver_version;
  std::string absence;                // one sentence; empty when there are GPUs
  std::vector<std::string> warnings;  // GPUs that did not answer, and the like
};

struct GpuProcess {
  std::uint32_t pid = 0;
  std::optional<std::int64_t> memory_mib;
};

// One look at one GPU. What a GPU or its driver does not tell is absent, never zero.
struct GpuReading {
  std::string uuid;
  std::optional<int> utilisation_percent;
  std::optional<std::int64_t> memory_used_mib;
  std::optional<int> temperature_c;
  std::optional<std::int64_t> power_mw;
  std::optional<std::int64_t> power_limit_mw;
  std::optional<std::uint64_t> ecc_corrected;  // since the driver was loaded
  std::optional<std::uint64_t> ecc_uncorrected;
  std::optional<std::vector<GpuProcess>> processes;
  std::string fault;  // "GPU is lost": it did not answer; empty when it did
};

}  // namespace berth::telemetry
