#include "sim/simulate/line_policy.h"

#include <variant>

namespace berth::sim {

Lanes::Lanes(const Workload& workload) {
  std::map<std::pair<placement::PodShape, std::int32_t>, std::uint32_t> known;
  for (const WorkloadJob& job : workload.jobs) {
    const auto next = static_cast<std::uint32_t>(known.size());
    lane_.push_back(known.try_emplace({job.shape, job.workers}, next).first->second);
  }
  count_ = known.size();
}

LinePolicy::LinePolicy(const PolicyWorld& world, std::unique_ptr<placement::PlacementScore> score,
                       const PolicySpec& spec)
    : world_(world),
      score_(std::move(score)),
      shortest_first_(spec.order == PolicyOrder::kShortest),
      head_blocks_(spec.head_blocks),
      lanes_(world.workload),
      blocked_at_(lanes_.size(), 0) {}

LinePolicy::Key LinePolicy::key_of(JobId id) const {
  const WorkloadJob& job = world_.workload.jobs[world_.submissions.job_of(id)];
  return {shortest_first_ ? job.useful_ms : 0, job.submit_ms, id};
}

void LinePolicy::on_record(const EventRecord& record) {
  const bool waits =
      std::holds_alternative<JobSubmitted>(record.event) || std::holds_alternative<JobRequeued>(record.event);
  const bool leaves =
      std::holds_alternative<AttemptStarted>(record.event) || std::holds_alternative<JobFinished>(record.event);
  if (!waits && !leaves) return;
  const JobId id = job_of(record.event);
  const std::uint32_t lane = lanes_.of(world_.submissions.job_of(id));
  if (waits && line_.insert(key_of(id)).second) ++waiting_[lane];
  if (leaves && line_.erase(key_of(id)) == 1 && --waiting_[lane] == 0) waiting_.erase(lane);
}

Plan LinePolicy::run_cycle(state::State&, Timestamp) {
  Plan plan;
  std::vector<std::pair<const WorkloadJob*, std::vector<placement::Choice>>> taken;
  std::map<std::uint32_t, std::int64_t>
      open;  // equivalence classes that may still fit, and their numbers of pending jobs
  for (const auto& [lane, count] : waiting_) {
    if (!blocked(lane)) open.emplace(lane, count);
  }
  for (const Key& key : line_) {
    if (open.empty()) break;
    const JobId id = std::get<JobId>(key);
    const std::uint32_t index = world_.submissions.job_of(id);
    const std::uint32_t lane = lanes_.of(index);
    const auto found = open.find(lane);
    if (found != open.end()) {
      const WorkloadJob& job = world_.workload.jobs[index];
      std::vector<placement::Choice> choices;
      ++plan.scheduling_attempts;
      if (place_gang(job, *score_, world_.view, choices)) {
        plan.decisions.emplace_back(start_decision(id, job, choices));
        taken.emplace_back(&job, std::move(choices));
        if (--found->second == 0) open.erase(found);
        continue;
      }
      blocked_at_[lane] = world_.view.releases() + 1;
      open.erase(found);
    }
    if (head_blocks_) break;
  }
  for (const auto& [job, choices] : taken) give_back_gang(*job, world_.view, choices);
  return plan;
}

}  // namespace berth::sim
