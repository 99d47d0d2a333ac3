#include "sched/waking.h"

#include <algorithm>
#include <map>

#include "sched/admit.h"
#include "sched/backfill.h"
#include "sched/candidates.h"
#include "sched/fit.h"
#include "sched/fit_order.h"
#include "sched/neighbours.h"
#include "sched/preempt.h"
#include "sched/quota.h"
#include "state/trial.h"

namespace berth::sched {

using state::JobState;
using state::LaneKey;
using state::NodeState;
using state::QueueState;
using state::QuotaNeed;
using state::Sleep;
using state::State;
using state::Trial;
using state::WaitLists;
using Cohort = state::WaitLists::Cohort;
using Sleeper = state::WaitLists::Sleeper;

namespace {

state::NodeNeed node_need(const State& state, const TaskRequest& request) {
  const std::int64_t each = request.is_share() ? request.gpu_milli : kMilli;
  return {request.cpu_milli, request.memory_mib, request.gpus, static_cast<std::int32_t>(each),
          allowed_models(state, request)};
}

// Whether the node may hold one task, whoever asks: no pool, taint, label or trust domain is looked at.
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

// What it waits for is all told by the ceilings and the nodes.
bool waits_plainly(const Sleep& sleep) {
  return !sleep.any_easing && !sleep.any_change && !sleep.holds && sleep.until.is_never();
}

// The first of the lane, remembered for as long as it is that.
const WaitLists::Head& head_of(const State& state, Sleeper& sleeper) {
  if (!sleeper.head) {
    const state::PendingKey& first = *state.queue(sleeper.lane.queue).lanes.at(sleeper.lane.shape).begin();
    sleeper.head = WaitLists::Head{first, state.job(first.job)->not_before};
  }
  return *sleeper.head;
}

// Whether the job itself has to be looked at to tell what it may claim.
bool claims_depend_on_job(const State& state, const QueueState& leaf) {
  return !state.elastic().empty() || !leaf.service_thresholds.empty() || state.standpoint_of(leaf.id).limits_users;
}

// Otherwise: whether somebody of lower priority runs in its queue.
bool may_preempt(const State& state, const QueueState& leaf, const state::PendingKey& first) {
  return state.config().scheduling.preempt && !leaf.running.empty() &&
         leaf.running.begin()->first < -first.negated_priority;
}

// may_claim of the first of a lane, without looking at the job where what the lane's case says is enough.
bool first_may_claim(const State& state, const QueueState& leaf, const state::PendingKey& first,
                     const Questions::Case& what) {
  if (claims_depend_on_job(state, leaf)) return may_claim(state, *state.job(first.job), what.least);
  return may_preempt(state, leaf, first) || (state.config().scheduling.reclaim && what.within);
}

}  // namespace

bool may_claim_later(const State& state, QueueId leaf) {
  return !state.queue(leaf).service_thresholds.empty() ||
         (!state.elastic().empty() && state.standpoint_of(leaf).limits_users);
}

bool may_claim_by_now(const State& state, const LaneKey& lane) {
  if (!may_claim_later(state, lane.queue)) return false;
  const JobState& first = *state.job(state.queue(lane.queue).lanes.at(lane.shape).begin()->job);
  return may_claim(state, first, least_amounts(state, first.spec));
}

namespace {

// Whether what has stirred lanes of the cohort since they slept is gone again: a ceiling that they slept by refuses
// them, whatever GPUs they would get, or the nodes that became freer are taken.
bool is_refused_again(const State& state, const Cohort& cohort) {
  bool refused = nodes_are_taken(state, cohort);
  for (const QuotaNeed& need : cohort.sleep.quota) {
    const bool room = has_room(state, need);
    if (room && (need.within || !need.user.empty())) return false;  // below his limit again, somebody may claim
    refused = refused || (!need.within && need.any_model && need.user.empty() && !room);
  }
  return refused;
}

// Sends back to sleep those that were stirred, would be refused again and still have nothing to claim: they would sleep
// as before. Those of a cohort that is refused again lie within no guarantee, which saves looking at their case.
std::uint64_t resume_refused(State& state, Questions& questions) {
  state::WaitLists& waits = state.waits();
  std::uint64_t resumed = 0;
  std::map<const Cohort*, bool> refused;
  for (std::size_t i = waits.stirred().size(); i-- > 0;) {
    Sleeper& sleeper = *waits.stirred()[i];
    const auto [known, fresh] = refused.try_emplace(sleeper.cohort, false);
    if (fresh) known->second = is_refused_again(state, *sleeper.cohort);
    if (!known->second) continue;
    const state::PendingKey& first = head_of(state, sleeper).key;
    const QueueState& leaf = state.queue(sleeper.lane.queue);
    const bool claims =
        claims_depend_on_job(state, leaf)
            ? first_may_claim(state, leaf, first, questions.case_of({sleeper.lane.shape, leaf.standpoint}, first.job))
            : may_preempt(state, leaf, first);
    if (claims) continue;
    waits.resume(sleeper);
    ++resumed;
  }
  return resumed;
}

// A lane, and its place in its cohort if it still has one.
using Woken = std::pair<LaneKey, Sleeper*>;

// The sleeping lanes that what has changed since the last cycle may help. The marks are cleared.
std::vector<Woken> woken_by_changes(State& state, Timestamp now) {
  state::WaitLists& waits = state.waits();
  std::vector<Woken> woken;
  const auto add = [&](const LaneKey& lane) { woken.emplace_back(lane, waits.find_sleeper(lane)); };
  const auto add_cohort = [&](const Cohort& cohort) {
    for (Sleeper* sleeper : cohort.sleepers) {
      if (!sleeper->stirred()) woken.emplace_back(sleeper->lane, sleeper);
    }
  };
  for (const QueueId queue : waits.eased_queues()) {
    for (const Cohort* cohort : waits.waiting_for(queue)) {
      const auto& needs = cohort->sleep.quota;
      const bool room = std::any_of(needs.begin(), needs.end(), [&](const QuotaNeed& need) {
        return need.queue == queue && has_room(state, need);
      });
      if (room) add_cohort(*cohort);
    }
  }
  for (const auto& [shape, waiting] : waits.for_places()) {
    if (waits.eased_nodes().empty()) break;
    std::vector<NodeId> nodes;
    for (const NodeId node : waits.eased_nodes()) {
      if (may_hold(state.node(node), waiting.need)) nodes.push_back(node);
    }
    if (nodes.empty()) continue;
    for (Cohort* cohort : waiting.cohorts) {
      add_cohort(*cohort);
      if (cohort->by_node.size() <= WaitLists::kMostNodes)
        cohort->by_node.insert(cohort->by_node.end(), nodes.begin(), nodes.end());
    }
  }
  const auto add_all = [&](const std::set<LaneKey>& lanes) { std::for_each(lanes.begin(), lanes.end(), add); };
  if (waits.eased()) add_all(waits.for_any_easing());
  if (waits.changed()) add_all(waits.for_any_change());
  for (auto due = waits.for_time().begin(); due != waits.for_time().end() && due->first <= now; ++due) {
    add(due->second);
  }
  if (waits.eased_holds()) add_all(waits.behind_holds());
  waits.clear_marks();
  return woken;
}

// The ceilings that refuse the job, whatever its GPUs would be, or each of its models; and every guarantee it does not
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
    add_limit({});  // the number of jobs: below it, it may claim what the user's own gangs have grown by
  }
  for (std::size_t m = 0; m < state.gpu_models().size() && least[kDimGpu] > 0; ++m) {
    add_ceilings(amounts_on(state, job.spec, GpuModelId(static_cast<std::uint16_t>(m))), false);
  }
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
    if (state.queue(q).guaranteed.stated != 0) needs.push_back({q, least, true, true, {}});
  }
  return needs;
}

