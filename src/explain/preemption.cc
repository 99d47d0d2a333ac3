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

std::string of_the_limits(const Words& words, const EvictDecision& unlimited) {
  const State& state = words.state();
  const Timestamp now = words.now();
  const SchedulingConfig& rules = state.config().scheduling;
  if (const QueueId by = limiting_queue(state, unlimited, now); by.valid()) {
    const QueueState& queue = state.queue(by);
    const std::int64_t limit = queue.eviction.evictions_per_hour;
    return of_the_rate("evictions_per_hour of " + words.queue(by), limit, queue.evictions.left(limit, now));
  }
  if (!hour_limits(state, now))
    return "scheduling.victims_per_cycle allows only " + std::to_string(rules.victims_per_cycle);
  return of_the_rate("scheduling.evictions_per_hour", rules.evictions_per_hour,
                     state.evictions().left(rules.evictions_per_hour, now));
}

// "min_runtime 2h of queue research and cooldown 1h, job 6 until 19:11:52 UTC"
std::string of_their_minimum(const Words& words, const std::vector<JobId>& not_yet_evictable) {
  const State& state = words.state();
  std::set<std::tuple<std::int64_t, bool, QueueId>> kinds;
  for (const JobId id : not_yet_evictable) {
    const LeastRun least = least_run(state, *state.job(id));
    kinds.emplace(least.seconds, least.after_eviction, least.terms_of);
  }
  std::vector<std::string> texts;
  for (const auto& [seconds, after_eviction, queue] : kinds) {
    if (texts.size() == kMostNamed) break;
    texts.push_back((after_eviction ? "cooldown " : "min_runtime ") + document::duration_text(seconds) +
                    (queue == state.root() ? "" : " of " + words.queue(queue)));
  }
  const auto ends = [&](JobId id) { return may_be_stopped_from(state, *state.job(id)); };
  const auto first = std::min_element(not_yet_evictable.begin(), not_yet_evictable.end(),
                                      [&](JobId a, JobId b) { return std::pair(ends(a), a) < std::pair(ends(b), b); });
  return listed(texts, [](const std::string& text) { return text; }) + ", " +
         (not_yet_evictable.size() == 1 ? "" : words.job(*first) + " ") + "until " + words.time(ends(*first));
}

// What keeps these jobs from being evicted: "2 jobs that borrow could be stopped for this one, but ...".
std::string why_not_evicted(State& state, const Words& words, const JobState& job, const Claims& claims,
                            const EvictionFound& found) {
  const Timestamp now = words.now();
  const std::int64_t all = claims.whole() + static_cast<std::int64_t>(claims.grown.size());
  const bool one = all == 1;
  if (found.too_dear) {
    return "more than " + document::duration_text(state.config().scheduling.preempt_max_loss_s) +
           " of unsaved GPU time would be lost for each GPU gained (scheduling.preempt_max_loss)";
  }
  const std::string alone = "this job would not fit even then";
  if (const auto refused = refused_without(state, job, claims, true, now))
    return alone + (refused->code == ReasonCode::kWouldDelayReservation ? ", beside backfill reservations" : "");
  const auto of_them = [&](std::int64_t count, const char* singular, const char* plural) {
    if (one) return std::string("that one ") + singular;
    return (count == all ? std::string("they") : std::to_string(count) + " of them") + " " +
           (count == 1 ? singular : plural);
  };
  if (claims.in_burst > 0 && refused_without(state, job, claims, false, now)) {
    return of_them(claims.in_burst, "is", "are") + " in a burst pool, where jobs are not reclaimed" +
           (one ? "" : ", and this job would not fit without the others");
  }
  if (const auto unlimited = found.left_out ? eviction_without_limits(state, job, now) : std::nullopt)
    return of_the_limits(words, *unlimited);
  if (!claims.not_yet_evictable.empty()) {
    return of_them(static_cast<std::int64_t>(claims.not_yet_evictable.size()), "is", "are") + " still protected by " +
           of_their_minimum(words, claims.not_yet_evictable);
  }
  if (job.has_given_way())
    return "this job was evicted before and now evicts only jobs that rank below it, without which it would not fit";
  return alone + " within the guarantees of its queues" +
         (job.spec.exclusive ? ", against which whole nodes count" : "");
}

