#include "sched/requeue/requeue.h"

#include <algorithm>
#include <map>

#include "sched/backfill/backfill.h"
#include "sched/place/affinity.h"
#include "sched/place/node_iterator.h"
#include "sched/preempt/preempt.h"
#include "sched/preempt/victim_candidates.h"
#include "sched/queue/admit.h"
#include "sched/queue/quota.h"
#include "sched/start.h"
#include "state/transaction.h"

namespace berth::sched {

using state::EquivalenceKey;
using state::JobState;
using state::NodeState;
using state::QueueState;
using state::QuotaNeed;
using state::State;
using state::Transaction;
using state::WaitCause;
using state::WaitIndex;
using WaitGroup = state::WaitIndex::WaitGroup;
using ParkedClass = state::WaitIndex::ParkedClass;

namespace {

state::NodeNeed node_need(const State& state, const TaskRequest& request) {
  const std::int64_t each = request.is_share() ? request.gpu_milli : kMilli;
  return {request.cpu_milli, request.memory_mib, request.gpus, static_cast<std::int32_t>(each),
          allowed_models(state, request)};
}

// Returns true if the node may hold one task of any job with these needs. Pools, taints, labels and trust domains are
// ignored.
bool may_hold(const NodeState& node, const state::NodeNeed& need) {
  if (!node.takes_tasks() || node.available_cpu_milli() < need.cpu_milli ||
      node.available_memory_mib() < need.memory_mib) {
    return false;
  }
  return std::count_if(node.gpus.begin(), node.gpus.end(), [&](const state::GpuSlot& gpu) {
           return gpu.available_milli() >= need.milli_of_each && (need.models >> gpu.model.index() & 1U) != 0;
         }) >= need.gpus;
}

bool has_room(const State& state, const QuotaNeed& need) {
  const QueueState& queue = state.queue(need.queue);
  if (!need.user.empty()) return !over_user_limit(queue, need.user, need.asked);
  if (need.within) return would_be_within(state, need.queue, need.asked);
  for (std::size_t dim = 0; dim < kDims; ++dim) {
    if (need.asked[dim] <= 0 || queue.max[dim] == kUnlimited) continue;
    if (queue.usage[dim] + queue.nominated[dim] > queue.max[dim] - need.asked[dim]) return false;
  }
  return true;
}

// Returns true if the class waits only for ceilings, guarantees and nodes, which are marked when they are freed.
bool waits_plainly(const WaitCause& wait_cause) {
  return !wait_cause.on_any_release && !wait_cause.any_change && !wait_cause.holds && wait_cause.until.is_never();
}

// Returns the first job of the class; it is cached until that job leaves the class.
const WaitIndex::Head& head_of(const State& state, ParkedClass& parked_class) {
  if (!parked_class.head) {
    const state::PendingKey& first =
        *state.queue(parked_class.eq_class.queue).eq_classes.at(parked_class.eq_class.shape).begin();
    parked_class.head = WaitIndex::Head{first, state.job(first.job)->not_before};
  }
  return *parked_class.head;
}

// Returns true if the job itself must be looked at to tell whether it may evict.
bool eviction_depends_on_job(const State& state, const QueueState& leaf) {
  return !state.elastic().empty() || !leaf.service_thresholds.empty() || state.quota_path_of(leaf.id).limits_users;
}

// Otherwise: returns true if a job of lower priority runs in the queue.
bool may_preempt(const State& state, const QueueState& leaf, const state::PendingKey& first) {
  return state.config().scheduling.preempt && !leaf.running.empty() &&
         leaf.running.begin()->first < -first.negated_priority;
}

// The same as may_evict_others for the first job of a class. Looks at the job only if the class's case does not say
// enough.
bool first_may_evict(const State& state, const QueueState& leaf, const state::PendingKey& first,
                     const Verdicts::Case& what) {
  if (eviction_depends_on_job(state, leaf)) return may_evict_others(state, *state.job(first.job), what.least);
  return may_preempt(state, leaf, first) || (state.config().scheduling.reclaim && what.within);
}

}  // namespace

bool may_evict_later(const State& state, QueueId leaf) {
  return !state.queue(leaf).service_thresholds.empty() ||
         (!state.elastic().empty() && state.quota_path_of(leaf).limits_users);
}

bool may_evict_by_now(const State& state, const EquivalenceKey& eq_class) {
  if (!may_evict_later(state, eq_class.queue)) return false;
  const JobState& first = *state.job(state.queue(eq_class.queue).eq_classes.at(eq_class.shape).begin()->job);
  return may_evict_others(state, first, least_amounts(state, first.spec));
}

namespace {

// Returns true if what signalled classes of the wait group is gone again: a ceiling that they waited for refuses them
// on any GPU model, or the freed nodes are taken.
bool is_refused_again(const State& state, const WaitGroup& wait_group) {
  bool refused = nodes_are_taken(state, wait_group);
  for (const QuotaNeed& need : wait_group.wait_cause.quota) {
    const bool room = has_room(state, need);
    if (room && (need.within || !need.user.empty())) return false;  // below the user's limit again, a job may evict
    refused = refused || (!need.within && need.any_model && need.user.empty() && !room);
  }
  return refused;
}

// Parks signalled classes again without a probe, if what they waited for is gone again and their first job still cannot
// evict: a probe would only park them as before. Returns how many. These classes are within no guarantee, so they
// cannot reclaim. Unless eviction depends on the job itself, only preemption in their queue is checked.
std::uint64_t resume_refused(State& state, Verdicts& verdicts) {
  state::WaitIndex& waits = state.waits();
  std::uint64_t resumed = 0;
  std::map<const WaitGroup*, bool> refused;
  for (std::size_t i = waits.signalled().size(); i-- > 0;) {
    ParkedClass& parked_class = *waits.signalled()[i];
    const auto [known, fresh] = refused.try_emplace(parked_class.wait_group, false);
    if (fresh) known->second = is_refused_again(state, *parked_class.wait_group);
    if (!known->second) continue;
    const state::PendingKey& first = head_of(state, parked_class).key;
    const QueueState& leaf = state.queue(parked_class.eq_class.queue);
    const bool claims =
        eviction_depends_on_job(state, leaf)
            ? first_may_evict(state, leaf, first,
                              verdicts.case_of({parked_class.eq_class.shape, leaf.quota_path}, first.job))
            : may_preempt(state, leaf, first);
    if (claims) continue;
    waits.resume(parked_class);
    ++resumed;
  }
  return resumed;
}

// A class, and its entry in its wait group if it still has one.
using Woken = std::pair<EquivalenceKey, ParkedClass*>;

// Returns the parked classes that may be helped by what changed since the last cycle, and clears the marks.
std::vector<Woken> woken_by_changes(State& state, Timestamp now) {
  state::WaitIndex& waits = state.waits();
  std::vector<Woken> woken;
  const auto add = [&](const EquivalenceKey& eq_class) { woken.emplace_back(eq_class, waits.find_parked(eq_class)); };
  const auto add_wait_group = [&](const WaitGroup& wait_group) {
    for (ParkedClass* parked_class : wait_group.parked_classes) {
      if (!parked_class->signalled()) woken.emplace_back(parked_class->eq_class, parked_class);
    }
  };
  for (const QueueId queue : waits.freed_queues()) {
    for (const WaitGroup* wait_group : waits.waiting_for(queue)) {
      const auto& needs = wait_group->wait_cause.quota;
      const bool room = std::any_of(needs.begin(), needs.end(), [&](const QuotaNeed& need) {
        return need.queue == queue && has_room(state, need);
      });
      if (room) add_wait_group(*wait_group);
    }
  }
  for (const auto& [shape, waiting] : waits.for_places()) {
    if (waits.freed_nodes().empty()) break;
    std::vector<NodeId> nodes;
    for (const NodeId node : waits.freed_nodes()) {
      if (may_hold(state.node(node), waiting.need)) nodes.push_back(node);
    }
    if (nodes.empty()) continue;
    for (WaitGroup* wait_group : waiting.wait_groups) {
      add_wait_group(*wait_group);
      if (wait_group->by_node.size() <= WaitIndex::kMostNodes)
        wait_group->by_node.insert(wait_group->by_node.end(), nodes.begin(), nodes.end());
    }
  }
  const auto add_all = [&](const std::set<EquivalenceKey>& eq_classes) {
    std::for_each(eq_classes.begin(), eq_classes.end(), add);
  };
  if (waits.any_freed()) add_all(waits.for_any_release());
  if (waits.changed()) add_all(waits.for_any_change());
  for (auto due = waits.for_time().begin(); due != waits.for_time().end() && due->first <= now; ++due) {
    add(due->second);
  }
  if (waits.reservations_freed()) add_all(waits.behind_reservations());
  waits.clear_marks();
  return woken;
}

// Returns the ceilings that refuse the job, on any model or on each of its models, and every guarantee that it does not
// fit into.
std::vector<QuotaNeed> quota_needs(const State& state, const JobState& job, const Amounts& least) {
  std::vector<QuotaNeed> needs;
  const auto add_ceilings = [&](const Amounts& asked, bool any_model) {
    for (QueueId q = job.queue; q.valid(); q = state.queue(q).parent) {
      const QuotaNeed need{q, asked, false, any_model, {}};
      if (!has_room(state, need)) needs.push_back(need);
    }
  };
  add_ceilings(least, true);
  for (QueueId q = job.queue; q.valid(); q = state.queue(q).parent) {
    const auto add_limit = [&](const Amounts& asked) {
      if (over_user_limit(state.queue(q), job.spec.user, asked))
        needs.push_back({q, asked, false, true, job.spec.user});
    };
    add_limit(least);
    add_limit({});  // the number of jobs: below it, the job may take scaled-up tasks of the same user
  }
  for (std::size_t m = 0; m < state.gpu_models().size() && least[kDimGpu] > 0; ++m) {
    add_ceilings(amounts_on(state, job.spec, GpuModelId(static_cast<std::uint16_t>(m))), false);
  }
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
    if (state.queue(q).guaranteed.stated != 0) needs.push_back({q, least, true, true, {}});
  }
  return needs;
}

// Returns true if a sibling on the quota path keeps back idle guarantees: then what is lent depends on its usage.
bool meets_lending_limits(const State& state, QueueId queue) {
  for (QueueId q = queue; q != state.root(); q = state.queue(q).parent) {
    if (!state.queue(state.queue(q).parent).keepers.empty()) return true;
  }
  return false;
}

// Returns true if the marks tell when the refusal may end: a ceiling, or places for tasks that are all equal. For a
// gang of several groups more room is not the only way to fit, because it depends on the order in which groups are
// placed. Nor is it for a job with affinity rules, because other jobs come and go elsewhere.
bool can_park(const State& state, const JobState& job, const Reason& why) {
  if (meets_lending_limits(state, job.queue)) return false;
  if (AffinityFilter(state, job).has_terms()) return false;
  const ReasonInfo::Park park = info_of(why.code).may_park;
  return park == ReasonInfo::Park::kAnyJob || (park == ReasonInfo::Park::kOneGroup && job.spec.groups.size() == 1);
}

// The stages of a start for the first jobs of equivalence classes, whose answers are remembered for all that ask the
// same. Stage 3 is left out: a job that has quota and places is evaluated, whatever its exact places then count.
class Probe {
 public:
  Probe(State& state, Timestamp now, SearchStats& work) : state_(state), transaction_(state), now_(now), work_(work) {}

