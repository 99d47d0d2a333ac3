#include "explain/preemption.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "explain/text_list.h"
#include "explain/why.h"
#include "model/document/quantity.h"
#include "sched/nomination/preemption_conflicts.h"
#include "sched/preempt/eviction_limits.h"
#include "sched/preempt/preempt.h"
#include "sched/preempt/victim_candidates.h"
#include "sched/queue/admit.h"
#include "sched/queue/quota.h"
#include "sched/start.h"
#include "state/attained_service.h"
#include "state/back_off.h"
#include "state/transaction.h"

namespace berth::explain {

using namespace sched;

namespace {

using state::JobState;
using state::QueueState;
using state::State;

constexpr std::size_t kMostNamed = 5;

std::string job_text(JobId job) { return "job " + std::to_string(job.value()); }

// The jobs that might be evicted for this one if nothing limited it.
struct Claims {
  std::set<JobId> lower;                 // of its queue, of lower priority
  std::set<JobId> behind;                // of its queue and priority, with more attained service, able to save
  std::set<JobId> borrowed;              // of other queues, borrowing what this one is guaranteed
  std::map<JobId, std::uint32_t> grown;  // elastic gangs that could be scaled down to so many tasks
  std::vector<JobId> not_yet_evictable;  // of all these, protected by min_runtime or cooldown
  std::int64_t in_burst = 0;             // of `borrowed`, in burst pools
  bool borrowed_growth = false;          // tasks of a scale-up borrow what this queue is guaranteed
  bool some_leave = false;               // jobs that borrowed there are being evicted already

