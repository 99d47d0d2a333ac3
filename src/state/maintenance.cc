// Maintenance windows: when nodes are closed, and when jobs on them must be asked to stop.

#include <algorithm>

#include "base/checked.h"
#include "state/estimate.h"
#include "state/replicas.h"
#include "state/state.h"

namespace berth::state {

std::int64_t State::grace_ms(const JobState& job) const {
  const std::int64_t own = job.spec.checkpoint.grace_s;
  return checked_multiply(own > 0 ? own : queue(job.queue).eviction.grace_s, 1000);
}

// Computes the equivalence classes of all pending jobs again. Time limits are part of a class only while a window is
// planned.
void State::relist_waiting() {
  std::vector<JobId> waiting;
  jobs_.for_each([&](const JobState& job) {
    if (job.in_pending) waiting.push_back(job.id);
  });
  for (const JobId id : waiting) strike_pending(existing(id));
  for (const JobId id : waiting) {
    JobState& job = existing(id);
    job.shape = eq_class_of(job);
    list_pending(job);
    waits_.activate({job.queue, job.shape});
  }
}

// A job that is gone by its time limit before the window, its grace after the limit included, is not asked to stop.
Timestamp State::departure_of(const JobState& job) const {
  Timestamp first = Timestamp::never();
  if (maintenance_.empty() || !job.attempt || job.attempt->stopping()) return first;
  const Timestamp gone = job.limit_ends(job.attempt->started) + grace_after_limit_ms(*this, job);
  for (const TaskState& task : job.attempt->tasks) {
    if (task.phase == TaskPhase::kExited) continue;
    for (const ClosedSpan& span : node(task.placement.node).maintenance) {
      if (gone > span.from) first = std::min(first, Timestamp{span.from.ms - grace_ms(job)});
    }
  }
  return first;
}

void State::reset_departure(JobState& job) {
  if (!job.departure.is_never()) departures_.erase({job.departure, job.id});
  job.departure = departure_of(job);
  if (!job.departure.is_never()) departures_.emplace(job.departure, job.id);
}

void State::on(const MaintenancePlanned& event) {
  const bool first = maintenance_.empty();
  const auto [known, fresh] = maintenance_.emplace(event.name, Maintenance{event, false});
  BERTH_CHECK(fresh);
  maintenance_times_.emplace(event.from, event.name);
  std::set<JobId> there;
  for (const NodeId id : event.nodes) {
    node_mut(id).maintenance.insert({event.from, event.to});
    for (const auto& [job, task] : node(id).tasks) there.insert(job);
  }
  for (const JobId id : there) reset_departure(existing(id));
  for (const JobId id : nominated_) unreconciled_.insert(id);
  if (first) relist_waiting();
  if (!reservations_.empty())
    // A reservation whose nodes are closed before its start blocks no job.
    waits_.mark_reservations_freed();
  ++opportunity_;
}

void State::on(const MaintenanceBegan& event) {
  Maintenance& window = maintenance_.find(event.name)->second;
  BERTH_CHECK(!window.begun);
  window.begun = true;
  maintenance_times_.erase({window.from, window.name});
  maintenance_times_.emplace(window.to, window.name);
  for (const NodeId id : window.nodes) {
    ++node_mut(id).maintained;
    refresh_in_indexes(id);
    for (const auto& [job, task] : node(id).tasks) unreconciled_.insert(job);
  }
  for (const JobId id : nominated_) unreconciled_.insert(id);
  ++opportunity_;
}

void State::on(const MaintenanceEnded& event) {
  const auto found = maintenance_.find(event.name);
  const Maintenance window = found->second;
  maintenance_.erase(found);
  maintenance_times_.erase({window.begun ? window.to : window.from, window.name});
  std::set<JobId> there;
  for (const NodeId id : window.nodes) {
    NodeState& node = node_mut(id);
    node.maintenance.erase(node.maintenance.find({window.from, window.to}));
    if (window.begun) --node.maintained;
    refresh_in_indexes(id);
    mark_freed(id);
    for (const auto& [job, task] : node.tasks) there.insert(job);
  }
  for (const JobId id : there) reset_departure(existing(id));
  if (maintenance_.empty()) relist_waiting();
  // Jobs on the closed nodes may be possible victims again.
  waits_.activate_all();
  ++opportunity_;
}

}  // namespace berth::state
