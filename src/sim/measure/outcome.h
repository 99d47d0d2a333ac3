#pragma once
// The outcome of one job in one run, and measures of it. Integers: milliseconds and milli-GPU.
//
//   waiting     completion - submission - useful run. Stopped time, lost work and restarts count as waiting, so a
//   policy
//               pays for evicting a job
//   JCT         completion - submission
//   slowdown    JCT / useful run
//
// All three exist only for a completed job.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::sim {

enum class JobEnd {
  kCompleted,
  kRunning,  // still running when the run ended
  kWaiting,  // still waiting when the run ended
  kRefused,  // refused: it could never fit, or was tried once and dropped
};

const char* name_of(JobEnd job_end);

struct JobOutcome {
  std::string id;
  std::string queue;
  std::string user;
  std::string job_class;
  std::int64_t priority = 0;
  std::int64_t workers = 1;
  std::int64_t gpu_milli = 0;  // GPUs of the whole job
  std::int64_t submit_ms = 0;
  std::optional<std::int64_t> first_start_ms;
  std::optional<std::int64_t> finish_ms;
  std::int64_t useful_ms = 0;          // run time that the job needed
  std::int64_t done_ms = 0;            // useful run at the end, of a job that did not complete
  std::int64_t lost_gpu_milli_ms = 0;  // GPU time of lost work and of restarts
  std::int64_t preemptions = 0;
  std::int64_t restarts = 0;
  std::int64_t moves = 0;
  JobEnd job_end = JobEnd::kWaiting;
};

std::optional<std::int64_t> waiting_ms(const JobOutcome& job);
// Returns the least time that a job waited in a run that ended at `end_ms`. For a completed job that is its waiting.
// For a job that still waits or runs, it is its waiting if it ran from now on without a stop. Absent for a refused job.
std::optional<std::int64_t> waiting_at_least_ms(const JobOutcome& job, std::int64_t end_ms);
std::optional<std::int64_t> completion_ms(const JobOutcome& job);
std::optional<double> slowdown(const JobOutcome& job);

// Returns the size bucket: "CPU only", "under 1 GPU", "1 GPU", "2-4 GPUs", "5-8 GPUs", "9-64 GPUs", "65-512 GPUs",
// "over 512 GPUs".
std::string_view size_bucket(std::int64_t gpu_milli);
inline constexpr int kSizeBuckets = 8;
int size_bucket_index(std::int64_t gpu_milli);
// Returns the rank of a bucket by its name; kSizeBuckets for any other text.
int size_bucket_rank(std::string_view name);

}  // namespace berth::sim
