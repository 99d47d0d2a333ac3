#pragma once
// NVIDIA's management library, loaded at run time: berth is built and runs where there is no driver. From
// $BERTH_NVML_PATH when that is set, else libnvidia-ml.so.1.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "telemetry/gpu.h"

namespace berth::telemetry {

class Nvml {
 public:
  // kUnsupported: no library, or one that lacks what is needed. kUnavailable: the library is there and refuses (no
  // driver loaded, a driver of another version).
  static Result<std::unique_ptr<Nvml>> load();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Asks the driver each time. A GPU that does not answer is a warning, not an error. `sysfs` is for tests.
  GpuDiscovery discover(const std::string& sysfs = "/sys") const;

  std::vector<GpuReading> read() const;

  // Reads only which processes use the GPU, and how much of its memory they have; what the driver reserves for itself
  // is not counted. The memory is absent where the driver cannot tell it without (before 510). A GPU that is not there
  // is a fault.
  GpuReading look(const std::string& uuid) const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

// Load, discover, and let go: what a node has at start. Without a library or a GPU, `absence` says why.
GpuDiscovery discover_gpus();

}  // namespace berth::telemetry
