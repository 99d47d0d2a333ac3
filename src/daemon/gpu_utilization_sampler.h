#pragma once
// Samples the utilization of this machine's GPUs every few seconds (daemon/gpu_utilization.h). It has a thread of its
// own, because a driver with a fault may be slow. A driver that never answers does not delay the end of the process.

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "daemon/gpu_utilization.h"
#include "daemon/reader.h"
#include "daemon/server_clock.h"
#include "telemetry/nvml.h"

namespace berth::daemon {

class GpuUtilizationSampler {
 public:
  GpuUtilizationSampler(std::unique_ptr<telemetry::Nvml> nvml, std::string node, Reader& reader, ServerClock& clock,
                        std::chrono::milliseconds every);
  ~GpuUtilizationSampler();
  GpuUtilizationSampler(const GpuUtilizationSampler&) = delete;
  GpuUtilizationSampler& operator=(const GpuUtilizationSampler&) = delete;

  GpuUtilization of_last_hour() const;

 private:
  struct Work;
  std::shared_ptr<Work> work_;  // shared with the thread, which a stuck driver may keep longer than this object
  std::thread thread_;
};

}  // namespace berth::daemon
