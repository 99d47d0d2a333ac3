// Volumes of pods: which nodes they allow, and the claims for which a volume is made on the chosen node. What a claim
// waits for follows from the objects and from the tasks that live, so after any crash the same is done again
// (docs/decisions/0038).

#include <algorithm>
#include <array>
#include <charconv>

#include "base/hash.h"
#include "kube/cluster_impl.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

// The end of a submission's key that stands for the nodes which volumes allow; empty: any.
std::string_view mark_in(const std::string& key) {
  const std::size_t slash = key.rfind('/');
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos || slash == std::string::npos || dot < slash ? std::string_view()
                                                                               : std::string_view(key).substr(dot);
}

std::string_view name_of_kind(Kind kind) {
  if (kind == Kind::kStorageClass) return "StorageClasses";
  return kind == Kind::kPersistentVolume ? "PersistentVolumes" : "PersistentVolumeClaims";
}

}  // namespace

std::string Cluster::Impl::id_of_claim(const Pod& pod, const PodClaim& claim) {
  return pod.object.name_space + "/" + claim.name;
}

void Cluster::Impl::index_claims(const std::string& uid, const PodObject& pod) {
  for (const PodClaim& claim : pod.claims) claim_users_[pod.name_space + "/" + claim.name].insert(uid);
}

void Cluster::Impl::forget_claims(const std::string& uid, const PodObject& pod) {
  for (const PodClaim& claim : pod.claims) {
    const auto users = claim_users_.find(pod.name_space + "/" + claim.name);
    if (users == claim_users_.end()) continue;
    users->second.erase(uid);
    if (users->second.empty()) claim_users_.erase(users);
  }
}

void Cluster::Impl::observe_volumes(Kind kind, const std::string& id, const boost::json::object& object) {
  if (kind == Kind::kPersistentVolumeClaim) {
    claims_[id] = read_claim(object);
    return touch_claim(id);
  }
  if (kind == Kind::kPersistentVolume) {
    VolumeObject read = read_volume(object);
    const auto known = volumes_.find(id);
    if (known != volumes_.end() && known->second == read) return;
    const std::string claim = read.claim;
    volumes_[id] = std::move(read);
    return touch_claim(claim);
  }
  StorageClassObject read = read_storage_class(object);
  const auto known = classes_.find(id);
  if (known != classes_.end() && known->second == read) return;
  classes_[id] = read;
  std::vector<std::string> claims;
  for (const auto& [claim, users] : claim_users_) claims.push_back(claim);
  for (const std::string& claim : claims) touch_claim(claim);
}

void Cluster::Impl::volumes_gone(Kind kind, const std::string& id) {
  if (kind == Kind::kPersistentVolumeClaim) {
    claims_.erase(id);
    return touch_claim(id);
  }
  if (kind == Kind::kPersistentVolume) volumes_.erase(id);
  if (kind == Kind::kStorageClass) classes_.erase(id);
}

// Looks again at the jobs that wait for the claim: it has changed, or another pod uses it.
void Cluster::Impl::touch_claim(const std::string& id) {
  if (!open_) return;
  const auto users = claim_users_.find(id);
  if (users == claim_users_.end()) return;
  std::set<std::string> groups;
  for (const std::string& uid : users->second) {
    const Pod& pod = pods_.at(uid);
    if (pod.assigned) {
      unsettled_.insert(pod.assigned->job);
    } else if (waits_to_be_bound(pod)) {
      note_attaching(pod);
      groups.insert(pod.group);
    }
  }
  for (const std::string& group : groups) consider(group);
}

void Cluster::Impl::touch_claims_of(const PodObject& pod) {
  for (const PodClaim& claim : pod.claims) touch_claim(pod.name_space + "/" + claim.name);
}

ClaimVerdict Cluster::Impl::verdict_of(const Pod& pod, const PodClaim& claim) const {
  for (const Kind kind : {Kind::kPersistentVolumeClaim, Kind::kPersistentVolume, Kind::kStorageClass}) {
    if (denied_.contains(kind))
      return {ClaimStage::kWaits,
              "berth may not read " + std::string(name_of_kind(kind)) +
                  ": grant the role berth-volumes (docs/kubernetes.md)",
              {}};
  }
  const auto known = claims_.find(id_of_claim(pod, claim));
  if (known == claims_.end()) return judge(claim, pod.object.uid, nullptr, nullptr, nullptr);
  const auto volume = volumes_.find(known->second.volume);
  const auto storage_class = classes_.find(known->second.storage_class);
  return judge(claim, pod.object.uid, &known->second, volume == volumes_.end() ? nullptr : &volume->second,
               storage_class == classes_.end() ? nullptr : &storage_class->second);
}

