#include "sched/backfill/backfill.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/checked.h"
#include "sched/queue/admit.h"
#include "sched/queue/order.h"
#include "sched/queue/quota.h"
#include "sched/resize/elastic.h"
#include "sched/start.h"
#include "state/estimate.h"

namespace berth::sched {

namespace {

using state::BackfillReservation;
using state::JobState;
using state::State;
using state::Transaction;

constexpr std::int64_t kLeastRenewalMs = 60'000;
constexpr std::int64_t kMostRenewalMs = 3'600'000;
constexpr std::size_t kMostFutile = 16;  // blocked jobs without a known start, in one search

// Returns what the owner would count there at min_count. Nothing if a part is in burst pools: then it borrows
// everywhere.
std::optional<Amounts> counts_of(const State& state, const JobState& owner) {
  const auto& held = owner.reservation->placements;
  const std::vector<TaskPlacement> least = owner.is_elastic() ? split_growth(owner.spec, held).start : held;
  if (state.burst_amounts_of(owner.spec, least)) return std::nullopt;
  return state.amounts_of(owner.spec, least);
}

// Returns true if the job could take the places back anyway: it is within its guarantees, or it could reclaim from the
// owner as soon as the owner has started. Not if all reserved places are in burst pools, which back no guarantee.
bool could_evict(const State& state, const JobState& job, const JobState& owner) {
  const auto backs_guarantees = [&](const TaskPlacement& place) {
    return !state.pools()[state.node(place.node).pool].burst;
  };
  const auto& held = owner.reservation->placements;
  if (std::none_of(held.begin(), held.end(), backs_guarantees)) return false;
  if (within_guarantee(state, job)) return true;
  if (!state.config().scheduling.reclaim || job.queue == owner.queue) return false;
  return could_reclaim(state, job.queue, least_amounts(state, job.spec), owner.queue, counts_of(state, owner));
}

bool gone_by(const State& state, const JobState& job, Timestamp start, Timestamp now) {
  return job.expected_s > 0 && now + length_ms(state, job) <= start;
}

// Maintenance moves all that runs in the places away before the reserved start, so a job that starts there does not
// delay the owner.
bool is_cleared(const State& state, const BackfillReservation& hold, Timestamp now) {
  return !state.maintenance().empty() &&
         std::all_of(hold.placements.begin(), hold.placements.end(), [&](const TaskPlacement& place) {
           const auto& windows = state.node(place.node).maintenance;
           return std::any_of(windows.begin(), windows.end(),
                              [&](const state::ClosedSpan& span) { return span.from > now && span.to <= hold.start; });
         });
}

// By priority; in the same queue also by level of attained service, or of an urgent job by its deadline. Not by age.
bool outranks(const JobState& job, const JobState& owner) {
  const state::PendingKey one = pending_key(job);
  const state::PendingKey other = pending_key(owner);
  if (job.queue != owner.queue) return one.negated_priority < other.negated_priority;
  return std::tie(one.negated_priority, one.level, one.due) < std::tie(other.negated_priority, other.level, other.due);
}

// Returns the nodes on which a job of the queue at these places would block the owner: their own nodes, and those
// around them if trust domains are kept apart.
std::set<NodeId> in_the_way(const State& state, QueueId queue, QueueId owner,
                            std::span<const TaskPlacement> placements) {
  std::set<NodeId> nodes;
  const bool others = state.queue(queue).trust_domain != state.queue(owner).trust_domain;
  for (const TaskPlacement& placement : placements) {
    nodes.insert(placement.node);
    if (!others || !state.pools()[state.node(placement.node).pool].trust_domain_isolation) continue;
    for (const NodeId node : state.kept_apart_with(placement.node)) nodes.insert(node);
  }
  return nodes;
}

class Renewal {
 public:
  Renewal(const ReservationRound& round, Plan& plan)
      : round_(round),
        plan_(plan),
        releases_(round.state, round.now, round.starting),
        per_pool_(static_cast<std::size_t>(round.state.config().scheduling.backfill_reservations)) {}