// "2 jobs that borrow (jobs 6, 21) and 1 job of lower priority (job 8)"
std::string whole_jobs_text(const Words& words, const Claims& claims) {
  std::vector<std::string> parts;
  const auto add = [&](const std::set<JobId>& jobs, const std::string& what) {
    if (jobs.empty()) return;
    std::vector<JobId> named;
    std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(named), [&](JobId id) { return words.sees_job(id); });
    const bool none = named.empty();
    const std::size_t others = jobs.size() - named.size();
    const std::size_t more = named.size() - std::min(named.size(), kMostNamed);
    named.resize(named.size() - more);
    std::string ids;
    const std::string first = jobs.size() == 1 ? " (job " : " (jobs ";
    for (const JobId id : named) ids += (ids.empty() ? first : ", ") + std::to_string(id.value());
    if (!none && more > 0) ids += " and " + std::to_string(more) + " more";
    if (!none && others > 0) ids += " and " + std::to_string(others) + " of other queues";
    const auto count = static_cast<std::int64_t>(jobs.size());
    parts.push_back(counted(count, "job") +
                    (!none        ? " "
                     : count == 1 ? " of another queue "
                                  : " of other queues ") +
                    what + (none ? "" : ids + ")"));
  };
  const auto that = [](const std::set<JobId>& jobs, const std::string& one, const std::string& several) {
    return "that " + (jobs.size() == 1 ? one : several);
  };
  add(claims.borrowed, that(claims.borrowed, "borrows", "borrow"));
  add(claims.lower, "of lower priority");
  add(claims.behind, that(claims.behind, "has", "have") + " had more GPU time");
  return listed(parts, [](const std::string& part) { return part; });
}

// "2 jobs that borrow (jobs 6, 21) could be stopped for this one, and 1 job could be scaled down"
std::string could_be_evicted(const Words& words, const Claims& claims) {
  const auto grown = static_cast<std::int64_t>(claims.grown.size());
  const std::string whole = whole_jobs_text(words, claims);
  if (grown == 0) return whole + " could be stopped for this one";
  const std::string shrinking = counted(grown, "job") + " could be scaled down";
  return whole.empty() ? shrinking + " for this one" : whole + " could be stopped for this one, and " + shrinking;
}

// "jobs 6 and 21 can be stopped for this one (reclaim), and job 8 scaled down to 2 tasks"
std::string decision_text(const Words& words, const EvictDecision& decision, JobId futile_because_of) {
  std::vector<JobId> leave;
  std::vector<std::string> shrink;
  for (std::size_t i = 0; i < decision.victims.size(); ++i) {
    if (decision.keeps[i] == 0)
      leave.push_back(decision.victims[i]);
    else
      shrink.push_back(words.job(decision.victims[i]) + " scaled down to " + counted(decision.keeps[i], "task"));
  }
  const std::string cause = " (" + std::string(name_of(decision.cause)) + ")";
  std::string text = leave.empty() ? std::string() : words.jobs(leave, kMostNamed) + " can be stopped for this one";
  const std::string shrinking = listed(shrink, [](const std::string& one) { return one; });
  if (!shrink.empty()) text += leave.empty() ? shrinking + " can make room" : ", and " + shrinking;
  text += cause;
  if (!futile_because_of.valid()) return text;
  const JobState& other = *words.state().job(futile_because_of);
  return text + ", but " + words.job(other.id) + words.in_queue(other.queue) +
         " is within its guarantee and would take the places at once";
}

std::string back_off_text(const Words& words, const JobState& job, Timestamp from) {
  const std::string because = job.evicts_from == from
                                  ? "its nomination was withdrawn " + counted(job.lost_nominations, "time")
                                  : "its last attempt ended by itself soon after its start";
  return "the job stops no other job before " + words.time_and_span(from) + ": " + because +
         "; until then it starts only on idle GPUs";
}

}  // namespace

PreemptionText explain_preemption(State& state, const Words& words, const JobState& job) {
  const SchedulingConfig& rules = state.config().scheduling;
  const Timestamp now = words.now();
  SearchStats work;
  const std::set<JobId> nobody;
  const VictimSearch search{state, now, nobody, eviction_budget(state, now, 0)};
  const bool may = may_evict_others(state, job, least_amounts(state, job.spec));
  state::Transaction transaction(state);
  const EvictionFound claim = may ? find_eviction(transaction, search, job, work) : EvictionFound();
  if (claim.decision) return {decision_text(words, *claim.decision, claim.conflict.futile_because_of), {}};
  if (const Timestamp from = state::may_evict_from(job); may && from > now)
    return {back_off_text(words, job, from), {}};
  const std::string no_room = no_room_within(state, job);
  const Claims claims = count_claims(state, job, now);
  PreemptionText text;
  if (!rules.reclaim) {
    text.more.push_back("the job cannot reclaim: scheduling.reclaim is false");
  } else if (claims.borrowed.empty() && !claims.borrowed_growth) {
    text.more.push_back("the job cannot reclaim: " +
                        (!no_room.empty()    ? no_room
                         : claims.some_leave ? "all jobs that borrow from its queues' guarantees are stopped already"
                                             : "no job borrows from its queues' guarantees"));
  }
  if (may_burst(state, job) && rules.reclaim)
    text.more.push_back("jobs in burst pools are not reclaimed: a burst pool backs no guarantee");
  if (!rules.preempt) text.more.push_back("the job cannot preempt: scheduling.preempt is false");
  if (claims.whole() > 0 || !claims.grown.empty())
    text.in_short = could_be_evicted(words, claims) + ", but " + why_not_evicted(state, words, job, claims, claim);
  return text;
}

}  // namespace berth::explain
