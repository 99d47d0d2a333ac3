#include "sched/preempt/victim_candidates.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/planted.h"
#include "sched/place/affinity.h"
#include "sched/preempt/preempt.h"
#include "sched/queue/quota.h"
#include "sched/queue/share.h"
#include "state/attained_service.h"
#include "state/replicas.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::State;

// What may be taken of a running job: all of it if `whole`, and its tasks from number `keep` on.
struct Claim {
  StopCause cause = StopCause::kReclaim;
  bool whole = false;
  std::uint32_t keep = 0;
  Fraction side_share{0, 1};  // of scaled-up tasks that are reclaimed by a side with a smaller share
};
std::int64_t task_gpu_milli(const JobState& job, std::uint32_t first, std::uint32_t end) {
  std::int64_t milli = 0;
  for (std::uint32_t t = first; t < end; ++t) {
    const TaskPlacement& task = job.attempt->tasks[t].placement;
    milli += static_cast<std::int64_t>(task.gpus.size()) * task.gpu_milli;
  }
  return milli;
}

// Adds all that runs below the queue, within its guarantee or not. Only the planted bug kReclaimWithin uses it: it
// takes all of that for borrowed.
void add_running_below(const State& state, QueueId queue, std::map<JobId, Claim>& claims) {
  for (const QueueId child : state.queue(queue).children) add_running_below(state, child, claims);
  for (const auto& [priority, jobs] : state.queue(queue).running) {
    for (const JobId id : jobs) {
      claims.emplace(id, Claim{StopCause::kReclaim, true, state.job(id)->attempt->base_tasks()});
    }
  }
}

// Returns the number of tasks that the gang keeps if it loses its last charges, as long as these borrow at that depth.
// A charge that is within there stops the count.
std::uint32_t borrowed_from(const JobState& job, std::uint32_t depth) {
  const auto& charges = job.attempt->charges;
  std::uint32_t keep = tasks_of(job);
  for (std::size_t c = charges.size(); c-- > 1 && (charges[c].within >> depth & 1U) == 0;) keep = charges[c].first_task;
  return keep;
}

// Adds the jobs that borrow at `sibling`. A gang is taken as a whole only if its first charge (its min_count) borrows;
// of its scaled-up tasks those are taken that borrow.
void add_borrowed(const State& state, QueueId sibling, std::map<JobId, Claim>& claims) {
  const state::QueueState& queue = state.queue(sibling);
  for (const state::BorrowedKey& key : queue.borrowed) {
    const JobState& job = *state.job(key.job);
    if (!job.attempt) continue;  // started by this cycle
    const std::uint32_t keep = borrowed_from(job, queue.depth);
    const auto [claim, fresh] = claims.try_emplace(key.job, Claim{StopCause::kReclaim, false, keep});
    claim->second.whole = claim->second.whole || key.charge == 0;
  }
}

// Returns the share of the fleet over weight of what is bound and nominated below the queue, plus `more`. Past usage
// does not count: a right to reclaim must not arise by time alone.
Fraction share_with(const State& state, QueueId queue, const Amounts& more) {
  const state::QueueState& q = state.queue(queue);
  return dominant_share(state, state::shared_part(q.usage + q.nominated + more), q.weight);
}

// Returns the largest share that the preemptor's side could have after the preemptor started at its least size, over
// all GPU models that it might get.
Fraction share_at_most(const State& state, const JobState& preemptor, QueueId side, const Amounts& asked) {
  Fraction most = share_with(state, side, asked);
  for (std::size_t m = 0; m < state.gpu_models().size() && asked[kDimGpu] > 0; ++m) {
    const GpuModelId model(static_cast<std::uint16_t>(m));
    const Fraction share = share_with(state, side, amounts_on(state, preemptor.spec, model));
    if (most < share) most = share;
  }
  return most;
}

