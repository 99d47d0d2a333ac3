#include "sched/candidates.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/planted.h"
#include "sched/neighbours.h"
#include "sched/preempt.h"
#include "sched/quota.h"
#include "sched/share.h"
#include "state/attained_service.h"
#include "state/replicas.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::State;

// What of a job may be taken: all of it, or all but the first `keep` tasks, when that is less than it has.
struct Claim {
  StopCause cause = StopCause::kReclaim;
  bool whole = false;
  std::uint32_t keep = 0;
  Fraction side_share{0, 1};  // of growth that gives way to whoever has less
};
std::int64_t task_gpu_milli(const JobState& job, std::uint32_t first, std::uint32_t end) {
  std::int64_t milli = 0;
  for (std::uint32_t t = first; t < end; ++t) {
    const TaskPlacement& task = job.attempt->tasks[t].placement;
    milli += static_cast<std::int64_t>(task.gpus.size()) * task.gpu_milli;
  }
  return milli;
}

// All that runs below the queue, whether within its guarantee or not: what the planted bug takes for borrowed.
void add_running_below(const State& state, QueueId queue, std::map<JobId, Claim>& claims) {
  for (const QueueId child : state.queue(queue).children) add_running_below(state, child, claims);
  for (const auto& [priority, jobs] : state.queue(queue).running) {
    for (const JobId id : jobs) {
      claims.emplace(id, Claim{StopCause::kReclaim, true, state.job(id)->attempt->base_tasks()});
    }
  }
}

// The growth of a gang that lies outside the guarantee at that depth, as far as nothing within stands behind it.
std::uint32_t borrowed_from(const JobState& job, std::uint32_t depth) {
  const auto& charges = job.attempt->charges;
  std::uint32_t keep = tasks_of(job);
  for (std::size_t c = charges.size(); c-- > 1 && (charges[c].within >> depth & 1U) == 0;) keep = charges[c].first_task;
  return keep;
}

// A gang goes only if its least part is borrowed; of what it has grown by, what is borrowed.
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

// What is bound and promised below the queue, and that much more, of the fleet, over the weight. What was used before
// does not count here: a claim must not come to hold by time alone.
Fraction share_with(const State& state, QueueId queue, const Amounts& more) {
  const state::QueueState& q = state.queue(queue);
  return dominant_share(state, state::shared_part(q.usage + q.nominated + more), q.weight);
}

// The largest share that the least part of the claimant could make its side have, on whatever model it starts.
Fraction share_at_most(const State& state, const JobState& claimant, QueueId side, const Amounts& asked) {
  Fraction most = share_with(state, side, asked);
  for (std::size_t m = 0; m < state.gpu_models().size() && asked[kDimGpu] > 0; ++m) {
    const GpuModelId model(static_cast<std::uint16_t>(m));
    const Fraction share = share_with(state, side, amounts_on(state, claimant.spec, model));
    if (most < share) most = share;
  }
  return most;
}

// Borrowed growth of other queues gives way where the claimant's side, with its least part, would have no more of the
// fleet than the growing side has. Says whether some was spared.
bool add_growth_of_richer(const State& state, const JobState& claimant, const Amounts& asked,
                          std::map<JobId, Claim>& claims) {
  bool spared = false;
  for (const JobId id : state.elastic()) {
    const JobState& job = *state.job(id);
    if (job.queue == claimant.queue || !has_growth(job) || claims.contains(id)) continue;
    const Siblings sides = below_common_ancestor(state, claimant.queue, job.queue);
    const std::uint32_t keep = borrowed_from(job, state.queue(sides.victim).depth);
    if (keep == tasks_of(job)) continue;
    const Fraction ours = share_at_most(state, claimant, sides.claimant, asked);
    const Fraction theirs = share_with(state, sides.victim, {});
    // What an exclusive job will count is not known before it has its nodes.
    if (claimant.spec.exclusive || ours.infinite() || theirs < ours) {
      spared = true;
      continue;
    }
    claims.emplace(id, Claim{StopCause::kReclaim, false, keep, theirs});
  }
  return spared;
}

// Whether the running job of the claimant's queue and priority may be stopped for it, now or when it has had more
// service. What it has done must not be lost, and a replica of a service is there to stay.
bool may_fall_behind(const State& state, const JobState& job, const JobState& claimant) {
  const JobState* parent = state.job(job.parent);
  const bool replica = parent != nullptr && parent->spec.kind == JobKind::kService;
  return job.spec.checkpoint.on_signal && !replica &&
         !state::behind_level_from(state.queue(claimant.queue), job, claimant.level).is_never();
}