  // Returns why the first job of the class does not start and no job after it does beside backfill reservations, or
  // null. Valid until the next call.
  const Reason* refusal(const EquivalenceKey& eq_class, const state::PendingKey& first, const Verdicts::Case& what) {
    const JobState& job = *state_.job(first.job);
    const StartRefusal refused = refuse(job, what);
    if (refused.why != nullptr || !refused) return refused.why;
    if (any_later_starts(eq_class, job, what)) return nullptr;
    behind_ = would_delay(state_, refused.delayed);
    return &behind_;
  }

 private:
  static constexpr std::size_t kLoosestLookedAt = 32;  // groups

  struct Answer {
    bool known = false;
    bool fits = false;
    StartAnswer answer;  // its places only where there are reservations
  };

  // The memo of refuses_start, for jobs that ask one question or that quota does not admit.
  struct Memo {
    Probe& probe;
    const Verdicts::Case& what;
    const Answer* known = nullptr;

    const Reason* refusal(const StartQuestion& question) {
      if (!what.question) return &what.admission.reason;
      known = &probe.places(*what.question, question);
      return known->fits ? nullptr : &known->answer.why;
    }
    std::span<const TaskPlacement> places() const { return *known->answer.placements; }
    bool fits_beside(const StartQuestion& question, std::vector<JobId> owners) {
      return probe.fits_beside(*what.question, question, std::move(owners));
    }
  };

