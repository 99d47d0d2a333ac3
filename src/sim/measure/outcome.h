#pragma once
// What became of one job in one run, and what is asked of it afterwards. Integers: milliseconds and thousandths of a
// GPU.
//   waiting     completion - submission - useful run: time stopped, lost work and restarts all count as waiting, so
//   that
//               a policy pays for stopping a job
//   JCT         completion - submission
//   slowdown    JCT / useful run
// All three exist only for a job that completed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::sim {

enum class ExpectedEnd {
  kCompleted,
  kRunning,  // still running when the run ended
  kWaiting,  // still waiting when the run ended
  kRefused,  // never let in: it could not fit, or was tried once and dropped
};

const char* name_of(ExpectedEnd expected_end);

struct JobOutcome {
  std::string id;
  std::string queue;
  std::string user;
  std::string job_class;
  std::int64_t priority = 0;
  std::int64_t workers = 1;
  std::int64_t gpu_milli = 0;  // of the whole job
  std::int64_t submit_ms = 0;
  std::optional<std::int64_t> first_start_ms;
  std::optional<std::int64_t> finish_ms;
  std::int64_t useful_ms = 0;          // run time that the job needed
  std::int64_t done_ms = 0;            // useful run that a job which did not complete had behind it at the end
  std::int64_t lost_gpu_milli_ms = 0;  // GPU time spent on work that was thrown away or on restarting
  std::int64_t preemptions = 0;
  std::int64_t restarts = 0;
  std::int64_t moves = 0;
  ExpectedEnd expected_end = ExpectedEnd::kWaiting;
};

std::optional<std::int64_t> waiting_ms(const JobOutcome& job);
// How long a job waited at least, when its run ended at `end_ms`: the waiting of a completed job; of one that still
// waits or runs what its waiting would be if it ran on from now without a stop. Absent for a refused job.
std::optional<std::int64_t> waiting_at_least_ms(const JobOutcome& job, std::int64_t end_ms);
std::optional<std::int64_t> completion_ms(const JobOutcome& job);
std::optional<double> slowdown(const JobOutcome& job);

// "CPU only", "under 1 GPU", "1 GPU", "2-4 GPUs", "5-8 GPUs", "9-64 GPUs", "65-512 GPUs", "over 512 GPUs"
std::string_view size_bucket(std::int64_t gpu_milli);
inline constexpr int kSizeBuckets = 8;
int size_bucket_index(std::int64_t gpu_milli);
// The place of a bucket among the buckets, by its name; kSizeBuckets for any other text.
int size_bucket_rank(std::string_view name);

}  // namespace berth::sim