  void renew_due() {
    const std::set<JobId> owners = round_.state.reservations();
    for (const JobId id : owners) {
      if (round_.decided.contains(id)) continue;
      const BackfillReservation& hold = *round_.state.job(id)->reservation;
      if (!pools_are_free(hold.placements)) {
        drop(id, "its pool has fewer backfill reservations than before");
        continue;
      }
      const Timestamp due = due_again(hold);
      if (due > round_.now && still_there(id, hold) && !overtaken(hold)) {
        keep(id, hold.placements);
        wake_at(due);
      } else if (auto renewed = work_out(id); renewed && pools_are_free(renewed->placements)) {
        decide(std::move(*renewed));
      } else {
        drop(id, "its start time is no longer known");
      }
    }
  }

  // The first blocked jobs in order whose start is known get the free reservations, at most once a minute. If a cycle
  // runs within that minute, another follows when it is over.
  void fill_free() {
    const bool any_moves = round_.state.config().scheduling.consolidations_per_hour > 0;
    if ((per_pool_ == 0 && !any_moves) || !somebody_may_lack_places()) return;
    activate_long_waiting();
    if (const auto sought = round_.state.starts_sought(); sought && round_.now - *sought < kLeastRenewalMs) {
      return wake_at(*sought + kLeastRenewalMs);
    }
    most_ = per_pool_ * pools_with_nodes();
    certain_ends_ = anything_ends_for_certain();
    const bool lacking = kept_.size() < most_ && somebody_could_be_held() ? seek() : somebody_lacks_places();
    if (lacking) plan_.decisions.emplace_back(SeekDecision{static_cast<std::int32_t>(kept_.size())});
  }

  // When reservations are worked out or looked for again though nothing else happens.
  Timestamp reevaluate_at() const { return reevaluate_at_; }

 private:
  // A job may get a reservation by estimates then, even if nothing else happens.
  void activate_long_waiting() {
    const std::int64_t long_ms = checked_multiply(round_.state.config().scheduling.backfill_after_s, 1000);
    const Timestamp since = round_.state.next_waits_since(round_.now + -(long_ms + kLeastRenewalMs));
    if (long_ms > 0 && !since.is_never()) wake_at(since + long_ms + kLeastRenewalMs);
  }

  // Searches in order. Returns true if at least one job lacks places.
  bool seek() {
    Order order(round_.state, round_.now);
    bool lacking = false;
    for (std::size_t futile = 0; !lacking || (kept_.size() < most_ && futile < most_ + kMostFutile);) {
      const auto id = order.next();
      if (!id) break;
      ++plan_.classes_walked;
      if (round_.decided.contains(*id)) continue;
      const bool could = !kept_.contains(*id) && could_be_held(*id);
      if (!kept_.contains(*id)) order.refuse();
      if ((lacking && !could) || !lacks_places_only(*round_.state.job(*id))) continue;
      lacking = true;
      if (!could || kept_.size() >= most_) continue;
      auto hold = dropped_.contains(*id) ? std::nullopt : work_out(*id);
      if (hold && pools_are_free(hold->placements))
        decide(std::move(*hold));
      else
        ++futile;
    }
    return lacking;
  }

  // Counted from the nodes: which other pools the state remembers depends on its past.
  std::size_t pools_with_nodes() const {
    std::set<std::uint32_t> pools;
    for (const state::NodeState& node : round_.state.nodes()) pools.insert(node.pool);
    return pools.size();
  }

  bool anything_ends_for_certain() const {
    const State& state = round_.state;
    return !state.maintenance().empty() ||
           std::any_of(round_.starting.begin(), round_.starting.end(),
                       [](const ExpectedEnd& one) { return !one.certain.is_never(); }) ||
           (state.running_table().timed() > 0 &&
            std::any_of(state.running_table().rows().begin(), state.running_table().rows().end(),
                        [&](const state::RunningRow& row) {
                          return row.timed && state::ends_for_certain(state, *state.job(row.job));
                        }));
  }

  bool could_be_held(JobId id) const {
    return certain_ends_ || trusts_estimates(round_.state, *round_.state.job(id), round_.now);
  }

  // Otherwise a walk in order is not worth it: whether a job lacks places does not depend on the order.
  bool somebody_could_be_held() {
    const State& state = round_.state;
    if (certain_ends_) return true;
    if (!trusts_estimates(state, state.waits_since(), round_.now)) return false;
    return any_head([&](const JobState& job) {
      if (kept_.contains(job.id) || !trusts_estimates(state, job, round_.now)) return false;
      const Admission admission = admit(state, job);
      return admission.models != 0 || lacks_places(admission.reason.code);
    });
  }

