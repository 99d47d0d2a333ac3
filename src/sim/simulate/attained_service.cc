#include "sim/simulate/attained_service.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/checked.h"

namespace berth::sim {

namespace {

constexpr std::int64_t kMilliMsPerGpuSecond = kMilli * 1000;

}  // namespace

AttainedService::AttainedService(const PolicyWorld& world, std::unique_ptr<placement::PlacementScore> score,
                                 std::vector<std::int64_t> thresholds_gpu_s, std::int64_t promote_after_s)
    : world_(world),
      score_(std::move(score)),
      thresholds_(std::move(thresholds_gpu_s)),
      promote_after_ms_(checked_multiply(promote_after_s, 1000)),
      past_service_(world.workload.jobs.size(), 0),
      past_held_ms_(world.workload.jobs.size(), 0),
      promoted_(world.workload.jobs.size(), false),
      lanes_(world.workload) {
  for (std::int64_t& threshold : thresholds_) threshold = checked_multiply(threshold, kMilliMsPerGpuSecond);
}

std::int64_t AttainedService::service_of(JobId id, Timestamp now) const {
  const std::uint32_t index = world_.submissions.job_of(id);
  const auto holder = holders_.find(id);
  const std::int64_t running_ms = holder == holders_.end() ? 0 : now.ms - holder->second.since_ms;
  return past_service_[index] + world_.workload.jobs[index].gpu_milli * running_ms;
}

std::size_t AttainedService::level_of(std::int64_t service) const {
  return static_cast<std::size_t>(std::upper_bound(thresholds_.begin(), thresholds_.end(), service) -
                                  thresholds_.begin());
}

AttainedService::Key AttainedService::key_of(JobId id, Timestamp now) const {
  const bool promoted = promoted_[world_.submissions.job_of(id)];
  return {promoted ? 0 : level_of(service_of(id, now)) + 1, job_at(id).submit_ms, id};
}

void AttainedService::enter(JobId id, Timestamp now) {
  const Key key = key_of(id, now);
  waiting_key_[id] = key;
  line_.insert(key);
  const std::uint32_t index = world_.submissions.job_of(id);
  if (promote_after_ms_ == 0 || promoted_[index]) return;
  promotions_.emplace(Timestamp{job_at(id).submit_ms + past_held_ms_[index] + promote_after_ms_}, id);
}

void AttainedService::leave(JobId id) {
  const auto found = waiting_key_.find(id);
  if (found == waiting_key_.end()) return;
  line_.erase(found->second);
  waiting_key_.erase(found);
  promotions_.erase(
      {Timestamp{job_at(id).submit_ms + past_held_ms_[world_.submissions.job_of(id)] + promote_after_ms_}, id});
}

void AttainedService::promote_due(Timestamp now) {
  while (!promotions_.empty() && promotions_.begin()->first <= now) {
    const JobId id = promotions_.begin()->second;
    leave(id);
    promoted_[world_.submissions.job_of(id)] = true;
    enter(id, now);
  }
}

void AttainedService::on_record(const EventRecord& record) {
  const JobId id = job_of(record.event);
  if (std::holds_alternative<JobSubmitted>(record.event) || std::holds_alternative<JobRequeued>(record.event)) {
    enter(id, record.time);
  } else if (std::holds_alternative<AttemptStarted>(record.event) ||
             std::holds_alternative<JobFinished>(record.event)) {
    leave(id);
    if (std::holds_alternative<AttemptStarted>(record.event)) holders_[id] = {record.time.ms, false};
  } else if (std::holds_alternative<StopBegan>(record.event)) {
    holders_[id].stopping = true;
  } else if (std::holds_alternative<AttemptEnded>(record.event)) {
    const std::uint32_t index = world_.submissions.job_of(id);
    past_service_[index] = service_of(id, record.time);
    past_held_ms_[index] += record.time.ms - holders_.at(id).since_ms;
    holders_.erase(id);
  }
}

Timestamp AttainedService::next_demotion(Timestamp now) const {
  Timestamp next = Timestamp::never();
  for (const auto& [id, holder] : holders_) {
    const std::int64_t gpu_milli = job_at(id).gpu_milli;
    const std::int64_t service = service_of(id, now);
    const std::size_t level = level_of(service);
    if (holder.stopping || promoted_[world_.submissions.job_of(id)] || level == thresholds_.size() || gpu_milli == 0)
      continue;
    next = std::min(next, now + ((thresholds_[level] - service + gpu_milli - 1) / gpu_milli));
  }
  return next;
}

// The fleet without the jobs that are leaving. All changes are undone in the destructor.
class AttainedService::Thought {
 public:
  Thought(AttainedService& policy, Timestamp now) : policy_(policy), view_(policy.world_.view) {
    for (const auto& [id, holder] : policy.holders_) {
      Victim one{policy.key_of(id, now), &policy.job_at(id), view_.held_by(id)};
      if (holder.stopping) {
        give_back_gang(*one.job, view_, *one.held);
        gone_.push_back(one);
      } else {
        candidates_.push_back(one);
      }
    }
    std::sort(candidates_.begin(), candidates_.end(), [](const Victim& a, const Victim& b) { return a.key < b.key; });
  }
  ~Thought() {
    for (const auto& [job, choices] : placed_) give_back_gang(*job, view_, choices);
    for (const Victim& one : gone_) take_again(one);
  }
  Thought(const Thought&) = delete;
  Thought& operator=(const Thought&) = delete;