// Everybody of its own queue who may be stopped for the claimant.
std::map<JobId, Claim> preempted(const State& state, const JobState& claimant) {
  const SchedulingConfig& rules = state.config().scheduling;
  std::map<JobId, Claim> claims;
  if (rules.preempt) {
    for (const auto& [priority, jobs] : state.queue(claimant.queue).running) {
      if (priority > claimant.priority) break;
      for (const JobId id : jobs) {
        const JobState& job = *state.job(id);
        const bool whole = priority < claimant.priority || may_fall_behind(state, job, claimant);
        claims.emplace(id, Claim{StopCause::kPreempt, whole, job.attempt->base_tasks()});
      }
    }
  }
  return claims;
}

// Of a job of another branch that is found to have borrowed at the depth.
std::optional<Claim> reclaimed(const JobState& job, std::uint32_t depth) {
  const auto& charges = job.attempt->charges;
  const auto borrowed = [&](const state::Charge& charge) { return (charge.within >> depth & 1U) == 0; };
  if (std::none_of(charges.begin(), charges.end(), borrowed)) return std::nullopt;
  return Claim{StopCause::kReclaim, borrowed(charges.front()), borrowed_from(job, depth)};
}

// The branches beside the claimant's way to the root from which it may reclaim.
std::vector<QueueId> debtors(const State& state, const JobState& claimant, const Amounts& asked) {
  std::vector<QueueId> branches;
  if (!state.config().scheduling.reclaim) return branches;
  for (const QueueId q : claims_within(state, claimant.queue, asked)) {
    for (const QueueId sibling : state.queue(state.queue(q).parent).children) {
      if (sibling != q) branches.push_back(sibling);
    }
  }
  return branches;
}

// What the search for victims asks of the queue of a running job.
struct OfQueue {
  std::uint32_t branch_depth = 0;  // of the branch that it lies below; 0: nothing is reclaimed there
  bool limited = false;            // how many may be stopped there is
  std::int64_t min_runtime_ms = 0;
};

// Of all queues below the branch.
void mark_branch(const State& state, QueueId id, std::uint32_t depth, std::vector<OfQueue>& queues) {
  const state::QueueState& queue = state.queue(id);
  queues[id.index()] = {depth, queue.eviction.limited_by.valid(), checked_multiply(queue.eviction.min_runtime_s, 1000)};
  for (const QueueId child : queue.children) mark_branch(state, child, depth, queues);
}

// When it has run its minimum and, if that is why it may be stopped, stands behind the claimant.
Timestamp ripe_at(const State& state, const JobState& victim, const JobState& claimant, StopCause cause) {
  const Timestamp old_enough = may_be_stopped_from(state, victim);
  if (cause != StopCause::kPreempt || victim.priority < claimant.priority) return old_enough;
  return std::max(old_enough, state::behind_level_from(state.queue(claimant.queue), victim, claimant.level));
}

bool goes_first(const Victim& a, const Victim& b) {
  if (a.whole() != b.whole()) return b.whole();
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.needed != b.needed) return b.needed;
  if (a.level != b.level) return a.level > b.level;
  if (const int by_loss = compare(a.loss_per_gpu, b.loss_per_gpu); by_loss != 0) return by_loss < 0;
  return a.order > b.order;
}

// Who gives back goes before all the same.
bool holds_more(const Victim& a, const Victim& b) {
  if (a.whole() == b.whole() && a.gpu_milli != b.gpu_milli) return a.gpu_milli > b.gpu_milli;
  return goes_first(a, b);
}

// How far within `asked` would be if it were alone.
std::uint64_t most_within(const State& state, QueueId queue, const Amounts& asked) {
  std::uint64_t within = 0;
  for (QueueId q = queue; q != state.root(); q = state.queue(q).parent) {
    if (inside_guarantee({}, asked, state.queue(q).guaranteed)) within |= std::uint64_t{1} << state.queue(q).depth;
  }
  return within;
}

// A guarantee is worth more than a service's limit, but who can be spared goes first.
bool leaves_too_few(const State& state, const JobState& job, std::map<JobId, std::int32_t>& leaving) {
  const JobState* service = state::service_of(state, job);
  if (service == nullptr || service->spec.max_unavailable == 0) return false;
  const auto away = leaving.try_emplace(service->id, state::unavailable_replicas(state, *service)).first;
  return away->second++ >= service->spec.max_unavailable;
}

