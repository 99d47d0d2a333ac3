#include "daemon/gpu_utilization.h"

#include <algorithm>

namespace berth::daemon {

namespace {

std::int64_t minute_of(Timestamp time) { return time.ms / 60'000; }

}  // namespace

GpuHolders gpu_holders(const state::State& state, const std::string& name) {
  GpuHolders holders;
  const state::NodeState* node = state.node_named(name);
  if (node == nullptr) return holders;
  for (std::size_t i = 0; i < node->gpus.size(); ++i) {
    if (node->gpus[i].free_milli < kMilli) holders[node->spec.gpus[i].uuid];
  }
  for (const JobId id : state.running()) {
    const state::AttemptState& attempt = *state.job(id)->attempt;
    for (const state::TaskState& task : attempt.tasks) {
      const TaskPlacement& place = task.placement;
      if (place.node != node->id || !has_gpus_whole(place)) continue;
      for (const std::uint8_t gpu : place.gpus) holders[node->spec.gpus[gpu].uuid] = {id, attempt.number};
    }
  }
  return holders;
}

void GpuUtilizationUse::sample(Timestamp now, const std::vector<telemetry::GpuReading>& readings,
                               const GpuHolders& holders) {
  const std::int64_t minute = minute_of(now);
  forget(minute, holders);
  std::map<JobId, std::int32_t> measured;
  for (const telemetry::GpuReading& reading : readings) {
    if (!reading.utilisation_percent || reading.uuid.empty()) continue;
    const int percent = std::clamp(*reading.utilisation_percent, 0, 100);
    OfGpu& gpu = gpus_[reading.uuid];
    gpu.all.add(minute, percent);
    const auto holder = holders.find(reading.uuid);
    if (holder == holders.end()) continue;
    gpu.allocated.add(minute, percent);
    if (!holder->second.job.valid()) continue;
    OfJob& job = jobs_[holder->second.job];
    job.attempt = holder->second.attempt;
    job.hour.add(minute, percent);
    job.gpus = ++measured[holder->second.job];
  }
}

void GpuUtilizationUse::forget(std::int64_t minute, const GpuHolders& holders) {
  std::erase_if(jobs_, [&](const auto& job) {
    return std::none_of(holders.begin(), holders.end(), [&](const auto& one) {
      return one.second.job == job.first && one.second.attempt == job.second.attempt;
    });
  });
  std::erase_if(gpus_, [&](const auto& gpu) { return !gpu.second.all.until(minute).measured(); });
}

GpuUtilization GpuUtilizationUse::of_last_hour(Timestamp now) const {
  const std::int64_t minute = minute_of(now);
  GpuUtilization gpu_utilization;
  for (const auto& [uuid, gpu] : gpus_) {
    const GpuUtilizationSum all = gpu.all.until(minute);
    if (all.measured()) gpu_utilization.gpus[uuid] = {all, gpu.allocated.until(minute)};
  }
  for (const auto& [id, job] : jobs_) {
    const GpuUtilizationSum sum = job.hour.until(minute);
    if (sum.measured()) gpu_utilization.jobs[id] = {job.attempt, job.gpus, sum};
  }
  return gpu_utilization;
}

void GpuUtilizationUse::Hour::add(std::int64_t minute, int percent) {
  Minute& at = minutes_[static_cast<std::size_t>(minute) % minutes_.size()];
  if (at.number != minute) at = {minute, 0, 0};
  at.percents += percent;
  ++at.samples;
}

GpuUtilizationSum GpuUtilizationUse::Hour::until(std::int64_t minute) const {
  GpuUtilizationSum sum;
  for (const Minute& one : minutes_) {
    if (one.number < 0 || one.number > minute || one.number + std::ssize(minutes_) <= minute) continue;
    sum.percents += one.percents;
    sum.samples += one.samples;
    ++sum.minutes;
  }
  return sum;
}

}  // namespace berth::daemon