// Returns why a claim that is for one pod alone is not for this one; empty: it is.
std::string Cluster::Impl::used_by_another(const Pod& pod, const PodClaim& claim) const {
  const std::string id = id_of_claim(pod, claim);
  const auto known = claims_.find(id);
  const auto users = claim_users_.find(id);
  if (known == claims_.end() || !known->second.for_one_pod || users == claim_users_.end()) return {};
  for (const std::string& uid : users->second) {
    const Pod& other = pods_.at(uid);
    if (uid == pod.object.uid || is_over(other.object) || (other.object.node.empty() && !other.assigned)) continue;
    return "claim " + shown(claim.name, 253) + " is ReadWriteOncePod, and pod " + other.object.name + " uses it";
  }
  return {};
}

// Returns why the pod's volumes do not let it be scheduled; empty: they do, or will on the node that is chosen.
std::string Cluster::Impl::why_volumes_wait(const Pod& pod) const {
  for (const PodClaim& claim : pod.object.claims) {
    ClaimVerdict verdict = verdict_of(pod, claim);
    if (verdict.stage == ClaimStage::kWaits) return std::move(verdict.why);
    if (std::string why = used_by_another(pod, claim); !why.empty()) return why;
  }
  return {};
}

std::string Cluster::Impl::why_volumes_wait(const std::vector<Pod*>& pods) const {
  std::map<std::string, const Pod*> for_one;
  for (const Pod* pod : pods) {
    if (std::string why = why_volumes_wait(*pod); !why.empty())
      return pods.size() == 1 ? why : "pod " + pod->object.name + ": " + why;
    for (const PodClaim& claim : pod->object.claims) {
      const auto known = claims_.find(id_of_claim(*pod, claim));
      if (known == claims_.end() || !known->second.for_one_pod) continue;
      const auto [first, fresh] = for_one.try_emplace(known->first, pod);
      if (!fresh)
        return "claim " + shown(claim.name, 253) + " is ReadWriteOncePod, and pods " + first->second->object.name +
               " and " + pod->object.name + " of one gang name it";
    }
  }
  return {};
}

// Returns the end of the key of a submission of these pods: it names the nodes that their volumes allow, and the user
// that they are stamped with.
std::string Cluster::Impl::mark_of(const std::vector<Pod*>& pods) const {
  std::vector<std::string> marks;
  for (const Pod* pod : pods) {
    std::string mark;
    for (const PodClaim& claim : pod->object.claims) {
      if (const ClaimVerdict verdict = verdict_of(*pod, claim); verdict.rule) mark += kube::mark_of(*verdict.rule);
    }
    for (const auto& [label, yes] : attaching_labels(*pod)) mark += label;
    if (const std::string user = user_of(*pod); user != user_of_namespace(*pod)) mark += "/user/" + user;
    if (!mark.empty()) marks.push_back(std::move(mark));
  }
  if (marks.empty()) return {};
  std::sort(marks.begin(), marks.end());
  Hasher hasher;
  for (const std::string& mark : marks) hasher.add(mark);
  std::array<char, 16> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), hasher.digest(), 16);
  return "." + std::string(digits.data(), end);
}

// Returns true if the job of the group waits for other nodes than the volumes of its pods allow now, or its pods are of
// another user. A job of the core keeps what it was submitted with.
bool Cluster::Impl::is_outdated(const std::string& key, const Group& group) {
  if (!group.job.valid() || (claims_.empty() && !stamps_)) return false;
  bool lives = false;
  for (auto one = tasks_.lower_bound(TaskKey{group.job, 0, 0, 0}); one != tasks_.end() && one->first.job == group.job;
       ++one) {
    if (one->second.phase == TaskPhase::kExited) continue;
    if (one->second.phase != TaskPhase::kWaitsForPod || one->second.stopping) return false;
    lives = true;
  }
  if (!lives && group.from_before && now_ - opened_ < kUnclaimedMs) return false;  // it may run, for all that is known
  if (is_admitted_by_suspension(group)) {
    const auto suspended = suspensions_.find(key);
    if (lives || suspended == suspensions_.end() || !suspended->second.object.suspended) return false;
    std::vector<std::int32_t> counts;
    std::vector<Pod> pods = pods_of_templates(key, suspended->second, counts);
    std::vector<Pod*> each;
    for (Pod& pod : pods) each.push_back(&pod);
    return why_volumes_wait(each).empty() && mark_of(each) != mark_in(group.key);
  }
  if ((group.claiming == 0 && !stamps_) || group.size == 0) return false;
  const std::vector<Pod*> pods = waiting_pods(group);
  return pods.size() >= static_cast<std::size_t>(group.size) && why_volumes_wait(pods).empty() &&
         mark_of(pods) != mark_in(group.key);
}

