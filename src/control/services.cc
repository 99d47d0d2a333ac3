#include "control/services.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/planted.h"
#include "control/reconcile.h"
#include "state/replicas.h"

namespace berth::control {

namespace {

using state::JobState;
using state::State;

std::vector<JobId> replicas_of(const State& state, JobId service) {
  const auto& children = state.children().at(service);
  return {children.begin(), children.end()};
}

void replace(Batch& batch, const JobState& replica) {
  if (!replica.cancel_requested) batch.emit(JobCancelRequested{replica.id, "berth"});
}

// Cancels the replicas with an index at or above the count, and submits missing replicas with the current spec.
void keep_count(Batch& batch, JobId id) {
  const State& state = batch.state();
  const std::int32_t count = state.job(id)->spec.groups.front().count;
  std::vector<bool> there(static_cast<std::size_t>(count));
  for (const JobId child : replicas_of(state, id)) {
    const JobState& replica = *state.job(child);
    if (replica.index >= count) {
      replace(batch, replica);
    } else {
      there[static_cast<std::size_t>(replica.index)] = true;
    }
  }
  for (std::int32_t index = 0; index < count; ++index) {
    if (there[static_cast<std::size_t>(index)]) continue;
    const JobState& service = *state.job(id);
    JobSubmitted event;
    event.job = state.next_job_id();
    event.index = index;
    event.spec = replica_spec(service.spec, index);
    event.priority = service.priority;
    event.parent = id;
    event.generation = service.generation;
    batch.emit(std::move(event));
  }
}

// Replaces replicas of an old version. Replicas that do not serve are replaced at once. The others are replaced only
// while fewer than the limit are away; a new replica that is not reliable yet counts as away.
void roll(Batch& batch, JobId id) {
  const State& state = batch.state();
  const JobState& service = *state.job(id);
  const std::int32_t most_away = std::max(1, service.spec.max_unavailable);
  std::int32_t away = state::unavailable_replicas(state, service);
  std::vector<JobId> old;
  for (const JobId child : replicas_of(state, id)) {
    const JobState& replica = *state.job(child);
    if (replica.generation == service.generation) {
      const bool reliable = state::is_reliable(replica, batch.now());
      if (replica.failures > 0 && !reliable) return;
      if (state::is_available(replica) && !reliable) ++away;
    } else if (!replica.cancel_requested) {
      old.push_back(child);
    }
  }
  for (const JobId child : old) {
    const JobState& replica = *state.job(child);
    const bool serves = state::is_available(replica);
    if (serves && away >= most_away && !planted(Bug::kUpdateAllAtOnce)) continue;
    replace(batch, replica);
    if (serves) ++away;
  }
}

}  // namespace

const JobState* service_to_update(const State& state, const JobSpec& spec) {
  if (spec.kind != JobKind::kService || spec.name.empty()) return nullptr;
  for (const auto& [id, children] : state.children()) {
    const JobState* known = state.job(id);
    if (known == nullptr || known->spec.kind != JobKind::kService || known->cancel_requested) continue;
    if (known->spec.name == spec.name && known->spec.queue == spec.queue && known->spec.user == spec.user) return known;
  }
  return nullptr;
}

bool same_replicas(const JobSpec& before, const JobSpec& after) {
  JobSpec old = replica_spec(before, 0);
  JobSpec fresh = replica_spec(after, 0);
  old.max_unavailable = fresh.max_unavailable = 0;
  return old == fresh;
}

JobSpec replica_spec(const JobSpec& service, std::int32_t index) {
  JobSpec spec = service;
  spec.kind = JobKind::kGang;
  spec.name += (spec.name.empty() ? "" : "-") + std::to_string(index);
  spec.dependencies.clear();
  spec.held = false;
  spec.max_unavailable = 0;
  spec.groups.front().count = 1;
  spec.groups.front().min_count = 0;
  return spec;
}

void reconcile_service(Batch& batch, JobId id) {
  keep_count(batch, id);
  roll(batch, id);
  for (const JobId child : replicas_of(batch.state(), id)) drain_replica(batch, child);
}

}  // namespace berth::control