// Whether somebody beside the way to the root keeps back what is idle: then what is lent depends on what they use.
bool meets_lending_limits(const State& state, QueueId queue) {
  for (QueueId q = queue; q != state.root(); q = state.queue(q).parent) {
    if (!state.queue(state.queue(q).parent).keepers.empty()) return true;
  }
  return false;
}

// Refusals whose end can be told from the marks: a ceiling, or places for tasks that are all alike. Whether a gang of
// several groups fits depends on the order in which its groups are placed, so more room elsewhere is not the only way;
// nor is it where others, who may come or go elsewhere, decide where a job may be.
bool can_sleep(const State& state, const JobState& job, const Reason& why) {
  if (meets_lending_limits(state, job.queue)) return false;
  if (Neighbours(state, job).has_terms()) return false;
  switch (why.code) {
    case ReasonCode::kQueueMax:
    case ReasonCode::kUserLimit:
      return true;
    case ReasonCode::kGpusBusy:
    case ReasonCode::kFragmented:
    case ReasonCode::kTopology:
    case ReasonCode::kNeverFits:
    case ReasonCode::kPoolClosed:
    case ReasonCode::kMaintenance:
    case ReasonCode::kBehindHold:
    case ReasonCode::kApart:
    case ReasonCode::kNuma:
    case ReasonCode::kContainers:
      return job.spec.groups.size() == 1;
    default:
      return false;
  }
}