  StartRefusal refuse(const JobState& job, const Verdicts::Case& what) {
    Memo memo{*this, what};
    return refuses_start({state_, job, now_, work_, &what.admission, QuotaOfPlaces::kUnchecked}, memo);
  }

  const Answer& places(Verdicts::Id id, const StartQuestion& question) {
    if (id >= answers_.size()) answers_.resize(id + 1);
    Answer& known = answers_[id];
    if (std::exchange(known.known, true)) return known;
    known.fits = fits_where_most_is_free(question.admission->models, question.job);
    if (known.fits) return known;
    known.answer = find_places(question);
    known.fits = bool{known.answer};
    return known;
  }

  bool fits_beside(Verdicts::Id id, const StartQuestion& question, std::vector<JobId> owners) {
    const auto [known, fresh] = beside_.try_emplace({id, std::move(owners)}, false);
    if (fresh) {
      known->second = beside_reservations(transaction_, state_, known->first.second,
                                          [&] { return bool{find_places(question.only_whether())}; });
    }
    return known->second;
  }

  static bool is_one_task(const JobState& job) {
    return job.spec.groups.size() == 1 && job.spec.groups.front().count == 1 && !job.spec.exclusive &&
           job.spec.topology == TopologyConstraint() && job.spec.groups.front().topology == TopologyConstraint() &&
           job.spec.affinity.empty();
  }

