#include "explain/queue_position.h"

#include <algorithm>

#include "base/checked.h"
#include "explain/pending_reason.h"
#include "explain/shortage.h"
#include "explain/text_list.h"
#include "explain/why.h"
#include "model/document/quantity.h"
#include "sched/queue/admit.h"
#include "sched/queue/order.h"
#include "sched/queue/quota.h"
#include "state/guarantee_decay.h"

namespace berth::explain {

using namespace sched;

namespace {

using state::JobState;
using state::QueueState;
using state::State;

constexpr std::size_t kMostAsked = 100;

std::string percent(const Fraction& share) {
  if (share.infinite()) return "an unlimited part";
  if (share.denominator == 0) return "0 %";
  const auto tenths = static_cast<std::int64_t>(Int128{share.numerator} * 1000 / share.denominator);
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + " %";
}

std::string name(JobId job) { return "job " + std::to_string(job.value()); }

// The first criterion of the order: 0 within its guarantee, 1 borrows, 2 borrows with weight 0.
int standing(const State& state, QueueId queue, const JobState& job) {
  if (ranks_within(state, queue, job.queue, least_amounts(state, job.spec))) return 0;
  return state.queue(queue).weight == 0 ? 2 : 1;
}

std::string standing_text(int standing) {
  if (standing == 0) return "would stay within its guarantee";
  return standing == 1 ? "would borrow" : "would borrow with weight 0";
}

// Requires: `job` is the first of its side of the queue tree.
std::string why_first(const State& state, Order& order, const Siblings& siblings, const JobState& first,
                      const JobState& job) {
  if (siblings.preemptor.valid() && siblings.victim.valid()) {
    const int theirs = standing(state, siblings.victim, first);
    const int ours = standing(state, siblings.preemptor, job);
    if (theirs != ours) {
      return queue_name(state, siblings.victim) + " " + standing_text(theirs) + ", " +
             queue_name(state, siblings.preemptor) + " " + standing_text(ours);
    }
    const auto their_share = order.share(siblings.victim);
    const auto our_share = order.share(siblings.preemptor);
    if (their_share && our_share && !(*their_share == *our_share)) {
      return queue_name(state, siblings.victim) + " uses " + percent(*their_share) +
             " of the cluster per unit of weight, " + queue_name(state, siblings.preemptor) + " " + percent(*our_share);
    }
  }
  if (first.priority != job.priority) {
    return "priority " + std::to_string(first.priority) + " against " + std::to_string(job.priority);
  }
  if (first.queue == job.queue && first.level != job.level)
    return first.level == 0 ? "promoted after a long wait" : "has had less GPU time";
  if (first.urgent && !job.urgent) return "deadline is near";
  if (first.urgent && first.spec.deadline != job.spec.deadline) return "deadline is nearer";
  return "submitted earlier";
}

// Why `first` goes before `job`. Queues are compared by the first job of each, and on the side of `job` that may be
// another one: the head of its strict queue, or a job of another queue that goes first.
std::string why_first(const State& state, Order order, const JobState& first, const JobState& job) {
  const Siblings siblings = below_common_ancestor(state, job.queue, first.queue);
  const auto own = siblings.preemptor.valid() ? order.first_of(siblings.preemptor) : std::nullopt;
  if (!own || *own == job.id) return why_first(state, order, siblings, first, job);
  return why_first(state, order, siblings, first, *state.job(*own)) + "; in " + queue_name(state, siblings.preemptor) +
         " " + name(*own) + " goes first";
}

// Counts the jobs ahead that do not matter: a limit holds them back that is not the job's, or they can never start.
class NoMatter {
 public:
  NoMatter(const State& state, const JobState& job, Timestamp now) : state_(state), job_(job), blocking_(state, now) {}

  void count(const JobState& other) {
    if (is_held_back(other)) {
      ++held_back_;
    } else if (const auto code = blocking_(other); code && is_never(*code)) {
      ++never_;
    }
  }

  // ", of which 2 wait for quota elsewhere and 1 can never start"
  std::string text(std::size_t asked) const {
    std::vector<std::string> parts;
    const auto add = [&](std::size_t count, const std::string& does) {
      if (count > 0) parts.push_back((asked == 1 ? "" : std::to_string(count) + " ") + does);
    };
    add(held_back_, held_back_ == 1 ? "waits for quota elsewhere" : "wait for quota elsewhere");
    add(never_, "can never start");
    if (parts.empty()) return {};
    return (asked == 1 ? ", which " : ", of which ") + listed(parts, [](const std::string& part) { return part; });
  }

 private:
  bool is_held_back(const JobState& other) const {
    const Admission admission = admit(state_, other);
    if (admission.models != 0) return false;
    const Reason& why = admission.reason;
    if (why.code == ReasonCode::kUserLimit && other.spec.user != job_.spec.user) return true;
    return is_quota_reason(why.code) && !state_.is_below(job_.queue, why.queue);
  }