class Probe {
 public:
  Probe(State& state, Timestamp now, PlaceWork& work) : state_(state), trial_(state), now_(now), work_(work) {}

  // Why the first of the lane finds no quota or no places now, and nobody after it does beside the holds of others; or
  // null. Who finds both is asked, whatever its exact places then count.
  const Reason* refusal(const LaneKey& lane, const state::PendingKey& first, const Questions::Case& what) {
    if (!what.question) return &what.admission.reason;
    const Asked asked{*what.question, what.admission.models};
    const Answer& answer = places(asked, first.job);
    if (!answer.fits) return &answer.why;
    if (state_.start_holds().empty()) return nullptr;
    behind_ = behind_holds(lane, *state_.job(first.job), asked, *answer.placements);
    return behind_ ? &*behind_ : nullptr;
  }

 private:
  static constexpr std::size_t kLoosestLookedAt = 32;  // groups

  struct Asked {
    Questions::Id id = 0;
    ModelMask models = 0;
  };
  struct Answer {
    bool known = false;
    bool fits = false;
    std::optional<std::vector<TaskPlacement>> placements;  // some, if starts are held
    Reason why;
  };

  const Answer& places(const Asked& asked, JobId first) {
    if (asked.id >= answers_.size()) answers_.resize(asked.id + 1);
    Answer& answer = answers_[asked.id];
    if (std::exchange(answer.known, true)) return answer;
    const JobState& job = *state_.job(first);
    answer.fits = fits_where_most_is_free(asked.models, job);
    if (answer.fits) return answer;
    answer.placements = place(state_, job, asked.models, work_, answer.why);
    answer.fits = answer.placements.has_value();
    return answer;
  }

  static bool is_one_task(const JobState& job) {
    return job.spec.groups.size() == 1 && job.spec.groups.front().count == 1 && !job.spec.exclusive &&
           job.spec.topology == TopologyConstraint() && job.spec.groups.front().topology == TopologyConstraint() &&
           job.spec.affinity.empty();
  }

