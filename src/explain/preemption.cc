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

// Of whom places might be claimed if nothing limited it.
struct Claims {
  std::set<JobId> lower;                 // of its own queue, of lower priority
  std::set<JobId> behind;                // of its own queue and priority, on a higher level, and able to save
  std::set<JobId> borrowed;              // of other queues, on what this one is guaranteed
  std::map<JobId, std::uint32_t> grown;  // elastic gangs that could give back all but so many tasks, and stay
  std::vector<JobId> not_yet_evictable;  // of those who would leave, not yet run their minimum
  std::int64_t in_burst = 0;             // of the borrowed, in burst pools
  bool borrowed_growth = false;          // on what this one is guaranteed
  bool some_leave = false;               // of those who borrowed there some have been asked to leave already

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

// A gang whose least part is within stays, whatever it has grown by.
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

// More than any number of them.
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

// The numbers at the first queue, from the top, whose guarantee has no room for the job; empty if all have.
std::string no_room_within(const State& state, const JobState& job) {
  const Amounts asked = least_amounts(state, job.spec);
  for (const QueueId id : state.path_to(job.queue)) {
    const QueueState& queue = state.queue(id);
    if (id == state.root() || would_be_within(state, id, asked)) continue;
    if (queue.guaranteed.stated == 0) return "queue " + queue.path + " is guaranteed nothing";
    if (!covers(queue.guaranteed, asked)) {
      return "queue " + queue.path + " is guaranteed nothing of what the job asks: " +
             (asked[kDimGpu] > 0 ? "none of its GPUs" : "neither CPU nor memory");
    }
    for (std::size_t dim = 0; dim < kDims; ++dim) {
      const std::int64_t used = queue.within_or_nominated()[dim];
      if (!queue.guaranteed.states(dim) || asked[dim] == 0 || used + asked[dim] <= queue.guaranteed.amounts[dim])
        continue;
      return "queue " + queue.path + " is guaranteed " + amount_text(dim, queue.guaranteed.amounts[dim]) + " " +
             dim_name(state, dim) + " and has " + amount_text(dim, used) +
             " of them within or promised; the job asks " + amount_text(dim, asked[dim]);
    }
  }
  return {};
}

// Whether fewer may be stopped in what is left of the hour than in one cycle.
bool hour_limits(const State& state, Timestamp now) {
  const SchedulingConfig& rules = state.config().scheduling;
  return rules.evictions_per_hour > 0 &&
         state.evictions().left(rules.evictions_per_hour, now) <= rules.victims_per_cycle;
}

// What would refuse the job if all of them left, but for those in burst pools where these are to stay.
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

// Who would leave if any number could be stopped at once.
std::optional<EvictDecision> eviction_without_limits(State& state, const JobState& job, Timestamp now) {
  SearchStats work;
  const std::set<JobId> nobody;
  return find_victims(search_without_limits(state, now, nobody), job.id, work).decision;
}

// The first queue that would not let all of them go now; none() if none is against it.
QueueId limiting_queue(const State& state, const EvictDecision& decision, Timestamp now) {
  EvictionLimits limits(state, now, nullptr);
  for (std::size_t v = 0; v < decision.victims.size(); ++v) {
    if (decision.keeps[v] == 0 && !limits.take(state.job(decision.victims[v])->queue)) break;
  }
  return limits.refused_by();
}

std::string of_the_limits(const State& state, const EvictDecision& unlimited, Timestamp now) {
  const SchedulingConfig& rules = state.config().scheduling;
  if (const QueueId by = limiting_queue(state, unlimited, now); by.valid()) {
    const QueueState& queue = state.queue(by);
    const std::int64_t limit = queue.eviction.evictions_per_hour;
    const std::int64_t used = limit - queue.evictions.left(limit, now);
    return "at most " + counted(limit, "job") + " of queue " + queue.path + (limit == 1 ? " is" : " are") +
           " stopped within an hour, and " + std::to_string(used) + (used == 1 ? " has" : " have") + " been";
  }
  if (!hour_limits(state, now))
    return "no more than " + counted(rules.victims_per_cycle, "job") + " may be stopped in one cycle";
  return "at most " + counted(rules.evictions_per_hour, "job") + (rules.evictions_per_hour == 1 ? " is" : " are") +
         " stopped within an hour";
}

// "2h by the terms of queue research"
std::string of_their_minimum(const State& state, const std::vector<JobId>& not_yet_evictable) {
  std::set<std::tuple<std::int64_t, bool, QueueId>> kinds;
  for (const JobId id : not_yet_evictable) {
    const LeastRun least = least_run(state, *state.job(id));
    kinds.emplace(least.seconds, least.after_eviction, least.terms_of);
  }
  std::vector<std::string> texts;
  for (const auto& [seconds, after_eviction, queue] : kinds) {
    if (texts.size() == kMostNamed) break;
    texts.push_back(document::duration_text(seconds) + (after_eviction ? " after an eviction" : "") +
                    (queue == state.root() ? "" : " by the terms of queue " + state.queue(queue).path));
  }
  return listed(texts, [](const std::string& text) { return text; });
}

std::string why_nobody_leaves(State& state, const JobState& job, const Claims& claims, const EvictionFound& found,
                              Timestamp now) {
  const bool one = claims.whole() + static_cast<std::int64_t>(claims.grown.size()) == 1;
  if (found.too_dear) {
    return "more than " + document::duration_text(state.config().scheduling.preempt_max_loss_s) +
           " of unsaved GPU time would be lost for each GPU that it gains";
  }
  const std::string without = "without " + std::string(one ? "it" : "all of them") + " it would still not fit";
  if (const auto refused = refused_without(state, job, claims, true, now))
    return without +
           (refused->code == ReasonCode::kWouldDelayReservation ? " beside the starts that are held for others" : "");
  if (claims.in_burst > 0 && refused_without(state, job, claims, false, now)) {
    return (one ? "it is" : std::to_string(claims.in_burst) + " of them " + (claims.in_burst == 1 ? "is" : "are")) +
           std::string(" in a burst pool, from whose places nobody is reclaimed") +
           (one ? "" : ", and without the others it would still not fit");
  }
  if (const auto unlimited = found.left_out ? eviction_without_limits(state, job, now) : std::nullopt)
    return of_the_limits(state, *unlimited, now);
  if (const std::size_t not_yet_evictable = claims.not_yet_evictable.size(); not_yet_evictable > 0) {
    return (one ? "it has"
                : std::to_string(not_yet_evictable) + " of them " + (not_yet_evictable == 1 ? "has" : "have")) +
           std::string(" not run the minimum time yet: ") + of_their_minimum(state, claims.not_yet_evictable);
  }
  if (job.has_given_way())
    return "it has given way before and stops nobody who stands higher, and without the others it would still not fit";
  return without + " within what its queues are guaranteed" +
         (job.spec.exclusive ? ", against which whole nodes count" : "");
}

// "the 2 jobs that borrow or are of lower priority, and from what 1 job has grown by"
std::string from_whom(const Claims& claims) {
  const auto grown = static_cast<std::int64_t>(claims.grown.size());
  std::string text;
  if (claims.whole() > 0) {
    const bool one = claims.whole() == 1;
    text = "the " + counted(claims.whole(), "job") + " that " + (one ? "borrows or is" : "borrow or are") +
           " of lower priority";
    if (!claims.behind.empty()) text += one ? " or has had more GPU time" : " or have had more GPU time";
  }
  if (grown == 0) return text;
  return text + (text.empty() ? "" : ", and from ") + "what " + counted(grown, "job") +
         (grown == 1 ? " has" : " have") + " grown by";
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
    std::string line =
        "it may claim its place: " + counted(static_cast<std::int64_t>(decision->victims.size()), "job") +
        " would be asked to leave (" + std::string(name_of(decision->cause)) + "):";
    for (std::size_t i = 0; i < std::min(kMostNamed, decision->victims.size()); ++i) {
      line += (i == 0 ? " " : ", ") + job_text(decision->victims[i]);
      if (decision->keeps[i] > 0) line += " down to " + counted(decision->keeps[i], "task");
    }
    const JobId other = claim.conflict.futile_because_of;
    if (!other.valid()) return {line};
    return {line, "it does not: " + job_text(other) + ", queue " + state.queue(state.job(other)->queue).path +
                      ", lies within its guarantee and would reclaim from it as soon as it starts"};
  }
  std::vector<std::string> lines;
  if (const Timestamp from = state::may_evict_from(job); may && from > now) {
    const std::string because =
        job.evicts_from == from
            ? "it was promised places " + counted(job.lost_nominations, "time") + " and lost them again"
            : "it has come to its own end soon after its start";
    return {"it may stop nobody before " + to_iso8601(from) + ": " + because +
            "; until then it starts where GPUs are idle"};
  }
  const std::string no_room = no_room_within(state, job);
  const Claims claims = count_claims(state, job, now);
  if (!rules.reclaim) {
    lines.push_back("it cannot reclaim: the configuration turns reclaim off");
  } else if (claims.borrowed.empty() && !claims.borrowed_growth) {
    lines.push_back("it cannot reclaim: " +
                    (!no_room.empty()    ? no_room
                     : claims.some_leave ? "who borrows what its queues are guaranteed has been asked to leave already"
                                         : "nobody borrows what its queues are guaranteed"));
  }
  if (may_burst(state, job) && rules.reclaim)
    lines.push_back("nobody leaves a burst pool for a guarantee, because it backs none");
  if (!rules.preempt) lines.push_back("it cannot preempt: the configuration turns preemption off");
  if (claims.whole() > 0 || !claims.grown.empty()) {
    lines.push_back("it cannot claim its place from " + from_whom(claims) + ": " +
                    why_nobody_leaves(state, job, claims, claim, now));
  }
  return lines;
}

}  // namespace berth::explain