  const State& state_;
  const JobState& job_;
  PendingReasons blocking_;
  std::size_t held_back_ = 0;
  std::size_t never_ = 0;
};

}  // namespace

std::vector<std::string> explain_position(const State& state, const JobState& job, Timestamp now) {
  if (!job.in_pending || job.nomination || job.not_before > now) return {};  // it is not in line
  Order order(state, now);
  const auto first = order.first();
  if (!first || *first == job.id) return {};
  const Order before = order;
  order.next();
  std::size_t ahead = 1;
  NoMatter no_matter(state, job, now);
  no_matter.count(*state.job(*first));
  auto next = order.next();
  while (next && *next != job.id && ahead < kMostAsked) {
    ++ahead;
    no_matter.count(*state.job(*next));
    next = order.next();
  }
  const JobState& other = *state.job(*first);
  return {(next && *next == job.id ? std::to_string(ahead) : "at least " + std::to_string(ahead)) +
          (ahead == 1 ? " job goes" : " jobs go") + " first" + no_matter.text(ahead) +
          (ahead == 1 ? ": " : "; the first is ") + name(*first) + " (" + queue_name(state, other.queue) + "), " +
          why_first(state, before, other, job)};
}

namespace {

// The guarantee that is configured, if less of it counts, and when the decay of the guarantee will change it next.
std::vector<std::string> guarantee_decay_lines(const State& state, const QueueState& queue) {
  if (queue.guarantee_decay_ms == 0) return {};
  std::vector<std::string> lines;
  for (std::size_t dim = 0; dim < kDims; ++dim) {
    const std::int64_t left = queue.guaranteed.amounts[dim];
    const std::int64_t configured = queue.configured.amounts[dim];
    if (!queue.configured.states(dim) || left == configured) continue;
    lines.push_back(dim_name(state, dim) + ": guaranteed " + amount_text(dim, configured) + " by configuration, " +
                    amount_text(dim, configured - left) + " of that does not count because it was not asked for");
  }
  const std::string rule = "guarantee_decay " + document::duration_text(queue.guarantee_decay_ms / 1000) + ": ";
  const state::GuaranteeDue due = state::guarantee_due(queue);
  if (due.at.is_never()) {
    lines.push_back(rule + "the queue asks for enough of its guarantee to keep what is left of it");
  } else if (due.restored) {
    lines.push_back(rule + "since " + to_iso8601(queue.guarantee_use.wanting_since) +
                    " the queue asks for more than what is left of its guarantee; all of it counts again at " +
                    to_iso8601(due.at));
  } else {
    const QuotaAmounts next = state::guarantee_after_idling(queue);
    std::string change;
    for (std::size_t dim = 0; dim < kDims; ++dim) {
      if (!next.states(dim) || next.amounts[dim] == queue.guaranteed.amounts[dim]) continue;
      change += (change.empty() ? "" : ", ") + amount_text(dim, queue.guarantee_use.idle_peak[dim]) + " + " +
                amount_text(dim, queue.guaranteed.amounts[dim] - queue.guarantee_use.idle_peak[dim]) +
                " / 2 = " + amount_text(dim, next.amounts[dim]) + " " + dim_name(state, dim);
    }
    lines.push_back(rule + "since " + to_iso8601(queue.guarantee_use.idle_since) +
                    " the queue asks for no more than half of its guarantee, which at " + to_iso8601(due.at) +
                    " becomes " + change);
  }
  return lines;
}

// One line for a dimension with a guarantee: how much of it is used, idle, lent or kept back, and how much is borrowed.
std::string guarantee_line(const State& state, const QueueState& queue, std::size_t dim) {
  const std::int64_t guaranteed = queue.guaranteed.amounts[dim];
  const std::int64_t within = queue.within_usage[dim];
  const std::int64_t borrowed = queue.usage[dim] - within;
  const std::int64_t backed = queue.usage[dim] - queue.burst_usage[dim];
  const std::int64_t idle = std::max<std::int64_t>(0, guaranteed - backed - queue.nominated[dim]);
  std::string line = dim_name(state, dim) + ": guaranteed " + amount_text(dim, guaranteed) + ", " +
                     amount_text(dim, within) + " used within";
  if (queue.nominated[dim] > 0) line += ", " + amount_text(dim, queue.nominated[dim]) + " nominated";
  line += ", " + amount_text(dim, borrowed) + " borrowed" +
          (queue.burst_usage[dim] > 0 ? " (" + amount_text(dim, queue.burst_usage[dim]) + " in burst pools)" : "") +
          ", " + amount_text(dim, idle) + " idle";
  if (queue.limits_lending && queue.lending_limit[dim] != kUnlimited) {
    const std::int64_t lent = std::min(idle, queue.lending_limit[dim]);
    line += " (" + amount_text(dim, lent) + " may be lent, " + amount_text(dim, idle - lent) + " kept back)";
  } else if (idle > 0) {
    line += " (all of it may be lent)";
  }
  return line;
}

// A line for each dimension that fairness is measured in: what counts, as a part of the fleet, per unit of weight.
std::vector<std::string> share_lines(const State& state, const QueueState& queue, Timestamp now) {
  const std::int64_t half_life_s = state.config().scheduling.usage_half_life_s;
  const SharedAmounts counted = shared_usage(state, queue, now);
  const SharedAmounts past = state.past_usage(queue, now);
  const Fraction dominant = dominant_share(state, queue, now);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const std::size_t dim = state::kSharedDims[i];
    const std::int64_t capacity = state.capacity()[dim];
    if (capacity == 0) continue;
    const Fraction one{counted[i], checked_multiply(capacity, queue.weight)};
    std::string line = dim_name(state, dim) + ": ";
    if (half_life_s > 0) {
      line += amount_text(dim, counted[i] - past[i]) + " used and " + amount_text(dim, past[i]) +
              " on average before (half of it is forgotten every " + document::duration_text(half_life_s) + "): ";
    }
    line += amount_text(dim, counted[i]) + " of " + amount_text(dim, capacity) + (half_life_s > 0 ? "" : " used") +
            " = " + percent({counted[i], capacity}) + ", over weight " + std::to_string(queue.weight) + " = " +
            percent(one);
    lines.push_back(line + (counted[i] > 0 && one == dominant ? " (dominant)" : ""));
  }
  if (queue.is_leaf() || queue.id == state.root()) return lines;
  Order order(state, now);
  if (const auto share = order.share(queue.id); share && !(*share == dominant)) {
    lines.push_back("counts " + percent(*share) +
                    " among its siblings: the usage of its children, rescaled to the least of those with jobs to try");
  }
  return lines;
}

// The limits of one user below the queue, and how many users are at one.
std::vector<std::string> user_limit_lines(const QueueState& queue) {
  if (!queue.limits_users()) return {};
  std::string most;
  const auto add = [&](std::int64_t limit, const std::string& text) {
    if (limit != kUnlimited) most += (most.empty() ? "" : ", ") + text;
  };
  add(queue.max_jobs_per_user, counted(queue.max_jobs_per_user, "running job"));
  add(queue.max_gpu_milli_per_user, counted(kDimGpu, queue.max_gpu_milli_per_user));
  add(queue.max_submitted_per_user, counted(queue.max_submitted_per_user, "submitted job"));
  const auto full = std::count_if(queue.users.begin(), queue.users.end(), [&](const auto& user) {
    const state::UserUsage& used = user.second;
    return used.jobs >= queue.max_jobs_per_user || used.gpu_milli >= queue.max_gpu_milli_per_user ||
           used.submitted >= queue.max_submitted_per_user;
  });
  const auto users = static_cast<std::int64_t>(queue.users.size());
  return {"limits per user: " + most + "; " + counted(users, "user") + (users == 1 ? " has" : " have") +
          " jobs here, " + std::to_string(full) + " at a limit"};
}

}  // namespace

