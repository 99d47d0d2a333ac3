#include "telemetry/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "telemetry/gpu_model.h"
#include "telemetry/nvml_abi.h"

namespace berth::telemetry {

namespace {

using nvml::Device;

constexpr std::int64_t kMib = 1 << 20;

// "00000000:3B:00.0" as NVML writes it, "0000:3b:00.0" as the kernel does.
std::string normalise_bus_id(std::string bus_id) {
  std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(),
                 [](char character) { return static_cast<char>(std::tolower(static_cast<unsigned char>(character))); });
  return bus_id.size() == 16 && bus_id.starts_with("0000") ? bus_id.substr(4) : bus_id;
}

int read_numa_node(const std::string& sysfs, const std::string& bus_id) {
  std::ifstream file(sysfs + "/bus/pci/devices/" + bus_id + "/numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  const char* (*describe)(nvml::Return) = nullptr;
#define BERTH_NVML_FIELD(field, symbol, arguments) nvml::Return(*field) arguments = nullptr;
  struct Calls {
    using Device = nvml::Device;
    using PciInfo = nvml::PciInfo;
    using Memory = nvml::Memory;
    using MemoryV2 = nvml::MemoryV2;
    using Utilization = nvml::Utilization;
    using ProcessInfo = nvml::ProcessInfo;
    BERTH_NVML_REQUIRED(BERTH_NVML_FIELD)
    BERTH_NVML_OPTIONAL(BERTH_NVML_FIELD)
  } calls;
#undef BERTH_NVML_FIELD

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) ::dlclose(handle);
  }

  // The name of the first symbol that is needed and missing; empty when all are there.
  std::string find_symbols();
  std::string explain(nvml::Return code) const;
  std::vector<std::optional<Device>> list_devices(std::vector<std::string>& warnings) const;
  std::string uuid_of(Device device, std::vector<std::string>& warnings) const;
  GpuFound describe_gpu(Device device, std::string uuid, const std::string& sysfs) const;
  bool are_linked(Device one, Device other) const;
  GpuReading read_gpu(Device device) const;
  std::optional<std::vector<GpuProcess>> list_processes(Device device) const;
};

std::string Nvml::Library::find_symbols() {
  const auto find = [this](const char* symbol, auto& slot) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(::dlsym(handle, symbol));
    return slot != nullptr;
  };
