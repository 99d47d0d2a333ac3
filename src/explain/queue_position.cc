#include "explain/queue_position.h"

#include <algorithm>
#include <map>
#include <set>

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

constexpr std::int64_t kMostAhead = 100;

std::string percent(const Fraction& share) {
  if (share.infinite()) return "an unlimited part";
  if (share.denominator == 0) return "0 %";
  const auto tenths = static_cast<std::int64_t>(Int128{share.numerator} * 1000 / share.denominator);
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + " %";
}

// The first criterion of the order: 0 within its guarantee, 1 borrows, 2 borrows with weight 0.
int standing(const State& state, QueueId queue, const JobState& job) {
  if (ranks_within(state, queue, job.queue, least_amounts(state, job.spec))) return 0;
  return state.queue(queue).weight == 0 ? 2 : 1;
}

std::string standing_text(int standing) {
  if (standing == 0) return "would stay within its guarantee";
  return standing == 1 ? "would borrow" : "would borrow with weight 0";
}

// Why a job in the same queue, or of a queue that stands equal, is tried first.
std::string rank_text(const JobState& first, const JobState& job) {
  if (first.priority != job.priority) return "higher priority";
  if (first.queue == job.queue && first.level != job.level)
    return first.level == 0 ? "promoted after a long wait" : "less GPU time so far";
  if (first.urgent && !job.urgent) return "deadline is near";
  if (first.urgent && first.spec.deadline != job.spec.deadline) return "deadline is nearer";
  return "submitted earlier";
}

// Says why the jobs ahead go first: once for each queue that stands better than a queue of this job, and for the others
// how many jobs there are of each rank.
class WhoGoesFirst {
 public:
  WhoGoesFirst(const Words& words, const JobState& job, const Order& order)
      : words_(words), state_(words.state()), job_(job), order_(order) {}

  // `own` is the job of this side of the quota tree that is compared with `first`: the job, or one before it.
  void add(const JobState& first) {
    const Siblings siblings = below_common_ancestor(state_, job_.queue, first.queue);
    if (!siblings.preemptor.valid() || !siblings.victim.valid()) return add_rank(first);
    if (!compared_.insert(siblings.victim).second) return;
    const auto head = order_.first_of(siblings.preemptor);
    const JobState& own = head ? *state_.job(*head) : job_;
    const int theirs = standing(state_, siblings.victim, first);
    const int ours = standing(state_, siblings.preemptor, own);
    if (theirs != ours) {
      better_standing_[{siblings.preemptor, ours, ours == 2 ? 2 : theirs}].push_back(siblings.victim);
      return;
    }
    const auto their_share = order_.share(siblings.victim);
    const auto our_share = order_.share(siblings.preemptor);
    if (their_share && our_share && !(*their_share == *our_share))
      smaller_share_[siblings.preemptor].push_back(siblings.victim);
    else
      as_good_[words_.queue(siblings.victim)].insert(rank_text(first, own));
  }

  std::string text() {
    std::vector<std::string> parts;
    for (const auto& [own, queues] : better_standing_) parts.push_back(standing_part(own, queues));
    for (const auto& [own, queues] : smaller_share_) parts.push_back(share_part(own, queues));
    for (const auto& [queue, ranks] : as_good_) {
      parts.push_back(
          queue + " stands equal, and its job goes first (" +
          listed(std::vector<std::string>(ranks.begin(), ranks.end()), [](const std::string& rank) { return rank; }) +
          ")");
    }
    for (const auto& [rank, count] : ranks_) {
      parts.push_back(counted(count, "job") + " of its own queue " + (count == 1 ? "goes" : "go") + " first (" + rank +
                      ")");
    }
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
    return text;
  }

 private:
  struct OwnStanding {
    QueueId queue;
    int ours = 0;
    int theirs = 0;
    auto operator<=>(const OwnStanding&) const = default;
  };

  void add_rank(const JobState& first) { ++ranks_[rank_text(first, job_)]; }

  // "queues a and b"; "other queues" where the viewer may not know them.
  std::string names(const std::vector<QueueId>& queues) const {
    std::vector<std::string> known;
    for (const QueueId queue : queues) {
      if (words_.viewer().knows(state_, queue)) known.push_back(state_.queue(queue).path);
    }
    const std::size_t hidden = queues.size() - known.size();
    if (known.empty()) return hidden == 1 ? "another queue" : std::to_string(hidden) + " other queues";
    const std::size_t more = known.size() - std::min(known.size(), kMostNamedQueues) + hidden;
    known.resize(std::min(known.size(), kMostNamedQueues));
    std::string text =
        (known.size() == 1 ? "queue " : "queues ") + listed(known, [](const std::string& path) { return path; });
    return more == 0 ? text : text + " and " + std::to_string(more) + " more";
  }

