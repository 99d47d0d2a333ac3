#include "sim/simulate/fleet_view.h"

#include <cmath>
#include <numeric>
#include <utility>
#include <variant>

namespace berth::sim {

placement::Choice choice_of(const TaskPlacement& placement) {
  placement::Choice choice;
  choice.node = placement.node.value();
  for (const std::uint8_t gpu : placement.gpus) choice.gpus.add(gpu);
  return choice;
}

FleetView::FleetView(const Workload& workload, const Submissions& submissions)
    : workload_(workload),
      submissions_(submissions),
      fleet_(empty_fleet(workload)),
      fragmented_(fleet_.size(), 0.0),
      stale_(fleet_.size()),
      is_stale_(fleet_.size(), true) {
  std::iota(stale_.begin(), stale_.end(), 0U);
  for (const auto& node : fleet_) idle_ += node.idle_milli();
}

const std::vector<placement::Choice>* FleetView::held_by(JobId job) const {
  const auto found = held_.find(job.value());
  return found == held_.end() ? nullptr : &found->second;
}

void FleetView::changed(std::uint32_t node) {
  if (score_ != nullptr) score_->on_change(node);
  if (is_stale_[node]) return;
  is_stale_[node] = true;
  stale_.push_back(node);
}

void FleetView::take(const placement::PodShape& shape, const placement::Choice& choice) {
  placement::place(fleet_[choice.node], shape, choice.gpus);
  idle_ -= shape.total_milli();
  changed(choice.node);
}

void FleetView::give_back(const placement::PodShape& shape, const placement::Choice& choice) {
  placement::release(fleet_[choice.node], shape, choice.gpus);
  idle_ += shape.total_milli();
  changed(choice.node);
}

void FleetView::on_record(const EventRecord& record) {
  if (const auto* started = std::get_if<AttemptStarted>(&record.event)) {
    const WorkloadJob& job = workload_.jobs[submissions_.job_of(started->job)];
    auto& held = held_[started->job.value()];
    for (const TaskPlacement& placement : started->placements) {
      held.push_back(choice_of(placement));
      take(job.shape, held.back());
    }
  } else if (const auto* ended = std::get_if<AttemptEnded>(&record.event)) {
    const WorkloadJob& job = workload_.jobs[submissions_.job_of(ended->job)];
    const auto found = held_.find(ended->job.value());
    for (const auto& choice : found->second) give_back(job.shape, choice);
    held_.erase(found);
    ++releases_;
  }
}

std::int64_t FleetView::fragmented_gpu_milli() {
  for (const std::uint32_t node : stale_) {
    fragmented_sum_ -= fragmented_[node];
    fragmented_[node] = placement::fragmentation(fleet_[node], workload_.mix);
    fragmented_sum_ += fragmented_[node];
    is_stale_[node] = false;
  }
  stale_.clear();
  return std::max<std::int64_t>(0, std::llround(fragmented_sum_));
}

}  // namespace berth::sim