#define BERTH_NVML_FIND_REQUIRED(field, symbol, arguments) \
  if (!find(#symbol, calls.field)) return #symbol;
#define BERTH_NVML_FIND_OPTIONAL(field, symbol, arguments) find(#symbol, calls.field);
  if (!find("nvmlErrorString", describe)) return "nvmlErrorString";
  BERTH_NVML_REQUIRED(BERTH_NVML_FIND_REQUIRED)
  BERTH_NVML_OPTIONAL(BERTH_NVML_FIND_OPTIONAL)
#undef BERTH_NVML_FIND_REQUIRED
#undef BERTH_NVML_FIND_OPTIONAL
  return "";
}

std::string Nvml::Library::explain(nvml::Return code) const {
  const char* text = describe(code);
  return text != nullptr ? text : "NVML error " + std::to_string(code);
}

std::vector<std::optional<Device>> Nvml::Library::list_devices(std::vector<std::string>& warnings) const {
  unsigned count = 0;
  if (const auto code = calls.get_count(&count); code != nvml::kSuccess) {
    warnings.push_back("the number of GPUs is not known: " + explain(code));
    return {};
  }
  std::vector<std::optional<Device>> devices;
  for (unsigned index = 0; index < count; ++index) {
    Device device = nullptr;
    const auto code = calls.get_handle(index, &device);
    devices.push_back(code == nvml::kSuccess ? std::optional(device) : std::nullopt);
    if (code != nvml::kSuccess) warnings.push_back("GPU " + std::to_string(index) + " is left out: " + explain(code));
  }
  return devices;
}

std::string Nvml::Library::uuid_of(Device device, std::vector<std::string>& warnings) const {
  std::array<char, nvml::kUuidSize> uuid{};
  const auto code = calls.get_uuid(device, uuid.data(), nvml::kUuidSize);
  if (code == nvml::kSuccess) return uuid.data();
  warnings.push_back("a GPU is left out, because it does not tell its UUID: " + explain(code));
  return "";
}

GpuFound Nvml::Library::describe_gpu(Device device, std::string uuid, const std::string& sysfs) const {
  GpuFound gpu;
  gpu.uuid = std::move(uuid);
  std::array<char, nvml::kNameSize> name{};
  if (calls.get_name != nullptr && calls.get_name(device, name.data(), nvml::kNameSize) == nvml::kSuccess) {
    gpu.name = name.data();
  }
  gpu.model = normalise_model(gpu.name);
  nvml::Memory memory{};
  if (calls.get_memory != nullptr && calls.get_memory(device, &memory) == nvml::kSuccess) {
    gpu.memory_mib = static_cast<std::int64_t>(memory.total) / kMib;
  }
  nvml::PciInfo pci{};
  if (calls.get_pci_info != nullptr && calls.get_pci_info(device, &pci) == nvml::kSuccess) {
    gpu.pci_bus_id = normalise_bus_id(pci.bus_id);
    gpu.numa_node = read_numa_node(sysfs, gpu.pci_bus_id);
  }
  unsigned current = 0;
  unsigned pending = 0;
  if (calls.get_mig_mode != nullptr && calls.get_mig_mode(device, &current, &pending) == nvml::kSuccess) {
    gpu.mig = current == nvml::kMigEnabled ? MigMode::kOn : MigMode::kOff;
  }
  return gpu;
}

bool Nvml::Library::are_linked(Device one, Device other) const {
  int status = -1;
  return calls.get_p2p_status != nullptr &&
         calls.get_p2p_status(one, other, nvml::kP2pCapsNvlink, &status) == nvml::kSuccess &&
         status == nvml::kP2pStatusOk;
}

std::optional<std::vector<GpuProcess>> Nvml::Library::list_processes(Device device) const {
  if (calls.get_processes == nullptr) return std::nullopt;
  std::vector<nvml::ProcessInfo> infos(64);
  auto count = static_cast<unsigned>(infos.size());
  auto code = calls.get_processes(device, &count, infos.data());
  if (code == nvml::kInsufficientSize) {
    infos.resize(count + 64);  // some more may come between the two calls
    count = static_cast<unsigned>(infos.size());
    code = calls.get_processes(device, &count, infos.data());
  }
  if (code != nvml::kSuccess) return std::nullopt;
  std::vector<GpuProcess> processes;
  for (unsigned index = 0; index < count && index < infos.size(); ++index) {
    GpuProcess process{infos[index].pid, std::nullopt};
    const std::uint64_t used = infos[index].used_gpu_memory;
    if (used != nvml::kValueNotAvailable) process.memory_mib = static_cast<std::int64_t>(used) / kMib;
    processes.push_back(process);
  }
  return processes;
}

GpuReading Nvml::Library::read_gpu(Device device) const {
  GpuReading reading;
  // The first call whose failure is not "this GPU has no such thing" is the fault.
  const auto ok = [&](nvml::Return code) {
    if (code != nvml::kSuccess && code != nvml::kNotSupported && reading.fault.empty()) reading.fault = explain(code);
    return code == nvml::kSuccess;
  };
  std::array<char, nvml::kUuidSize> uuid{};
  if (ok(calls.get_uuid(device, uuid.data(), nvml::kUuidSize))) reading.uuid = uuid.data();
  nvml::Utilization utilization{};
  if (calls.get_utilization != nullptr && ok(calls.get_utilization(device, &utilization))) {
    reading.utilisation_percent = static_cast<int>(utilization.gpu);
  }
  nvml::Memory memory{};
  if (calls.get_memory != nullptr && ok(calls.get_memory(device, &memory))) {
    reading.memory_used_mib = static_cast<std::int64_t>(memory.used) / kMib;
  }
  unsigned value = 0;
  if (calls.get_temperature != nullptr && ok(calls.get_temperature(device, nvml::kTemperatureGpu, &value))) {
    reading.temperature_c = static_cast<int>(value);
  }
  if (calls.get_power != nullptr && ok(calls.get_power(device, &value))) reading.power_mw = value;
  if (calls.get_power_limit != nullptr && ok(calls.get_power_limit(device, &value))) reading.power_limit_mw = value;
  unsigned long long errors = 0;
  const auto count_errors = [&](int kind, std::optional<std::uint64_t>& into) {
    if (calls.get_ecc_errors == nullptr) return;
    if (ok(calls.get_ecc_errors(device, kind, nvml::kEccVolatile, &errors))) into = errors;
  };
  count_errors(nvml::kEccCorrected, reading.ecc_corrected);
  count_errors(nvml::kEccUncorrected, reading.ecc_uncorrected);
  reading.processes = list_processes(device);
  return reading;
}

Result<std::unique_ptr<Nvml>> Nvml::load() {
  const char* chosen = std::getenv("BERTH_NVML_PATH");
  const std::string path = chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1";
  auto library = std::make_unique<Library>();
  library->handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) {
    const char* why = ::dlerror();
    return Error{ErrorCode::kUnsupported, "no NVIDIA driver library: " + std::string(why != nullptr ? why : path)};
  }
  if (const std::string missing = library->find_symbols(); !missing.empty()) {
    return Error{ErrorCode::kUnsupported, path + " has no " + missing};
  }
  if (const auto code = library->calls.init(); code != nvml::kSuccess) {
    return Error{ErrorCode::kUnavailable, path + " does not start: " + library->explain(code)};
  }
  return std::unique_ptr<Nvml>(new Nvml(std::move(library)));
}

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}