// Gives the job up, to submit the pods anew as a job of the nodes that they may use.
void Cluster::Impl::renew_if_outdated(const std::string& key, Group& group) {
  const bool asked = !group.renewed_at.is_never();
  const bool lacks_pods = !key.starts_with(kAlone) && is_short(group);
  if (asked ? now_ - group.renewed_at < options_.waits.renew_again_ms : !lacks_pods && !is_outdated(key, group)) return;
  group.renewed_at = now_;
  command(CancelJob{group.job, "kubernetes"});
}

// Returns true if the job of the group waits for more pods than there are, and no controller makes those that it lacks.
// GPUs that it is given would wait for a gang that cannot start.
bool Cluster::Impl::is_short(const Group& group) {
  if (!group.job.valid() || is_admitted_by_suspension(group)) return false;
  bool is_known = false;
  for (auto one = tasks_.lower_bound(TaskKey{group.job, 0, 0, 0}); one != tasks_.end() && one->first.job == group.job;
       ++one) {
    const TaskPhase phase = one->second.phase;
    if (phase != TaskPhase::kWaitsForPod && phase != TaskPhase::kWaitsForGang) return false;
    is_known = true;
  }
  if (!is_known && group.from_before && now_ - opened_ < kUnclaimedMs)
    return false;  // it may run, for all that is known
  std::vector<const Pod*> pods;
  for (const std::string& uid : group.pods) {
    const Pod& pod = pods_.at(uid);
    if (is_over(pod.object) || !pod.object.node.empty() || pod.object.leaving) continue;
    if (!pod.object.wish.owner_kind.empty()) return false;
    pods.push_back(&pod);
  }
  if (pods.empty()) return false;
  const std::int64_t asked = group.tasks > 0 ? static_cast<std::int64_t>(group.tasks) : needed_by(group, *pods.front());
  return static_cast<std::int64_t>(pods.size()) < asked;
}

void Cluster::Impl::settle_gangs() {
  const std::set<JobId> jobs = std::move(unsettled_);
  unsettled_.clear();
  for (const JobId job : jobs) settle_gang_of(job);
}

// Binds the pods of the job when each of its tasks has one and all their claims have their volumes. Until then the
// claims are told the chosen nodes.
void Cluster::Impl::settle_gang_of(JobId job) {
  std::vector<TaskKey> keys;
  for (auto one = tasks_.lower_bound(TaskKey{job, 0, 0, 0}); one != tasks_.end() && one->first.job == job; ++one)
    keys.push_back(one->first);
  if (keys.empty()) return;
  const std::uint32_t attempt = keys.back().attempt;
  bool whole = true;
  std::vector<TaskKey> prepared;
  std::map<std::string, TaskKey> choosers;  // of claims that several pods of the gang share
  for (const TaskKey& key : keys) {
    if (key.attempt != attempt) continue;
    Task& task = tasks_.at(key);
    if (task.phase == TaskPhase::kExited) {
      whole = whole && task.exit->reason == ExitReason::kExited && task.exit->code == 0;
    } else if (task.phase == TaskPhase::kWaitsForPod || task.stopping) {
      whole = false;
    } else if (task.phase == TaskPhase::kWaitsForGang) {
      if (prepare_volumes(key, task, choosers))
        prepared.push_back(key);
      else
        whole = false;
    }
  }
  if (!whole) return;
  for (const TaskKey& key : prepared) {
    Task& task = tasks_.at(key);
    bind(key, task, pods_.at(task.pod));
  }
}