// Adds borrowed scaled-up tasks of other queues, where the preemptor's side would have no larger share of the fleet,
// with the preemptor at its least size, than their side has. Returns true if some such tasks were spared because their
// side has less.
bool add_growth_of_richer(const State& state, const JobState& preemptor, const Amounts& asked,
                          std::map<JobId, Claim>& claims) {
  bool spared = false;
  for (const JobId id : state.elastic()) {
    const JobState& job = *state.job(id);
    if (job.queue == preemptor.queue || !has_growth(job) || claims.contains(id)) continue;
    const Siblings sides = below_common_ancestor(state, preemptor.queue, job.queue);
    const std::uint32_t keep = borrowed_from(job, state.queue(sides.victim).depth);
    if (keep == tasks_of(job)) continue;
    const Fraction ours = share_at_most(state, preemptor, sides.preemptor, asked);
    const Fraction theirs = share_with(state, sides.victim, {});
    // What an exclusive job counts is known only when it has its nodes.
    if (preemptor.spec.exclusive || ours.infinite() || theirs < ours) {
      spared = true;
      continue;
    }
    claims.emplace(id, Claim{StopCause::kReclaim, false, keep, theirs});
  }
  return spared;
}

// Returns true if the running job, of the preemptor's queue and priority, may be preempted by attained service, now or
// after more service. It must save on signal, so no work is lost. Replicas of services are exempt: they are meant to
// stay.
bool may_fall_behind(const State& state, const JobState& job, const JobState& preemptor) {
  const JobState* parent = state.job(job.parent);
  const bool replica = parent != nullptr && parent->spec.kind == JobKind::kService;
  return job.spec.checkpoint.on_signal && !replica &&
         !state::behind_level_from(state.queue(preemptor.queue), job, preemptor.level).is_never();
}

// Returns what the preemptor may preempt in its own queue.
std::map<JobId, Claim> preempted(const State& state, const JobState& preemptor) {
  const SchedulingConfig& rules = state.config().scheduling;
  std::map<JobId, Claim> claims;
  if (rules.preempt) {
    for (const auto& [priority, jobs] : state.queue(preemptor.queue).running) {
      if (priority > preemptor.priority) break;
      for (const JobId id : jobs) {
        const JobState& job = *state.job(id);
        const bool whole = priority < preemptor.priority || may_fall_behind(state, job, preemptor);
        claims.emplace(id, Claim{StopCause::kPreempt, whole, job.attempt->base_tasks()});
      }
    }
  }
  return claims;
}

// Returns what may be reclaimed of a job of another branch, where `depth` is the depth of the branch; nothing if no
// charge of it borrows there.
std::optional<Claim> reclaimed(const JobState& job, std::uint32_t depth) {
  const auto& charges = job.attempt->charges;
  const auto borrowed = [&](const state::Charge& charge) { return (charge.within >> depth & 1U) == 0; };
  if (std::none_of(charges.begin(), charges.end(), borrowed)) return std::nullopt;
  return Claim{StopCause::kReclaim, borrowed(charges.front()), borrowed_from(job, depth)};
}

// Returns the branches beside the preemptor's quota path from which it may reclaim: the siblings of each queue where it
// would be within.
std::vector<QueueId> debtors(const State& state, const JobState& preemptor, const Amounts& asked) {
  std::vector<QueueId> branches;
  if (!state.config().scheduling.reclaim) return branches;
  for (const QueueId q : claims_within(state, preemptor.queue, asked)) {
    for (const QueueId sibling : state.queue(state.queue(q).parent).children) {
      if (sibling != q) branches.push_back(sibling);
    }
  }
  return branches;
}

// What the search needs to know of the queue of a running job.
struct OfQueue {
  std::uint32_t branch_depth = 0;  // depth of the branch that the queue is below; 0: nothing is reclaimed there
  bool limited = false;            // a limit on evictions holds for the queue
  std::int64_t min_runtime_ms = 0;
};

// Fills in all queues below the branch.
void mark_branch(const State& state, QueueId id, std::uint32_t depth, std::vector<OfQueue>& queues) {
  const state::QueueState& queue = state.queue(id);
  queues[id.index()] = {depth, queue.eviction.limited_by.valid(), checked_multiply(queue.eviction.min_runtime_s, 1000)};
  for (const QueueId child : queue.children) mark_branch(state, child, depth, queues);
}

