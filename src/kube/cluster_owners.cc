// Objects that own pods: the size of their gangs, the ranks of their pods, and their end.

#include <algorithm>

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

// Nobody makes new pods for the gangs of this object.
void Cluster::Impl::owner_gone(const std::string& id) {
  for (auto group = groups_.lower_bound(id); group != groups_.end() && group->first.starts_with(id); ++group) {
    if (group->first != id && group->first[id.size()] != '/') continue;
    group->second.ownerless = true;
    watch_desertion(group->second);
  }
}

// Makes jobs of their own of the pods that an owner has added to its gang. Returns false if the gang is not whole yet.
bool Cluster::Impl::split_off(const std::string& group_key) {
  if (group_key.starts_with(kAlone)) return true;
  Group& group = groups_.at(group_key);
  const std::vector<Pod*> waiting = waiting_pods(group);
  const auto owner = waiting.empty() ? owners_.end() : owners_.find(waiting.front()->object.member.owner);
  if (owner == owners_.end() || !owner->second.grows) return true;
  std::map<std::string, std::int64_t> lacks;
  for (const Role& role : owner->second.roles) lacks[role.name] = role.count;
  for (const std::string& uid : group.pods) {
    const Pod& pod = pods_.at(uid);
    if (pod.assigned && !is_over(pod.object)) --lacks[pod.object.member.role];
  }
  std::vector<Pod*> more;
  for (Pod* pod : waiting) {
    if (lacks[pod->object.member.role]-- <= 0) more.push_back(pod);
  }
  const bool whole = std::all_of(lacks.begin(), lacks.end(), [](const auto& one) { return one.second <= 0; });
  if (!whole && !group.job.valid()) return false;
  for (Pod* pod : more) {
    const std::string uid = pod->object.uid;
    leave_group(uid, *pod);
    pod->group = std::string(kAlone) + uid;
    Group& alone = groups_[pod->group];
    alone.name = pod->object.name;
    alone.size = 1;
    if (alone.pods.insert(uid).second && !pod->object.claims.empty()) ++alone.claiming;
    consider(pod->group);
  }
  return true;
}

// Returns true if the task is a completion index that has succeeded: its Job makes no pod for it any more.
bool Cluster::Impl::needs_no_pod(const TaskKey& key) const {
  const auto group = group_of_job_.find(key.job);
  if (group == group_of_job_.end() || !group->second.starts_with(kOfJob)) return false;
  const auto owner = owners_.find(group->second);
  return owner != owners_.end() && owner->second.done.contains(static_cast<std::int32_t>(key.task));
}

}  // namespace berth::kube