  // Saves most of the searches: whether one of the loosest nodes would do. With holds the very place matters.
  bool fits_where_most_is_free(ModelMask models, const JobState& job) {
    if (!is_one_task(job) || !state_.start_holds().empty()) return false;
    const TaskAsk ask = task_ask(state_, job, 0, models);
    const Neighbours neighbours(state_, job);
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

  std::optional<Reason> behind_holds(const LaneKey& lane, const JobState& first, const Asked& asked,
                                     const std::vector<TaskPlacement>& placements) {
    const JobId delayed = first_delayed(state_, first.queue, not_passed(state_, first, now_), placements);
    if (!delayed.valid() || fits_beside(first, asked, placements)) return std::nullopt;
    if (state_.queue(lane.queue).policy == QueuePolicy::kStrict) return behind_hold(state_, delayed);
    std::int64_t refused_length_s = length_s(first);
    std::size_t looked_at = 0;
    const auto& jobs = state_.queue(lane.queue).lanes.at(lane.shape);
    for (auto key = jobs.upper_bound(pending_key(first)); key != jobs.end(); ++key) {
      const JobState& job = *state_.job(key->job);
      if (job.not_before > now_ || job.nomination) continue;
      const bool owner = job.start_hold.has_value();
      if (!owner && ++looked_at > kLookedAtBehindHold) break;
      if (!owner && length_s(job) >= refused_length_s) continue;
      if (fits_beside(job, asked, placements)) return std::nullopt;
      refused_length_s = std::min(refused_length_s, length_s(job));
    }
    return behind_hold(state_, delayed);
  }

  // Where all holds that the job may not pass are respected.
  bool fits_beside(const JobState& job, const Asked& asked, const std::vector<TaskPlacement>& placements) {
    std::vector<JobId> owners = not_passed(state_, job, now_);
    if (!first_delayed(state_, job.queue, owners, placements).valid()) return true;
    const auto [known, fresh] = beside_.try_emplace({asked.id, std::move(owners)}, false);
    if (!fresh) return known->second;
    const Trial::Mark mark = trial_.mark();
    for (const JobId owner : known->first.second) trial_.set_aside(owner, state_.job(owner)->start_hold->placements);
    Reason why;
    known->second = place(state_, job, asked.models, work_, why).has_value();
    trial_.rollback_to(mark);
    return known->second;
  }

  State& state_;
  Trial trial_;
  Timestamp now_;
  PlaceWork& work_;
  std::optional<Reason> behind_;
  std::vector<Answer> answers_;                                          // by question
  std::map<std::pair<Questions::Id, std::vector<JobId>>, bool> beside_;  // whether it fits beside the holds of those
};

}  // namespace

namespace {

// How a refused job sleeps, or nothing if it could claim victims now.
std::optional<Sleep> sleep_of(State& state, const JobState& job, const Amounts& least, const Reason& why, Timestamp now,
                              SharedCandidates& candidates, PlaceWork& work) {
  const bool by_user = why.code == ReasonCode::kUserLimit;
  const bool behind = why.code == ReasonCode::kBehindHold;
  const bool may = may_claim(state, job, least);
  const bool claims = !is_never(why.code) && may;
  Sleep sleep;
  if (may && !claims && can_sleep(state, job, why)) {
    sleep.any_easing = true;  // when it can be after all (a GPU heals), it may claim what others hold
    return sleep;
  }
  if (!claims && can_sleep(state, job, why)) {
    sleep.quota = quota_needs(state, job, least);
    if (!by_user && why.code != ReasonCode::kQueueMax) sleep.places = node_need(state, job.spec.groups.front().request);
    sleep.holds = behind;
    return sleep;
  }
  sleep.holds = behind || (claims && !not_passed(state, job, now).empty());
  if (claims) {
    // Where more victims can make it harder to fit, their order decides, and that changes with time and checkpoints.
    if (job.spec.groups.size() > 1 || Neighbours(state, job).has_terms()) return std::nullopt;
    // What a window closes to a claim hangs on how long its victims may take, and who they are changes with time.
    if (!state.maintenance().empty()) return std::nullopt;
    PlaceWork claim;
    const std::set<JobId> nobody;
    const VictimSearch search{state, now, nobody, eviction_budget(state, now, 0), &candidates};
    const bool succeeds = find_victims(search, job.id, claim).has_value();
    work.nodes_scored += claim.nodes_scored;
    if (succeeds || claim.left_out) return std::nullopt;
    sleep.until = claim.ask_again_at;
    // What not even all victims together would make possible stays so as long as nothing is given back.
    sleep.any_easing = claim.hopeless;
  }
  sleep.any_change = !sleep.any_easing;
  return sleep;
}

// The same for a lane; those of a case that are refused alike and cannot claim sleep alike.
std::optional<Sleep> sleep_of(State& state, const QueueState& leaf, const state::PendingKey& first,
                              Questions::Case& what, const Reason& why, Timestamp now, SharedCandidates& candidates,
                              PlaceWork& work) {
  const bool behind = why.code == ReasonCode::kBehindHold;
  const bool may = first_may_claim(state, leaf, first, what);
  if (!may && !behind && what.sleep && what.sleep_for == why.code) return what.sleep;
  auto sleep = sleep_of(state, *state.job(first.job), what.least, why, now, candidates, work);
  if (!may && !behind && sleep) {
    what.sleep = sleep;
    what.sleep_for = why.code;
  }
  return sleep;
}

// The first of the lane that may be asked now, or nothing.
std::optional<state::PendingKey> first_eligible(const State& state, const LaneKey& lane, Sleeper* sleeper,
                                                Timestamp now) {
  if (sleeper != nullptr && state.nominated().empty()) {
    const WaitLists::Head& head = head_of(state, *sleeper);
    if (head.not_before <= now) return head.key;
  }
  for (const state::PendingKey& key : state.queue(lane.queue).lanes.at(lane.shape)) {
    const JobState& job = *state.job(key.job);
    if (job.not_before <= now && !job.nomination) return key;
  }
  return std::nullopt;
}

// All lanes that have to be probed, in their order.
std::vector<Woken> lanes_to_probe(State& state, Timestamp now, Questions& questions, std::uint64_t& resumed) {
  std::vector<Woken> lanes = woken_by_changes(state, now);
  resumed = resume_refused(state, questions);
  state::WaitLists& waits = state.waits();
  for (Sleeper* sleeper : waits.stirred()) lanes.emplace_back(sleeper->lane, sleeper);
  for (const LaneKey& lane : waits.awake()) lanes.emplace_back(lane, nullptr);
  std::sort(lanes.begin(), lanes.end(), [](const Woken& a, const Woken& b) { return a.first < b.first; });
  const auto same_lane = [](const Woken& a, const Woken& b) { return a.first == b.first; };
  lanes.erase(std::unique(lanes.begin(), lanes.end(), same_lane), lanes.end());
  return lanes;
}

}  // namespace