// Returns when the victim has run its minimum and, if it is preempted by attained service, is also on a higher level
// than the preemptor.
Timestamp evictable_at(const State& state, const JobState& victim, const JobState& preemptor, StopCause cause) {
  const Timestamp old_enough = may_be_stopped_from(state, victim);
  if (cause != StopCause::kPreempt || victim.priority < preemptor.priority) return old_enough;
  return std::max(old_enough, state::behind_level_from(state.queue(preemptor.queue), victim, preemptor.level));
}

bool goes_first(const Victim& a, const Victim& b) {
  if (a.whole() != b.whole()) return b.whole();
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.needed != b.needed) return b.needed;
  if (a.level != b.level) return a.level > b.level;
  if (const int by_loss = compare(a.loss_per_gpu, b.loss_per_gpu); by_loss != 0) return by_loss < 0;
  return a.order > b.order;
}

// Larger jobs first. Scaled-up tasks go before whole jobs all the same.
bool holds_more(const Victim& a, const Victim& b) {
  if (a.whole() == b.whole() && a.gpu_milli != b.gpu_milli) return a.gpu_milli > b.gpu_milli;
  return goes_first(a, b);
}

// Returns the guarantees (bit = depth) that `asked` would fit into if they were empty.
std::uint64_t most_within(const State& state, QueueId queue, const Amounts& asked) {
  std::uint64_t within = 0;
  for (QueueId q = queue; q != state.root(); q = state.queue(q).parent) {
    if (inside_guarantee({}, asked, state.queue(q).guaranteed)) within |= std::uint64_t{1} << state.queue(q).depth;
  }
  return within;
}

// Returns true if one more eviction would make more replicas of the job's service unavailable than max_unavailable.
// Each call counts one replica. Such replicas are evicted last, but they are evicted: a guarantee outweighs a service's
// limit.
bool leaves_too_few(const State& state, const JobState& job, std::map<JobId, std::int32_t>& leaving) {
  const JobState* service = state::service_of(state, job);
  if (service == nullptr || service->spec.max_unavailable == 0) return false;
  const auto away = leaving.try_emplace(service->id, state::unavailable_replicas(state, *service)).first;
  return away->second++ >= service->spec.max_unavailable;
}

class Gathering {
 public:
  Gathering(const VictimSearch& search, const JobState& preemptor, bool reclaims, SearchStats& work)
      : search_(search),
        state_(search.state),
        preemptor_(preemptor),
        reclaims_(reclaims),
        asked_(least_amounts(search.state, preemptor.spec)),
        frees_places_(search.without_gpus || AffinityFilter(search.state, preemptor).matter()),
        careful_(preemptor.has_given_way()),
        own_only_(over_user_limit(search.state, preemptor, asked_).has_value()),
        most_(most_within(search.state, preemptor.queue, asked_)),
        work_(work) {}

  // Returns nothing if the candidates might include jobs of the preemptor's queue or user, or elastic gangs: they are
  // then not the same for other preemptors.
  std::optional<SharedVictimCandidates::Key> key() const {
    const state::QueueState& leaf = state_.queue(preemptor_.queue);
    const bool preempts = state_.config().scheduling.preempt && !leaf.running.empty() &&
                          (leaf.running.begin()->first < preemptor_.priority || !leaf.service_thresholds.empty());
    if (preempts || own_only_ || !reclaims_ || !state_.elastic().empty()) return std::nullopt;
    return SharedVictimCandidates::Key{debtors(state_, preemptor_, asked_), asked_[kDimGpu] > 0, frees_places_,
                                       careful_ ? std::optional(most_) : std::nullopt};
  }

