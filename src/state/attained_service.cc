#include "state/attained_service.h"

#include <algorithm>

#include "base/checked.h"
#include "base/planted.h"

namespace berth::state {

namespace {

std::int64_t held_gpu_milli(const JobState& job) {
  std::int64_t milli = 0;
  for (const Charge& charge : job.attempt->charges) milli += charge.amounts[kDimGpu];
  return milli;
}

bool promoted(const QueueState& leaf, const JobState& job, Timestamp now) {
  return leaf.promote_after_ms > 0 && waited_ms(job, now) >= leaf.promote_after_ms;
}

}  // namespace

std::int64_t service_of(const JobState& job, Timestamp now) {
  if (!job.attempt) return job.past_service;
  const std::int64_t held_ms = std::max<std::int64_t>(0, now - job.attempt->started);
  return checked_add(job.past_service, checked_multiply(held_gpu_milli(job), held_ms));
}

std::int64_t waited_ms(const JobState& job, Timestamp now) {
  if (!job.in_pending) return job.waited_ms;
  return job.waited_ms + std::max<std::int64_t>(0, now - std::max(job.in_line_since, job.not_before));
}

Timestamp promoted_from(const QueueState& leaf, const JobState& job) {
  if (leaf.promote_after_ms == 0 || job.level == 0) return Timestamp::never();
  return std::max(job.in_line_since, job.not_before) + (leaf.promote_after_ms - job.waited_ms);
}

std::int32_t level_of(const QueueState& leaf, const JobState& job, Timestamp now) {
  const auto& thresholds = leaf.service_thresholds;
  if (thresholds.empty() || promoted(leaf, job, now)) return 0;
  const auto above = std::upper_bound(thresholds.begin(), thresholds.end(), service_of(job, now));
  return static_cast<std::int32_t>(above - thresholds.begin()) + 1;
}

Timestamp behind_level_from(const QueueState& leaf, const JobState& job, std::int32_t level) {
  const auto index = static_cast<std::size_t>(level);
  if (leaf.service_thresholds.empty() || index > leaf.service_thresholds.size()) return Timestamp::never();
  if (planted(Bug::kLevelIgnored)) return job.attempt->started;
  if (promoted(leaf, job, job.attempt->started)) return Timestamp::never();
  if (index == 0) return job.attempt->started;
  const std::int64_t missing = leaf.service_thresholds[index - 1] - job.past_service;
  const std::int64_t gpu_milli = held_gpu_milli(job);
  if (missing <= 0) return job.attempt->started;
  if (gpu_milli == 0) return Timestamp::never();
  return job.attempt->started + (missing + gpu_milli - 1) / gpu_milli;
}

}  // namespace berth::state