Nvml::~Nvml() { library_->calls.shutdown(); }

GpuDiscovery Nvml::discover(const std::string& sysfs) const {
  GpuDiscovery found;
  std::array<char, nvml::kDriverVersionSize> version{};
  const auto& calls = library_->calls;
  if (calls.get_driver_version != nullptr &&
      calls.get_driver_version(version.data(), nvml::kDriverVersionSize) == nvml::kSuccess) {
    found.driver_version = version.data();
  }
  std::vector<Device> devices;
  for (const auto& device : library_->list_devices(found.warnings)) {
    if (!device) continue;
    std::string uuid = library_->uuid_of(*device, found.warnings);
    if (uuid.empty()) continue;
    devices.push_back(*device);
    found.gpus.push_back(library_->describe_gpu(*device, std::move(uuid), sysfs));
  }
  for (std::size_t one = 0; one < devices.size(); ++one) {
    for (std::size_t other = 0; other < devices.size(); ++other) {
      if (one == other || !library_->are_linked(devices[one], devices[other])) continue;
      found.gpus[one].nvlink_peers.push_back(found.gpus[other].uuid);
    }
  }
  if (found.gpus.empty()) {
    found.absence = found.warnings.empty() ? "the NVIDIA driver reports no GPU" : found.warnings.front();
  }
  return found;
}

std::vector<GpuReading> Nvml::read() const {
  std::vector<GpuReading> readings;
  std::vector<std::string> warnings;
  for (const auto& device : library_->list_devices(warnings)) {
    if (device) readings.push_back(library_->read_gpu(*device));
  }
  return readings;
}

GpuReading Nvml::look(const std::string& uuid) const {
  GpuReading reading;
  reading.uuid = uuid;
  const auto& calls = library_->calls;
  std::vector<std::string> warnings;
  for (const auto& device : library_->list_devices(warnings)) {
    if (!device || library_->uuid_of(*device, warnings) != uuid) continue;
    nvml::MemoryV2 memory{};
    memory.version = nvml::kMemoryV2;
    if (calls.get_memory_v2 != nullptr && calls.get_memory_v2(*device, &memory) == nvml::kSuccess)
      reading.memory_used_mib = static_cast<std::int64_t>(memory.used) / kMib;
    reading.processes = library_->list_processes(*device);
    return reading;
  }
  reading.fault = warnings.empty() ? "the driver does not list it" : warnings.front();
  return reading;
}

GpuDiscovery discover_gpus() {
  const auto library = Nvml::load();
  if (library) return (*library)->discover();
  GpuDiscovery none;
  none.absence = library.error().message;
  return none;
}

}  // namespace berth::telemetry
