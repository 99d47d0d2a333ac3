#pragma once
// The part of the NVIDIA Management Library's binary interface that berth calls, written after NVIDIA's API reference
// (NVML API Reference Guide, "Device Queries", "NvLink Methods", "Multi Instance GPU Management"). The library is
// loaded at run time and there is no header to include where there is no driver. Names and layouts are the library's.

#include <cstdint>

namespace berth::telemetry::nvml {

using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kGpuIsLost = 15;

using Device = struct DeviceHandle*;

inline constexpr unsigned kUuidSize = 96;           // NVML_DEVICE_UUID_V2_BUFFER_SIZE
inline constexpr unsigned kNameSize = 96;           // NVML_DEVICE_NAME_V2_BUFFER_SIZE
inline constexpr unsigned kDriverVersionSize = 80;  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
inline constexpr int kTemperatureGpu = 0;           // NVML_TEMPERATURE_GPU
inline constexpr int kEccCorrected = 0;             // NVML_MEMORY_ERROR_TYPE_CORRECTED
inline constexpr int kEccUncorrected = 1;           // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
inline constexpr int kEccVolatile = 0;              // NVML_VOLATILE_ECC: since the driver was loaded
inline constexpr int kP2pCapsNvlink = 2;            // NVML_P2P_CAPS_INDEX_NVLINK
inline constexpr int kP2pStatusOk = 0;              // NVML_P2P_STATUS_OK
inline constexpr unsigned kMigEnabled = 1;          // NVML_DEVICE_MIG_ENABLE
inline constexpr std::uint64_t kValueNotAvailable = ~std::uint64_t{0};  // NVML_VALUE_NOT_AVAILABLE

struct PciInfo {  // nvmlPciInfo_t, filled by nvmlDeviceGetPciInfo_v3
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {  // nvmlMemory_t, in bytes
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {  // nvmlMemory_v2_t, in bytes; `used` is without what the driver reserves for itself
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(MemoryV2) == 40);
inline constexpr unsigned kMemoryV2 = static_cast<unsigned>(sizeof(MemoryV2)) | 2U << 24U;  // nvmlMemory_v2

struct Utilization {  // nvmlUtilization_t, in percent
  unsigned gpu;
  unsigned memory;
};

struct ProcessInfo {  // nvmlProcessInfo_v2_t, filled by nvmlDeviceGetComputeRunningProcesses_v3
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};
static_assert(sizeof(ProcessInfo) == 24);

// Every driver since 2018 has the first block; the rest may be missing, and then what they tell is not known.
#define BERTH_NVML_REQUIRED(entry)                                                                                    \
  entry(init, nvmlInit_v2, ()) entry(shutdown, nvmlShutdown, ()) entry(get_count, nvmlDeviceGetCount_v2, (unsigned*)) \
      entry(get_handle, nvmlDeviceGetHandleByIndex_v2, (unsigned, Device*))                                           \
          entry(get_uuid, nvmlDeviceGetUUID, (Device, char*, unsigned))

#define BERTH_NVML_OPTIONAL(entry)                                                                             \
  entry(get_driver_version, nvmlSystemGetDriverVersion, (char*, unsigned))                                     \
      entry(get_name, nvmlDeviceGetName, (Device, char*, unsigned))                                            \
          entry(get_pci_info, nvmlDeviceGetPciInfo_v3, (Device, PciInfo*))                                     \
              entry(get_memory, nvmlDeviceGetMemoryInfo, (Device, Memory*))                                    \
                  entry(get_mig_mode, nvmlDeviceGetMigMode, (Device, unsigned*, unsigned*))                    \
                      entry(get_p2p_status, nvmlDeviceGetP2PStatus, (Device, Device, int, int*))               \
                          entry(get_utilization, nvmlDeviceGetUtilizationRates, (Device, Utilization*))        \
                              entry(get_temperature, nvmlDeviceGetTemperature, (Device, int, unsigned*))       \
                                  entry(get_power, nvmlDeviceGetPowerUsage, (Device, unsigned*)) entry(        \
                                      get_power_limit, nvmlDeviceGetPowerManagementLimit, (Device, unsigned*)) \
                                      entry(get_ecc_errors, nvmlDeviceGetTotalEccErrors,                       \
                                            (Device, int, int, unsigned long long*))                           \
                                          entry(get_processes, nvmlDeviceGetComputeRunningProcesses_v3,        \
                                                (Device, unsigned*, ProcessInfo*))                             \
                                              entry(get_memory_v2, nvmlDeviceGetMemoryInfo_v2, (Device, MemoryV2*))

}  // namespace berth::telemetry::nvml