bool nodes_are_taken(const State& state, const Cohort& cohort) {
  if (!cohort.sleep.places || cohort.by_node.empty() || cohort.by_node.size() > WaitLists::kMostNodes) return false;
  const auto& needs = cohort.sleep.quota;  // a ceiling on one GPU model that has gained room may be what stirred it
  if (std::any_of(needs.begin(), needs.end(), [](const QuotaNeed& need) { return !need.within; })) return false;
  return std::none_of(cohort.by_node.begin(), cohort.by_node.end(),
                      [&](NodeId node) { return may_hold(state.node(node), *cohort.sleep.places); });
}

Probed probe_lanes(State& state, Timestamp now, PlaceWork& work, Questions& questions, Openings& openings) {
  state::WaitLists& waits = state.waits();
  Probed probed;
  Probe probe(state, now, work);
  SharedCandidates candidates;
  const std::vector<Woken> lanes = lanes_to_probe(state, now, questions, probed.resumed);
  probed.lanes = lanes.size();
  probed.refused.reserve(lanes.size());
  for (const auto& [lane, sleeper] : lanes) {
    const auto first = first_eligible(state, lane, sleeper, now);
    const QueueState& leaf = state.queue(lane.queue);
    Questions::Case* what = nullptr;
    const Reason* why = nullptr;
    if (first) {
      what = &questions.case_of({lane.shape, leaf.standpoint}, first->job);
      why = probe.refusal(lane, *first, *what);
    }
    if (why != nullptr) {
      if (auto sleep = sleep_of(state, leaf, *first, *what, *why, now, candidates, work)) {
        probed.refused.emplace_back(first->job, *why);
        waits.put_to_sleep(lane, leaf.standpoint, *sleep);
        continue;
      }
    }
    const bool plainly = sleeper != nullptr && waits_plainly(sleeper->cohort->sleep);
    const Cohort* stirred = plainly ? sleeper->cohort : nullptr;
    if (plainly)
      waits.stir(*sleeper);
    else
      waits.wake(lane);
    if (!first) continue;  // nobody of it may be asked yet
    const bool claims = why != nullptr || first_may_claim(state, leaf, *first, *what);
    openings.add({lane, *first, &what->least}, *what, claims, stirred);
  }
  return probed;
}

}  // namespace berth::sched
