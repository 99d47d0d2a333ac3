#pragma once
// GPU utilization: samples from the driver, kept by minute for an hour. A sample counts for the GPU and for the job
// that has the whole GPU. If the GPU is shared or cut into MIG instances, it counts for no job. An attempt that has
// ended is forgotten, and so is a GPU without a sample for an hour. Time is an argument.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "model/gpu_utilization.h"
#include "state/state.h"
#include "telemetry/gpu.h"

namespace berth::daemon {

// The job that has a GPU, if anything of the GPU is allocated.
struct GpuHolder {
  JobId job;  // the job that has the whole GPU; none() if it is shared or cut
  std::uint32_t attempt = 0;
};
using GpuHolders = std::map<std::string, GpuHolder>;  // by uuid

// Returns the holders of the GPUs of one node.
GpuHolders gpu_holders(const state::State& state, const std::string& node);

class GpuUtilizationUse {
 public:
  void sample(Timestamp now, const std::vector<telemetry::GpuReading>& readings, const GpuHolders& holders);
  GpuUtilization of_last_hour(Timestamp now) const;

 private:
  class Hour {
   public:
    void add(std::int64_t minute, int percent);
    GpuUtilizationSum until(std::int64_t minute) const;

   private:
    struct Minute {
      std::int64_t number = -1;
      std::int32_t percents = 0;
      std::int32_t samples = 0;
    };
    std::array<Minute, 60> minutes_;
  };
  struct OfGpu {
    Hour all;
    Hour allocated;
  };
  struct OfJob {
    std::uint32_t attempt = 0;
    std::int32_t gpus = 0;  // GPUs of the job in the last sample
    Hour hour;
  };

  void forget(std::int64_t minute, const GpuHolders& holders);

  std::map<std::string, OfGpu> gpus_;
  std::map<JobId, OfJob> jobs_;
};

}  // namespace berth::daemon