  // Returns true if it would start if there were places for it.
  bool lacks_places_only(const JobState& job) const {
    const StartAnswer answer = find_places({round_.state, job, round_.now, round_.work});
    return !answer && lacks_places(answer.why.code);
  }

  // Classes that are parked for places are tried first: most of them still lack places.
  bool somebody_lacks_places() {
    const auto lacks = [&](const JobState& job) { return lacks_places_only(job); };
    for (const auto& [shape, waiting] : round_.state.waits().for_places()) {
      const state::QueueState& leaf =
          round_.state.queue(waiting.wait_groups.front()->parked_classes.front()->eq_class.queue);
      if (any_head_of(leaf, lacks, shape)) return true;
    }
    return any_head(lacks);
  }

  // Returns true if the test passes for one of the jobs that a walk in order would evaluate.
  template <class Test>
  bool any_head(const Test& test) {
    const std::vector<state::QueueState>& queues = round_.state.queues();
    return std::any_of(queues.begin(), queues.end(),
                       [&](const state::QueueState& leaf) { return any_head_of(leaf, test, std::nullopt); });
  }

  // The same for one class, or for all classes of the leaf. In a strict queue its first job stands for all.
  template <class Test>
  bool any_head_of(const state::QueueState& leaf, const Test& test, std::optional<std::uint64_t> shape) {
    const auto head_passes = [&](const std::set<state::PendingKey>& jobs) {
      ++plan_.classes_walked;
      for (const state::PendingKey& key : jobs) {
        const JobState& job = *round_.state.job(key.job);
        if (job.not_before > round_.now || job.nomination || round_.decided.contains(job.id)) continue;
        if (test(job)) return true;
        if (!kept_.contains(job.id)) break;  // jobs behind an owner are evaluated too
      }
      return false;
    };
    if (leaf.policy == QueuePolicy::kStrict) return head_passes(leaf.pending);
    if (shape) return head_passes(leaf.eq_classes.at(*shape));
    return std::any_of(leaf.eq_classes.begin(), leaf.eq_classes.end(),
                       [&](const auto& eq_class) { return head_passes(eq_class.second); });
  }

  // Returns false if the search would find no job: a job that lacks places is parked for that, or was refused for it in
  // this cycle. Which classes are parked decides nothing, because the search evaluates all of them again.
  bool somebody_may_lack_places() const {
    const state::WaitIndex& waits = round_.state.waits();
    if (!waits.for_places().empty() || !waits.for_any_release().empty() || !waits.for_any_change().empty()) return true;
    // A job that was refused for something else may have had places, and lost them to a job that started since.
    const bool any_started = !round_.decided.empty();
    return std::any_of(plan_.refused.begin(), plan_.refused.end(), [&](const auto& refused) {
      const auto& [id, why] = refused;
      return lacks_places(why.code) ||
             (any_started && !is_never(why.code) && admit(round_.state, *round_.state.job(id)).models != 0);
    });
  }

  std::optional<ReserveDecision> work_out(JobId id) {
    ++plan_.starts_worked_out;
    const Transaction::Mark mark = round_.transaction.mark();
    for (const auto& [owner, placements] : kept_) round_.transaction.set_aside(owner, placements);
    for (const JobId owner : round_.state.reservations()) {
      const bool other =
          owner != id && !kept_.contains(owner) && !dropped_.contains(owner) && !round_.decided.contains(owner);
      if (other) round_.transaction.set_aside(owner, round_.state.job(owner)->reservation->placements);
    }
    auto hold = earliest_start(round_.transaction, round_.state, id, round_.now, releases_, round_.work);
    round_.transaction.rollback_to(mark);
    return hold;
  }

  void drop(JobId id, const char* why) {
    dropped_.insert(id);
    plan_.decisions.emplace_back(DropReservationDecision{id, why});
  }

  void decide(ReserveDecision hold) {
    keep(hold.job, hold.placements);
    wake_at(due_again({hold.placements, hold.start, round_.now, hold.start}));
    plan_.decisions.emplace_back(std::move(hold));
  }