  VictimCandidates run() && {
    std::map<JobId, Claim> claims = preempted(state_, preemptor_);
    if (reclaims_) reclaim(claims);
    if (reclaims_ && state_.config().scheduling.reclaim)
      found_.spares_growth = add_growth_of_richer(state_, preemptor_, asked_, claims);
    for (const auto& [id, claim] : claims) consider(*state_.job(id), claim);
    const auto goes_anyway = [&](const Victim& one) { return one.job == search_.first && one.whole(); };
    auto& evictable = found_.evictable;
    auto others =
        search_.first.valid() ? std::partition(evictable.begin(), evictable.end(), goes_anyway) : evictable.begin();
    if (limited_ && search_.queue_limits == QueueLimits::kChoose) {
      std::sort(others, evictable.end(), search_.largest ? holds_more : goes_first);
      const bool any_first = others != evictable.begin();
      keep_to_queue_limits();
      others = evictable.begin() + (any_first && !evictable.empty() && goes_anyway(evictable.front()) ? 1 : 0);
    }
    if (whole_ > search_.budget) {  // scaled-up tasks go first and are not counted
      found_.left_out = true;
      found_.more_from = std::min(found_.more_from, state_.evictions().next(search_.now));
      const std::size_t most = evictable.size() - whole_ + search_.budget;
      const auto last = evictable.begin() + static_cast<std::ptrdiff_t>(most);
      if (others < last) std::nth_element(others, last, evictable.end(), search_.largest ? holds_more : goes_first);
      evictable.resize(most);
    }
    if (others < evictable.end()) std::sort(others, evictable.end(), goes_first);
    return std::move(found_);
  }

 private:
  // Drops whole jobs that the queues' limits on evictions do not allow.
  void keep_to_queue_limits() {
    EvictionLimits limits(state_, search_.now, search_.stopped);
    std::vector<Victim> kept;
    for (const Victim& one : found_.evictable) {
      if (!one.whole() || limits.take(state_.job(one.job)->queue)) kept.push_back(one);
    }
    const std::size_t refused = found_.evictable.size() - kept.size();
    if (refused == 0) return;
    whole_ -= refused;
    found_.evictable = std::move(kept);
    found_.left_out = found_.over_queue_limits = true;
    found_.more_from = limits.next();
  }

  // Adds what is borrowed in the branches. It reads their lists of borrowed charges or, if these hold much of what
  // runs, the table of all running jobs.
  void reclaim(std::map<JobId, Claim>& claims) {
    const std::vector<QueueId> branches = debtors(state_, preemptor_, asked_);
    std::size_t borrowed = 0;
    for (const QueueId branch : branches) borrowed += state_.queue(branch).borrowed.size();
    const bool within = planted(Bug::kReclaimWithin);
    if (within || borrowed * kRowsPerLookup < state_.running_table().rows().size()) {
      for (const QueueId branch : branches) {
        if (within) add_running_below(state_, branch, claims);
        add_borrowed(state_, branch, claims);
      }
      return;
    }
    std::vector<OfQueue> queues(state_.queues().size());
    for (const QueueId branch : branches) mark_branch(state_, branch, state_.queue(branch).depth, queues);
    for (const state::RunningRow& row : state_.running_table().rows()) {
      const OfQueue& queue = queues[row.queue.index()];
      if (queue.branch_depth == 0) continue;
      if (!row.plain) {
        if (const auto claim = reclaimed(*state_.job(row.job), queue.branch_depth)) claims.try_emplace(row.job, *claim);
      } else if ((row.within >> queue.branch_depth & 1U) == 0) {
        consider(row, queue);
      }
    }
  }

  // Takes a plain row (state/running_table.h): a job of another branch without scaled-up tasks, of no service or array,
  // and not evicted the last time.
  void consider(const state::RunningRow& row, const OfQueue& queue) {
    if (own_only_ || row.stopping || is_already_victim(row.job)) return;
    if (is_passed_over(row.gpu_milli)) return;
    if (careful_ && state::is_higher(row.within, most_)) return;
    const Fraction loss{loss_of_stopping(row, search_.now), std::max<std::int64_t>(1, row.gpu_milli)};
    add({row.job, StopCause::kReclaim, 0, row.tasks, row.priority, false, loss, row.order, row.gpu_milli,
         kBehindAllLevels, row.within},
        row.started + queue.min_runtime_ms, queue.limited);
  }

