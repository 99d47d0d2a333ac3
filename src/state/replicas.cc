#include "state/replicas.h"

#include <algorithm>

namespace berth::state {

bool is_available(const JobState& replica) {
  if (!replica.attempt || replica.attempt->stop || replica.cancel_requested) return false;
  const auto& tasks = replica.attempt->tasks;
  return std::all_of(tasks.begin(), tasks.end(),
                     [](const TaskState& task) { return task.phase == TaskPhase::kRunning; });
}

Timestamp reliable_from(const JobState& replica) {
  return replica.attempt->started + (replica.failures == 0 ? kReliableAfterMs : kReliableAfterFailureMs);
}

bool is_reliable(const JobState& replica, Timestamp now) {
  return is_available(replica) && reliable_from(replica) <= now;
}

std::int32_t unavailable_replicas(const State& state, const JobState& service) {
  std::int32_t available = 0;
  for (const JobId id : state.children().at(service.id)) {
    const JobState* replica = state.job(id);
    if (replica != nullptr && is_available(*replica)) ++available;
  }
  return std::max(0, service.spec.groups.front().count - available);
}

const JobState* service_of(const State& state, const JobState& job) {
  const JobState* parent = job.parent.valid() ? state.job(job.parent) : nullptr;
  return parent != nullptr && parent->spec.kind == JobKind::kService ? parent : nullptr;
}

bool may_leave_by_choice(const State& state, const JobState& replica) {
  const JobState* service = service_of(state, replica);
  if (service == nullptr || service->spec.max_unavailable == 0 || !is_available(replica)) return true;
  return unavailable_replicas(state, *service) < service->spec.max_unavailable;
}

}  // namespace berth::state