  void keep(JobId owner, const std::vector<TaskPlacement>& placements) {
    kept_.emplace(owner, placements);
    for (const std::uint32_t pool : pools_of(placements)) ++holds_in_[pool];
  }

  void wake_at(Timestamp when) { reevaluate_at_ = std::min(reevaluate_at_, when); }

  // Returns true if the nodes will take tasks at the reserved start, as far as that is known.
  bool still_there(JobId id, const BackfillReservation& hold) const {
    const Transaction::Mark mark = round_.transaction.mark();
    look_ahead(round_.transaction, hold.start, round_.now);
    const bool there =
        stays_open(id, hold) &&
        std::all_of(hold.placements.begin(), hold.placements.end(), [&](const TaskPlacement& placement) {
          const state::NodeState& node = round_.state.node(placement.node);
          const JobSpec& spec = round_.state.job(id)->spec;
          return node.takes_tasks() && std::all_of(placement.gpus.begin(), placement.gpus.end(), [&](std::uint8_t gpu) {
                   const state::GpuSlot& slot = node.gpus[gpu];
                   const auto& model = round_.state.gpu_models()[slot.model.index()];
                   return slot.usable() && (spec.exclusive || accepts(spec.groups[placement.group].request, model));
                 });
        });
    round_.transaction.rollback_to(mark);
    return there;
  }

  // Returns true if no maintenance has been planned meanwhile that the job would run into.
  bool stays_open(JobId id, const BackfillReservation& hold) const {
    const State& state = round_.state;
    return state.maintenance().empty() ||
           std::none_of(hold.placements.begin(), hold.placements.end(), [&](const TaskPlacement& placement) {
             return closing(task_requirements(state, *state.job(id), placement.group, kAllModels),
                            state.node(placement.node));
           });
  }

  // Returns true if a job that may pass starts in the reserved places and is not expected to be gone by then.
  bool overtaken(const BackfillReservation& hold) const {
    std::set<JobId> late;
    for (const ExpectedEnd& one : round_.starting) {
      if (one.expected > hold.start) late.insert(one.job);
    }
    return std::any_of(plan_.decisions.begin(), plan_.decisions.end(), [&](const Decision& decision) {
      const auto* start = std::get_if<StartDecision>(&decision);
      return start != nullptr && late.contains(start->job) &&
             (share_a_gpu(start->placements, hold.placements) || crowds_out(start->placements, hold));
    });
  }

  // Returns true if on a common node the reserved tasks lack CPU or memory beside these and the jobs that stay longer.
  bool crowds_out(const std::vector<TaskPlacement>& starting, const BackfillReservation& hold) const {
    return std::any_of(starting.begin(), starting.end(), [&](const TaskPlacement& one) {
      const state::NodeState& node = round_.state.node(one.node);
      std::int64_t cpu_milli = node.own_cpu_milli();
      std::int64_t memory_mib = node.own_memory_mib();
      const auto take = [&](const TaskPlacement& placement) {
        if (placement.node != one.node) return;
        cpu_milli -= placement.cpu_milli;
        memory_mib -= placement.memory_mib;
      };
      std::for_each(hold.placements.begin(), hold.placements.end(), take);
      if (cpu_milli == node.own_cpu_milli() && memory_mib == node.own_memory_mib()) return false;
      std::for_each(starting.begin(), starting.end(), take);
      for (const auto& [id, task] : node.tasks) {
        const JobState& other = *round_.state.job(id);
        if (state::expected_end(round_.state, other, round_.now) > hold.start)
          take(other.attempt->tasks[task].placement);
      }
      return cpu_milli < 0 || memory_mib < 0;
    });
  }

  static bool share_a_gpu(const std::vector<TaskPlacement>& some, const std::vector<TaskPlacement>& others) {
    std::set<std::pair<NodeId, std::uint8_t>> gpus;
    for (const TaskPlacement& placement : some) {
      for (const std::uint8_t gpu : placement.gpus) gpus.emplace(placement.node, gpu);
    }
    return std::any_of(others.begin(), others.end(), [&](const TaskPlacement& placement) {
      return std::any_of(placement.gpus.begin(), placement.gpus.end(), [&](std::uint8_t gpu) {
        return gpus.contains({placement.node, gpu});
      });
    });
  }