  void consider(const JobState& job, const Claim& claim) {
    ++work_.victims_looked_up;
    if (job.phase != JobPhase::kRunning || is_already_victim(job.id)) return;
    if (own_only_ && job.spec.user != preemptor_.spec.user) return;
    const state::QueueState& leaf = state_.queue(preemptor_.queue);
    const Seq order = job.attempt->charges.front().order;
    const std::int64_t growth = task_gpu_milli(job, claim.keep, tasks_of(job));
    const bool shrinks = claim.keep < tasks_of(job) && !is_passed_over(growth);
    if (shrinks) {
      found_.evictable.push_back(
          {job.id, claim.cause, claim.keep, tasks_of(job), job.priority, false, {}, order, growth});
      found_.evictable.back().side_share = claim.side_share;
    }
    const std::int64_t milli = task_gpu_milli(job, 0, claim.keep);
    if (own_only_ || !claim.whole) return;
    if (is_passed_over(milli)) return;
    const std::uint64_t within = job.attempt->charges.front().within;
    if (careful_ && state::is_higher(within, most_)) return;
    const state::RunningRow& row = state_.running_table().rows()[job.running_row];
    const Fraction loss{loss_of_stopping(row, search_.now), std::max<std::int64_t>(1, row.gpu_milli)};
    const bool needed = leaves_too_few(state_, job, leaving_);
    const bool by_level = job.queue == preemptor_.queue && !leaf.service_thresholds.empty();
    const std::int32_t level = by_level ? state::level_of(leaf, job, search_.now) : kBehindAllLevels;
    const std::uint32_t end = shrinks ? claim.keep : tasks_of(job);
    add({job.id, claim.cause, 0, end, job.priority, needed, loss, order, milli, level, within},
        evictable_at(state_, job, preemptor_, claim.cause), state_.limits_evictions(job.queue).valid());
  }

  bool is_passed_over(std::int64_t gpu_milli) {
    const bool passed_over = asked_[kDimGpu] > 0 && gpu_milli == 0 && !frees_places_;
    found_.passed_over = found_.passed_over || passed_over;
    return passed_over;
  }

  bool is_already_victim(JobId id) const {
    return !search_.already_victims.empty() && search_.already_victims.contains(id);
  }

  void add(const Victim& victim, Timestamp evictable, bool limited) {
    if (evictable <= search_.now) {
      limited_ = limited_ || limited;
      found_.evictable.push_back(victim);
      ++whole_;
    } else {
      found_.not_yet_evictable.push_back(victim);
      found_.next_evictable = std::min(found_.next_evictable, evictable);
    }
  }

  static constexpr std::size_t kRowsPerLookup = 8;  // rows that are read in the time of one look-up in the lists

  const VictimSearch& search_;
  const State& state_;
  const JobState& preemptor_;
  bool reclaims_;
  Amounts asked_;
  bool frees_places_;  // candidates without GPUs count too
  bool careful_;
  bool own_only_;  // its user's limit blocks it: only scaled-up tasks of the same user help
  std::uint64_t most_;
  SearchStats& work_;
  VictimCandidates found_;
  std::size_t whole_ = 0;                  // number of evictable candidates that are whole jobs
  bool limited_ = false;                   // some of them are in queues that limit evictions
  std::map<JobId, std::int32_t> leaving_;  // by service: replicas that are unavailable or are candidates
};

}  // namespace

std::uint32_t tasks_of(const JobState& job) { return static_cast<std::uint32_t>(job.attempt->tasks.size()); }

bool has_growth(const JobState& job) { return job.attempt && job.attempt->base_tasks() < tasks_of(job); }

const VictimCandidates& gather_candidates(const VictimSearch& search, const JobState& preemptor, bool reclaims,
                                          std::optional<VictimCandidates>& own, SearchStats& work) {
  Gathering gathering(search, preemptor, reclaims, work);
  const auto key = search.only_whether != nullptr ? gathering.key() : std::nullopt;
  if (!key) return own.emplace(std::move(gathering).run());
  const auto [known, fresh] = search.only_whether->by_preemptor.try_emplace(*key);
  if (fresh) known->second = std::move(gathering).run();
  return known->second;
}

}  // namespace berth::sched
