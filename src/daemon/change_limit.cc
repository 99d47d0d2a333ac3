#include "daemon/change_limit.h"

#include <variant>

namespace berth::daemon {

namespace {

constexpr std::size_t kMostKeys = 100'000;
constexpr policy::RateLimit kChanges{1, 60};
constexpr policy::RateLimit kCheckpoints{5, 300};  // as often as a supervisor looks at ack.json

std::string job_key(JobId job) { return "job " + std::to_string(job.value()); }

// What a command changes; empty: it is not counted.
struct KeyOf {
  std::string operator()(const HoldJob& one) const { return job_key(one.job); }
  std::string operator()(const PrioritizeJob& one) const { return job_key(one.job); }
  std::string operator()(const SignalJob& one) const { return job_key(one.job); }
  std::string operator()(const SetQueue& one) const { return "queue " + one.queue; }
  std::string operator()(const UndoQueueChange& one) const { return "queue " + one.queue; }
  std::string operator()(const SetRules& one) const { return "queue " + one.queue; }
  std::string operator()(const BindRole& one) const { return one.binding.subject; }
  std::string operator()(const BlockSubject& one) const { return one.subject; }
  template <class Other>
  std::string operator()(const Other&) const {
    return {};
  }
};

Error too_often(const std::string& what, policy::RateLimit limit) {
  return {ErrorCode::kUnavailable, what + " was changed too often: " + std::to_string(limit.per_second) +
                                       " a second, and " + std::to_string(limit.burst) +
                                       " at once, are taken; try again in a moment"};
}

}  // namespace

ChangeLimit::ChangeLimit() : changes_(kChanges, kMostKeys), checkpoints_(kCheckpoints, kMostKeys) {}

Result<void> ChangeLimit::take(const Command& command, Timestamp now) {
  const auto* checkpoint = std::get_if<ReportCheckpoint>(&command);
  const std::string key = checkpoint != nullptr ? job_key(checkpoint->job) : std::visit(KeyOf(), command);
  if (key.empty()) return {};
  const std::lock_guard lock(mutex_);
  policy::RateLimiter& limiter = checkpoint != nullptr ? checkpoints_ : changes_;
  if (limiter.take(key, now) == 0) return {};
  return checkpoint != nullptr ? too_often("the checkpoint of " + key, kCheckpoints) : too_often(key, kChanges);
}

}  // namespace berth::daemon