  // Returns true if one of the loosest nodes takes the job, which saves most searches. With reservations the exact
  // places matter, so it returns false.
  bool fits_where_most_is_free(ModelMask models, const JobState& job) {
    if (!is_one_task(job) || !state_.reservations().empty()) return false;
    const TaskRequirements ask = task_requirements(state_, job, 0, models);
    const AffinityFilter neighbours(state_, job);
    const std::size_t least = state::Reach::of(ask.group.request).step();
    std::size_t looked_at = 0;
    for (std::size_t reach = state::Reach::kSteps; reach-- > least;) {
      for (const state::ModelGroups& part : state_.node_index().groups()) {
        const state::NodeGroups& groups = part.by_reach[reach];
        for (auto group = groups.rbegin(); may_fit(ask, part) && group != groups.rend(); ++group) {
          ++work_.nodes_scored;
          if (++looked_at > kLoosestLookedAt) return false;
          if (!group_fits(ask, group->first)) continue;
          const NodeState& most_cpu = state_.node(group->second.memory.rbegin()->first.second);
          ++work_.nodes_scored;
          if (suits(ask, most_cpu) && neighbours.allows(most_cpu.id) && try_node(ask, most_cpu, {})) return true;
        }
      }
    }
    return false;
  }

  // Whether a job of the class after the first, which would delay the owner of a reservation, may pass it or fits
  // beside it. In a strict queue the first stands for all.
  bool any_later_starts(const EquivalenceKey& eq_class, const JobState& first, const Verdicts::Case& what) {
    if (state_.queue(eq_class.queue).policy == QueuePolicy::kStrict) return false;
    std::int64_t refused_length_ms = length_ms(state_, first);
    std::size_t looked_at = 0;
    const auto& jobs = state_.queue(eq_class.queue).eq_classes.at(eq_class.shape);
    for (auto key = jobs.upper_bound(pending_key(first)); key != jobs.end(); ++key) {
      const JobState& job = *state_.job(key->job);
      if (job.not_before > now_ || job.nomination) continue;
      const bool owner = job.reservation.has_value();
      if (!owner && ++looked_at > kLookedAtBehindReservation) break;
      if (!owner && length_ms(state_, job) >= refused_length_ms) continue;
      if (!refuse(job, what)) return true;
      refused_length_ms = std::min(refused_length_ms, length_ms(state_, job));
    }
    return false;
  }