  std::set<std::uint32_t> pools_of(const std::vector<TaskPlacement>& placements) const {
    std::set<std::uint32_t> pools;
    for (const TaskPlacement& placement : placements) pools.insert(round_.state.node(placement.node).pool);
    return pools;
  }

  bool pools_are_free(const std::vector<TaskPlacement>& placements) const {
    const auto pools = pools_of(placements);
    return std::all_of(pools.begin(), pools.end(), [&](std::uint32_t pool) {
      const auto holds = holds_in_.find(pool);
      return (holds == holds_in_.end() ? 0 : holds->second) < per_pool_;
    });
  }

  const ReservationRound& round_;
  Plan& plan_;
  Releases releases_;
  std::size_t per_pool_;  // reservations of each pool
  Timestamp reevaluate_at_ = Timestamp::never();
  std::size_t most_ = 0;  // reservations of all pools
  bool certain_ends_ = false;
  std::set<JobId> dropped_;
  std::map<JobId, std::vector<TaskPlacement>> kept_;  // the reservations after this cycle
  std::map<std::uint32_t, std::size_t> holds_in_;     // by pool
};

}  // namespace

std::int64_t length_ms(const State& state, const JobState& job) {
  if (job.expected_s == 0) return kUnlimited;
  return checked_multiply(job.expected_s, 1000) + state::grace_after_limit_ms(state, job);
}

bool may_pass(const State& state, const JobState& job, const JobState& owner, Timestamp now) {
  return job.id == owner.id || outranks(job, owner) || gone_by(state, job, owner.reservation->start, now) ||
         could_evict(state, job, owner) || is_cleared(state, *owner.reservation, now);
}

std::vector<JobId> not_passed(const State& state, const JobState& job, Timestamp now) {
  std::vector<JobId> owners;
  for (const JobId id : state.reservations()) {
    if (!may_pass(state, job, *state.job(id), now)) owners.push_back(id);
  }
  return owners;
}

JobId first_delayed(const State& state, QueueId queue, const std::vector<JobId>& owners,
                    std::span<const TaskPlacement> placements) {
  const auto meets = [&](JobId owner) {
    const std::set<NodeId> nodes = in_the_way(state, queue, state.job(owner)->queue, placements);
    const auto& held = state.job(owner)->reservation->placements;
    return std::any_of(held.begin(), held.end(),
                       [&](const TaskPlacement& place) { return nodes.contains(place.node); });
  };
  const auto found = std::find_if(owners.begin(), owners.end(), meets);
  return found == owners.end() ? JobId::none() : *found;
}

Timestamp due_again(const BackfillReservation& hold) {
  const std::int64_t half_ms = (hold.start - hold.worked_out) / 2000 * 1000;
  const Timestamp soon = hold.worked_out + std::clamp(half_ms, kLeastRenewalMs, kMostRenewalMs);
  return hold.start > hold.worked_out ? std::min(hold.start, soon) : soon;
}

void set_reserved_aside(const State& state, Transaction& transaction, std::span<const JobId> owners) {
  for (const JobId owner : owners) transaction.set_aside(owner, state.job(owner)->reservation->placements);
}

void set_reserved_aside(const State& state, Transaction& transaction, const Plan& plan) {
  std::set<JobId> settled;
  for (const Decision& decision : plan.decisions) {
    if (const auto* hold = std::get_if<ReserveDecision>(&decision)) {
      transaction.set_aside(hold->job, hold->placements);
      settled.insert(hold->job);
    }
    if (const auto* start = std::get_if<StartDecision>(&decision)) settled.insert(start->job);
    if (const auto* evict = std::get_if<EvictDecision>(&decision)) settled.insert(evict->preemptor);
    if (const auto* moves = std::get_if<MoveDecision>(&decision)) settled.insert(moves->preemptor);
    if (const auto* drop = std::get_if<DropReservationDecision>(&decision)) settled.insert(drop->job);
  }
  for (const JobId owner : state.reservations()) {
    if (!settled.contains(owner)) transaction.set_aside(owner, state.job(owner)->reservation->placements);
  }
}

Timestamp renew_reservations(const ReservationRound& round, Plan& plan) {
  Renewal renewal(round, plan);
  renewal.renew_due();
  renewal.fill_free();
  return renewal.reevaluate_at();
}

}  // namespace berth::sched
