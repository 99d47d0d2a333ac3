#include "sim/measure/outcome.h"

#include <algorithm>
#include <array>

#include "base/checked.h"

namespace berth::sim {
namespace {

// Upper ends of the size buckets in thousandths of a GPU; the last bucket has none.
constexpr std::array<std::int64_t, kSizeBuckets - 1> kUpTo = {0, 999, 1000, 4000, 8000, 64'000, 512'000};
constexpr std::array<std::string_view, kSizeBuckets> kNames = {
    "CPU only", "under 1 GPU", "1 GPU", "2-4 GPUs", "5-8 GPUs", "9-64 GPUs", "65-512 GPUs", "over 512 GPUs"};

}  // namespace

const char* name_of(JobEnd job_end) {
  switch (job_end) {
    case JobEnd::kCompleted:
      return "completed";
    case JobEnd::kRunning:
      return "running";
    case JobEnd::kWaiting:
      return "waiting";
    case JobEnd::kRefused:
      return "refused";
  }
  return "?";
}

std::optional<std::int64_t> completion_ms(const JobOutcome& job) {
  if (job.job_end != JobEnd::kCompleted || !job.finish_ms) return std::nullopt;
  return checked_subtract(*job.finish_ms, job.submit_ms);
}

std::optional<std::int64_t> waiting_ms(const JobOutcome& job) {
  const auto completion = completion_ms(job);
  if (!completion) return std::nullopt;
  return checked_subtract(*completion, job.useful_ms);
}

std::optional<std::int64_t> waiting_at_least_ms(const JobOutcome& job, std::int64_t end_ms) {
  switch (job.job_end) {
    case JobEnd::kCompleted:
      return waiting_ms(job);
    case JobEnd::kRunning:
    case JobEnd::kWaiting:
      return std::max<std::int64_t>(0, checked_subtract(checked_subtract(end_ms, job.submit_ms), job.done_ms));
    case JobEnd::kRefused:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> slowdown(const JobOutcome& job) {
  const auto completion = completion_ms(job);
  if (!completion || job.useful_ms <= 0) return std::nullopt;
  return static_cast<double>(*completion) / static_cast<double>(job.useful_ms);
}

int size_bucket_index(std::int64_t gpu_milli) {
  return static_cast<int>(std::lower_bound(kUpTo.begin(), kUpTo.end(), gpu_milli) - kUpTo.begin());
}

std::string_view size_bucket(std::int64_t gpu_milli) {
  return kNames[static_cast<std::size_t>(size_bucket_index(gpu_milli))];
}

int size_bucket_rank(std::string_view name) {
  return static_cast<int>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
}

}  // namespace berth::sim