std::vector<std::string> explain_share(const State& state, const QueueState& queue, Timestamp now) {
  std::vector<std::string> lines = share_lines(state, queue, now);
  for (std::size_t dim = 0; dim < kDims; ++dim) {
    if (queue.guaranteed.states(dim)) lines.push_back(guarantee_line(state, queue, dim));
    if (queue.max[dim] == kUnlimited) continue;
    lines.push_back(dim_name(state, dim) + ": max " + amount_text(dim, queue.max[dim]) + ", " +
                    amount_text(dim, queue.usage[dim] + queue.nominated[dim]) + " used or nominated");
  }
  for (std::string& line : guarantee_decay_lines(state, queue)) lines.push_back(std::move(line));
  for (std::string& line : user_limit_lines(queue)) lines.push_back(std::move(line));
  if (queue.guaranteed.stated == 0 && queue.id != state.root())
    lines.push_back("no guarantee: all its running jobs borrow");
  if (queue.id == state.root()) return lines;
  const Fraction dominant = dominant_share(state, queue, now);
  std::int64_t smaller = 0;
  const QueueState& parent = state.queue(queue.parent);
  for (const QueueId sibling : parent.children) {
    smaller += dominant_share(state, state.queue(sibling), now) < dominant;
  }
  lines.push_back(std::to_string(smaller) + " of " +
                  counted(static_cast<std::int64_t>(parent.children.size()), "queue") + " of " +
                  queue_name(state, parent.id) + (smaller == 1 ? " has" : " have") +
                  " a smaller dominant share per unit of weight");
  return lines;
}

}  // namespace berth::explain
