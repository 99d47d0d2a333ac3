#include "sched/preempt.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/planted.h"
#include "sched/admit.h"
#include "sched/backfill.h"
#include "sched/neighbours.h"
#include "sched/quota.h"
#include "sched/share.h"
#include "sched/vacated.h"
#include "state/attained_service.h"
#include "state/back_off.h"
#include "state/replicas.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::State;
using state::Trial;

constexpr std::int32_t kBehindAllLevels = 1'000;
constexpr std::int64_t kSavedByMs = 60'000;  // who is too dear to stop is looked at again after so long

// All of a job, or the last tasks of an elastic gang. One that could lose either stands in the lists twice: with what
// it can give back, and later with the rest.
struct Victim {
  JobId job;
  StopCause cause = StopCause::kReclaim;
  std::uint32_t keep = 0;  // so many tasks stay
  std::uint32_t end = 0;   // what counts here are the tasks from `keep` up to this one
  std::int32_t priority = 0;
  bool needed = false;  // its service would have more replicas away than it allows
  Fraction loss_per_gpu;
  Seq order = 0;
  std::int64_t gpu_milli = 0;
  // Of a job in the claimant's queue, if that orders by attained service; the others stand behind all.
  std::int32_t level = kBehindAllLevels;
  std::uint64_t within = 0;   // of its least part, by depth
  Fraction side_share{0, 1};  // of growth: what its side of the tree has of the fleet

  bool whole() const { return keep == 0; }
};

// What of a job may be taken: all of it, or all but the first `keep` tasks, when that is less than it has.
struct Claim {
  StopCause cause = StopCause::kReclaim;
  bool whole = false;
  std::uint32_t keep = 0;
  Fraction side_share{0, 1};  // of growth that gives way to whoever has less
};

// Of whom places are claimed, and where. Nobody is reclaimed for places in burst pools: what stands there is borrowed,
// whoever it is, so that the claimant would be no better than who leaves.
struct Reach {
  bool reclaim = true;
  Pools pools = Pools::kAny;
};

// Those who may be stopped for a claimant, the first to go first: now, and when they have run their minimum.
struct Candidates {
  bool spares_growth = false;  // of a side that has less than the claimant's would have; that changes by starts alone
  std::vector<Victim> ripe;
  std::vector<Victim> young;
  Timestamp next_ripe = Timestamp::never();
  bool left_out = false;  // there are more than the budget
};

std::int64_t gpu_milli_of(const JobState& job) {
  std::int64_t milli = 0;
  for (const state::Charge& charge : job.attempt->charges) milli += charge.amounts[kDimGpu];
  return milli;
}

std::int64_t gpu_milli_of(const JobState& job, std::uint32_t first, std::uint32_t end) {
  std::int64_t milli = 0;
  for (std::uint32_t t = first; t < end; ++t) {
    const TaskPlacement& task = job.attempt->tasks[t].placement;
    milli += static_cast<std::int64_t>(task.gpus.size()) * task.gpu_milli;
  }
  return milli;
}

std::uint32_t tasks_of(const JobState& job) { return static_cast<std::uint32_t>(job.attempt->tasks.size()); }

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

bool has_growth(const JobState& job) { return job.attempt && job.attempt->base_tasks() < tasks_of(job); }

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
  const bool allowed = state.config().scheduling.reclaim;
  for (QueueId q = claimant.queue; allowed && q != state.root(); q = state.queue(q).parent) {
    if (!would_be_within(state, q, asked)) continue;
    for (const QueueId sibling : state.queue(state.queue(q).parent).children) {
      if (sibling != q) branches.push_back(sibling);
    }
  }
  return branches;
}

