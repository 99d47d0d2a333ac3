#include "state/estimate.h"

#include <algorithm>

#include "base/checked.h"
#include "model/document/quantity.h"

namespace berth::state {

namespace {

constexpr std::int64_t kLeastMoreMs = 60'000;  // time that a job still runs at least after its expected end

Estimate learned_estimate(const State& state, const JobSpec& spec, std::int64_t already_s) {
  const auto learned = state.run_times().quantile(spec, kLearnedPercent, already_s);
  if (!learned) return {};
  return {EstimateSource::kLearned, learned->seconds, *learned};
}

std::int64_t run_for_ms(Timestamp started, Timestamp now) { return std::max<std::int64_t>(0, now - started); }

// Returns the expected end of a job that has run longer than expected. `learned_s` is the run time of similar jobs that
// ran longer, too; 0: none is known.
Timestamp end_of_late(Timestamp started, Timestamp now, std::int64_t learned_s) {
  if (learned_s > 0) return std::max(now + kLeastMoreMs, started + checked_multiply(learned_s, 1000));
  return now + std::max(kLeastMoreMs, run_for_ms(started, now));
}

bool runs_until_stopped(const State& state, const JobState& job) {
  const JobState* parent = state.job(job.parent);
  return job.spec.kind == JobKind::kService || (parent != nullptr && parent->spec.kind == JobKind::kService);
}

}  // namespace

Estimate estimate(const State& state, const JobSpec& spec) {
  if (spec.kind == JobKind::kService && spec.time_limit_s == 0) return {};
  if (spec.time_limit_s > 0) return {EstimateSource::kTimeLimit, spec.time_limit_s, {}};
  if (spec.estimate_s > 0) return {EstimateSource::kStated, spec.estimate_s, {}};
  return learned_estimate(state, spec, 0);
}

Estimate estimate(const State& state, const JobState& job) {
  if (runs_until_stopped(state, job)) return {};
  return estimate(state, job.spec);
}

std::int64_t expected_run_s(const State& state, const JobState& job) {
  return job.expected_s > 0 ? job.expected_s : estimate(state, job).seconds;
}

std::int64_t grace_after_limit_ms(const State& state, const JobState& job) {
  const bool saves_then = job.spec.checkpoint.on_signal && job.spec.time_limit_s > 0;
  return saves_then && !runs_until_stopped(state, job) ? state.grace_ms(job) : 0;
}

Timestamp expected_end(const State& state, const JobState& job, Timestamp now) {
  const AttemptState& attempt = *job.attempt;
  if (attempt.stopping()) return std::max(now, attempt.stop->deadline);
  if (runs_until_stopped(state, job)) return Timestamp::never();
  if (job.spec.time_limit_s > 0)
    return std::max(now, job.limit_ends(attempt.started) + grace_after_limit_ms(state, job));
  const std::int64_t expected_s = expected_run_s(state, job);
  if (expected_s == 0) return Timestamp::never();
  const std::int64_t ran_ms = run_for_ms(attempt.started, now);
  if (checked_multiply(expected_s, 1000) > ran_ms) return attempt.started + expected_s * 1000;
  return end_of_late(attempt.started, now, learned_estimate(state, job.spec, ran_ms / 1000).seconds);
}

Timestamp expected_end_at_least(const RunningRow& row, Timestamp now) {
  if (row.expected > now) return row.expected;
  const bool ran_longer = !row.timed && row.expected > row.started;
  return ran_longer ? now + kLeastMoreMs : now;
}

Timestamp ExpectedEnds::of(const RunningRow& row) {
  if (!row.plain) return expected_end(state_, *state_.job(row.job), now_);  // a job that is not plain may be a replica
  if (row.timed && row.on_signal) return expected_end(state_, *state_.job(row.job), now_);
  if (row.timed || row.expected > now_) return std::max(now_, row.expected);
  if (row.expected == row.started) {  // no run time was known at its start
    const std::int64_t expected_s = learned_s(row, 0);
    if (expected_s == 0) return Timestamp::never();
    const Timestamp expected = row.started + checked_multiply(expected_s, 1000);
    if (expected > now_) return expected;
  }
  return end_of_late(row.started, now_, learned_s(row, run_for_ms(row.started, now_) / 1000));
}

std::int64_t ExpectedEnds::learned_s(const RunningRow& row, std::int64_t already_s) {
  auto known = alike_.find(row.likeness);
  if (known == alike_.end()) known = alike_.try_emplace(row.likeness, state_.job(row.job)->spec, row.likeness).first;
  const auto learned = state_.run_times().quantile(known->second, kLearnedPercent, already_s);
  return learned ? learned->seconds : 0;
}

bool ends_for_certain(const State& state, const JobState& job) {
  if (job.attempt && job.attempt->stopping()) return true;
  return job.spec.time_limit_s > 0 && !runs_until_stopped(state, job);
}

std::string estimate_text(const Estimate& estimate) {
  switch (estimate.source) {
    case EstimateSource::kNone:
      return "unknown";
    case EstimateSource::kTimeLimit:
      return document::duration_text(estimate.seconds) + " (its time limit)";
    case EstimateSource::kStated:
      return document::duration_text(estimate.seconds) + " (stated)";
    case EstimateSource::kLearned:
      return document::duration_text(estimate.seconds) + " (learned from " + std::to_string(estimate.learned.runs) +
             (estimate.learned.runs == 1 ? " job alike in " : " jobs alike in ") +
             std::string(name_of(estimate.learned.likeness)) + ")";
  }
  return {};
}

}  // namespace berth::state
