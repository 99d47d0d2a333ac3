#include "control/commit.h"

#include <algorithm>

#include "base/checked.h"
#include "base/codec.h"
#include "base/hash.h"
#include "control/reconcile.h"
#include "state/grace.h"
#include "state/within.h"

namespace berth::control {

namespace {

using state::JobState;
using state::State;

std::int64_t ranks_of(const JobSpec& spec, const std::vector<TaskPlacement>& placements) {
  std::int64_t ranks = 0;
  for (const TaskPlacement& placement : placements) {
    const bool per_gpu = spec.groups[placement.group].launch != Launch::kPerTask;
    ranks += per_gpu ? std::max<std::int64_t>(1, static_cast<std::int64_t>(placement.gpus.size())) : 1;
  }
  return ranks;
}

// Returns the lowest MASTER_PORT that no live gang uses on the node of its task 0, or 0 if all ports are used. Each
// gang needs a port of its own: two gangs with the same port could connect to each other.
std::int32_t free_master_port(const state::NodeState& node) {
  std::int32_t port = state::kFirstMasterPort;
  for (const std::int32_t used : node.ports) {
    if (used != port) break;
    ++port;
  }
  return port <= state::kLastMasterPort ? port : 0;
}

// Returns the ancestor queues (bit d: depth d) within whose guarantee the placements count. Charges within it and
// nominations of other jobs fill it first. Placements in burst pools are within no guarantee but the root's (bit 0).
std::uint64_t within_of(const State& state, const JobState& job, const std::vector<TaskPlacement>& placements) {
  if (state.burst_amounts_of(job.spec, placements)) return 1;
  const state::Nomination* own = job.nomination ? &*job.nomination : nullptr;
  return state.within_when_started(job, state.amounts_of(job.spec, placements), own);
}

void on(Batch& batch, const StartDecision& start) {
  const JobState& job = *batch.state().job(start.job);
  const std::vector<JobId> victims = job.nomination ? job.nomination->victims : std::vector<JobId>();
  AttemptStarted event;
  event.job = start.job;
  event.attempt = job.attempts + 1;
  event.placements = start.placements;
  event.within = within_of(batch.state(), job, start.placements);
  event.guaranteed = state::is_within_all(batch.state(), job.queue, event.within);
  if (ranks_of(job.spec, start.placements) > 1 || job.is_elastic()) {
    event.master_port = free_master_port(batch.state().node(start.placements.front().node));
  }
  batch.emit(std::move(event));
  cancel_evictions_for(batch, start.job, victims);
}

void on(Batch& batch, const GrowDecision& grow) {
  const JobState& job = *batch.state().job(grow.job);
  AttemptGrown event;
  event.job = grow.job;
  event.attempt = job.attempt->number;
  event.placements = grow.placements;
  event.within = within_of(batch.state(), job, grow.placements);
  event.guaranteed = state::is_within_all(batch.state(), job.queue, event.within);
  batch.emit(std::move(event));
}

void stop(Batch& batch, JobId id, StopCause cause, JobId preemptor, std::uint32_t keep) {
  const JobState& job = *batch.state().job(id);
  const Timestamp deadline = batch.now() + state::grace_left_ms(batch.state(), job, batch.now());
  batch.emit(StopBegan{id, job.attempt->number, cause, preemptor, deadline, keep});
}

void on(Batch& batch, const EvictDecision& evict) {
  const bool partly = std::any_of(evict.keeps.begin(), evict.keeps.end(), [](std::uint32_t keep) { return keep > 0; });
  batch.emit(Nominated{evict.preemptor, evict.placements, evict.victims, evict.cause,
                       partly ? evict.keeps : std::vector<std::uint32_t>(), evict.within});
  for (std::size_t i = 0; i < evict.victims.size(); ++i) {
    stop(batch, evict.victims[i], evict.causes[i], evict.preemptor, evict.keeps[i]);
  }
}

void on(Batch& batch, const MoveDecision& decision) {
  std::vector<JobId> leaving;
  for (const Move& move : decision.moves) leaving.push_back(move.job);
  batch.emit(Nominated{decision.preemptor, decision.placements, leaving, StopCause::kConsolidate, {}, decision.within});
  for (const Move& move : decision.moves) {
    stop(batch, move.job, StopCause::kConsolidate, decision.preemptor, 0);
    batch.emit(MoveNominated{move.job, batch.state().job(move.job)->attempt->number, move.to});
  }
}

void on(Batch& batch, const StopDecision& decision) { stop(batch, decision.job, decision.cause, JobId::none(), 0); }

void on(Batch& batch, const DropNominationDecision& drop) {
  const std::vector<JobId> victims = batch.state().job(drop.job)->nomination->victims;
  batch.emit(NominationDropped{drop.job, drop.why});
  cancel_evictions_for(batch, drop.job, victims);
}

void on(Batch&, const SpawnDecision&) {}

void on(Batch& batch, const ReserveDecision& hold) {
  batch.emit(ReservationMade{hold.job, hold.placements, hold.start});
}

void on(Batch& batch, const DropReservationDecision& drop) { batch.emit(ReservationDropped{drop.job, drop.why}); }

void on(Batch& batch, const SeekDecision& seek) { batch.emit(StartsSought{seek.held}); }

Hasher& add(Hasher& hash, const std::vector<TaskPlacement>& placements) { return hash.add(encode(placements)); }

}  // namespace

std::uint64_t plan_hash(const Plan& plan) {
  Hasher hash;
  for (const Decision& decision : plan.decisions) {
    hash.add(decision.index());
    if (const auto* start = std::get_if<StartDecision>(&decision)) add(hash.add(start->job.value()), start->placements);
    if (const auto* grow = std::get_if<GrowDecision>(&decision)) add(hash.add(grow->job.value()), grow->placements);
    if (const auto* evict = std::get_if<EvictDecision>(&decision)) {
      add(hash.add(evict->preemptor.value()), evict->placements);
      for (const JobId victim : evict->victims) hash.add(victim.value());
      for (const std::uint32_t keep : evict->keeps) hash.add(std::uint64_t{keep});
      hash.add(evict->within);
    }
    if (const auto* moves = std::get_if<MoveDecision>(&decision)) {
      add(hash.add(moves->preemptor.value()), moves->placements);
      for (const Move& move : moves->moves) add(hash.add(move.job.value()), move.to);
      hash.add(moves->within);
    }
    if (const auto* one = std::get_if<StopDecision>(&decision)) hash.add(one->job.value());
    if (const auto* drop = std::get_if<DropNominationDecision>(&decision)) hash.add(drop->job.value());
    if (const auto* hold = std::get_if<ReserveDecision>(&decision)) {
      add(hash.add(hold->job.value()).add(encode(hold->start)), hold->placements);
    }
    if (const auto* gone = std::get_if<DropReservationDecision>(&decision)) hash.add(gone->job.value());
    if (const auto* seek = std::get_if<SeekDecision>(&decision)) hash.add(static_cast<std::uint64_t>(seek->held));
  }
  return hash.digest();
}

void commit(Batch& batch, const Plan& plan) {
  if (plan.decisions.empty()) return;
  batch.emit(CycleRan{plan_hash(plan), static_cast<std::uint32_t>(plan.decisions.size())});
  for (const Decision& decision : plan.decisions) {
    std::visit([&](const auto& one) { on(batch, one); }, decision);
  }
}

}  // namespace berth::control