// Writes the branch's depth to all queues below it.
void mark_branch(const State& state, QueueId id, std::uint32_t depth, std::vector<std::uint32_t>& depths) {
  depths[id.index()] = depth;
  for (const QueueId child : state.queue(id).children) mark_branch(state, child, depth, depths);
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

// By depth, the top of the tree first: within is more than borrowed.
bool at_least_as_within(std::uint64_t within, std::uint64_t other) {
  const std::uint64_t differing = (within ^ other) & ~std::uint64_t{1};  // the root has no guarantee to be outside of
  return differing == 0 || (within & differing & -differing) != 0;
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
        least_run_ms_(checked_multiply(state_.config().scheduling.min_runtime_s, 1000)),
        frees_places_(Neighbours(search.state, claimant).matter()),
        careful_(has_given_way(claimant)),
        own_only_(over_user_limit(search.state, claimant, asked_).has_value()),
        most_(most_within(search.state, claimant.queue, asked_)),
        work_(work) {}

  Candidates run() && {
    std::map<JobId, Claim> claims = preempted(state_, claimant_);
    if (reclaims_) reclaim(claims);
    if (reclaims_ && state_.config().scheduling.reclaim)
      found_.spares_growth = add_growth_of_richer(state_, claimant_, asked_, claims);
    for (const auto& [id, claim] : claims) consider(*state_.job(id), claim);
    const auto shrinking = static_cast<std::size_t>(
        std::count_if(found_.ripe.begin(), found_.ripe.end(), [](const Victim& one) { return !one.whole(); }));
    const std::size_t most = shrinking + search_.budget;  // who gives back goes first, and is not counted
    found_.left_out = found_.ripe.size() > most;
    if (found_.left_out) {
      const auto last = found_.ripe.begin() + static_cast<std::ptrdiff_t>(most);
      std::nth_element(found_.ripe.begin(), last, found_.ripe.end(), goes_first);
      found_.ripe.resize(most);
    }
    std::sort(found_.ripe.begin(), found_.ripe.end(), goes_first);
    return std::move(found_);
  }

 private:
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
    std::vector<std::uint32_t> depths(state_.queues().size(), 0);
    for (const QueueId branch : branches) mark_branch(state_, branch, state_.queue(branch).depth, depths);
    for (const state::RunningRow& row : state_.running_table().rows()) {
      const std::uint32_t depth = depths[row.queue.index()];
      if (depth == 0) continue;
      if (!row.plain) {
        if (const auto claim = reclaimed(*state_.job(row.job), depth)) claims.try_emplace(row.job, *claim);
      } else if ((row.within >> depth & 1U) == 0) {
        consider(row);
      }
    }
  }

  // A job of another branch that has not grown and is of no service.
  void consider(const state::RunningRow& row) {
    if (own_only_ || row.stopping || is_spoken_for(row.job)) return;
    if (asked_[kDimGpu] > 0 && row.gpu_milli == 0 && !frees_places_) return;
    if (careful_ && !at_least_as_within(most_, row.within)) return;
    const Fraction loss{loss_of_stopping(row, search_.now), std::max<std::int64_t>(1, row.gpu_milli)};
    add({row.job, StopCause::kReclaim, 0, row.tasks, row.priority, false, loss, row.order, row.gpu_milli,
         kBehindAllLevels, row.within},
        row.started + least_run_ms_);
  }

  void consider(const JobState& job, const Claim& claim) {
    ++work_.victims_looked_up;
    if (job.phase != JobPhase::kRunning || is_spoken_for(job.id)) return;
    if (own_only_ && job.spec.user != claimant_.spec.user) return;
    const state::QueueState& leaf = state_.queue(claimant_.queue);
    const Seq order = job.attempt->charges.front().order;
    const std::int64_t growth = gpu_milli_of(job, claim.keep, tasks_of(job));
    const bool shrinks = claim.keep < tasks_of(job) && (asked_[kDimGpu] == 0 || growth > 0 || frees_places_);
    if (shrinks) {
      found_.ripe.push_back({job.id, claim.cause, claim.keep, tasks_of(job), job.priority, false, {}, order, growth});
      found_.ripe.back().side_share = claim.side_share;
    }
    const std::int64_t milli = gpu_milli_of(job, 0, claim.keep);
    if (own_only_ || !claim.whole) return;
    if (asked_[kDimGpu] > 0 && milli == 0 && !frees_places_) return;  // frees none of what is short
    const std::uint64_t within = job.attempt->charges.front().within;
    if (careful_ && !at_least_as_within(most_, within)) return;
    const Fraction loss{loss_of_stopping(job, search_.now), std::max<std::int64_t>(1, gpu_milli_of(job))};
    const bool needed = leaves_too_few(state_, job, leaving_);
    const bool by_level = job.queue == claimant_.queue && !leaf.service_thresholds.empty();
    const std::int32_t level = by_level ? state::level_of(leaf, job, search_.now) : kBehindAllLevels;
    const std::uint32_t end = shrinks ? claim.keep : tasks_of(job);
    add({job.id, claim.cause, 0, end, job.priority, needed, loss, order, milli, level, within},
        ripe_at(state_, job, claimant_, claim.cause));
  }

  bool is_spoken_for(JobId id) const { return !search_.spoken_for.empty() && search_.spoken_for.contains(id); }

  void add(const Victim& victim, Timestamp ripe) {
    if (ripe <= search_.now) {
      found_.ripe.push_back(victim);
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
  std::int64_t least_run_ms_;
  bool frees_places_;  // who leaves does, whatever he holds
  bool careful_;
  bool own_only_;  // its user's limit holds it back: only what the user's own gangs have grown by helps
  std::uint64_t most_;
  PlaceWork& work_;
  Candidates found_;
  std::map<JobId, std::int32_t> leaving_;  // of each service: those that are away, and those that could leave
};

// Until when the last of them may take to leave: what maintenance closes before then is of no use to the claimant.
Timestamp gone_by(const State& state, const std::vector<Victim>& victims) {
  std::int64_t longest_ms = 0;
  for (const Victim& victim : victims) longest_ms = std::max(longest_ms, state.grace_ms(state.job(victim.job)->spec));
  return state.asked_at() + longest_ms;
}

// Asks whether the claimant fits when this or that list of victims is gone, beside the starts that are held for others
// whom it may not pass. Lists that begin alike cost only the difference: the trial is rolled back to what they have in
// common.
class Without {
 public:
  Without(const VictimSearch& search, JobId claimant, Pools pools, PlaceWork& work)
      : state_(search.state), claimant_(claimant), pools_(pools), work_(work), trial_(search.state) {
    const JobState& job = *state_.job(claimant);
    for (QueueId q = job.queue; q != state_.root(); q = state_.queue(q).parent) {
      used_before_.emplace(q, state_.queue(q).usage + state_.queue(q).nominated);
    }
    for (const JobId owner : not_passed(state_, job, search.now)) {
      trial_.set_aside(owner, state_.job(owner)->start_hold->placements);
    }
  }

  // Before anybody is removed.
  void look_at(Timestamp when) { trial_.look_at(when); }

  // Where the claimant fits without the first `count` of the victims; every reclaimed one must be justified by the
  // guarantee on the very models that the claimant would take.
  std::optional<std::vector<TaskPlacement>> fit(const std::vector<Victim>& victims, std::size_t count) {
    remove(victims, count);
    auto placements = places();
    if (!placements) return std::nullopt;
    const JobState& job = *state_.job(claimant_);
    const bool justified = trim_until(job.spec, *placements, [&](const std::vector<TaskPlacement>& rest) {
      return !refuses(state_, job, rest) && guarantees(state_.amounts_of(job.spec, rest), victims, count);
    });
    return justified ? std::move(placements) : std::nullopt;
  }

  // Whether the claimant, at the places found last, stands no lower than any of those whom it ends.
  bool outranks(const std::vector<Victim>& victims, const std::vector<TaskPlacement>& placements) const {
    const JobState& job = *state_.job(claimant_);
    std::uint64_t within = 0;
    const bool burst = state_.burst_amounts_of(job.spec, placements).has_value();
    for (QueueId q = job.queue; q != state_.root() && !burst; q = state_.queue(q).parent) {
      const bool inside = would_be_within(state_, q, state_.amounts_of(job.spec, placements));
      if (inside) within |= std::uint64_t{1} << state_.queue(q).depth;
    }
    return std::all_of(victims.begin(), victims.end(),
                       [&](const Victim& one) { return !one.whole() || at_least_as_within(within, one.within); });
  }

 private:
  std::optional<std::vector<TaskPlacement>> places() {
    const JobState& job = *state_.job(claimant_);
    const Admission admission = admit(state_, job);
    if (admission.models == 0) return std::nullopt;
    if (gpu_milli_short(state_, job, admission.models, pools_) > 0) return std::nullopt;
    return try_place(state_, job, admission.models, pools_, work_);
  }

  // Whether the claimant, counting `exact`, lies inside the guarantee against everyone it would be reclaimed from.
  bool guarantees(const Amounts& exact, const std::vector<Victim>& victims, std::size_t count) const {
    const QueueId ours = state_.job(claimant_)->queue;
    return std::all_of(victims.begin(), victims.begin() + static_cast<std::ptrdiff_t>(count), [&](const Victim& one) {
      if (one.cause != StopCause::kReclaim) return true;
      const QueueId theirs = state_.job(one.job)->queue;
      const QueueId side = below_common_ancestor(state_, ours, theirs).claimant;
      return would_be_within(state_, side, exact) || (!one.whole() && has_no_more(side, exact, one.side_share));
    });
  }

  // Counted as it is before anybody leaves.
  bool has_no_more(QueueId side, const Amounts& exact, const Fraction& than) const {
    const state::SharedAmounts amounts = state::shared_part(used_before_.at(side) + exact);
    const Fraction share = dominant_share(state_, amounts, state_.queue(side).weight);
    return !share.infinite() && !(than < share);
  }

  void remove(const std::vector<Victim>& victims, std::size_t count) {
    std::size_t same = 0;
    while (same < count && same < removed_.size() && removed_[same].job == victims[same].job &&
           removed_[same].keep == victims[same].keep) {
      ++same;
    }
    if (same < removed_.size()) {
      trial_.rollback_to(removed_[same].before);
      removed_.resize(same);
    }
    for (std::size_t i = same; i < count; ++i) {
      removed_.push_back({victims[i].job, victims[i].keep, trial_.mark()});
      if (victims[i].whole())
        trial_.remove(victims[i].job);
      else
        trial_.shrink(victims[i].job, victims[i].keep);
    }
  }

  struct Removed {
    JobId job;
    std::uint32_t keep = 0;
    Trial::Mark before = 0;
  };

  State& state_;
  JobId claimant_;
  Pools pools_;
  PlaceWork& work_;
  Trial trial_;
  std::map<QueueId, Amounts> used_before_;  // and promised, on the claimant's way to the root
  std::vector<Removed> removed_;            // in order
};

// Those of the victims that hold something on a node where the claimant would run.
std::vector<Victim> in_the_way(const State& state, const std::vector<Victim>& victims,
                               const std::vector<TaskPlacement>& placements) {
  std::set<NodeId> nodes;
  for (const TaskPlacement& placement : placements) nodes.insert(placement.node);
  std::vector<Victim> needed;
  for (const Victim& victim : victims) {
    const auto& tasks = state.job(victim.job)->attempt->tasks;
    const bool touches = std::any_of(tasks.begin() + victim.keep, tasks.end(),
                                     [&](const state::TaskState& task) { return nodes.contains(task.placement.node); });
    if (touches) needed.push_back(victim);
  }
  return needed;
}

// So many of the victims free as many GPUs as are lacking; more than there are when all of them do not.
std::size_t least_prefix(const std::vector<Victim>& victims, std::int64_t lacking) {
  std::size_t count = 0;
  for (; lacking > 0 && count < victims.size(); ++count) lacking -= victims[count].gpu_milli;
  return lacking > 0 ? victims.size() + 1 : std::max<std::size_t>(1, count);
}

// The shortest sufficient beginning of the list, of `least` at least, or nothing. More victims never make it harder to
// fit, so the length is doubled until it suffices and then halved into.
std::optional<std::size_t> shortest_prefix(Without& without, const std::vector<Victim>& victims, std::size_t least) {
  if (least > victims.size()) return std::nullopt;
  std::size_t low = least - 1;
  std::size_t high = least;
  while (!without.fit(victims, high)) {
    if (high == victims.size()) return std::nullopt;
    low = high;
    high = std::min(2 * high, victims.size());
  }
  while (low + 1 < high) {
    const std::size_t middle = (low + high) / 2;
    if (without.fit(victims, middle))
      high = middle;
    else
      low = middle;
  }
  return high;
}

std::int64_t gpu_milli_of(const std::vector<Victim>& victims) {
  std::int64_t milli = 0;
  for (const Victim& victim : victims) milli += victim.gpu_milli;
  return milli;
}

void leave(const State& state, Vacated& vacated, std::span<const Victim> victims) {
  for (const Victim& victim : victims) vacated.leave(*state.job(victim.job), victim.keep, victim.end);
}

void stay(const State& state, Vacated& vacated, std::span<const Victim> victims) {
  for (const Victim& victim : victims) vacated.stay(*state.job(victim.job), victim.keep, victim.end);
}

// All of the victims have left: lets them stay again, the last one first, as long as the rest might be enough, and says
// how many have to leave at least; these have left then.
std::size_t least_to_leave(const State& state, Vacated& vacated, const std::vector<Victim>& victims) {
  std::size_t count = victims.size();
  while (count > 1) {
    stay(state, vacated, std::span(victims).subspan(count - 1, 1));
    if (!vacated.might_fit()) {
      leave(state, vacated, std::span(victims).subspan(count - 1, 1));
      break;
    }
    --count;
  }
  return count;
}

// The list with what each of it takes away said exactly: of a job that leaves all goes, in one piece where it stands in
// the list once, and what it has grown by does not stay when it is not in the list.
std::vector<Victim> in_pieces(const State& state, std::vector<Victim> victims) {
  std::map<JobId, std::uint32_t> growth_from;
  for (const Victim& victim : victims) {
    if (!victim.whole()) growth_from.emplace(victim.job, victim.keep);
  }
  for (Victim& victim : victims) {
    const auto growth = growth_from.find(victim.job);
    if (victim.whole()) victim.end = growth == growth_from.end() ? tasks_of(*state.job(victim.job)) : growth->second;
  }
  return victims;
}

// Lets off, from the most worth keeping on, everyone the claimant fits beside. Nobody has left yet in the count.
void let_off(const State& state, Without& without, Vacated& vacated, std::vector<Victim>& victims) {
  victims = in_pieces(state, std::move(victims));
  leave(state, vacated, victims);
  std::set<JobId> leaving;
  for (const Victim& victim : victims) {
    if (victim.whole()) leaving.insert(victim.job);
  }
  for (std::size_t i = victims.size(); i-- > 0 && victims.size() > 1;) {
    const Victim victim = victims[i];
    const bool goes_anyway = !victim.whole() && leaving.contains(victim.job);
    if (!goes_anyway) stay(state, vacated, std::span(&victim, 1));
    if (goes_anyway || vacated.might_fit()) {
      std::vector<Victim> fewer = victims;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (without.fit(fewer, fewer.size())) {
        victims = std::move(fewer);
        if (victim.whole()) leaving.erase(victim.job);
        continue;
      }
    }
    if (!goes_anyway) leave(state, vacated, std::span(&victim, 1));
  }
}

// Of a job that leaves nothing stays to be given back; a gang that gives back keeps as many tasks as it can.
std::vector<Victim> give_back_least(Without& without, std::vector<Victim> victims) {
  std::set<JobId> leaving;
  for (const Victim& victim : victims) {
    if (victim.whole()) leaving.insert(victim.job);
  }
  std::erase_if(victims, [&](const Victim& victim) { return !victim.whole() && leaving.contains(victim.job); });
  for (std::size_t i = 0; i < victims.size(); ++i) {
    if (victims[i].whole()) continue;
    std::uint32_t low = victims[i].keep;
    for (std::uint32_t high = victims[i].end; low + 1 < high;) {
      const std::uint32_t middle = low + (high - low) / 2;
      victims[i].keep = middle;
      (without.fit(victims, victims.size()) ? low : high) = middle;
    }
    victims[i].keep = low;
  }
  return victims;
}

// Whether those who would be preempted lose more than the claimant's GPUs may cost. What is reclaimed does not count:
// an owner gets what it is guaranteed whatever others lose.
bool too_dear(const State& state, const std::vector<Victim>& victims, const std::vector<TaskPlacement>& gained,
              Timestamp now) {
  const std::int64_t most_s = state.config().scheduling.preempt_max_loss_s;
  if (most_s == 0) return false;
  std::int64_t gpu_milli = 0;
  for (const TaskPlacement& task : gained) gpu_milli += static_cast<std::int64_t>(task.gpus.size()) * task.gpu_milli;
  Int128 lost_gpu_ms = 0;
  for (const Victim& victim : victims) {
    if (victim.whole() && victim.cause == StopCause::kPreempt)
      lost_gpu_ms += loss_of_stopping(*state.job(victim.job), now);
  }
  return lost_gpu_ms * kMilli > Int128{most_s} * 1000 * std::max(gpu_milli, kMilli);
}

}  // namespace

bool has_given_way(const JobState& job) {
  return std::any_of(job.past.begin(), job.past.end(), [](const state::AttemptRecord& attempt) {
    return attempt.cause == StopCause::kReclaim || attempt.cause == StopCause::kPreempt;
  });
}

std::int64_t loss_of_stopping(const JobState& job, Timestamp now) {
  return loss_of_stopping(state::running_row(job), now);
}

std::int64_t loss_of_stopping(const state::RunningRow& row, Timestamp now) {
  if (row.on_signal) return 0;
  const std::int64_t ms = std::max<std::int64_t>(0, now - row.saved);
  return row.gpu_milli == 0 ? ms : static_cast<std::int64_t>(Int128{ms} * row.gpu_milli / kMilli);
}

std::size_t eviction_budget(const State& state, Timestamp now, std::size_t already) {
  const SchedulingConfig& rules = state.config().scheduling;
  std::int64_t most = rules.victims_per_cycle;
  if (rules.evictions_per_hour > 0) most = std::min(most, state.evictions().left(rules.evictions_per_hour, now));
  const auto limit = static_cast<std::size_t>(most);
  return limit - std::min(limit, already);
}

Timestamp may_be_stopped_from(const State& state, const JobState& job) {
  const SchedulingConfig& rules = state.config().scheduling;
  const std::int64_t least_s =
      job.evicted_last() ? std::max(rules.min_runtime_s, rules.cooldown_s) : rules.min_runtime_s;
  return job.attempt->started + checked_multiply(least_s, 1000);
}

bool may_claim(const State& state, const JobState& job, const Amounts& asked) {
  const SchedulingConfig& rules = state.config().scheduling;
  const state::QueueState& leaf = state.queue(job.queue);
  const auto any_growth = [&](const auto& gives_way) {
    return std::any_of(state.elastic().begin(), state.elastic().end(),
                       [&](JobId id) { return has_growth(*state.job(id)) && gives_way(*state.job(id)); });
  };
  if (const auto limit = over_user_limit(state, job, asked)) {
    return limit->dim != kDims && any_growth([&](const JobState& other) { return other.spec.user == job.spec.user; });
  }
  if (rules.preempt && !leaf.running.empty() && leaf.running.begin()->first < job.priority) return true;
  const bool last = static_cast<std::size_t>(job.level) > leaf.service_thresholds.size();
  if (rules.preempt && !leaf.service_thresholds.empty() && !last && leaf.running.contains(job.priority)) return true;
  const auto in_our_queue = [&](const JobState& other) {
    return other.queue == job.queue && other.priority <= job.priority;
  };
  if (rules.preempt && any_growth(in_our_queue)) return true;
  if (!rules.reclaim) return false;
  if (any_growth([&](const JobState& other) { return other.queue != job.queue; })) return true;
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
    if (would_be_within(state, q, asked)) return true;
  }
  return false;
}