  std::string standing_part(const OwnStanding& own, const std::vector<QueueId>& queues) const {
    if (own.ours == 2) {
      return names(queues) + (queues.size() == 1 ? " goes" : " go") + " first: " + words_.queue(own.queue) +
             " has weight 0";
    }
    return names(queues) + (queues.size() == 1 ? " goes first: that queue " : " go first: they ") +
           (queues.size() == 1 || own.theirs > 0 ? standing_text(own.theirs)
                                                 : std::string("would stay within their guarantees")) +
           ", " + words_.queue(own.queue) + " " + standing_text(own.ours);
  }

  std::string share_part(QueueId own, const std::vector<QueueId>& queues) {
    std::string shares;
    for (const QueueId queue : queues) {
      if (!words_.viewer().knows(state_, queue)) continue;
      shares += (shares.empty() ? " (" : ", ") + percent(*order_.share(queue));
    }
    if (!shares.empty()) shares += ")";
    return names(queues) +
           (queues.size() == 1 ? " goes first: that queue uses less of its share"
                               : " go first: they use less of their share") +
           shares + " than " + words_.queue(own) + " (" + percent(*order_.share(own)) + ")";
  }

  static constexpr std::size_t kMostNamedQueues = 3;

  const Words& words_;
  const State& state_;
  const JobState& job_;
  Order order_;
  std::set<QueueId> compared_;
  std::map<OwnStanding, std::vector<QueueId>> better_standing_;
  std::map<QueueId, std::vector<QueueId>> smaller_share_;
  std::map<std::string, std::set<std::string>> as_good_;
  std::map<std::string, std::int64_t> ranks_;
};

// Counts the jobs ahead that do not matter: a limit holds them back that is not the job's, or they can never start.
class NoMatter {
 public:
  NoMatter(const State& state, const JobState& job, Timestamp now) : state_(state), job_(job), blocking_(state, now) {}

  void add(const JobState& other) {
    if (is_held_back(other)) {
      ++held_back_;
    } else if (const auto code = blocking_(other); code && is_never(*code)) {
      ++held_back_;
    }
  }

  std::int64_t count() const { return held_back_; }

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
  std::int64_t held_back_ = 0;
};

}  // namespace

std::optional<WhyAnswer::Line> place_in_line(const Words& words, const JobState& job) {
  const State& state = words.state();
  if (!job.in_pending || job.nomination || job.not_before > words.now()) return std::nullopt;
  Order order(state, words.now());
  WhoGoesFirst who(words, job, order);
  NoMatter no_matter(state, job, words.now());
  std::int64_t ahead = 0;
  auto next = order.next();
  for (; next && *next != job.id && ahead < kMostAhead; next = order.next()) {
    const JobState& other = *state.job(*next);
    ++ahead;
    no_matter.add(other);
    who.add(other);
  }
  return WhyAnswer::Line{ahead + 1, !next || *next == job.id, ahead - no_matter.count(), who.text()};
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
    // A queue of weight 0 has no share over its weight: it comes last, whatever it uses.
    const std::string over =
        queue.weight == 0 ? std::string() : ", over weight " + std::to_string(queue.weight) + " = " + percent(one);
    std::string line = dim_name(state, dim) + ": ";
    if (half_life_s > 0) {
      line += amount_text(dim, counted[i] - past[i]) + " used and " + amount_text(dim, past[i]) +
              " on average before (half of it is forgotten every " + document::duration_text(half_life_s) + "): ";
    }
    line += amount_text(dim, counted[i]) + " of " + amount_text(dim, capacity) + (half_life_s > 0 ? "" : " used") +
            " = " + percent({counted[i], capacity}) + over;
    lines.push_back(line + (!over.empty() && counted[i] > 0 && one == dominant ? " (dominant)" : ""));
  }
  if (queue.is_leaf() || queue.id == state.root() || queue.weight == 0) return lines;
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
  const QueueState& parent = state.queue(queue.parent);
  if (queue.weight == 0) {
    lines.push_back("weight 0: it borrows only after the queues of " + queue_name(state, parent.id) +
                    " that have a weight");
    return lines;
  }
  const Fraction dominant = dominant_share(state, queue, now);
  std::int64_t smaller = 0;
  for (const QueueId id : parent.children) {
    const QueueState& sibling = state.queue(id);
    smaller += sibling.weight > 0 && dominant_share(state, sibling, now) < dominant;
  }
  lines.push_back(std::to_string(smaller) + " of " +
                  counted(static_cast<std::int64_t>(parent.children.size()), "queue") + " of " +
                  queue_name(state, parent.id) + (smaller == 1 ? " has" : " have") +
                  " a smaller dominant share per unit of weight");
  return lines;
}

}  // namespace berth::explain