  State& state_;
  Transaction transaction_;
  Timestamp now_;
  SearchStats& work_;
  Reason behind_;
  std::vector<Answer> answers_;  // by verdict id
  std::map<std::pair<Verdicts::Id, std::vector<JobId>>, bool>
      beside_;  // whether it fits beside the owners' reservations
};

}  // namespace

namespace {

// With what it is decided whether the first jobs of equivalence classes are parked.
struct Parking {
  State& state;
  Timestamp now;
  SharedVictimCandidates& candidates;
  SearchStats& work;
};

// Returns what a refused job waits for, or nothing if it could evict victims now.
std::optional<WaitCause> wait_cause_of(const Parking& parking, const JobState& job, const Amounts& least,
                                       const Reason& why) {
  State& state = parking.state;
  const Timestamp now = parking.now;
  const bool by_user = why.code == ReasonCode::kUserLimit;
  const bool behind = why.code == ReasonCode::kWouldDelayReservation;
  const bool may = may_evict_others(state, job, least);
  const bool claims = !is_never(why.code) && may;
  WaitCause wait_cause;
  if (may && !claims && can_park(state, job, why)) {
    wait_cause.on_any_release = true;  // if it can fit after all (a GPU is repaired), it may evict
    return wait_cause;
  }
  if (!claims && can_park(state, job, why)) {
    wait_cause.quota = quota_needs(state, job, least);
    if (!by_user && why.code != ReasonCode::kQuotaMax)
      wait_cause.places = node_need(state, job.spec.groups.front().request);
    wait_cause.holds = behind;
    return wait_cause;
  }
  wait_cause.holds = behind || (claims && !not_passed(state, job, now).empty());
  if (claims) {
    // If more victims can make it harder to fit, their order decides, and that changes with time and checkpoints.
    if (job.spec.groups.size() > 1 || AffinityFilter(state, job).has_terms()) return std::nullopt;
    // Which nodes a window closes to a preemptor depends on how long its victims may take, and the victims change with
    // time.
    if (!state.maintenance().empty()) return std::nullopt;
    const std::set<JobId> nobody;
    const VictimSearch search{state, now, nobody, eviction_budget(state, now, 0), &parking.candidates};
    const VictimsFound found = find_victims(search, job.id, parking.work);
    if (found.decision || found.left_out) return std::nullopt;
    wait_cause.until = found.reevaluate_at;
    // If the job would not fit even without all candidates, that stays so until something is released.
    wait_cause.on_any_release = found.hopeless;
  }
  wait_cause.any_change = !wait_cause.on_any_release;
  return wait_cause;
}

// The same for the first job of a class of the leaf. Jobs of one case that are refused alike and cannot evict wait
// alike.
std::optional<WaitCause> wait_cause_of(const Parking& parking, const QueueState& leaf, const state::PendingKey& first,
                                       Verdicts::Case& what, const Reason& why) {
  const bool behind = why.code == ReasonCode::kWouldDelayReservation;
  const bool may = first_may_evict(parking.state, leaf, first, what);
  if (!may && !behind && what.wait_cause && what.parked_for == why.code) return what.wait_cause;
  auto wait_cause = wait_cause_of(parking, *parking.state.job(first.job), what.least, why);
  if (!may && !behind && wait_cause) {
    what.wait_cause = wait_cause;
    what.parked_for = why.code;
  }
  return wait_cause;
}

// Returns the first job of the class that may be evaluated now, or nothing.
std::optional<state::PendingKey> first_eligible(const State& state, const EquivalenceKey& eq_class,
                                                ParkedClass* parked_class, Timestamp now) {
  if (parked_class != nullptr && state.nominated().empty()) {
    const WaitIndex::Head& head = head_of(state, *parked_class);
    if (head.not_before <= now) return head.key;
  }
  for (const state::PendingKey& key : state.queue(eq_class.queue).eq_classes.at(eq_class.shape)) {
    const JobState& job = *state.job(key.job);
    if (job.not_before <= now && !job.nomination) return key;
  }
  return std::nullopt;
}

// Returns all classes that must be probed, in order.
std::vector<Woken> classes_to_probe(State& state, Timestamp now, Verdicts& verdicts, std::uint64_t& resumed) {
  std::vector<Woken> eq_classes = woken_by_changes(state, now);
  resumed = resume_refused(state, verdicts);
  state::WaitIndex& waits = state.waits();
  for (ParkedClass* parked_class : waits.signalled()) eq_classes.emplace_back(parked_class->eq_class, parked_class);
  for (const EquivalenceKey& eq_class : waits.active()) eq_classes.emplace_back(eq_class, nullptr);
  std::sort(eq_classes.begin(), eq_classes.end(), [](const Woken& a, const Woken& b) { return a.first < b.first; });
  const auto same_class = [](const Woken& a, const Woken& b) { return a.first == b.first; };
  eq_classes.erase(std::unique(eq_classes.begin(), eq_classes.end(), same_class), eq_classes.end());
  return eq_classes;
}

}  // namespace

