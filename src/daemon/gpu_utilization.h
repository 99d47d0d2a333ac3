#pragma once
// How much GPUs are driven: samples of what the driver says, kept by minute for an hour. A GPU's samples count for the
// GPU, and for the job that has all of it; of a GPU that is shared or cut they count for no job. An attempt that is
// over is forgotten, and a GPU of which there was no sample for an hour. Time is an argument.

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

// Who has a GPU of which something is allocated.
struct GpuHolder {
  JobId job;  // that has all of it; none() where it is shared or cut
  std::uint32_t attempt = 0;
};
using GpuHolders = std::map<std::string, GpuHolder>;  // by uuid

// Of the GPUs of one node.
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
    std::int32_t gpus = 0;  // in the last sample
    Hour hour;
  };

  void forget(std::int64_t minute, const GpuHolders& holders);

  std::map<std::string, OfGpu> gpus_;
  std::map<JobId, OfJob> jobs_;
};

}  // namespace berth::daemon
