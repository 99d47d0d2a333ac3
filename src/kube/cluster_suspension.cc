// Suspended objects: submitted by their templates, admitted when the core starts their job, sent away when it stops it.
// What `suspend` should be follows from the tasks that live, so after any crash the same is written again.

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "kube/cluster_impl.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

constexpr std::string_view kSubmission = "suspended-";  // and the object's generation: the end of the key

std::int64_t sum_of(const std::vector<std::int32_t>& counts) {
  std::int64_t sum = 0;
  for (const std::int32_t count : counts) sum += count;
  return sum;
}

}  // namespace

// Returns true if the group's job was made of a suspended object.
bool Cluster::Impl::is_admitted_by_suspension(const Group& group) {
  const std::size_t end = group.key.rfind('/');
  return end != std::string::npos && std::string_view(group.key).substr(end + 1).starts_with(kSubmission);
}

void Cluster::Impl::observe_suspension(Kind kind, const std::string& id, const boost::json::object& object,
                                       bool deleted) {
  auto read = deleted ? std::nullopt : read_suspension(kind, object, options_.scheduler, options_.devices);
  if (!read) {
    suspensions_.erase(id);
    return;
  }
  Suspended& known = suspensions_[id];
  known.object = std::move(*read);
  settle_suspension(id);
}

// Submits the job of a suspended object, or makes its `suspend` what it should be.
void Cluster::Impl::settle_suspension(const std::string& id) {
  const auto found = suspensions_.find(id);
  if (found == suspensions_.end() || !open_) return;
  Suspended& known = found->second;
  const auto group = groups_.find(id);
  const bool has_job = group != groups_.end() && (group->second.job.valid() || group->second.submitting);
  if (!has_job) return submit_suspended(id, known);
  if (!group->second.job.valid() || !is_admitted_by_suspension(group->second)) return;
  if (!group->second.renewed_at.is_never()) return;  // its job is being given up
  bool known_to_core = now_ - opened_ >= kUnclaimedMs;
  bool runs = false;
  const JobId job = group->second.job;
  for (auto one = tasks_.lower_bound(TaskKey{job, 0, 0, 0}); one != tasks_.end() && one->first.job == job; ++one) {
    known_to_core = true;
    runs = runs || (!one->second.stopping && one->second.phase != TaskPhase::kExited);
  }
  const auto owner = owners_.find(id);
  const bool over = owner != owners_.end() && owner->second.over;
  if (over || !known_to_core || known.object.suspended == !runs) return;
  send_suspend(known, !runs, {});
}

void Cluster::Impl::send_suspend(Suspended& known, bool suspend, const std::string& cancelled) {
  const bool again =
      known.asked == suspend && !known.asked_at.is_never() && now_ - known.asked_at < options_.waits.suspend_again_ms;
  if (again && cancelled.empty()) return;
  known.asked = suspend;
  known.asked_at = now_;
  send({0, Method::kPatch, known.object.path, "application/merge-patch+json", suspend_patch(suspend, cancelled), true},
       Asked::kSuspend, {});
}

// Returns a pod of each role that has some, as the object's templates say, and how many pods that role has.
std::vector<Cluster::Impl::Pod> Cluster::Impl::pods_of_templates(const std::string& id, const Suspended& known,
                                                                 std::vector<std::int32_t>& counts) {
  std::vector<Pod> pods;
  for (const PodObject& one : known.object.pods) {
    const auto role = std::find_if(known.object.roles.begin(), known.object.roles.end(),
                                   [&](const Role& other) { return other.name == one.member.role; });
    if (role == known.object.roles.end() || role->count == 0) continue;
    pods.emplace_back();
    pods.back().object = one;
    pods.back().owner_group = id;
    counts.push_back(role->count);
  }
  return pods;
}

void Cluster::Impl::submit_suspended(const std::string& id, Suspended& known) {
  const auto owner = owners_.find(id);
  if (!known.object.suspended || known.object.cancelled || owner == owners_.end() || owner->second.over) return;
  if (!known.refused_at.is_never() && now_ - known.refused_at < options_.waits.refused_suspension_ms) return;
  known.refused_at = Timestamp::never();
  if (!known.object.problem.empty()) return tell_owner(known, "NotSchedulable", known.object.problem);
  std::vector<std::int32_t> counts;
  std::vector<Pod> pods = pods_of_templates(id, known, counts);
  if (pods.empty()) return;
  std::vector<Pod*> each;
  for (Pod& pod : pods) each.push_back(&pod);
  for (const Pod& pod : pods) note_attaching(pod);
  if (const std::string volumes = why_volumes_wait(each); !volumes.empty())
    return tell_owner(known, "Waiting", volumes);
  Refusal why;
  auto job = spec_of(known.object.name, each, why);
  if (!job) {
    known.refused_at = now_;
    return tell_owner(known, why.reason, why.text);
  }
  for (std::size_t i = 0; i < counts.size(); ++i) job->groups.at(i).count = counts[i];  // a task group for each role
  job->retries = kMaxRetries;
  Group& kept = groups_[id];
  kept.name = known.object.name;
  kept.size = static_cast<std::int32_t>(std::min<std::int64_t>(sum_of(counts), kMaxTasksPerJob));
  kept.key = "kube/" + options_.cell + "/" + id + "/" + std::string(kSubmission) +
             std::to_string(known.object.generation) + mark_of(each);
  kept.submitting = true;
  job->source = {options_.cell, kept.key};
  command(submission_of(std::move(*job), kept.key, each));
}

// Its job was cancelled in berth: it stays suspended, also after a restart.
void Cluster::Impl::cancel_suspended(const std::string& id, JobId job) {
  const auto found = suspensions_.find(id);
  if (found == suspensions_.end()) return;
  found->second.object.cancelled = true;
  send_suspend(found->second, true, "job " + std::to_string(job.value()));
}

// Returns true if the end of the task is for the controller of its object to bring about: it deletes the pods of a
// suspended one, and does not count them as failed.
bool Cluster::Impl::leaves_by_suspension(const TaskKey& key) {
  const auto id = group_of_job_.find(key.job);
  if (id == group_of_job_.end() || !suspensions_.contains(id->second)) return false;
  const auto group = groups_.find(id->second);
  if (group == groups_.end() || !is_admitted_by_suspension(group->second)) return false;
  settle_suspension(id->second);
  return true;
}

// Says on the object why it waits, when that has changed.
void Cluster::Impl::tell_owner(Suspended& known, const std::string& reason, const std::string& text) {
  if (known.told == text) return;
  known.told = text;
  const Suspension& object = known.object;
  send_event({object.api_version, object.kind, object.name_space, object.name, object.uid}, reason, text);
}

}  // namespace berth::kube