bool nodes_are_taken(const State& state, const WaitGroup& wait_group) {
  if (!wait_group.wait_cause.places || wait_group.by_node.empty() || wait_group.by_node.size() > WaitIndex::kMostNodes)
    return false;
  const auto& needs = wait_group.wait_cause.quota;  // a ceiling on one GPU model may have signalled it
  if (std::any_of(needs.begin(), needs.end(), [](const QuotaNeed& need) { return !need.within; })) return false;
  return std::none_of(wait_group.by_node.begin(), wait_group.by_node.end(),
                      [&](NodeId node) { return may_hold(state.node(node), *wait_group.wait_cause.places); });
}

Probed probe_classes(State& state, Timestamp now, SearchStats& work, Verdicts& verdicts, CycleCache& cache) {
  state::WaitIndex& waits = state.waits();
  Probed probed;
  Probe probe(state, now, work);
  SharedVictimCandidates candidates;
  const Parking parking{state, now, candidates, work};
  const std::vector<Woken> eq_classes = classes_to_probe(state, now, verdicts, probed.resumed);
  probed.eq_classes = eq_classes.size();
  probed.refused.reserve(eq_classes.size());
  for (const auto& [eq_class, parked_class] : eq_classes) {
    const auto first = first_eligible(state, eq_class, parked_class, now);
    const QueueState& leaf = state.queue(eq_class.queue);
    Verdicts::Case* what = nullptr;
    const Reason* why = nullptr;
    if (first) {
      what = &verdicts.case_of({eq_class.shape, leaf.quota_path}, first->job);
      why = probe.refusal(eq_class, *first, *what);
    }
    if (why != nullptr) {
      if (auto wait_cause = wait_cause_of(parking, leaf, *first, *what, *why)) {
        probed.refused.emplace_back(first->job, *why);
        waits.park(eq_class, leaf.quota_path, *wait_cause);
        continue;
      }
    }
    const bool plainly = parked_class != nullptr && waits_plainly(parked_class->wait_group->wait_cause);
    const WaitGroup* signalled = plainly ? parked_class->wait_group : nullptr;
    if (plainly)
      waits.signal_class(*parked_class);
    else
      waits.activate(eq_class);
    if (!first) continue;  // no job of it may be evaluated yet
    if (why != nullptr && what->question && is_placement_reason(why->code))
      cache.note_refused_at_first(*what->question, *why);
    const bool claims = why != nullptr || first_may_evict(state, leaf, *first, *what);
    cache.add({eq_class, *first, &what->least}, *what, claims, signalled);
  }
  return probed;
}

}  // namespace berth::sched
