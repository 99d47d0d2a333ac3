#include "control/commit.h"

#include <algorithm>
#include <concepts>

#include "base/check.h"
#include "base/checked.h"
#include "base/codec.h"
#include "base/fields.h"
#include "base/hash.h"
#include "base/member_count.h"
#include "base/planted.h"
#include "control/reconcile.h"
#include "control/share_guard.h"
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

// A start that shares a GPU against the rules is a bug, and is stopped here. The planted ones are for the simulation,
// which has a check of its own.
void check_shares(const State& state, const JobState& job, const std::vector<TaskPlacement>& placements) {
  if (planted(Bug::kForbiddenShare) || planted(Bug::kShareAcrossDomains)) return;
  const std::string forbidden = find_forbidden_share(state, job, placements);
  if (!forbidden.empty()) check_failed(("forbidden share: " + forbidden).c_str(), __FILE__, __LINE__);
}

void on(Batch& batch, const StartDecision& start) {
  const JobState& job = *batch.state().job(start.job);
  check_shares(batch.state(), job, start.placements);
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
  check_shares(batch.state(), job, grow.placements);
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

void on(Batch& batch, const ReserveDecision& hold) {
  batch.emit(ReservationMade{hold.job, hold.placements, hold.start});
}

void on(Batch& batch, const DropReservationDecision& drop) { batch.emit(ReservationDropped{drop.job, drop.why}); }

void on(Batch& batch, const SeekDecision& seek) { batch.emit(StartsSought{seek.held}); }

// Adds what a decision consists of: ids and numbers as they are, places and times as they are encoded, lists without
// their length.
class DecisionHasher {
 public:
  void add(const Decision& decision) {
    std::visit(
        [&](const auto& one) {
          hash_.add(one.kNumber);
          put(one);
        },
        decision);
  }
  std::uint64_t digest() const { return hash_.digest(); }

 private:
  template <HasFields T>
  void put(const T& object) {
    static_assert(member_count<T>() == field_count<T>(), "fields() of a decision has to list every member");
    T::fields()([&](const auto&... one) { (put_field(object, one), ...); });
  }
  template <class Struct, class Member, bool kIfSet>
  void put_field(const Struct& object, const Field<Struct, Member, kIfSet>& one) {
    put(object.*(one.member));
  }
  template <class Struct, class Member>
  void put_field(const Struct&, const UnhashedField<Struct, Member>&) {}

  void put(JobId id) { hash_.add(id.value()); }
  void put(Timestamp time) { hash_.add(encode(time)); }
  void put(const std::vector<TaskPlacement>& placements) { hash_.add(encode(placements)); }
  template <std::integral T>
  void put(T number) {
    hash_.add(static_cast<std::uint64_t>(number));
  }
  template <class T>
  void put(const std::vector<T>& items) {
    for (const T& item : items) put(item);
  }

  Hasher hash_;
};

}  // namespace

std::uint64_t plan_hash(const Plan& plan) {
  DecisionHasher hash;
  for (const Decision& decision : plan.decisions) hash.add(decision);
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
