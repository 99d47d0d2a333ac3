// Random fleets: moves that put free pieces together.

#include "sched/resize/consolidate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "sched/nomination/preemption_conflicts.h"
#include "sched/preempt/preempt.h"
#include "sched/queue/order.h"
#include "sched/start.h"
#include "state/grace.h"
#include "state/transaction.h"
#include "support/random_fleet.h"

namespace berth {
namespace {

using state::JobState;
using state::State;
using state::Transaction;

sched::StartAnswer fit(Fleet& fleet, Transaction& transaction, JobId id) {
  sched::SearchStats work;
  return sched::try_start(transaction, {fleet.state, *fleet.state.job(id), fleet.now, work});
}

bool fits(Fleet& fleet, Transaction& transaction, JobId id) { return bool{fit(fleet, transaction, id)}; }

std::int64_t held_by(const State& state, JobId id) {
  std::vector<TaskPlacement> placements;
  for (const state::TaskState& task : state.job(id)->attempt->tasks) placements.push_back(task.placement);
  return sched::gpu_milli_of(placements);
}

void allow_moves(Fleet& fleet) {
  ClusterConfig config = fleet.state.config();
  config.scheduling.consolidations_per_hour = 1000;
  config.scheduling.min_runtime_s = 0;
  fleet.command(ApplyConfig{config, "test"});
}

// Returns true if all nominated places are free beside what runs.
bool is_free(const State& state, const std::vector<TaskPlacement>& placements) {
  return std::all_of(placements.begin(), placements.end(), [&](const TaskPlacement& one) {
    const state::NodeState& node = state.node(one.node);
    return node.takes_tasks() && node.available_cpu_milli() >= 0 && node.available_memory_mib() >= 0 &&
           std::all_of(one.gpus.begin(), one.gpus.end(), [&](std::uint8_t gpu) {
             return node.gpus[gpu].healthy && node.gpus[gpu].available_milli() >= 0;
           });
  });
}

// Checks all rules of a set of moves against the state, not against the search.
void check_moves(Fleet& fleet, const MoveDecision& decision) {
  const State& state = fleet.state;
  Transaction transaction(fleet.state);
  REQUIRE_FALSE(fits(fleet, transaction, decision.preemptor));
  REQUIRE_FALSE(decision.moves.empty());
  std::int64_t moved = 0;
  for (const Move& move : decision.moves) {
    moved += held_by(state, move.job);
    const JobState& job = *state.job(move.job);
    const bool replica = job.parent.valid() && state.job(job.parent)->spec.kind == JobKind::kService;
    REQUIRE((job.spec.checkpoint.on_signal || replica));
    REQUIRE_LE(job.priority, state.job(decision.preemptor)->priority);
    transaction.set_aside(move.job, move.to);
  }
  REQUIRE_LE(moved, sched::gpu_milli_of(decision.placements));
  for (const Move& move : decision.moves) REQUIRE(is_free(state, move.to));
  for (std::size_t left_out = 0; left_out <= decision.moves.size(); ++left_out) {
    const Transaction::Mark mark = transaction.mark();
    for (std::size_t i = 0; i < decision.moves.size(); ++i) {
      if (i != left_out) transaction.remove(decision.moves[i].job);
    }
    REQUIRE_EQ(fits(fleet, transaction, decision.preemptor), left_out == decision.moves.size());
    transaction.rollback_to(mark);
  }
}

bool any_window(const State& state, const std::vector<TaskPlacement>& placements) {
  return std::any_of(placements.begin(), placements.end(),
                     [&](const TaskPlacement& one) { return !state.node(one.node).maintenance.empty(); });
}

// Returns true if moving one job would let a pending one start. Tries all pairs.
bool one_move_would_do(Fleet& fleet) {
  const State& state = fleet.state;
  sched::Order order(state, fleet.now);
  while (const auto id = order.next()) {
    order.refuse();
    const JobState& preemptor = *state.job(*id);
    Transaction transaction(fleet.state);
    if (preemptor.reservation) continue;
    const auto [start, why] = fit(fleet, transaction, *id);
    if (start || (!is_room_reason(why.code) && why.code != ReasonCode::kNuma)) continue;
    for (const JobId other : state.running()) {
      const JobState& job = *state.job(other);
      if (!sched::may_move_for(state, job, preemptor) || sched::may_be_stopped_from(state, job) > fleet.now) continue;
      if (state.running_table().rows()[job.running_row].end <= fleet.now + state::grace_left_ms(state, job, fleet.now))
        continue;
      const Transaction::Mark mark = transaction.mark();
      transaction.remove(other);
      bool found = false;
      const auto places = fit(fleet, transaction, *id).placements;
      sched::SearchStats work;
      Timestamp reevaluate_at;
      const std::set<JobId> victims{other};
      const sched::ConflictSearch conflicts{transaction, fleet.state, fleet.now, victims, work, reevaluate_at};
      if (places && !any_window(state, *places) && held_by(state, other) <= sched::gpu_milli_of(*places) &&
          !sched::could_be_stopped(conflicts, preemptor, *places)) {
        transaction.place(*id, *places);
        const auto to = fit(fleet, transaction, other).placements;
        const std::uint32_t pool = state.node(job.attempt->tasks.front().placement.node).pool;
        const bool as_good = to && !any_window(state, *to) &&
                             std::all_of(to->begin(), to->end(),
                                         [&](const TaskPlacement& one) { return state.node(one.node).pool == pool; });
        if (as_good && !state.is_burst(to->front().node)) {
          const std::uint64_t within = state.within_mask(job.queue, state.amounts_of(job.spec, *to));
          transaction.rollback_to(mark);
          transaction.set_aside(other, *to);
          found = (job.attempt->charges.front().within & ~within) == 0 && is_free(state, *to);
        }
      }
      transaction.rollback_to(mark);
      if (found) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("moves are free where they go, let their job start, and none can be left out; most that would do are found") {
  std::size_t found = 0;
  std::size_t several = 0;
  std::size_t missed = 0;
  for (std::uint64_t seed = 900; seed < 1300; ++seed) {
    Fleet fleet(seed);
    allow_moves(fleet);
    for (int step = 0; step < 25; ++step) {
      fleet.live();
      for (int i = 0; i < 3; ++i) {
        JobSpec spec = fleet.random_spec();
        spec.checkpoint.on_signal = fleet.random.chance(700);
        if (fleet.random.chance(700)) {
          spec.groups.resize(1);
          TaskGroup& group = spec.groups.front();
          group.count = static_cast<std::int32_t>(fleet.random.chance(800) ? 1 : fleet.random.between(2, 4));
          group.min_count = 0;
          group.request.gpus = static_cast<std::int32_t>(fleet.random.chance(700) ? fleet.random.between(1, 2)
                                                                                  : fleet.random.between(4, 8));
          group.request.gpu_milli = kMilli;
          group.request.gpu_models.clear();
          group.request.mig_profile.clear();
        }
        fleet.command(SubmitJob{spec, ""});
      }
      CAPTURE(seed);
      CAPTURE(step);
      const std::uint64_t before = fleet.state.digest();
      std::optional<MoveDecision> decision;
      {
        Transaction transaction(fleet.state);
        sched::SearchStats work;
        const std::set<JobId> nobody;
        decision = sched::find_moves({fleet.state, transaction, fleet.now, work, nobody, nobody}, Plan()).decision;
      }
      REQUIRE_EQ(fleet.state.digest(), before);
      if (decision) {
        check_moves(fleet, *decision);
        ++found;
        if (decision->moves.size() > 1) ++several;
      } else if (one_move_would_do(fleet)) {
        ++missed;
      }
      for (const JobId id : pending_of(fleet.state)) {
        if (fleet.random.chance(200)) fleet.command(CancelJob{id, "ann"});
      }
    }
  }
  CAPTURE(found);
  CAPTURE(missed);
  CHECK_GT(found, 150);
  CHECK_GT(several, 5);
  CHECK_LT(missed, found / 10);
}

}  // namespace berth