class Gathering {
 public:
  Gathering(const VictimSearch& search, const JobState& claimant, bool reclaims, PlaceWork& work)
      : search_(search),
        state_(search.state),
        claimant_(claimant),
        reclaims_(reclaims),
        asked_(least_amounts(search.state, claimant.spec)),
        frees_places_(search.without_gpus || Neighbours(search.state, claimant).matter()),
        careful_(claimant.has_given_way()),
        own_only_(over_user_limit(search.state, claimant, asked_).has_value()),
        most_(most_within(search.state, claimant.queue, asked_)),
        work_(work) {}

  // Nothing where something of the claimant's own queue, of its own user or of elastic gangs might be taken.
  std::optional<SharedCandidates::Key> key() const {
    const state::QueueState& leaf = state_.queue(claimant_.queue);
    const bool preempts = state_.config().scheduling.preempt && !leaf.running.empty() &&
                          (leaf.running.begin()->first < claimant_.priority || !leaf.service_thresholds.empty());
    if (preempts || own_only_ || !reclaims_ || !state_.elastic().empty()) return std::nullopt;
    return SharedCandidates::Key{debtors(state_, claimant_, asked_), asked_[kDimGpu] > 0, frees_places_,
                                 careful_ ? std::optional(most_) : std::nullopt};
  }

  Candidates run() && {
    std::map<JobId, Claim> claims = preempted(state_, claimant_);
    if (reclaims_) reclaim(claims);
    if (reclaims_ && state_.config().scheduling.reclaim)
      found_.spares_growth = add_growth_of_richer(state_, claimant_, asked_, claims);
    for (const auto& [id, claim] : claims) consider(*state_.job(id), claim);
    const auto goes_anyway = [&](const Victim& one) { return one.job == search_.first && one.whole(); };
    auto& ripe = found_.ripe;
    auto others = search_.first.valid() ? std::partition(ripe.begin(), ripe.end(), goes_anyway) : ripe.begin();
    if (limited_ && search_.queue_limits == QueueLimits::kChoose) {
      std::sort(others, ripe.end(), search_.largest ? holds_more : goes_first);
      const bool any_first = others != ripe.begin();
      keep_to_queue_limits();
      others = ripe.begin() + (any_first && !ripe.empty() && goes_anyway(ripe.front()) ? 1 : 0);
    }
    if (whole_ > search_.budget) {  // who gives back goes first, and is not counted
      found_.left_out = true;
      found_.more_from = std::min(found_.more_from, state_.evictions().next(search_.now));
      const std::size_t most = ripe.size() - whole_ + search_.budget;
      const auto last = ripe.begin() + static_cast<std::ptrdiff_t>(most);
      if (others < last) std::nth_element(others, last, ripe.end(), search_.largest ? holds_more : goes_first);
      ripe.resize(most);
    }
    if (others < ripe.end()) std::sort(others, ripe.end(), goes_first);
    return std::move(found_);
  }

 private:
  // Of those who would lose all they have.
  void keep_to_queue_limits() {
    EvictionLimits limits(state_, search_.now, search_.stopped);
    std::vector<Victim> kept;
    for (const Victim& one : found_.ripe) {
      if (!one.whole() || limits.take(state_.job(one.job)->queue)) kept.push_back(one);
    }
    const std::size_t refused = found_.ripe.size() - kept.size();
    if (refused == 0) return;
    whole_ -= refused;
    found_.ripe = std::move(kept);
    found_.left_out = found_.over_queue_limits = true;
    found_.more_from = limits.next();
  }