namespace {

std::optional<EvictDecision> find_within(const Reach& reach, const VictimSearch& search, JobId claimant,
                                         PlaceWork& work) {
  const JobState& job = *search.state.job(claimant);
  const State& state = search.state;
  work.hopeless = false;
  work.too_dear = false;
  if (const Timestamp from = state::may_claim_from(job); from > search.now) {
    work.ask_again_at = std::min(work.ask_again_at, from);
    return std::nullopt;
  }
  const Candidates found = Gathering(search, job, reach.reclaim, work).run();
  const std::int64_t lacking = gpu_milli_short(state, job, kAllModels, reach.pools);
  work.left_out = work.left_out || found.left_out;
  if (found.left_out) work.ask_again_at = std::min(work.ask_again_at, state.evictions().next(search.now));
  if (found.ripe.empty() && found.young.empty() && found.spares_growth) return std::nullopt;
  Vacated vacated(state, job, work);
  const bool lacks_gpus = !found.left_out && gpu_milli_of(found.ripe) + gpu_milli_of(found.young) < lacking;
  // Victims may hold GPUs that are of no use to the claimant; so this alone does not say that it stays so.
  if (lacks_gpus && !vacated.counts()) return std::nullopt;
  leave(state, vacated, found.ripe);
  const bool ripe_might_do = vacated.might_fit() && least_prefix(found.ripe, lacking) <= found.ripe.size();
  leave(state, vacated, found.young);
  const bool in_vain = !found.left_out && !vacated.might_fit();
  work.hopeless = in_vain && !found.spares_growth;
  if (in_vain || (found.ripe.empty() && found.young.empty())) return std::nullopt;
  std::size_t least = 0;
  std::optional<std::size_t> enough;
  Without without(search, claimant, reach.pools, work);
  if (!state.maintenance().empty()) without.look_at(gone_by(state, found.ripe));
  if (ripe_might_do) {
    stay(state, vacated, found.young);
    least = least_to_leave(state, vacated, found.ripe);
    enough = shortest_prefix(without, found.ripe, std::max(least, least_prefix(found.ripe, lacking)));
  }
  if (!enough) {
    work.ask_again_at = std::min(work.ask_again_at, found.next_ripe);
    return std::nullopt;
  }
  std::vector<Victim> victims = found.ripe;
  victims.resize(*enough);
  // Most of the list may have left nodes that the claimant does not even touch.
  const auto placements = without.fit(victims, victims.size());
  std::vector<Victim> needed = in_the_way(state, victims, *placements);
  if (!needed.empty() && without.fit(needed, needed.size())) victims = std::move(needed);
  stay(state, vacated, std::span(found.ripe).first(least));
  let_off(state, without, vacated, victims);
  victims = give_back_least(without, std::move(victims));
  EvictDecision decision;
  decision.claimant = claimant;
  decision.placements = *without.fit(victims, victims.size());
  work.too_dear = too_dear(state, victims, decision.placements, search.now);
  if (work.too_dear) {  // until they have saved
    work.ask_again_at = std::min(work.ask_again_at, search.now + kSavedByMs);
    return std::nullopt;
  }
  if (has_given_way(job) && !without.outranks(victims, decision.placements)) {
    work.left_out = true;  // in another order of the victims, which changes with time, others might have been found
    return std::nullopt;
  }
  for (const Victim& victim : victims) {
    decision.victims.push_back(victim.job);
    decision.causes.push_back(victim.cause);
    decision.keeps.push_back(victim.keep);
    if (victim.cause == StopCause::kPreempt) decision.cause = StopCause::kPreempt;
  }
  return decision;
}

}  // namespace

std::optional<EvictDecision> find_victims(const VictimSearch& search, JobId claimant, PlaceWork& work) {
  if (!search.state.has_burst_pools()) return find_within({}, search, claimant, work);
  if (auto decision = find_within({true, Pools::kOrdinary}, search, claimant, work)) return decision;
  const bool hopeless = work.hopeless;
  auto decision = find_within({false, Pools::kAny}, search, claimant, work);
  work.hopeless = work.hopeless && hopeless;
  return decision;
}

}  // namespace berth::sched
