#include "state/back_off.h"

#include <algorithm>

#include "model/exit_code.h"

namespace berth::state {

namespace {

constexpr std::int64_t kFirstMs = 1000;
constexpr std::int64_t kMostMs = 300'000;
constexpr std::int64_t kLongRunMs = 600'000;  // after an attempt this long the pauses start again with the first
constexpr std::int64_t kPausesPerClaim = 16;
constexpr std::int64_t kLostPromiseMs = 10'000;

bool has_died(const AttemptRecord& attempt) {
  return attempt.outcome == Outcome::kNodeLost && attempt.ended_itself() && attempt.code == kSupervisorDiedCode;
}

bool was_not_started(const AttemptRecord& attempt) {
  return attempt.outcome == Outcome::kNodeLost && attempt.ended_itself() &&
         (attempt.code == kNodeShortCode || attempt.code == kNotStartedCode);
}

// Returns true if the attempt ended by itself: it was not evicted and its node was not lost.
bool is_own_end(const AttemptRecord& attempt) {
  if (has_died(attempt) || was_not_started(attempt)) return true;
  return attempt.outcome != Outcome::kPreempted && attempt.outcome != Outcome::kNodeLost;
}

bool was_long(const AttemptRecord& attempt) { return attempt.ended - attempt.started >= kLongRunMs; }

// Returns how many attempts ended by themselves, counted back from the latest to the last long one. Attempts that were
// evicted or lost are skipped.
std::int32_t row_of_ends(const JobState& job) {
  std::int32_t row = 0;
  for (auto past = job.past.rbegin(); past != job.past.rend(); ++past) {
    if (!is_own_end(*past)) continue;
    ++row;
    if (was_long(*past)) break;
  }
  return row;
}

}  // namespace

std::int64_t back_off_ms(const JobState& job) {
  const int doublings = std::clamp(row_of_ends(job) - 1, 0, 16);
  return std::min(kMostMs, kFirstMs << doublings);
}

std::int32_t supervisor_deaths(const JobState& job, Timestamp now) {
  if (job.attempt && now - job.attempt->started >= kLongRunMs) return 0;
  std::int32_t deaths = 1;
  for (auto past = job.past.rbegin(); past != job.past.rend(); ++past) {
    if (!is_own_end(*past)) continue;
    if (!has_died(*past) || was_long(*past)) break;
    ++deaths;
  }
  return deaths;
}

std::int64_t pause_after_lost_nominations_ms(std::uint32_t lost) {
  return lost < 2 ? 0 : kLostPromiseMs << std::min<std::uint32_t>(lost - 2, 20);
}

Timestamp may_evict_from(const JobState& job) {
  const auto last = std::find_if(job.past.rbegin(), job.past.rend(), is_own_end);
  if (last == job.past.rend() || was_long(*last)) return job.evicts_from;
  return std::max(job.evicts_from, last->ended + kPausesPerClaim * back_off_ms(job));
}

}  // namespace berth::state