  // What the branches list as borrowed or, where that is much of what runs, the table of all.
  void reclaim(std::map<JobId, Claim>& claims) {
    const std::vector<QueueId> branches = debtors(state_, claimant_, asked_);
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

  // A job of another branch that has not grown and is of no service.
  void consider(const state::RunningRow& row, const OfQueue& queue) {
    if (own_only_ || row.stopping || is_spoken_for(row.job)) return;
    if (is_passed_over(row.gpu_milli)) return;
    if (careful_ && state::is_higher(row.within, most_)) return;
    const Fraction loss{loss_of_stopping(row, search_.now), std::max<std::int64_t>(1, row.gpu_milli)};
    add({row.job, StopCause::kReclaim, 0, row.tasks, row.priority, false, loss, row.order, row.gpu_milli,
         kBehindAllLevels, row.within},
        row.started + queue.min_runtime_ms, queue.limited);
  }

  void consider(const JobState& job, const Claim& claim) {
    ++work_.victims_looked_up;
    if (job.phase != JobPhase::kRunning || is_spoken_for(job.id)) return;
    if (own_only_ && job.spec.user != claimant_.spec.user) return;
    const state::QueueState& leaf = state_.queue(claimant_.queue);
    const Seq order = job.attempt->charges.front().order;
    const std::int64_t growth = task_gpu_milli(job, claim.keep, tasks_of(job));
    const bool shrinks = claim.keep < tasks_of(job) && !is_passed_over(growth);
    if (shrinks) {
      found_.ripe.push_back({job.id, claim.cause, claim.keep, tasks_of(job), job.priority, false, {}, order, growth});
      found_.ripe.back().side_share = claim.side_share;
    }
    const std::int64_t milli = task_gpu_milli(job, 0, claim.keep);
    if (own_only_ || !claim.whole) return;
    if (is_passed_over(milli)) return;
    const std::uint64_t within = job.attempt->charges.front().within;
    if (careful_ && state::is_higher(within, most_)) return;
    const state::RunningRow& row = state_.running_table().rows()[job.running_row];
    const Fraction loss{loss_of_stopping(row, search_.now), std::max<std::int64_t>(1, row.gpu_milli)};
    const bool needed = leaves_too_few(state_, job, leaving_);
    const bool by_level = job.queue == claimant_.queue && !leaf.service_thresholds.empty();
    const std::int32_t level = by_level ? state::level_of(leaf, job, search_.now) : kBehindAllLevels;
    const std::uint32_t end = shrinks ? claim.keep : tasks_of(job);
    add({job.id, claim.cause, 0, end, job.priority, needed, loss, order, milli, level, within},
        ripe_at(state_, job, claimant_, claim.cause), state_.limits_evictions(job.queue).valid());
  }

  bool is_passed_over(std::int64_t gpu_milli) {
    const bool passed_over = asked_[kDimGpu] > 0 && gpu_milli == 0 && !frees_places_;
    found_.passed_over = found_.passed_over || passed_over;
    return passed_over;
  }

  bool is_spoken_for(JobId id) const { return !search_.spoken_for.empty() && search_.spoken_for.contains(id); }

  void add(const Victim& victim, Timestamp ripe, bool limited) {
    if (ripe <= search_.now) {
      limited_ = limited_ || limited;
      found_.ripe.push_back(victim);
      ++whole_;
    } else {
      found_.young.push_back(victim);
      found_.next_ripe = std::min(found_.next_ripe, ripe);
    }
  }

  static constexpr std::size_t kRowsPerLookup = 8;  // that are read in the time of one look-up in the lists

  const VictimSearch& search_;
  const State& state_;
  const JobState& claimant_;
  bool reclaims_;
  Amounts asked_;
  bool frees_places_;  // who leaves may do so, whatever he holds
  bool careful_;
  bool own_only_;  // its user's limit holds it back: only what the user's own gangs have grown by helps
  std::uint64_t most_;
  PlaceWork& work_;
  Candidates found_;
  std::size_t whole_ = 0;                  // of the ripe ones, those that lose all they have
  bool limited_ = false;                   // some of them are of queues that limit how many are stopped
  std::map<JobId, std::int32_t> leaving_;  // of each service: those that are away, and those that could leave
};

}  // namespace

std::uint32_t tasks_of(const JobState& job) { return static_cast<std::uint32_t>(job.attempt->tasks.size()); }

bool has_growth(const JobState& job) { return job.attempt && job.attempt->base_tasks() < tasks_of(job); }

const Candidates& gather_candidates(const VictimSearch& search, const JobState& claimant, bool reclaims,
                                    std::optional<Candidates>& own, PlaceWork& work) {
  Gathering gathering(search, claimant, reclaims, work);
  const auto key = search.only_whether != nullptr ? gathering.key() : std::nullopt;
  if (!key) return own.emplace(std::move(gathering).run());
  const auto [known, fresh] = search.only_whether->by_claimant.try_emplace(*key);
  if (fresh) known->second = std::move(gathering).run();
  return known->second;
}

}  // namespace berth::sched
