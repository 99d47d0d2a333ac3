// A library with NVML's interface and made-up GPUs behind it. What they are like is read, at every call, from the file
// named by $BERTH_FAKE_NVML, so that a test can let a GPU fall off the bus while berth runs. Lines of key=value:
//
//   count=2   name=NVIDIA H100 80GB HBM3   memory_mib=81559   mig=0|1|none   nvlink=0|1
//   utilisation=37   memory_used_mib=1024   temperature=55   power_mw=250000   ecc=0   processes=3
//   init=CODE   count_fails=CODE   lost=INDEX (every call about that GPU says it is lost)
//   gpuN=PID:MIB,PID:MIB (processes of GPU N; one that has ended is left out, and its memory with it)
//   leftN=MIB (memory of GPU N that no process has)   hangs=N (a call for the processes of GPU N does not come back)

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "telemetry/nvml_abi.h"

namespace nvml = berth::telemetry::nvml;

namespace {

constexpr unsigned kMostGpus = 64;
bool started = false;

std::string setting(const std::string& key, const std::string& otherwise) {
  const char* path = std::getenv("BERTH_FAKE_NVML");
  std::ifstream file(path != nullptr ? path : "");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + "=")) return line.substr(key.size() + 1);
  }
  return otherwise;
}

unsigned number(const std::string& key, unsigned otherwise) {
  return static_cast<unsigned>(std::strtoul(setting(key, std::to_string(otherwise)).c_str(), nullptr, 10));
}

// Handles are one more than the index, so that none of them is null.
unsigned index_of(nvml::Device device) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) - 1); }

nvml::Return answer(nvml::Device device) {
  if (!started || index_of(device) >= kMostGpus) return nvml::kInvalidArgument;
  if (setting("lost", "") == std::to_string(index_of(device))) return nvml::kGpuIsLost;
  return nvml::kSuccess;
}

[[maybe_unused]] std::string of_gpu(const char* key, nvml::Device device) {
  return key + std::to_string(index_of(device));
}

// The processes that `gpuN` names and that run, with their MiB.
[[maybe_unused]] std::vector<std::pair<unsigned, unsigned long long>> named_processes(nvml::Device device) {
  std::vector<std::pair<unsigned, unsigned long long>> processes;
  const std::string text = setting(of_gpu("gpu", device), "");
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    const unsigned pid = static_cast<unsigned>(std::strtoul(at, &end, 10));
    const unsigned long long mib = *end == ':' ? std::strtoull(end + 1, &end, 10) : 512;
    if (::kill(static_cast<pid_t>(pid), 0) == 0) processes.emplace_back(pid, mib);
    at = *end == ',' ? end + 1 : end + std::strlen(end);
  }
  return processes;
}

nvml::Return give_text(const std::string& text, char* into, unsigned size) {
  if (text.size() >= size) return nvml::kInsufficientSize;
  std::memcpy(into, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

}  // namespace

extern "C" {

nvml::Return nvmlInit_v2() {
  const auto code = static_cast<nvml::Return>(number("init", nvml::kSuccess));
  started = code == nvml::kSuccess;
  return code;
}

nvml::Return nvmlShutdown() {
  started = false;
  return nvml::kSuccess;
}

const char* nvmlErrorString(nvml::Return code) {
  switch (code) {
    case nvml::kDriverNotLoaded:
      return "Driver Not Loaded";
    case nvml::kGpuIsLost:
      return "GPU is lost";
    case nvml::kNotSupported:
      return "Not Supported";
    default:
      return "Unknown Error";
  }
}

nvml::Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = number("count", 2);
  return static_cast<nvml::Return>(number("count_fails", nvml::kSuccess));
}

nvml::Return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* device) {
  *device = reinterpret_cast<nvml::Device>(static_cast<std::uintptr_t>(index) + 1);
  return answer(*device);
}

nvml::Return nvmlDeviceGetUUID(nvml::Device device, char* uuid, unsigned size) {
  char text[64];
  std::snprintf(text, sizeof text, "GPU-fa4e0000-0000-4000-8000-%012x", index_of(device));
  const auto code = answer(device);
  return code == nvml::kSuccess ? give_text(text, uuid, size) : code;
}

