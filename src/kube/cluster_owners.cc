// Objects that own pods: the size of their gangs, the ranks of their pods, and their end.

#include <algorithm>
#include <utility>

#include "kube/cluster_impl.h"
#include "kube/json_reading.h"

namespace berth::kube {

// Returns the key of the gang of a pod of this workload, or an empty text as long as its size cannot be told.
std::string Cluster::Impl::group_of_member(const Membership& member, std::int32_t& size, std::string& name) const {
  const auto owner = owners_.find(member.owner);
  const bool known = owner != owners_.end();
  if (!known && member.size == 0) return {};
  const Workload workload = known ? owner->second : Workload{};
  std::string key = member.owner;
  name = member.name;
  size = member.size > 0 ? member.size : workload.size();
  if (!member.part.empty()) {
    key += "/" + member.part;
    name += "-" + member.part;
  }
  if (!workload.apart) return key;
  const Role* role = workload.role(member.role);
  if (role != nullptr) size = role->count;
  if (role == nullptr && member.size > 0) size = member.index == 0 ? 1 : member.size - 1;  // a leader, and its workers
  name += "-" + member.role;
  return key + "/" + member.role;
}

// Sets the place of the pod's role, and its rank, in its gang.
void Cluster::Impl::rank(Pod& pod) const {
  const Membership& member = pod.object.member;
  pod.rank = pod.object.index;
  if (member.owner.empty()) return;
  const auto owner = owners_.find(member.owner);
  if (owner == owners_.end() || owner->second.roles.empty()) {
    pod.rank = member.index;
    return;
  }
  const Workload& workload = owner->second;
  pod.role = workload.place_of(member.role);
  const Role* role = workload.role(member.role);
  if (role == nullptr || member.index < 0) return;
  const std::int64_t within = std::int64_t{std::max(0, member.job)} * role->width + member.index;
  const std::int64_t all = within + (workload.apart ? 0 : workload.offset_of(member.role));
  pod.rank = all < kMaxTasksPerJob ? static_cast<std::int32_t>(all) : -1;
}

std::string Cluster::Impl::text_of_owner(const Pod& pod) {
  const PodObject& object = pod.object;
  if (!object.member.owner.empty()) return object.member.kind + " " + shown(object.member.name, 80);
  return "Job " + shown(object.wish.owner_name, 80);
}

void Cluster::Impl::observe_owner(const std::string& id, Workload workload, bool deleted) {
  const bool over = workload.over;
  if (deleted) {
    owners_.erase(id);
  } else {
    const auto [known, fresh] = owners_.try_emplace(id, workload);
    if (!fresh && known->second == workload) return;
    known->second = std::move(workload);
  }
  if ((deleted || over) && !id.starts_with(kOfPodGroup)) owner_gone(id);
  const auto pods = by_owner_.find(id);
  if (pods == by_owner_.end() || deleted) return;
  std::set<std::string> groups;
  for (const std::string& one : pods->second) {
    Pod& pod = pods_.at(one);
    const bool came_first = pod.group.empty();  // the pods were listed before their owners
    if (came_first || (!pod.assigned && pod.object.node.empty())) regroup(one, pod);
    forget_wish(pod);
    if (came_first && carries_its_task(one, pod)) bound_.emplace(*pod.object.task, one);
    groups.insert(pod.group);
  }
  for (const std::string& group : groups) consider(group);
}

// Returns the name of a node out of contact, where a pod of the group's job is that is being deleted; empty: there is
// none. Nobody knows whether such a pod still runs.
std::string Cluster::Impl::silent_node_of(const Group& group) const {
  for (auto one = tasks_.lower_bound(TaskKey{group.job, 0, 0, 0}); one != tasks_.end() && one->first.job == group.job;
       ++one) {
    const Task& task = one->second;
    const auto pod = pods_.find(task.pod);
    const auto node = nodes_.find(task.start.node);
    if (task.phase != TaskPhase::kBound || pod == pods_.end() || !pod->second.object.leaving) continue;
    if (node != nodes_.end() && !node->second.object.ready) return node->first;
  }
  return {};
}

// Where the controller has made new pods for those on a node out of contact, the job is replaced: it is cancelled, and
// the new pods are another one. What it has on that node stays charged until its pods are gone. A job that was admitted
// by suspension is not replaced: its object has one job.
void Cluster::Impl::replace_if_lost(const std::string& key, Group& group) {
  if (!group.job.valid() || key.starts_with(kAlone) || is_admitted_by_suspension(group)) return;
  if (silent_node_of(group).empty()) return;
  const std::vector<Pod*> fresh = waiting_pods(group);
  if (fresh.empty() || fresh.front()->object.wish.owner_kind.empty()) return;
  const auto terms = namespaces_.find(fresh.front()->object.name_space);
  if (terms != namespaces_.end() && terms->second.waits_for_lost_nodes) return;
  command(CancelJob{group.job, "kubernetes"});
  group.former.insert(std::exchange(group.job, JobId::none()));
}

// Nobody makes new pods for the gangs of this object.
void Cluster::Impl::owner_gone(const std::string& id) {
  for (auto group = groups_.lower_bound(id); group != groups_.end() && group->first.starts_with(id); ++group) {
    if (group->first != id && group->first[id.size()] != '/') continue;
    group->second.ownerless = true;
    watch_desertion(group->second);
  }
}

// Returns the role of the pod in the object that its group is of. A PodGroup knows no roles, whatever made its pods.
const std::string& Cluster::Impl::role_in_owner(const Pod& pod) {
  static const std::string kNone;
  return pod.owner_group == pod.object.member.owner ? pod.object.member.role : kNone;
}

// Returns true if the pod counts for the least size of its growing owner: it runs, or is about to, and stays. What was
// given up, and what is being deleted on a node out of contact, counts no more.
bool Cluster::Impl::is_there_for_its_owner(const Pod& pod) const {
  if (pod.object.phase == PodPhase::kSucceeded) return true;
  if (!pod.assigned || pod.object.leaving || pod.object.node.empty() || is_over(pod.object)) return false;
  const auto group = groups_.find(pod.group);
  return group == groups_.end() || !group->second.former.contains(pod.assigned->job);
}

// Returns the owner of the pod if pods beyond its gang are jobs of their own; else null.
const Workload* Cluster::Impl::growing_owner(const Pod& pod) const {
  const auto owner = owners_.find(pod.owner_group);
  return owner != owners_.end() && owner->second.grows ? &owner->second : nullptr;
}

// Returns how many pods of each role a growing workload without a gang lacks of its least size. Pods that run or have
// succeeded count, also those that are jobs of their own. A group of at least one pod is no gang: each pod is alone.
std::map<std::string, std::int64_t> Cluster::Impl::lacks_of(const Workload& workload, const std::string& owner) const {
  std::map<std::string, std::int64_t> lacks;
  const bool no_gang = workload.roles.size() == 1 && workload.roles.front().name.empty() && workload.size() == 1;
  for (const Role& role : workload.roles) lacks[role.name] = no_gang ? 0 : role.count;
  const auto pods = by_owner_.find(owner);
  if (pods == by_owner_.end()) return lacks;
  for (const std::string& uid : pods->second) {
    const Pod& pod = pods_.at(uid);
    if (is_there_for_its_owner(pod)) --lacks[role_in_owner(pod)];
  }
  return lacks;
}

// Returns how many waiting pods the next job of the group is of. `pod`: one of them.
std::int64_t Cluster::Impl::needed_by(const Group& group, const Pod& pod) const {
  const Workload* workload = growing_owner(pod);
  if (workload == nullptr) return group.size;
  std::int64_t sum = 0;
  for (const auto& [role, count] : lacks_of(*workload, pod.owner_group)) sum += std::max<std::int64_t>(0, count);
  return sum;
}

// Returns the waiting pods that are the next job of the group; none: it is not whole. If it needs no gang, its pods
// become jobs of their own.
std::vector<Cluster::Impl::Pod*> Cluster::Impl::gang_of(const std::string& group_key) {
  const Group& group = groups_.at(group_key);
  std::vector<Pod*> waiting = waiting_pods(group);
  if (waiting.empty() || group.size == 0) return {};
  const Workload* workload = group_key.starts_with(kAlone) ? nullptr : growing_owner(*waiting.front());
  if (workload == nullptr) return waiting.size() < static_cast<std::size_t>(group.size) ? std::vector<Pod*>() : waiting;
  std::map<std::string, std::int64_t> lacks = lacks_of(*workload, waiting.front()->owner_group);
  const auto is_there = [](const auto& one) { return one.second <= 0; };
  if (std::all_of(lacks.begin(), lacks.end(), is_there)) {
    split_off(waiting);
    return {};
  }
  std::erase_if(waiting, [&](const Pod* pod) { return lacks[role_in_owner(*pod)]-- <= 0; });
  return std::all_of(lacks.begin(), lacks.end(), is_there) ? waiting : std::vector<Pod*>();
}

// Makes a job of its own of each pod.
void Cluster::Impl::split_off(const std::vector<Pod*>& pods) {
  for (Pod* pod : pods) {
    const std::string uid = pod->object.uid;
    leave_group(uid, *pod);
    pod->group = std::string(kAlone) + uid;
    Group& alone = groups_[pod->group];
    alone.name = pod->object.name;
    alone.size = 1;
    if (alone.pods.insert(uid).second && !pod->object.claims.empty()) ++alone.claiming;
    consider(pod->group);
  }
}

// Returns true if each pod of the group's job is bound and stays, or has succeeded.
bool Cluster::Impl::runs_whole(const Group& group) const {
  std::size_t bound = 0;
  for (auto one = tasks_.lower_bound(TaskKey{group.job, 0, 0, 0}); one != tasks_.end() && one->first.job == group.job;
       ++one) {
    const Task& task = one->second;
    if (task.phase == TaskPhase::kExited && task.exit->code == 0) continue;
    const auto pod = pods_.find(task.pod);
    const bool has_pod = task.phase == TaskPhase::kBound && pod != pods_.end();
    if (!has_pod || task.stopping || pod->second.object.leaving) return false;
    if (!is_over(pod->second.object)) ++bound;
  }
  const auto succeeded = std::count_if(group.pods.begin(), group.pods.end(), [&](const std::string& uid) {
    return pods_.at(uid).object.phase == PodPhase::kSucceeded;
  });
  return bound > 0 && bound + static_cast<std::size_t>(succeeded) >= group.tasks;
}

// Returns true if the task is a completion index that has succeeded: its Job makes no pod for it any more.
bool Cluster::Impl::needs_no_pod(const TaskKey& key) const {
  const auto group = group_of_job_.find(key.job);
  if (group == group_of_job_.end() || !group->second.starts_with(kOfJob)) return false;
  const auto owner = owners_.find(group->second);
  return owner != owners_.end() && owner->second.done.contains(static_cast<std::int32_t>(key.task));
}

}  // namespace berth::kube