  std::int64_t whole() const { return static_cast<std::int64_t>(lower.size() + behind.size() + borrowed.size()); }
};

bool is_in_burst(const JobState& job) {
  const auto& charges = job.attempt->charges;
  return std::any_of(charges.begin(), charges.end(), [](const state::Charge& one) { return one.burst.has_value(); });
}

void count_own_queue(const State& state, const JobState& job, Timestamp now, Claims& claims) {
  const QueueState& leaf = state.queue(job.queue);
  for (const auto& [priority, jobs] : leaf.running) {
    if (priority > job.priority) break;
    for (const JobId id : jobs) {
      const JobState& other = *state.job(id);
      const bool behind = priority == job.priority && other.spec.checkpoint.on_signal &&
                          state::behind_level_from(leaf, other, job.level) <= now;
      if (other.phase != JobPhase::kRunning || (priority == job.priority && !behind)) continue;
      (behind ? claims.behind : claims.lower).insert(id);
    }
  }
}

// A gang whose min_count tasks are within the guarantee is not evicted; what it was scaled up by may be reclaimed.
void count_borrowers(const State& state, const JobState& job, Claims& claims) {
  for (const QueueId q : claims_within(state, job.queue, least_amounts(state, job.spec))) {
    for (const QueueId sibling : state.queue(state.queue(q).parent).children) {
      if (sibling == q) continue;
      for (const state::BorrowedKey& key : state.queue(sibling).borrowed) {
        if (state.job(key.job)->phase != JobPhase::kRunning) {
          claims.some_leave = true;
          continue;
        }
        if (key.charge == 0) claims.borrowed.insert(key.job);
        claims.borrowed_growth = claims.borrowed_growth || key.charge > 0;
      }
    }
  }
}

// A search for victims that neither the rate of evictions nor a limit per cycle bounds.
VictimSearch search_without_limits(State& state, Timestamp now, const std::set<JobId>& nobody) {
  VictimSearch search{state, now, nobody, state.running_table().rows().size()};
  search.without_gpus = true;
  search.queue_limits = QueueLimits::kIgnore;
  return search;
}

Claims count_claims(State& state, const JobState& job, Timestamp now) {
  const SchedulingConfig& rules = state.config().scheduling;
  Claims claims;
  if (rules.preempt) count_own_queue(state, job, now, claims);
  if (rules.reclaim) count_borrowers(state, job, claims);
  const auto leaves = [&](JobId id) {
    return claims.lower.contains(id) || claims.behind.contains(id) || claims.borrowed.contains(id);
  };
  for (const auto* kind : {&claims.lower, &claims.behind, &claims.borrowed}) {
    for (const JobId id : *kind) {
      if (may_be_stopped_from(state, *state.job(id)) > now) claims.not_yet_evictable.push_back(id);
    }
  }
  for (const JobId id : claims.borrowed) claims.in_burst += is_in_burst(*state.job(id)) ? 1 : 0;
  SearchStats work;
  std::optional<VictimCandidates> own;
  const std::set<JobId> nobody;
  for (const Victim& victim :
       gather_candidates(search_without_limits(state, now, nobody), job, true, own, work).evictable) {
    if (!victim.whole() && !leaves(victim.job)) claims.grown.emplace(victim.job, victim.keep);
  }
  return claims;
}

// What the first queue from the top lacks whose guarantee has no room for the job; empty if all have room.
std::string no_room_within(const State& state, const JobState& job) {
  const Amounts asked = least_amounts(state, job.spec);
  for (const QueueId id : state.path_to(job.queue)) {
    const QueueState& queue = state.queue(id);
    if (id == state.root() || would_be_within(state, id, asked)) continue;
    if (queue.guaranteed.stated == 0) return "queue " + queue.path + " has no guarantee";
    if (!covers(queue.guaranteed, asked)) {
      return "queue " + queue.path +
             (asked[kDimGpu] > 0 ? " has no guarantee for GPUs that the job accepts"
                                 : " has no guarantee for CPU or memory");
    }
    for (std::size_t dim = 0; dim < kDims; ++dim) {
      const std::int64_t used = queue.within_or_nominated()[dim];
      if (!queue.guaranteed.states(dim) || asked[dim] == 0 || used + asked[dim] <= queue.guaranteed.amounts[dim])
        continue;
      return "the job needs " + quantity_text(state, dim, asked[dim]) + "; queue " + queue.path + " has " +
             amount_text(dim, used) + " of its guaranteed " + amount_text(dim, queue.guaranteed.amounts[dim]) +
             " in use or nominated";
    }
  }
  return {};
}

// Returns true if the rest of the hour allows fewer evictions than one cycle does.
bool hour_limits(const State& state, Timestamp now) {
  const SchedulingConfig& rules = state.config().scheduling;
  return rules.evictions_per_hour > 0 &&
         state.evictions().left(rules.evictions_per_hour, now) <= rules.victims_per_cycle;
}

// Returns what would refuse the job if all these jobs left, or all but those in burst pools; nothing if it would start.
std::optional<Reason> refused_without(State& state, const JobState& job, const Claims& claims, bool burst_leaves,
                                      Timestamp now) {
  state::Transaction transaction(state);
  Timestamp gone_by = state.asked_at();
  for (const auto* kind : {&claims.lower, &claims.behind, &claims.borrowed}) {
    for (const JobId id : *kind) {
      if (!burst_leaves && kind == &claims.borrowed && is_in_burst(*state.job(id))) continue;
      gone_by = std::max(gone_by, state.asked_at() + state.grace_ms(*state.job(id)));
      transaction.remove(id);
    }
  }
  for (const auto& [id, keep] : claims.grown) {
    gone_by = std::max(gone_by, state.asked_at() + state.grace_ms(*state.job(id)));
    transaction.shrink(id, keep);
  }
  if (!state.maintenance().empty()) transaction.look_until(gone_by);
  SearchStats work;
  StartAnswer answer = try_start(transaction, {state, job, now, work});
  return answer ? std::nullopt : std::optional(std::move(answer.why));
}

// The eviction that would take place if any number of jobs could be evicted at once.
std::optional<EvictDecision> eviction_without_limits(State& state, const JobState& job, Timestamp now) {
  SearchStats work;
  const std::set<JobId> nobody;
  return find_victims(search_without_limits(state, now, nobody), job.id, work).decision;
}

// The first queue whose evictions_per_hour does not allow the eviction now; none() if all do.
QueueId limiting_queue(const State& state, const EvictDecision& decision, Timestamp now) {
  EvictionLimits limits(state, now, nullptr);
  for (std::size_t v = 0; v < decision.victims.size(); ++v) {
    if (decision.keeps[v] == 0 && !limits.take(state.job(decision.victims[v])->queue)) break;
  }
  return limits.refused_by();
}

// "scheduling.evictions_per_hour (1) is used up", "evictions_per_hour of queue a (3) has 1 left"
std::string of_the_rate(const std::string& key, std::int64_t limit, std::int64_t left) {
  return key + " (" + std::to_string(limit) + ") " +
         (left <= 0 ? std::string("is used up") : "has " + std::to_string(left) + " left");
}

std::string of_the_limits(const State& state, const EvictDecision& unlimited, Timestamp now) {
  const SchedulingConfig& rules = state.config().scheduling;
  if (const QueueId by = limiting_queue(state, unlimited, now); by.valid()) {
    const QueueState& queue = state.queue(by);
    const std::int64_t limit = queue.eviction.evictions_per_hour;
    return of_the_rate("evictions_per_hour of queue " + queue.path, limit, queue.evictions.left(limit, now));
  }
  if (!hour_limits(state, now))
    return "scheduling.victims_per_cycle allows only " + std::to_string(rules.victims_per_cycle);
  return of_the_rate("scheduling.evictions_per_hour", rules.evictions_per_hour,
                     state.evictions().left(rules.evictions_per_hour, now));
}

// "min_runtime 2h of queue research and cooldown 1h"
std::string of_their_minimum(const State& state, const std::vector<JobId>& not_yet_evictable) {
  std::set<std::tuple<std::int64_t, bool, QueueId>> kinds;
  for (const JobId id : not_yet_evictable) {
    const LeastRun least = least_run(state, *state.job(id));
    kinds.emplace(least.seconds, least.after_eviction, least.terms_of);
  }
  std::vector<std::string> texts;
  for (const auto& [seconds, after_eviction, queue] : kinds) {
    if (texts.size() == kMostNamed) break;
    texts.push_back((after_eviction ? "cooldown " : "min_runtime ") + document::duration_text(seconds) +
                    (queue == state.root() ? "" : " of queue " + state.queue(queue).path));
  }
  return listed(texts, [](const std::string& text) { return text; });
}

// What keeps these jobs from being evicted: "2 jobs could be preempted for it, but ...".
std::string why_not_evicted(State& state, const JobState& job, const Claims& claims, const EvictionFound& found,
                            Timestamp now) {
  const bool one = claims.whole() + static_cast<std::int64_t>(claims.grown.size()) == 1;
  if (found.too_dear) {
    return "more than " + document::duration_text(state.config().scheduling.preempt_max_loss_s) +
           " of unsaved GPU time would be lost for each GPU gained (scheduling.preempt_max_loss)";
  }
  const std::string alone =
      one ? "this job would not fit without that one" : "this job would not fit without all of them";
  if (const auto refused = refused_without(state, job, claims, true, now))
    return alone + (refused->code == ReasonCode::kWouldDelayReservation ? ", beside backfill reservations" : "");
  const auto of_them = [&](std::int64_t count, const char* singular, const char* plural) {
    return one ? std::string("that one ") + singular
               : std::to_string(count) + " of them " + (count == 1 ? singular : plural);
  };
  if (claims.in_burst > 0 && refused_without(state, job, claims, false, now)) {
    return of_them(claims.in_burst, "is", "are") + " in a burst pool, where jobs are not reclaimed" +
           (one ? "" : ", and this job would not fit without the others");
  }
  if (const auto unlimited = found.left_out ? eviction_without_limits(state, job, now) : std::nullopt)
    return of_the_limits(state, *unlimited, now);
  if (!claims.not_yet_evictable.empty()) {
    return of_them(static_cast<std::int64_t>(claims.not_yet_evictable.size()), "is", "are") + " still protected by " +
           of_their_minimum(state, claims.not_yet_evictable);
  }
  if (job.has_given_way())
    return "this job was evicted before and now evicts only jobs that rank below it, without which it would not fit";
  return alone + " within the guarantees of its queues" +
         (job.spec.exclusive ? ", against which whole nodes count" : "");
}

// "2 jobs could be preempted for it, 1 of them for having had more GPU time, and 1 job could be scaled down"
std::string could_be_evicted(const Claims& claims) {
  const auto grown = static_cast<std::int64_t>(claims.grown.size());
  std::string text;
  if (claims.whole() > 0) {
    text = counted(claims.whole(), "job") + " could be preempted for it";
    if (!claims.behind.empty())
      text += ", " + std::to_string(claims.behind.size()) + " of them for having had more GPU time";
  }
  if (grown == 0) return text;
  return text + (text.empty() ? "" : ", and ") + counted(grown, "job") +
         (text.empty() ? " could be scaled down for it" : " could be scaled down");
}

}  // namespace

std::vector<std::string> explain_preemption(State& state, const JobState& job, Timestamp now) {
  const SchedulingConfig& rules = state.config().scheduling;
  SearchStats work;
  const std::set<JobId> nobody;
  const VictimSearch search{state, now, nobody, eviction_budget(state, now, 0)};
  const bool may = may_evict_others(state, job, least_amounts(state, job.spec));
  state::Transaction transaction(state);
  const EvictionFound claim = may ? find_eviction(transaction, search, job, work) : EvictionFound();
  if (const auto& decision = claim.decision) {
    std::string line = "it can " + std::string(name_of(decision->cause)) + ": " +
                       counted(static_cast<std::int64_t>(decision->victims.size()), "job") + " would be evicted:";
    for (std::size_t i = 0; i < std::min(kMostNamed, decision->victims.size()); ++i) {
      line += (i == 0 ? " " : ", ") + job_text(decision->victims[i]);
      if (decision->keeps[i] > 0) line += " (scaled down to " + counted(decision->keeps[i], "task") + ")";
    }
    const JobId other = claim.conflict.futile_because_of;
    if (!other.valid()) return {line};
    return {line, "it does not: " + job_text(other) + " (queue " + state.queue(state.job(other)->queue).path +
                      ") is within its guarantee and would reclaim the places immediately"};
  }
  std::vector<std::string> lines;
  if (const Timestamp from = state::may_evict_from(job); may && from > now) {
    const std::string because = job.evicts_from == from
                                    ? "its nomination was withdrawn " + counted(job.lost_nominations, "time")
                                    : "its last attempt ended by itself soon after its start";
    return {"it evicts no job before " + to_iso8601(from) + ": " + because +
            "; until then it starts only on idle GPUs"};
  }
  const std::string no_room = no_room_within(state, job);
  const Claims claims = count_claims(state, job, now);
  if (!rules.reclaim) {
    lines.push_back("it cannot reclaim: scheduling.reclaim is false");
  } else if (claims.borrowed.empty() && !claims.borrowed_growth) {
    lines.push_back("it cannot reclaim: " +
                    (!no_room.empty()    ? no_room
                     : claims.some_leave ? "all jobs that borrow from its queues' guarantees are being evicted already"
                                         : "no job borrows from its queues' guarantees"));
  }
  if (may_burst(state, job) && rules.reclaim)
    lines.push_back("jobs in burst pools are not reclaimed: a burst pool backs no guarantee");
  if (!rules.preempt) lines.push_back("it cannot preempt: scheduling.preempt is false");
  if (claims.whole() > 0 || !claims.grown.empty()) {
    lines.push_back(could_be_evicted(claims) + ", but " + why_not_evicted(state, job, claims, claim, now));
  }
  return lines;
}

}  // namespace berth::explain
