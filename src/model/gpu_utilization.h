#pragma once
// What is done with GPUs that are allocated, as far as it was measured: how much of the time the driver saw them at
// work. What nobody measured is absent, never zero. Nothing is decided by it, and no event records it.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "model/ids.h"
#include "model/job.h"
#include "model/resources.h"

namespace berth {

// Of the last hour.
struct GpuUtilizationSum {
  std::int64_t percents = 0;  // of all samples together
  std::int64_t samples = 0;
  std::int32_t minutes = 0;  // in which there was a sample

  bool measured() const { return samples > 0; }
  // Of several GPUs together.
  GpuUtilizationSum& operator+=(const GpuUtilizationSum& other) {
    percents += other.percents;
    samples += other.samples;
    minutes = std::max(minutes, other.minutes);
    return *this;
  }
  // The mean, in thousandths of a percent; only of what was measured.
  std::int64_t milli_percent() const { return percents * 1000 / samples; }
};

struct OneGpuUtilization {
  GpuUtilizationSum all;
  GpuUtilizationSum allocated;  // while somebody had it, or a part of it
};

// Of a GPU that is shared or cut nobody can tell whose work it does.
inline bool has_gpus_whole(const TaskPlacement& place) { return place.gpu_milli == kMilli && place.slices == 0; }

// An attempt that has GPUs whole.
struct JobGpuUtilization {
  std::uint32_t attempt = 0;
  std::int32_t gpus = 0;  // of which that was measured
  GpuUtilizationSum sum;  // over these
};

struct GpuUtilization {
  std::map<std::string, OneGpuUtilization> gpus;  // by uuid
  std::map<JobId, JobGpuUtilization> jobs;

  // Of this attempt; null where it was not measured.
  const JobGpuUtilization* of(JobId job, std::uint32_t attempt) const {
    const auto found = jobs.find(job);
    return found == jobs.end() || found->second.attempt != attempt ? nullptr : &found->second;
  }
};

}  // namespace berth
