// Requests of users: jobs submitted, held, released, cancelled, services updated; and the mix of requests learned from
// them.

#include <algorithm>

#include "state/estimate.h"
#include "state/replicas.h"
#include "state/state.h"

namespace berth::state {

void State::on(const JobSubmitted& event) {
  BERTH_CHECK(event.job == next_job_);
  next_job_ = JobId(next_job_.value() + 1);
  const QueueState* leaf = queue_at(event.spec.queue);
  BERTH_CHECK(leaf != nullptr);
  JobState job;
  job.id = event.job;
  job.queue = leaf->id;
  job.priority = event.priority;
  job.held = event.spec.held;
  job.submitted = now_;
  job.waiting_since = now_;
  job.in_line_since = now_;
  job.not_before = event.spec.earliest_start.value_or(Timestamp{});
  job.parent = event.parent;
  job.index = event.index;
  job.key = event.key;
  job.body_hash = event.body_hash;
  job.spec = event.spec;
  job.pod_risks = event.pod_risks;
  if (JobState* parent = jobs_.find(event.parent)) {
    job.submitted = parent->submitted;  // children are as old as their service or array
    ++parent->children_alive;
    ++parent->children_spawned;
  }
  job.expected_s = estimate(*this, job).seconds;
  job.generation = event.generation;
  remember_key(event.spec.user, event.key, event.job, event.body_hash);
  JobState& stored = jobs_.insert(event.job, std::move(job));
  learn_mix(stored);
  index_job(stored);
  unreconciled_.insert(event.job);
}

void State::on(const LogRestored& event) {
  BERTH_CHECK(event.next_job >= next_job_);
  next_job_ = event.next_job;
}

void State::remember_key(const std::string& user, const std::string& key, JobId job, std::uint64_t body_hash) {
  if (!key.empty()) {
    std::string name = user + "\n" + key;
    keys_.emplace(name, KeyEntry{job, body_hash, now_});
    key_ages_.emplace(now_, std::move(name));
  }
  forget_old_keys();
}

// Lists the replica by the time at which it becomes reliable: an update of its service then continues.
void State::put_on_probation(const JobState& replica) {
  const JobState* parent = jobs_.find(replica.parent);
  if (parent == nullptr || parent->spec.kind != JobKind::kService || parent->generation == 0) return;
  probations_.emplace(reliable_from(replica), replica.id);
}

// Has control look at the service of the replica again: if the replica is available again, another one may be stopped.
void State::mark_service_unreconciled(const JobState& replica) {
  const JobState* parent = jobs_.find(replica.parent);
  if (parent != nullptr && parent->spec.kind == JobKind::kService) unreconciled_.insert(parent->id);
}

void State::on(const ServiceUpdated& event) {
  JobState& job = existing(event.job);
  BERTH_CHECK(job.spec.kind == JobKind::kService);
  job.spec = event.spec;
  job.priority = event.priority;
  job.generation = event.generation;
  remember_key(event.spec.user, event.key, event.job, event.body_hash);
  unreconciled_.insert(job.id);
}

void State::forget_old_keys() {
  while (!key_ages_.empty() && key_ages_.begin()->first + kKeyRetentionMs < now_) {
    keys_.erase(key_ages_.begin()->second);
    key_ages_.erase(key_ages_.begin());
  }
}

void State::on(const JobHoldChanged& event) {
  JobState& job = existing(event.job);
  job.held = event.held;
  if (job.held) {
    remove_pending(job);
    drop_reservation(job);
    ++opportunity_;  // it may have been the head of a strict queue
  } else {
    enter_line(job);
  }
  unreconciled_.insert(job.id);
}

void State::on(const JobPriorityChanged& event) {
  JobState& job = existing(event.job);
  remove_pending(job);
  if (job.attempt) list_running(job, -1);
  job.priority = event.priority;
  if (job.attempt) list_running(job, +1);
  enter_line(job);
  // Jobs of higher priority than the reserved job may pass its reservation.
  if (job.reservation) waits_.mark_reservations_freed();
  unreconciled_.insert(nominated_.begin(), nominated_.end());  // a victim may rank above its preemptor now
  ++opportunity_;
}

void State::on(const JobCancelRequested& event) {
  JobState& job = existing(event.job);
  job.cancel_requested = true;
  unreconciled_.insert(job.id);
}

fragmentation::Request State::request_of(const TaskRequest& request) const {
  fragmentation::Request seen{request.cpu_milli, request.gpus,
                              request.gpus > 0 ? request.gpu_milli : fragmentation::kWholeGpu,
                              request.gpu_models.empty() ? fragmentation::kAnyModel : 0};
  for (std::size_t m = 0; m < models_.size(); ++m) {
    const fragmentation::ModelMask model = fragmentation::ModelMask{1} << m;
    seen.models = accepts(request, models_[m]) ? seen.models | model : seen.models & ~model;
  }
  return seen;
}

// Adds the requests of a submitted job to the mix. At most kTasksCounted tasks of a group count, so that a gang of
// thousands does not outweigh all other jobs.
void State::learn_mix(const JobState& job) {
  constexpr std::int32_t kTasksCounted = 64;
  if (job.is_parent()) return;
  for (const TaskGroup& group : job.spec.groups) {
    fragmentation_.observe(request_of(group.request), std::min(group.count, kTasksCounted));
  }
}

}  // namespace berth::state