// Returns true if all claims of the task's pod have their volumes. Else it does what brings them about, or ends the
// task when that took too long.
bool Cluster::Impl::prepare_volumes(const TaskKey& key, Task& task, std::map<std::string, TaskKey>& choosers) {
  const auto found = pods_.find(task.pod);
  const auto node = nodes_.find(task.start.node);
  if (found == pods_.end()) return false;
  const Pod& pod = found->second;
  std::string why;
  bool makes_volumes = false;
  for (const PodClaim& claim : pod.object.claims) {
    ClaimVerdict verdict = verdict_of(pod, claim);
    std::string text = std::move(verdict.why);
    if (text.empty()) text = used_by_another(pod, claim);
    if (text.empty() && verdict.rule && node != nodes_.end() &&
        !allows(*verdict.rule, node->first, node->second.object.spec.labels)) {
      fail_volumes(key, task,
                   "claim " + shown(claim.name, 253) + " cannot be used from node " + node->first + ", but from " +
                       shown(text_of(*verdict.rule), 300));
      return false;
    }
    if (text.empty() && verdict.stage == ClaimStage::kChoosesNode) {
      const std::string id = id_of_claim(pod, claim);
      if (choosers.try_emplace(id, key).first->second == key && !select_node(key, task, id)) return false;
      text = "claim " + shown(claim.name, 253) + " is not bound yet; it waits for a volume for node " + task.start.node;
      makes_volumes = true;
    }
    if (why.empty()) why = std::move(text);
  }
  task.volumes_wait = why;
  if (why.empty()) return true;
  const std::int64_t patience_s = makes_volumes ? options_.volume_wait_s : options_.pod_wait_s;
  if (now_ - task.since >= patience_s * 1000)
    fail_volumes(key, task, why + " (given up after " + std::to_string(patience_s) + " s)");
  return false;
}

// Writes the task's node into the claim. Returns false if the claim has refused it: then the task is over.
bool Cluster::Impl::select_node(const TaskKey& key, Task& task, const std::string& id) {
  const ClaimObject& claim = claims_.at(id);
  if (claim.selected_node == task.start.node) {
    task.selected.insert(id);
    return true;
  }
  if (task.selected.contains(id)) {  // its provisioner takes the node out again, so that another one is chosen
    fail_volumes(key, task,
                 "claim " + shown(id.substr(id.find('/') + 1), 253) + ": its provisioner has made no volume for node " +
                     task.start.node);
    return false;
  }
  const auto [asked, fresh] = task.selected_at.try_emplace(id, now_);
  if (!fresh && now_ - asked->second < options_.waits.select_again_ms) return true;
  asked->second = now_;
  const std::size_t slash = id.find('/');
  send({0, Method::kPatch,
        "/api/v1/namespaces/" + id.substr(0, slash) + "/persistentvolumeclaims/" + id.substr(slash + 1),
        "application/merge-patch+json", select_node_patch(claim, task.start.node), true},
       Asked::kSelect, key);
  calls_.rbegin()->second.claim = id;
  return true;
}

void Cluster::Impl::select_answered(const TaskKey& key, Task& task, const std::string& claim, int status,
                                    std::string_view body) {
  if (task.phase != TaskPhase::kWaitsForGang) return;
  if (status >= 200 && status < 300) task.denied_since = Timestamp::never();
  if (status == 409) {  // it has changed: again, with what the watch shows by then
    const auto asked = task.selected_at.find(claim);
    if (asked != task.selected_at.end()) asked->second = now_ + (1'000 - options_.waits.select_again_ms);
    return;
  }
  if (status != 403 && status != 422 && status != 400) return;
  if (waits_out_denial(task, status, body)) return;  // asked again
  fail_volumes(key, task,
               "the API server did not let berth write the node into claim " +
                   shown(claim.substr(claim.find('/') + 1), 253) + " (" + std::to_string(status) +
                   "): " + shown(body, 300));
}

// Ends the start of the task, and so of its gang. The job is not to blame: it is tried again, after a pause.
void Cluster::Impl::fail_volumes(const TaskKey& key, Task& task, const std::string& why) {
  const auto found = pods_.find(task.pod);
  const std::string said = found == pods_.end() ? why : "pod " + found->second.object.name + ": " + why;
  fail_start(key, task, said);
  if (found == pods_.end()) return;
  const auto group = groups_.find(found->second.group);
  if (group == groups_.end()) return;
  for (Pod* pod : waiting_pods(group->second)) tell(*pod, "VolumesNotReady", said, pod == &found->second);
}

void Cluster::Impl::tick_gang(const TaskKey& key, Task& task) {
  unsettled_.insert(key.job);
  if (now_ - task.since < options_.waits.tell_volumes_ms) return;
  const std::string why = task.volumes_wait.empty() ? "it starts with the other pods of its gang" : task.volumes_wait;
  if (const auto pod = pods_.find(task.pod); pod != pods_.end())
    tell(pod->second, "Waiting", "it has a place on node " + task.start.node + ": " + why, false);
}

}  // namespace berth::kube
