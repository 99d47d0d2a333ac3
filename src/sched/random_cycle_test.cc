// Random fleets: which jobs are evaluated, in which order, and which reasons they get.

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "explain/pending_reason.h"
#include "sched/place/place.h"
#include "sched/queue/order.h"
#include "sched/queue/quota.h"
#include "sched/queue/share.h"
#include "state/transaction.h"
#include "support/random_fleet.h"

namespace berth {
namespace {

using state::JobState;
using state::State;

// The order by its definition, computed anew for every job.
struct LinearOrder {
  const State& state;
  Timestamp now;
  std::set<JobId> asked = {};
  std::set<state::EquivalenceKey> refused = {};

  const JobState* head(QueueId id) const {
    const state::QueueState& queue = state.queue(id);
    for (const state::PendingKey& key : queue.pending) {
      const JobState& job = *state.job(key.job);
      const bool open = !asked.contains(job.id) && !refused.contains({id, job.shape});
      if (open && job.not_before <= now && !job.nomination) return &job;
    }
    const JobState* best = nullptr;
    QueueId best_child;
    for (const QueueId child : queue.children) {
      const JobState* other = head(child);
      if (other == nullptr || (best != nullptr && !precedes(child, *other, best_child, *best))) continue;
      best = other;
      best_child = child;
    }
    return best;
  }
  int standing(QueueId id, const JobState& job) const {
    const Amounts least = sched::least_amounts(state, job.spec);
    const std::vector<QueueId> claims = sched::claims_within(state, job.queue, least);
    if (sched::would_be_within(state, id, least) || std::find(claims.begin(), claims.end(), id) != claims.end())
      return 0;
    return state.queue(id).weight == 0 ? 2 : 1;
  }
  Fraction share(QueueId id) const { return sched::dominant_share(state, counted(id), state.queue(id).weight); }
  sched::SharedAmounts counted(QueueId id) const {
    const state::QueueState& queue = state.queue(id);
    const JobState* next = head(id);
    if (queue.is_leaf() || next == nullptr) return sched::shared_usage(state, queue, now);
    std::optional<Fraction> least;
    for (const QueueId child : queue.children) {
      if (head(child) != nullptr && (!least || share(child) < *least)) least = share(child);
    }
    const std::size_t most = sched::most_asked(state, sched::least_amounts(state, next->spec));
    sched::SharedAmounts sum{};
    for (const QueueId child : queue.children) {
      sched::SharedAmounts part = sched::rescaled(counted(child), share(child), *least);
      if (head(child) == nullptr) part[most] = counted(child)[most];
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    return sum;
  }
  bool precedes(QueueId a, const JobState& first, QueueId b, const JobState& second) const {
    if (standing(a, first) != standing(b, second)) return standing(a, first) < standing(b, second);
    const int by_share = compare(share(a), share(b));
    return by_share != 0 ? by_share < 0
                         : state::precedes_elsewhere(state::pending_key(first), state::pending_key(second));
  }
  void refuse(const JobState& job) {
    const state::QueueState& leaf = state.queue(job.queue);
    for (const auto& [shape, jobs] : leaf.eq_classes) {
      if (leaf.policy == QueuePolicy::kStrict || shape == job.shape) refused.insert({leaf.id, shape});
    }
  }
};

}  // namespace

TEST_CASE("a cycle decides the same whether refused lanes slept or all are asked again") {
  std::size_t decisions = 0;
  std::size_t slept = 0;
  for_each_step({.first = 200, .end = 300, .steps = 25, .arrivals = 3}, [&](Fleet& fleet) {
    auto woken = State::load(fleet.state.save());
    REQUIRE(woken.has_value());
    REQUIRE_EQ(woken->waits().active_count() >= fleet.state.waits().active_count(), true);
    slept += woken->waits().active_count() - fleet.state.waits().active_count();
    const Plan with_wait_cause = sched::run_cycle(fleet.state, fleet.now);
    const Plan without = sched::run_cycle(*woken, fleet.now);
    REQUIRE_EQ(control::plan_hash(with_wait_cause), control::plan_hash(without));
    REQUIRE_EQ(with_wait_cause.reevaluate_at.ms, without.reevaluate_at.ms);
    REQUIRE_EQ(fleet.state.audit().value_or(""), "");
    decisions += without.decisions.size();
  });
  CHECK_GT(decisions, 200);
  CHECK_GT(slept, 200);
}

TEST_CASE("the rows of a list are told what each job would be told alone") {
  std::map<ReasonCode, std::size_t> told;
  for_each_step({.first = 300, .end = 330, .steps = 25}, [&](Fleet& fleet) {
    for (int i = 0; i < 4; ++i) {
      JobSpec spec = fleet.random_spec();
      for (const char* queue : {"a/t0", "a/t0", "a/t1", "b/t0"}) {  // one class, and others with the same requests
        spec.queue = queue;
        fleet.command(SubmitJob{spec, ""});
      }
    }
    explain::PendingReasons of_many(fleet.state, fleet.now);
    for (const JobId id : pending_of(fleet.state)) {
      const JobState& job = *fleet.state.job(id);
      if (job.nomination) continue;
      sched::SearchStats work;
      const auto alone = explain::pending_reason(fleet.state, job, fleet.now, work);
      const auto row = of_many(job);
      CAPTURE(id.value());
      if (row == ReasonCode::kWouldDelayReservation) {  // a list does not look for places beside reservations
        REQUIRE((!alone || alone->code == ReasonCode::kWouldDelayReservation));
        continue;
      }
      REQUIRE_EQ(row.has_value(), alone.has_value());
      if (!row) continue;
      CAPTURE(name_of(*row));
      REQUIRE(*row == alone->code);
      ++told[*row];
    }
    // A page evaluates a bounded number of classes.
    for (const JobId id : pending_of(fleet.state)) {
      if (fleet.random.chance(300)) fleet.command(CancelJob{id, "ann"});
    }
  });
  for (const ReasonCode code : {ReasonCode::kInsufficientResources, ReasonCode::kQuotaMax, ReasonCode::kBehindQueueHead,
                                ReasonCode::kUserLimit, ReasonCode::kNeverFits}) {
    CAPTURE(name_of(code));
    CHECK_GT(told[code], 0);
  }
}

TEST_CASE("jobs are asked in the order that its definition gives, whatever starts or is refused in between") {
  std::size_t started = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 500; seed < 530; ++seed) {
    Fleet fleet(seed);
    ClusterConfig config = fleet.state.config();
    for (QueueConfig& queue : config.queues) queue.weight = fleet.random.between(0, 3);
    fleet.command(ApplyConfig{config, "test"});
    for (int step = 0; step < 15; ++step) {
      fleet.live();
      for (int i = 0; i < 8; ++i) fleet.command(SubmitJob{fleet.random_spec(), ""});
      fleet.state.pass_deadlines(fleet.now);
      state::Transaction transaction(fleet.state);
      sched::Order order(fleet.state, fleet.now);
      LinearOrder linear{fleet.state, fleet.now};
      while (const JobState* expected = linear.head(fleet.state.root())) {
        CAPTURE(seed);
        CAPTURE(step);
        const auto next = order.next();
        REQUIRE(next.has_value());
        REQUIRE_EQ(next->value(), expected->id.value());
        linear.asked.insert(expected->id);
        sched::SearchStats work;
        const auto placements = sched::try_place(fleet.state, *expected, sched::kAllModels, sched::Pools::kAny, work);
        if (placements && fleet.random.chance(600)) {
          transaction.place(expected->id, *placements);
          ++started;
        } else {
          order.refuse();
          linear.refuse(*expected);
          ++refused;
        }
      }
      REQUIRE_FALSE(order.next().has_value());
    }
  }
  CHECK_GT(started, 300);
  CHECK_GT(refused, 300);
}

}  // namespace berth
