#pragma once
// Measured use of GPUs: for which part of the time the driver saw them working. What was not measured is absent, never
// zero. It decides nothing, and no event records it.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "model/ids.h"
#include "model/job.h"
#include "model/resources.h"

namespace berth {

// The samples of the last hour.
struct GpuUtilizationSum {
  std::int64_t percents = 0;  // sum over all samples
  std::int64_t samples = 0;
  std::int32_t minutes = 0;  // number of minutes with a sample

  bool measured() const { return samples > 0; }
  // Adds the samples of another GPU.
  GpuUtilizationSum& operator+=(const GpuUtilizationSum& other) {
    percents += other.percents;
    samples += other.samples;
    minutes = std::max(minutes, other.minutes);
    return *this;
  }
  // Returns the mean in thousandths of a percent. Requires that something was measured.
  std::int64_t milli_percent() const { return percents * 1000 / samples; }
};

struct OneGpuUtilization {
  GpuUtilizationSum all;
  GpuUtilizationSum allocated;  // while it was allocated, whole or in part
};

// Returns true if the placement has its GPUs whole. On a shared or MIG GPU the use cannot be split by job.
inline bool has_gpus_whole(const TaskPlacement& place) { return place.gpu_milli == kMilli && place.slices == 0; }

// The measured use of an attempt that has its GPUs whole.
struct JobGpuUtilization {
  std::uint32_t attempt = 0;
  std::int32_t gpus = 0;  // how many of its GPUs were measured
  GpuUtilizationSum sum;  // over these GPUs
};

struct GpuUtilization {
  std::map<std::string, OneGpuUtilization> gpus;  // by uuid
  std::map<JobId, JobGpuUtilization> jobs;

  // Returns the measured use of this attempt, or null.
  const JobGpuUtilization* of(JobId job, std::uint32_t attempt) const {
    const auto found = jobs.find(job);
    return found == jobs.end() || found->second.attempt != attempt ? nullptr : &found->second;
  }
};

}  // namespace berth
