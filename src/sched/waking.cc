#include "sched/waking.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sched/admit.h"
#include "sched/preempt.h"
#include "sched/quota.h"

namespace berth::sched {

using state::JobState;
using state::LaneKey;
using state::NodeState;
using state::QueueState;
using state::QuotaNeed;
using state::Sleep;
using state::State;

namespace {

// Whether the node may hold one task of the request, whoever asks: no pool, taint, label or trust domain is looked at.
bool may_hold(const NodeState& node, const TaskRequest& request) {
  if (!node.takes_tasks() || node.available_cpu_milli() < request.cpu_milli ||
      node.available_memory_mib() < request.memory_mib) {
    return false;
  }
  const std::int32_t each = request.is_share() ? request.gpu_milli : static_cast<std::int32_t>(kMilli);
  return std::count_if(node.gpus.begin(), node.gpus.end(),
                       [&](const state::GpuSlot& gpu) { return gpu.available_milli() >= each; }) >= request.gpus;
}

bool has_room(const State& state, const QuotaNeed& need) {
  const QueueState& queue = state.queue(need.queue);
  if (!need.user.empty()) return !over_user_limit(queue, need.user, need.asked);
  if (need.within) return would_be_within(state, need.queue, need.asked);
  return first_over(queue.usage + queue.nominated, need.asked, queue.max) == kDims;
}

void wake_eased(State& state, Timestamp now) {
  state::WaitLists& waits = state.waits();
  std::vector<LaneKey> woken;
  for (const QueueId queue : waits.eased_queues()) {
    for (const LaneKey& lane : waits.waiting_for(queue)) {
      const auto& needs = waits.sleep_of(lane).quota;
      const bool room = std::any_of(needs.begin(), needs.end(), [&](const QuotaNeed& need) {
        return need.queue == queue && has_room(state, need);
      });
      if (room) woken.push_back(lane);
    }
  }
  for (const auto& [shape, lanes] : waits.for_places()) {
    const LaneKey& any = *lanes.begin();
    const JobId job = state.queue(any.queue).lanes.at(shape).begin()->job;
    const TaskRequest& request = state.job(job)->spec.groups.front().request;
    const bool room = std::any_of(waits.eased_nodes().begin(), waits.eased_nodes().end(),
                                  [&](NodeId node) { return may_hold(state.node(node), request); });
    if (room) woken.insert(woken.end(), lanes.begin(), lanes.end());
  }
  if (waits.changed()) woken.insert(woken.end(), waits.for_any_change().begin(), waits.for_any_change().end());
  for (auto due = waits.for_time().begin(); due != waits.for_time().end() && due->first <= now; ++due) {
    woken.push_back(due->second);
  }
  for (const LaneKey& lane : woken) waits.wake(lane);
  waits.clear_marks();
}

// The ceilings that refuse the job, whatever its GPUs would be, or each of its models; and every guarantee it does not
// fit into.
std::vector<QuotaNeed> quota_needs(const State& state, const JobState& job, const Amounts& least) {
  std::vector<QuotaNeed> needs;
  const auto add_ceilings = [&](const Amounts& asked) {
    for (QueueId q = job.queue; q.valid(); q = state.queue(q).parent) {
      const QuotaNeed need{q, asked, false};
      if (!has_room(state, need)) needs.push_back(need);
    }
  };
  add_ceilings(least);
  for (QueueId q = job.queue; q.valid(); q = state.queue(q).parent) {
    if (over_user_limit(state.queue(q), job.spec.user, least)) needs.push_back({q, least, false, job.spec.user});
  }
  for (std::size_t m = 0; m < state.gpu_models().size() && least[kDimGpu] > 0; ++m) {
    add_ceilings(amounts_on(state, job.spec, GpuModelId(static_cast<std::uint16_t>(m))));
  }
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent) {
    if (state.queue(q).guaranteed.stated != 0) needs.push_back({q, least, true});
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
// several groups fits depends on the order in which its groups are placed, so more room elsewhere is not the only way.
bool can_sleep(const State& state, const JobState& job, const Reason& why) {
  if (meets_lending_limits(state, job.queue)) return false;
  switch (why.code) {
    case ReasonCode::kQueueMax:
    case ReasonCode::kUserLimit:
      return true;
    case ReasonCode::kGpusBusy:
    case ReasonCode::kFragmented:
    case ReasonCode::kTopology:
    case ReasonCode::kNeverFits:
    case ReasonCode::kPoolClosed:
      return job.spec.groups.size() == 1;
    default:
      return false;
  }
}

class Probe {
 public:
  Probe(State& state, PlaceWork& work) : state_(state), work_(work) {}

  // Why the job finds no quota or no places now, or nothing. One that finds both is asked, whatever its exact places
  // then count.
  std::optional<Reason> refusal(const JobState& job) {
    const Admission admission = admit(state_, job);
    if (admission.models == 0) return admission.reason;
    const Question question{job.shape, admission.models, state_.queue(job.queue).trust_domain, pools_of(job.queue)};
    if (const auto known = refused_.find(question); known != refused_.end()) return known->second;
    Reason why;
    if (place(state_, job, admission.models, work_, why)) return std::nullopt;
    refused_.emplace(question, why);
    return why;
  }

 private:
  // All that the search for places looks at, besides the nodes.
  using Question = std::tuple<std::uint64_t, ModelMask, TrustDomainId, std::vector<bool>>;

  std::vector<bool> pools_of(QueueId queue) const {
    std::vector<bool> pools;
    for (std::uint32_t i = 0; i < state_.pools().size(); ++i) pools.push_back(may_use_pool(state_, queue, i));
    return pools;
  }

  State& state_;
  PlaceWork& work_;
  std::map<Question, Reason> refused_;
};

}  // namespace

namespace {

// How a refused job sleeps, or nothing if it could claim victims now.
std::optional<Sleep> sleep_of(State& state, const JobState& job, const Reason& why, Timestamp now, PlaceWork& work) {
  const Amounts least = least_amounts(state, job.spec);
  const bool by_user = why.code == ReasonCode::kUserLimit;  // for which nobody leaves
  const bool claims = !by_user && !is_never(why.code) && may_claim(state, job, least);
  Sleep sleep;
  if (!claims && can_sleep(state, job, why)) {
    sleep.quota = quota_needs(state, job, least);
    sleep.places = !by_user && why.code != ReasonCode::kQueueMax;
    return sleep;
  }
  if (claims) {
    PlaceWork claim;
    const std::set<JobId> nobody;
    const auto budget = static_cast<std::size_t>(state.config().scheduling.victims_per_cycle);
    const bool succeeds = find_victims({state, now, nobody, budget}, job.id, claim).has_value();
    work.nodes_scored += claim.nodes_scored;
    if (succeeds || claim.left_out) return std::nullopt;
    sleep.until = claim.ask_again_at;
  }
  sleep.any_change = true;
  return sleep;
}

}  // namespace

JobId first_eligible(const State& state, const LaneKey& lane, Timestamp now) {
  for (const state::PendingKey& key : state.queue(lane.queue).lanes.at(lane.shape)) {
    const JobState& job = *state.job(key.job);
    if (job.not_before <= now && !job.nomination) return key.job;
  }
  return JobId::none();
}

std::vector<std::pair<JobId, Reason>> probe_lanes(State& state, Timestamp now, PlaceWork& work) {
  wake_eased(state, now);
  std::vector<std::pair<JobId, Reason>> asleep;
  Probe probe(state, work);
  const std::vector<LaneKey> awake(state.waits().awake().begin(), state.waits().awake().end());
  for (const LaneKey& lane : awake) {
    const JobId id = first_eligible(state, lane, now);
    if (!id.valid()) continue;
    const JobState& job = *state.job(id);
    const auto why = probe.refusal(job);
    if (!why) continue;
    auto sleep = sleep_of(state, job, *why, now, work);
    if (!sleep) continue;
    state.waits().put_to_sleep(lane, std::move(*sleep));
    asleep.emplace_back(id, *why);
  }
  return asleep;
}

}  // namespace berth::sched
