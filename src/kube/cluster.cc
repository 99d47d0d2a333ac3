#include "kube/cluster.h"

#include <algorithm>
#include <utility>

#include "kube/cluster_impl.h"
#include "kube/json_reading.h"
#include "kube/owner_object.h"
#include "kube/workload.h"

namespace berth::kube {
namespace {

constexpr std::size_t kMostWarnings = 100;

// The id by which an object is known from list to list.
std::string id_of(Kind kind, const boost::json::object& object) {
  const std::string name = text_at(object, {"metadata", "name"});
  if (kind == Kind::kNode || kind == Kind::kNamespace || kind == Kind::kPriorityClass || kind == Kind::kStorageClass ||
      kind == Kind::kPersistentVolume || kind == Kind::kCsiNode)
    return name;
  const std::string uid = text_at(object, {"metadata", "uid"});
  if (kind == Kind::kPod) return uid;
  const std::string space = text_at(object, {"metadata", "namespace"}) + "/";
  if (kind == Kind::kPersistentVolumeClaim) return name.empty() ? std::string() : space + name;
  if (kind == Kind::kJob) return std::string(kOfJob) + space + uid;
  if (kind == Kind::kPodGroup) return std::string(kOfPodGroup) + space + name;
  const WorkloadKind* workload = workload_kind(kind);
  return workload == nullptr || name.empty() ? std::string() : std::string(workload->prefix) + space + name;
}

bool is_of_volumes(Kind kind) {
  return kind == Kind::kStorageClass || kind == Kind::kPersistentVolume || kind == Kind::kPersistentVolumeClaim;
}

}  // namespace

std::vector<Resource> watched() {
  std::vector<Resource> all{{Kind::kNamespace, "/api/v1/namespaces", "", false},
                            {Kind::kPriorityClass, "/apis/scheduling.k8s.io/v1/priorityclasses", "", false},
                            {Kind::kNode, "/api/v1/nodes", "", false},
                            {Kind::kJob, "/apis/batch/v1/jobs", "", true},
                            {Kind::kPodGroup, "/apis/scheduling.k8s.io/v1beta1/podgroups", "", true}};
  for (const WorkloadKind& one : workload_kinds()) all.push_back({one.kind, one.path, "", true, true});
  all.push_back({Kind::kStorageClass, "/apis/storage.k8s.io/v1/storageclasses", "", true, true});
  all.push_back({Kind::kPersistentVolume, "/api/v1/persistentvolumes", "", true, true});
  all.push_back({Kind::kPersistentVolumeClaim, "/api/v1/persistentvolumeclaims", "", true, true});
  all.push_back({Kind::kCsiNode, "/apis/storage.k8s.io/v1/csinodes", "", true, true});
  all.push_back({Kind::kPod, "/api/v1/pods", "", false});
  return all;
}

// A step that is this long is a pause of the process or the machine: `tick` comes every second. It counts for no wait,
// because nothing was heard of the cluster.
void Cluster::Impl::at(Timestamp now) {
  constexpr std::int64_t kPauseMs = 10'000;
  const Timestamp next = now + -paused_ms_;
  const std::int64_t step = next - now_;
  if (open_ && step > kPauseMs) {
    paused_ms_ += step;
    return;
  }
  now_ = next;
}

void Cluster::Impl::warn(const std::string& text) {
  if (std::find(warnings_.begin(), warnings_.end(), text) != warnings_.end()) return;
  warnings_.push_back(text);
  if (warnings_.size() > kMostWarnings) warnings_.pop_front();
}

void Cluster::Impl::observe(Kind kind, const boost::json::object& object, bool deleted) {
  const std::string id = id_of(kind, object);
  if (id.empty()) return warn("an object without a name or uid was passed over");
  if (const auto seen = seen_.find(kind); seen != seen_.end() && !deleted) seen->second.insert(id);
  if (kind == Kind::kNode) return observe_node(object, deleted);
  if (kind == Kind::kPod) return observe_pod(object, deleted);
  if (kind == Kind::kNamespace && deleted) namespaces_.erase(id);
  if (kind == Kind::kNamespace && !deleted) namespaces_[id] = terms_of_namespace(object);
  if (kind == Kind::kPriorityClass) return observe_priority_class(id, object, deleted);
  if (kind == Kind::kCsiNode) return limit_attaching(id, deleted ? AttachLimits() : read_attach_limits(object));
  if (is_of_volumes(kind)) return deleted ? volumes_gone(kind, id) : observe_volumes(kind, id, object);
  if (!owns_pods(kind)) return;
  observe_owner(id, deleted ? Workload{} : read_workload(kind, object), deleted);
  observe_suspension(kind, id, object, deleted);
}

void Cluster::Impl::gone(Kind kind, const std::string& id) {
  if (kind == Kind::kNode) return node_gone(id);
  if (kind == Kind::kPod) return pod_gone(id);
  if (kind == Kind::kNamespace) namespaces_.erase(id);
  if (kind == Kind::kPriorityClass) default_classes_.erase(id);
  if (kind == Kind::kCsiNode) return limit_attaching(id, {});
  if (is_of_volumes(kind)) return volumes_gone(kind, id);
  if (!owns_pods(kind)) return;
  suspensions_.erase(id);
  observe_owner(id, {}, true);
}

// What was known and is not in the whole list has gone while nobody watched.
void Cluster::Impl::end_list(Kind kind) {
  denied_.erase(kind);
  const auto listed = seen_.find(kind);
  if (listed == seen_.end()) return;
  const std::set<std::string> seen = std::move(listed->second);
  seen_.erase(listed);
  std::vector<std::string> missing;
  const auto look = [&](const auto& known, std::string_view prefix = {}) {
    for (const auto& [id, unused] : known) {
      if (id.starts_with(prefix) && !seen.contains(id)) missing.push_back(id);
    }
  };
  if (kind == Kind::kNode) look(nodes_);
  if (kind == Kind::kPod) look(pods_);
  if (kind == Kind::kNamespace) look(namespaces_);
  for (const std::string& name : default_classes_) {
    if (kind == Kind::kPriorityClass && !seen.contains(name)) missing.push_back(name);
  }
  if (kind == Kind::kStorageClass) look(classes_);
  if (kind == Kind::kPersistentVolume) look(volumes_);
  if (kind == Kind::kPersistentVolumeClaim) look(claims_);
  if (kind == Kind::kCsiNode) look(attach_limits_);
  if (kind == Kind::kJob) look(owners_, kOfJob);
  if (kind == Kind::kPodGroup) look(owners_, kOfPodGroup);
  if (const WorkloadKind* workload = workload_kind(kind)) look(owners_, workload->prefix);
  for (const std::string& id : missing) gone(kind, id);
  listed_.insert(kind);
  open_if_ready();
}

void Cluster::Impl::open_if_ready() {
  if (!open_ && listed_.size() == watched().size() && (options_.stamped.empty() || stamps_known_)) open();
}

void Cluster::Impl::believe(std::optional<StampRules> rules) {
  stamps_ = std::move(rules);
  stamps_known_ = true;
  open_if_ready();
}

// Begins to speak: nodes first, then what the core wants of the tasks, then new jobs.
void Cluster::Impl::open() {
  open_ = true;
  opened_ = now_;
  for (const auto& [uid, pod] : pods_) {
    if (waits_to_be_bound(pod)) note_attaching(pod);
  }
  for (const KnownNode& known : options_.nodes) tell_of_known_node(known);
  for (auto& [name, node] : nodes_) update_node(name, node);
  const std::vector<Effect> effects = std::move(held_);
  held_.clear();
  for (const Effect& effect : effects) perform(effect);
  std::vector<std::string> keys;
  for (const auto& [key, group] : groups_) keys.push_back(key);
  for (const std::string& key : keys) consider(key);
  for (const auto& [id, unused] : suspensions_) settle_suspension(id);
}

void Cluster::Impl::tick() {
  if (!open_) return;
  std::vector<TaskKey> keys;
  for (const auto& [key, task] : tasks_) {
    if (task.phase != TaskPhase::kBound || task.stopping) keys.push_back(key);
  }
  for (const TaskKey& key : keys) {
    if (const auto found = tasks_.find(key); found != tasks_.end()) tick_task(key, found->second);
  }
  for (const JobId job : std::exchange(evicting_, {})) ask_evictions(job);
  std::vector<std::string> groups;
  for (auto& [key, group] : groups_) {
    if (group.ownerless || !suspensions_.contains(key) || !is_admitted_by_suspension(group)) watch_desertion(group);
    explain_wait(key, group);
    renew_if_outdated(key, group);
    replace_if_lost(key, group);
    if (!group.former.empty() && !group.job.valid()) groups.push_back(key);
    if (!group.refused_at.is_never() && now_ - group.refused_at >= options_.waits.submit_again_ms)
      groups.push_back(key);
    if (group.job.valid() && group.pods.size() > static_cast<std::size_t>(group.size)) groups.push_back(key);
  }
  for (const std::string& key : groups) {
    if (const auto group = groups_.find(key); group != groups_.end()) group->second.refused_at = Timestamp::never();
    consider(key);
  }
  for (const auto& [id, unused] : suspensions_) settle_suspension(id);
  for (auto& [uid, pod] : pods_) {
    if (pod.object.ours && pod.group.empty() && now_ - pod.seen >= options_.waits.unknown_owner_ms &&
        waits_to_be_bound(pod)) {
      tell(pod, "Waiting", "its " + text_of_owner(pod) + " is not one of namespace " + pod.object.name_space, true);
    }
    if (!pod.object.task || pod.assigned) continue;
    count_foreign(pod);
    follow(uid, pod);
  }
  serve_again();
  sweep_own();
  for (auto& [name, node] : nodes_) {
    if (is_unsettled(name, node)) update_node(name, node);
  }
}

// The last life of the task counts.
std::optional<PodPlace> Cluster::Impl::place_of(JobId job, std::uint32_t attempt, std::uint32_t task) const {
  std::optional<PodPlace> place;
  for (auto one = bound_.lower_bound({TaskKey{job, attempt, task, 0}, {}}); one != bound_.end(); ++one) {
    const TaskKey& key = one->first;
    if (key.job != job || key.attempt != attempt || key.task != task) break;
    const Pod& pod = pods_.at(one->second);
    place = PodPlace{pod.object.name_space, pod.object.name, one->second, pod.own};
  }
  return place;
}

Output Cluster::Impl::take() {
  if (!open_) return {};
  settle_gangs();
  Output output = std::move(output_);
  output_ = {};
  return output;
}

Cluster::Cluster(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

void Cluster::observe(Kind kind, const boost::json::object& object, bool deleted, Timestamp now) {
  impl_->at(now);
  impl_->observe(kind, object, deleted);
}
void Cluster::begin_list(Kind kind) { impl_->begin_list(kind); }
void Cluster::end_list(Kind kind, Timestamp now) {
  impl_->at(now);
  impl_->end_list(kind);
}
void Cluster::denied(Kind kind) { impl_->denied(kind); }
void Cluster::perform(const Effect& effect, Timestamp now) {
  impl_->at(now);
  impl_->perform(effect);
}
void Cluster::submitted(const std::string& key, JobId job, Timestamp now) {
  impl_->at(now);
  impl_->submitted(key, job);
}
void Cluster::refused(const std::string& key, const std::string& why, Timestamp now) {
  impl_->at(now);
  impl_->refused(key, why);
}
void Cluster::finished(JobId job, bool cancelled, Timestamp now) {
  impl_->at(now);
  impl_->finished(job, cancelled);
}
void Cluster::waits(JobId job, const std::string& why, Timestamp now) {
  impl_->at(now);
  impl_->waits(job, why);
}
void Cluster::answered(std::uint64_t id, int status, std::string_view body, Timestamp now) {
  impl_->at(now);
  impl_->answered(id, status, body);
}
void Cluster::believe(std::optional<StampRules> rules, Timestamp now) {
  impl_->at(now);
  impl_->believe(std::move(rules));
}
void Cluster::tick(Timestamp now) {
  impl_->at(now);
  impl_->tick();
}
std::optional<PodPlace> Cluster::place_of(JobId job, std::uint32_t attempt, std::uint32_t task) const {
  return impl_->place_of(job, attempt, task);
}
Output Cluster::take() { return impl_->take(); }
std::vector<std::string> Cluster::warnings() const { return impl_->warnings(); }

}  // namespace berth::kube
