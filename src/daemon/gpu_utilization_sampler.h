#pragma once
// Asks the driver every few seconds how much this machine's GPUs are driven (daemon/gpu_utilization.h), on a thread of
// its own: a driver in trouble may take its time. One that does not answer at all keeps nobody from ending.

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
  std::shared_ptr<Work> work_;  // also the thread's, which a driver may hold up beyond this
  std::thread thread_;
};

}  // namespace berth::daemon