#ifndef FAKE_NVML_BARE

nvml::Return nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return give_text("999.99.fake", version, size);
}

nvml::Return nvmlDeviceGetName(nvml::Device device, char* name, unsigned size) {
  const auto code = answer(device);
  return code == nvml::kSuccess ? give_text(setting("name", "NVIDIA H100 80GB HBM3"), name, size) : code;
}

nvml::Return nvmlDeviceGetPciInfo_v3(nvml::Device device, nvml::PciInfo* pci) {
  *pci = {};
  pci->bus = 0x3b + index_of(device);
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:00.0", 0U, pci->bus);
  return answer(device);
}

nvml::Return nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  memory->total = static_cast<unsigned long long>(number("memory_mib", 81559)) << 20U;
  memory->used = static_cast<unsigned long long>(number("memory_used_mib", 1024)) << 20U;
  memory->free = memory->total - memory->used;
  return answer(device);
}

nvml::Return nvmlDeviceGetMemoryInfo_v2(nvml::Device device, nvml::MemoryV2* memory) {
  if (memory->version != nvml::kMemoryV2) return nvml::kInvalidArgument;
  unsigned long long used = number(of_gpu("left", device), 0);
  for (const auto& [pid, mib] : named_processes(device)) used += mib;
  memory->total = static_cast<unsigned long long>(number("memory_mib", 81559)) << 20U;
  memory->reserved = 600ULL << 20U;
  memory->used = used << 20U;
  memory->free = memory->total - memory->reserved - memory->used;
  return answer(device);
}

nvml::Return nvmlDeviceGetMigMode(nvml::Device device, unsigned* current, unsigned* pending) {
  if (setting("mig", "0") == "none") return nvml::kNotSupported;
  *current = *pending = number("mig", 0);
  return answer(device);
}

nvml::Return nvmlDeviceGetP2PStatus(nvml::Device one, nvml::Device other, int caps, int* status) {
  const bool linked = caps == nvml::kP2pCapsNvlink && one != other && number("nvlink", 1) == 1;
  *status = linked ? nvml::kP2pStatusOk : 5;
  return answer(one);
}

nvml::Return nvmlDeviceGetUtilizationRates(nvml::Device device, nvml::Utilization* utilization) {
  *utilization = {number("utilisation", 37), 12};
  return answer(device);
}

nvml::Return nvmlDeviceGetTemperature(nvml::Device device, int sensor, unsigned* temperature) {
  *temperature = number("temperature", 55);
  return sensor == nvml::kTemperatureGpu ? answer(device) : nvml::kInvalidArgument;
}

nvml::Return nvmlDeviceGetPowerUsage(nvml::Device device, unsigned* milliwatts) {
  *milliwatts = number("power_mw", 250'000);
  return answer(device);
}

nvml::Return nvmlDeviceGetPowerManagementLimit(nvml::Device device, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return answer(device);
}

nvml::Return nvmlDeviceGetTotalEccErrors(nvml::Device device, int kind, int, unsigned long long* count) {
  if (setting("ecc", "0") == "none") return nvml::kNotSupported;
  *count = kind == nvml::kEccUncorrected ? number("ecc", 0) : 0;
  return answer(device);
}

nvml::Return nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device device, unsigned* count, nvml::ProcessInfo* infos) {
  if (setting("hangs", "") == std::to_string(index_of(device))) ::pause();
  const auto named = named_processes(device);
  const unsigned running = named.empty() ? number("processes", 0) : static_cast<unsigned>(named.size());
  const bool fits = *count >= running;
  for (unsigned index = 0; fits && index < named.size(); ++index)
    infos[index] = {named[index].first, named[index].second << 20U, ~0U, ~0U};
  if (!named.empty()) {
    *count = running;
    return fits ? answer(device) : nvml::kInsufficientSize;
  }
  for (unsigned index = 0; fits && index < running; ++index) {
    const bool untold = index == 1;
    infos[index] = {4000 + index, untold ? nvml::kValueNotAvailable : 512ULL << 20U, ~0U, ~0U};
  }
  *count = running;
  return fits ? answer(device) : nvml::kInsufficientSize;
}

#endif  // FAKE_NVML_BARE

}  // extern "C"