  // Places the job if it fits, if necessary by evicting jobs of higher levels, the last in line first.
  bool place(const WorkloadJob& job, std::size_t level, std::vector<placement::Choice>& choices,
             std::vector<JobId>& victims) {
    if (place_gang(job, *policy_.score_, view_, choices)) return keep(job, choices);
    const std::size_t before = gone_.size();
    if (!would_fit_without_all_above(job, level)) return false;
    while (!candidates_.empty() && std::get<std::size_t>(candidates_.back().key) > level) {
      give_back_gang(*candidates_.back().job, view_, *candidates_.back().held);
      gone_.push_back(candidates_.back());
      candidates_.pop_back();
      if (place_gang(job, *policy_.score_, view_, choices)) {
        for (std::size_t i = before; i < gone_.size(); ++i) victims.push_back(std::get<JobId>(gone_[i].key));
        return keep(job, choices);
      }
    }
    return false;
  }

  // Returns true if no leaving job is on the chosen nodes. Otherwise the next cycle after its exit finds the nodes
  // free.
  bool nobody_leaves(const std::vector<placement::Choice>& choices) const {
    return std::none_of(choices.begin(), choices.end(), [&](const placement::Choice& choice) {
      return std::any_of(gone_.begin(), gone_.end(), [&](const Victim& one) {
        return std::any_of(one.held->begin(), one.held->end(),
                           [&](const placement::Choice& held) { return held.node == choice.node; });
      });
    });
  }

 private:
  bool keep(const WorkloadJob& job, const std::vector<placement::Choice>& choices) {
    placed_.emplace_back(&job, choices);
    return true;
  }
  void take_again(const Victim& one) {
    for (const auto& choice : *one.held) view_.take(one.job->shape, choice);
  }
  bool would_fit_without_all_above(const WorkloadJob& job, std::size_t level) {
    std::size_t first = candidates_.size();
    std::int64_t gained = view_.idle_gpu_milli();
    while (first > 0 && std::get<std::size_t>(candidates_[first - 1].key) > level) {
      gained += candidates_[--first].job->gpu_milli;
    }
    if (first == candidates_.size() || gained < job.gpu_milli) return false;
    for (std::size_t i = first; i < candidates_.size(); ++i) {
      give_back_gang(*candidates_[i].job, view_, *candidates_[i].held);
    }
    std::vector<placement::Choice> choices;
    const bool fits = place_gang(job, *policy_.score_, view_, choices);
    if (fits) give_back_gang(job, view_, choices);
    for (std::size_t i = first; i < candidates_.size(); ++i) take_again(candidates_[i]);
    return fits;
  }

  AttainedService& policy_;
  FleetView& view_;
  std::vector<Victim> candidates_;  // running, in the order of the line
  std::vector<Victim> gone_;        // leaving, or asked to leave now
  std::vector<std::pair<const WorkloadJob*, std::vector<placement::Choice>>> placed_;
};

Plan AttainedService::run_cycle(state::State&, Timestamp now) {
  Plan plan;
  if (line_.empty()) return plan;
  promote_due(now);
  plan.reevaluate_at = next_demotion(now);
  if (!promotions_.empty()) plan.reevaluate_at = std::min(plan.reevaluate_at, promotions_.begin()->first);
  Thought thought(*this, now);
  std::set<std::uint32_t> refused;  // equivalence classes refused since the last job was asked to leave
  for (const auto& [level, submitted, id] : line_) {
    const std::uint32_t lane = lanes_.of(world_.submissions.job_of(id));
    if (refused.contains(lane)) continue;
    const WorkloadJob& job = job_at(id);
    std::vector<placement::Choice> choices;
    std::vector<JobId> victims;
    ++plan.scheduling_attempts;
    if (!thought.place(job, level, choices, victims)) {
      refused.insert(lane);
      continue;
    }
    if (!victims.empty()) refused.clear();
    for (const JobId victim : victims) plan.decisions.emplace_back(StopDecision{victim, StopCause::kPreempt});
    if (victims.empty() && thought.nobody_leaves(choices))
      plan.decisions.emplace_back(start_decision(id, job, choices));
  }
  return plan;
}

}  // namespace berth::sim
