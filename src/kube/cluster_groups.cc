// Groups of pods, which are submitted as one job each.

#include <algorithm>
#include <set>
#include <tuple>

#include "base/hash.h"
#include "kube/cluster_impl.h"
#include "kube/json_reading.h"
#include "kube/pod_risks.h"
#include "model/name.h"

namespace berth::kube {
namespace {

// A group whose job is live, but none of whose pods waits or runs, has been deleted, unless its controller makes new
// ones within this time.
constexpr std::int64_t kDesertedMs = 60'000;

// What the core knows nothing of is told to the pods that wait for it, after this time and not more often than that.
constexpr std::int64_t kExplainAfterMs = 10'000;
constexpr std::int64_t kExplainAgainMs = 60'000;

// A name of berth made of names of Kubernetes, which may be longer.
std::string job_name(std::string name) {
  if (name.size() > kMaxNameLength) name.resize(kMaxNameLength);
  while (!name.empty() && !well_formed_name(name)) name.pop_back();
  return name.empty() ? "pods" : name;
}

std::string in_one_line(std::string_view lines) {
  std::string line;
  for (const char letter : lines) {
    if (letter == '\n')
      line += "; ";
    else
      line += letter;
  }
  return line;
}

bool asks_the_same(const TaskGroup& a, const TaskGroup& b) {
  return a.request == b.request && a.node_selector == b.node_selector && a.node_rules == b.node_rules &&
         a.tolerations == b.tolerations;
}

}  // namespace

std::string Cluster::Impl::id_of_job(const Pod& pod) {
  return std::string(kOfJob) + pod.object.name_space + "/" + pod.object.owner_uid;
}

// Returns the key of the pod's group, or an empty text as long as its owner is not known.
std::string Cluster::Impl::group_of(const Pod& pod, std::int32_t& size, std::string& name) const {
  const PodObject& object = pod.object;
  const PodWish& wish = object.wish;
  const std::string alone = std::string(kAlone) + object.uid;
  if (groups_.contains(alone)) {  // it stays what it was submitted as
    size = 1;
    name = object.name;
    return alone;
  }
  if (!wish.pod_group.empty()) {
    std::string id = std::string(kOfPodGroup) + object.name_space + "/" + wish.pod_group;
    const auto known = owners_.find(id);
    size = known == owners_.end() ? 0 : known->second.size();
    name = wish.pod_group;
    return id;
  }
  if (!wish.group_name.empty()) {
    size = wish.group_size;
    name = wish.group_name;
    return "group/" + object.name_space + "/" + wish.group_name;
  }
  if (!object.member.owner.empty()) return group_of_member(object.member, size, name);
  if (wish.owner_kind == "Job") {
    std::string id = id_of_job(pod);
    const auto known = owners_.find(id);
    if (known == owners_.end()) return {};
    const auto group = groups_.find(id);
    const bool admitted = group != groups_.end() && is_admitted_by_suspension(group->second);
    if (admitted || known->second.size() > 1) {
      size = admitted && group->second.size > 0 ? group->second.size : known->second.size();
      name = wish.owner_name;
      return id;
    }
  }
  size = 1;
  name = object.name;
  return alone;
}

void Cluster::Impl::leave_group(const std::string& uid, Pod& pod) {
  const auto found = groups_.find(pod.group);
  if (found == groups_.end()) return;
  if (found->second.pods.erase(uid) != 0 && !pod.object.claims.empty()) --found->second.claiming;
  erase_if_over(found->first);
  pod.group.clear();
}

void Cluster::Impl::erase_if_over(const std::string& group_key) {
  const auto found = groups_.find(group_key);
  if (found == groups_.end()) return;
  const Group& group = found->second;
  if (group.pods.empty() && !group.job.valid() && !group.submitting && group.former.empty()) groups_.erase(found);
}

void Cluster::Impl::regroup(const std::string& uid, Pod& pod) {
  if (!pod.object.ours || pod.own) return;
  std::int32_t size = 0;
  std::string name;
  const std::string key = group_of(pod, size, name);
  if (pod.group != key) leave_group(uid, pod);
  if (key.empty()) return;
  Group& group = groups_[key];
  group.name = name;
  group.size = size;
  if (group.pods.insert(uid).second && !pod.object.claims.empty()) ++group.claiming;
  pod.group = key;
  rank(pod);
}

// Whether the key that a bound pod carries is that of a task of its own group. Anybody who may make pods can write any
// key into one, and name its node.
bool Cluster::Impl::carries_its_task(const std::string& uid, const Pod& pod) const {
  const PodObject& object = pod.object;
  if (!object.ours || !object.task || object.node.empty()) return false;
  if (pod.own) return true;
  const auto group = group_of_job_.find(object.task->job);
  if (group == group_of_job_.end()) return false;
  const std::string& owner = object.member.owner;
  return group->second == pod.group || group->second == std::string(kAlone) + uid ||
         group->second == id_of_job(pod) ||  // also where its Job, or its owner, is gone or is not known yet
         (!owner.empty() && (group->second == owner || group->second.starts_with(owner + "/")));
}

void Cluster::Impl::observe_pod(const boost::json::object& object, bool deleted) {
  const std::string uid = text_at(object, {"metadata", "uid"});
  if (deleted) return pod_gone(uid);
  auto read = read_pod(object, options_.scheduler, options_.devices);
  if (!read) {
    warn(read.error().message);
    return;
  }
  const auto [at, fresh] = pods_.try_emplace(uid);
  Pod& pod = at->second;
  if (pod.object.task) bound_.erase({*pod.object.task, uid});  // who may change the pod may change the key
  pod.object = std::move(*read);
  if (pod.object.log != options_.log) pod.object.task.reset();  // another berth has bound it
  pod.own = is_own(pod.object);
  const PodObject& now = pod.object;
  if (fresh) {
    pod.seen = now_;
    if (now.unreadable) warn("pod " + shown(now.name_space, 80) + "/" + shown(now.name, 80) + ": " + now.wish.problem);
    if (!now.wish.pod_group.empty()) {
      pod.owner_group = std::string(kOfPodGroup) + now.name_space + "/" + now.wish.pod_group;
    } else if (!now.member.owner.empty()) {
      pod.owner_group = now.member.owner;
    } else if (now.wish.owner_kind == "Job") {
      pod.owner_group = id_of_job(pod);
    }
    if (!pod.owner_group.empty()) by_owner_[pod.owner_group].insert(uid);
    index_claims(uid, now);
  }
  if (fresh || pod.group.empty()) regroup(uid, pod);
  if (carries_its_task(uid, pod)) bound_.emplace(*now.task, uid);
  forget_wish(pod);
  follow(uid, pod);
  count_foreign(pod);
  count_attached(pod);
  if (is_over(now)) touch_claims_of(now);
  if (open_ && waits_to_be_bound(pod)) note_attaching(pod);
  consider(pod.group);
}

// What a bound pod asked for is not needed any more, once its group is known.
void Cluster::Impl::forget_wish(Pod& pod) {
  const bool awaits_owner = pod.object.ours && !pod.own && pod.group.empty();
  if (!pod.object.node.empty() && !awaits_owner) pod.object.wish = {};
}

void Cluster::Impl::pod_gone(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Pod pod = std::move(found->second);
  pods_.erase(found);
  count_attached(pod, pod.attached_on, false);
  if (!pod.foreign_on.empty()) {
    pod.object.phase = PodPhase::kSucceeded;
    count_foreign(pod);
  }
  if (const auto owned = by_owner_.find(pod.owner_group); owned != by_owner_.end()) {
    owned->second.erase(uid);
    if (owned->second.empty()) by_owner_.erase(owned);
  }
  if (pod.object.task) bound_.erase({*pod.object.task, uid});
  forget_claims(uid, pod.object);
  if (const auto task = pod.assigned ? tasks_.find(*pod.assigned) : tasks_.end(); task != tasks_.end()) {
    const TaskPhase phase = task->second.phase;
    const bool starts = phase == TaskPhase::kWaitsForGang || phase == TaskPhase::kBinding;
    if (starts && !task->second.own && !task->second.stopping)
      fail_start(task->first, task->second, "pod " + pod.object.name + " was deleted before it was bound");
    else
      exit_task(task->first, task->second, {ExitReason::kKilled, 137, "its pod was deleted"});
  }
  const std::string key = pod.group;
  const auto group = groups_.find(key);
  const JobId job = group == groups_.end() ? JobId::none() : group->second.job;
  leave_group(uid, pod);
  if (job.valid() && key.starts_with(kAlone)) command(CancelJob{job, "kubernetes"});
  touch_claims_of(pod.object);
}

bool Cluster::Impl::waits_to_be_bound(const Pod& pod) {
  const PodObject& object = pod.object;
  return !pod.assigned && object.node.empty() && !object.gated && !object.leaving && object.phase == PodPhase::kPending;
}

bool Cluster::Impl::comes_before(const Pod& a, const Pod& b) {
  return std::tie(a.role, a.rank, a.object.created, a.object.name, a.object.uid) <
         std::tie(b.role, b.rank, b.object.created, b.object.name, b.object.uid);
}

// Returns the pods of the group that could be bound, in the order of their index, age and name.
std::vector<Cluster::Impl::Pod*> Cluster::Impl::waiting_pods(const Group& group) {
  std::vector<Pod*> waiting;
  for (const std::string& uid : group.pods) {
    Pod& pod = pods_.at(uid);
    if (waits_to_be_bound(pod)) waiting.push_back(&pod);
  }
  std::sort(waiting.begin(), waiting.end(), [](const Pod* a, const Pod* b) { return comes_before(*a, *b); });
  return waiting;
}

std::string Cluster::Impl::queue_of(const Pod& pod, std::string& why) const {
  const auto allowed = namespaces_.find(pod.object.name_space);
  if (allowed == namespaces_.end() || allowed->second.queues.empty()) {
    why = "namespace " + pod.object.name_space +
          " may use no queue: an admin of the cluster names them in its annotation berth.dev/queues";
    return {};
  }
  std::string asked = pod.object.wish.queue;
  if (const auto owner = owners_.find(pod.owner_group); asked.empty() && owner != owners_.end())
    asked = owner->second.queue;
  std::string queue = queue_for(asked, allowed->second.queues);
  if (!queue.empty()) return queue;
  std::string list;
  for (const std::string& one : allowed->second.queues) list += (list.empty() ? "" : ", ") + shown(one, 80);
  why = asked.empty() ? "it names no queue; give the label berth.dev/queue with one of: " + list
                      : "queue '" + shown(asked, 80) + "' is not one that namespace " + pod.object.name_space +
                            " may use: " + list;
  return {};
}

std::string Cluster::Impl::user_of_namespace(const Pod& pod) {
  return "kubernetes:" + shown(pod.object.name_space, 80);
}

// Returns the user of berth whose pod it is.
std::string Cluster::Impl::user_of(const Pod& pod) const {
  std::string user;
  if (stamps_) user = user_of_stamp(pod.object.wish.stamp, pod.object.name_space, *stamps_, options_.stamped);
  return user.empty() ? user_of_namespace(pod) : user;
}

// A job is charged to one user.
std::string Cluster::Impl::why_not_one_user(const std::vector<Pod*>& pods) const {
  const Pod& first = *pods.front();
  const std::string user = user_of(first);
  for (const Pod* pod : pods) {
    const std::string other = user_of(*pod);
    if (other == user) continue;
    return "the pods of its group are of two users: " + shown(first.object.name, 253) + " is of '" + shown(user, 253) +
           "', " + shown(pod->object.name, 253) + " of '" + shown(other, 253) +
           "'; a group is charged to one user, so make all its pods as the same";
  }
  return {};
}

void Cluster::Impl::observe_priority_class(const std::string& name, const boost::json::object& object, bool deleted) {
  const bool is_default = !deleted && true_at(object, {"globalDefault"});
  if (!is_default) default_classes_.erase(name);
  if (is_default) default_classes_.insert(name);
}

// Returns the priority class that the pod asks for; empty: none. The cluster's default class stands in the pods that
// named none, so it counts only where their namespace has it by name: `*` does not mean it.
std::string Cluster::Impl::class_of(const Pod& pod) const {
  const PodWish& wish = pod.object.wish;
  if (!wish.class_by_spec || !default_classes_.contains(wish.priority_class)) return wish.priority_class;
  const auto terms = namespaces_.find(pod.object.name_space);
  return terms != namespaces_.end() && names_class(wish.priority_class, terms->second) ? wish.priority_class
                                                                                       : std::string();
}

// Returns why the pod may not have the priority class that it names; empty: it may.
std::string Cluster::Impl::why_not_its_class(const Pod& pod) const {
  const std::string wanted = class_of(pod);
  const auto terms = namespaces_.find(pod.object.name_space);
  if (terms == namespaces_.end() || may_use_class(wanted, terms->second)) return {};
  std::string list;
  for (const std::string& one : terms->second.priority_classes) list += (list.empty() ? "" : ", ") + shown(one, 80);
  return "priority class '" + shown(wanted, 80) + "' is not one that namespace " + pod.object.name_space +
         " may use: " + (list.empty() ? "it has the default class alone" : list) +
         ". An admin of the cluster names them in its annotation berth.dev/priority-classes";
}

TaskGroup Cluster::Impl::task_group_of(const Pod& pod) const {
  const PodWish& wish = pod.object.wish;
  TaskGroup group;
  group.request = pod.object.request;
  // A pod without requests is placed as kube-scheduler does. A task asks for something: the least that there is.
  if (group.request.gpus == 0 && group.request.cpu_milli == 0 && group.request.memory_mib == 0)
    group.request.cpu_milli = 1;
  group.command = {"pod/" + shown(pod.object.name_space, 80) + "/" + shown(pod.object.name, 253)};
  if (!wish.images.empty()) group.image = wish.images.front();
  group.node_selector = wish.node_selector;
  const Labels attaching = attaching_labels(pod);
  group.node_selector.insert(group.node_selector.end(), attaching.begin(), attaching.end());
  std::sort(group.node_selector.begin(), group.node_selector.end());
  group.node_rules = rules_of(pod);
  group.tolerations = wish.tolerations;
  return group;
}

// Returns the images of all containers that are not the image of a task group of the job, each once.
std::vector<std::string> Cluster::Impl::more_images_of(const std::vector<Pod*>& pods, const JobSpec& job) {
  std::set<std::string> more;
  for (const Pod* pod : pods) more.insert(pod->object.wish.images.begin(), pod->object.wish.images.end());
  for (const TaskGroup& group : job.groups) more.erase(group.image);
  return {more.begin(), more.end()};
}

// Returns what submits the job of these pods: with all in them that admission rules look at beside the job.
SubmitJob Cluster::Impl::submission_of(JobSpec job, const std::string& key, const std::vector<Pod*>& pods) {
  std::vector<PodRisk> risks;
  for (const Pod* pod : pods) risks = joined(std::move(risks), pod->object.wish.risks);
  std::vector<std::string> images = more_images_of(pods, job);
  return {std::move(job), key, {}, std::move(images), std::move(risks)};
}

// Returns the job that the waiting pods are, or nothing if they may not be scheduled: then its pods say why.
std::optional<JobSpec> Cluster::Impl::job_of(const Group& group, const std::vector<Pod*>& pods) {
  Refusal why;
  for (const Pod* pod : pods) note_attaching(*pod);
  auto job = spec_of(group.name, pods, why);
  if (job) return job;
  for (Pod* pod : pods) tell(*pod, why.reason, why.text, true);
  return {};
}

std::optional<JobSpec> Cluster::Impl::spec_of(const std::string& name, const std::vector<Pod*>& pods,
                                              Refusal& why) const {
  for (const Pod* pod : pods) {
    if (why.text.empty()) why = {"NotSchedulable", pod->object.wish.problem};
  }
  const Pod& first = *pods.front();
  if (!why.text.empty()) return {};
  why.reason = "QueueNotAllowed";
  const std::string queue = queue_of(first, why.text);
  if (!why.text.empty()) return {};
  for (const Pod* pod : pods) {
    if (pod->object.wish.queue.empty() || queue_of(*pod, why.text) == queue) continue;
    if (why.text.empty())
      why.text = "the pods of its group name two queues: " + shown(first.object.name, 253) + " is for '" + queue +
                 "', " + shown(pod->object.name, 253) + " names '" + shown(pod->object.wish.queue, 80) +
                 "'; a group is charged in one queue, so give all its pods the same";
    return {};
  }
  why = {"NotOneUser", why_not_one_user(pods)};
  if (!why.text.empty()) return {};
  why = {"PriorityClassNotAllowed", why_not_its_class(first)};
  if (!why.text.empty()) return {};
  const PodWish& wish = first.object.wish;
  JobSpec job;
  job.name = job_name(name);
  job.queue = queue;
  job.user = user_of(first);
  const bool serves = first.object.member.serves || wish.owner_kind == "ReplicaSet" || wish.owner_kind == "StatefulSet";
  job.job_class = wish.job_class.value_or(serves ? JobClass::kInference : JobClass::kTraining);
  job.priority_class = class_of(first);
  job.topology = wish.topology;
  job.time_limit_s = wish.time_limit_s;
  job.checkpoint.on_signal = wish.saves_on_signal;
  // Else as the terms of its queue say: a tenant who borrows does not choose how long it keeps what it has.
  if (wish.saves_on_signal) job.checkpoint.grace_s = wish.grace_s;
  job.ports = wish.ports;
  why = {"NotSchedulable", put_terms(pods, job)};
  if (!why.text.empty()) return {};
  job.retries =
      wish.owner_kind.empty() || pods.size() == 1 ? 0 : kMaxRetries;  // its controller decides when to give up
  std::map<std::string, std::string> roles;                           // of the task groups
  for (const Pod* pod : pods) {
    TaskGroup one = task_group_of(*pod);
    const std::string& role = pod->object.member.role;
    const auto same = std::find_if(job.groups.begin(), job.groups.end(), [&](const TaskGroup& other) {
      return roles.at(other.name) == role && asks_the_same(other, one);
    });
    if (same != job.groups.end()) {
      ++same->count;
      continue;
    }
    one.name = well_formed_name(role) ? role : "pods";
    if (roles.contains(one.name)) one.name = "pods-" + std::to_string(job.groups.size() + 1);
    roles[one.name] = role;
    job.groups.push_back(std::move(one));
  }
  return job;
}

// Returns the level of the topology whose domains are nodes with one value of the label; empty: none.
std::string Cluster::Impl::level_of(const std::string& key) const {
  if (key == "kubernetes.io/hostname") return "node";
  const auto found = std::find(options_.topology.begin(), options_.topology.end(), key);
  const auto index = static_cast<std::size_t>(found - options_.topology.begin());
  return index < options_.levels.size() ? options_.levels[index] : std::string();
}

// Gives the job the labels and terms of its pods. They hold for all tasks of a job, so the pods of a gang with terms
// have to have the same ones. Returns what of it cannot be obeyed.
std::string Cluster::Impl::put_terms(const std::vector<Pod*>& pods, JobSpec& job) const {
  const PodTerms& first = pods.front()->object.wish.terms;
  const auto same = [&](const Pod* pod) { return pod->object.wish.terms == first; };
  if (!std::all_of(pods.begin(), pods.end(), same)) {
    const auto has = [](const Pod* pod) { return pod->object.wish.terms.has_terms(); };
    if (std::none_of(pods.begin(), pods.end(), has)) return {};
    return "required affinity between pods is not supported in a gang whose pods differ in labels or terms";
  }
  job.labels = first.labels;
  const auto put = [this](const std::vector<PodTerm>& terms, std::vector<AffinityTerm>& into) -> std::string {
    for (const PodTerm& term : terms) {
      const std::string level = level_of(term.key);
      if (level.empty())
        return "topologyKey " + shown(term.key, 80) +
               " of required affinity between pods is not supported: give kubernetes.io/hostname or one of "
               "--topology-labels";
      into.push_back({term.labels, level, true});
    }
    return {};
  };
  std::string problem = put(first.near, job.affinity);
  return problem.empty() ? put(first.apart, job.anti_affinity) : problem;
}

// Returns what stands for these pods, in any order, in the key of their submission. A pod that was made anew makes them
// other pods: where a job has failed for want of one pod, the gang is submitted again when that pod is there.
std::string Cluster::Impl::id_of_these(const std::vector<Pod*>& pods) {
  if (pods.size() == 1) return pods.front()->object.uid;
  std::set<std::string> uids;
  for (const Pod* pod : pods) uids.insert(pod->object.uid);
  Hasher hasher;
  for (const std::string& uid : uids) hasher.add(uid);
  return hex_of(hasher.digest());
}

// Submits the group's job if as many pods wait as it needs.
void Cluster::Impl::consider(const std::string& group_key) {
  const auto found = groups_.find(group_key);
  if (found == groups_.end() || !open_) return;
  Group& group = found->second;
  if (group.job.valid()) {  // its job may wait for just this pod
    std::vector<TaskKey> waiting;
    for (auto one = waiting_tasks_.lower_bound(TaskKey{group.job, 0, 0, 0});
         one != waiting_tasks_.end() && one->job == group.job; ++one)
      waiting.push_back(*one);
    for (const TaskKey& key : waiting) try_bind(key, tasks_.at(key));
    const std::vector<Pod*> more = runs_whole(group) ? waiting_pods(group) : std::vector<Pod*>();
    if (!more.empty() && growing_owner(*more.front()) != nullptr && !group_key.starts_with(kAlone)) split_off(more);
    return;
  }
  if (group.submitting || group.cancelled || !group.refused_at.is_never()) return;
  for (Pod* pod : waiting_pods(group)) {  // said at once, also where the gang is not whole yet
    if (!pod->object.wish.problem.empty()) tell(*pod, "NotSchedulable", pod->object.wish.problem, true);
  }
  const std::vector<Pod*> pods = gang_of(group_key);
  if (pods.empty() || !why_volumes_wait(pods).empty()) return;
  const std::string key = "kube/" + options_.cell + "/" + group_key + "/" + id_of_these(pods) + mark_of(pods);
  if (key == group.key) return;  // these very pods were a job that is over
  auto job = job_of(group, pods);
  if (!job) {
    group.refused_at = now_;
    return;
  }
  group.key = key;
  group.tasks = pods.size();
  group.submitting = true;
  job->source = {options_.cell, key};
  command(submission_of(std::move(*job), key, pods));
}

// Returns the key of the group that a submission is of; empty if it is of none here.
std::string Cluster::Impl::group_of_submission(const std::string& key) const {
  const std::string prefix = "kube/" + options_.cell + "/";
  const std::size_t end = key.rfind('/');
  if (!key.starts_with(prefix) || end == std::string::npos || end <= prefix.size()) return {};
  return key.substr(prefix.size(), end - prefix.size());
}

// A start may come before the answer to the submission. It names its job's source, so the group is known by it.
void Cluster::Impl::learn_from_start(const StartTask& start) {
  if (start.source.cell != options_.cell || group_of_job_.contains(start.key.job)) return;
  const std::string group_key = group_of_submission(start.source.key);
  const auto group = groups_.find(group_key);
  if (group_key.empty() || (group != groups_.end() && group->second.job.valid())) return;
  submitted(start.source.key, start.key.job);
}

void Cluster::Impl::submitted(const std::string& key, JobId job) {
  const std::string group_key = group_of_submission(key);
  if (group_key.empty()) return;
  Group& group = groups_[group_key];
  if (group.former.contains(job)) return;  // told again
  group_of_job_[job] = group_key;
  if (group.job.valid() && group.job != job) {  // after a restart: the later one has replaced the other
    group.former.insert(std::min(group.job, job));
    if (job < group.job) return;
  }
  group.key = key;
  group.job = job;
  group.from_before = !open_;
  group.submitting = false;
  group.deserted_since = Timestamp::never();
  consider(group_key);
}

void Cluster::Impl::refused(const std::string& key, const std::string& why) {
  for (auto& [group_key, group] : groups_) {
    if (group.key != key || group.job.valid()) continue;
    group.submitting = false;
    group.refused_at = now_;
    group.key.clear();
    const std::string line = in_one_line(why);
    for (Pod* pod : waiting_pods(group)) tell(*pod, "NotAccepted", line, true);
    if (const auto suspended = suspensions_.find(group_key); suspended != suspensions_.end()) {
      suspended->second.refused_at = now_;
      tell_owner(suspended->second, "NotAccepted", line);
    }
    return;
  }
}

void Cluster::Impl::finished(JobId job, bool cancelled) {
  const auto known = group_of_job_.find(job);
  if (known == group_of_job_.end()) return;
  const std::string key = known->second;
  group_of_job_.erase(known);
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  Group& group = found->second;
  if (group.former.erase(job) != 0) return erase_if_over(key);
  cancelled = cancelled && group.renewed_at.is_never();
  group.renewed_at = Timestamp::never();
  if (cancelled && is_admitted_by_suspension(group)) cancel_suspended(key, job);
  group.job = JobId::none();
  group.cancelled = cancelled;
  group.deserted_since = Timestamp::never();
  if (cancelled) {
    for (Pod* pod : waiting_pods(group))
      tell(*pod, "Cancelled", "job " + std::to_string(job.value()) + " of berth was cancelled; make the pods anew",
           true);
  }
  erase_if_over(key);
  consider(key);
}

void Cluster::Impl::waits(JobId job, const std::string& said) {
  const auto known = group_of_job_.find(job);
  if (known == group_of_job_.end()) return;
  std::string why = said;
  for (const auto& [label, attaching] : attachings_) {
    if (said.find(label) != std::string::npos)
      why += " " + label + " is on nodes that can attach " + std::to_string(attaching.second) +
             " more volumes of driver " + shown(attaching.first, 80) + ".";
  }
  const auto before = groups_.find(known->second);
  if (before != groups_.end() && before->second.job != job) return;
  if (before != groups_.end() && !before->second.start_failure.empty())
    why += " Its last start failed: " + before->second.start_failure + ".";
  if (const auto suspended = suspensions_.find(known->second); suspended != suspensions_.end())
    tell_owner(suspended->second, "Waiting", why);
  bool first = true;
  for (Pod* pod : waiting_pods(groups_.at(known->second))) {
    tell(*pod, "Waiting", why, first);
    first = false;
  }
}

// Whether a task of the job has a pod that lives, also where that has no group because its owner is gone.
bool Cluster::Impl::runs_pods(JobId job) const {
  for (auto one = tasks_.lower_bound(TaskKey{job, 0, 0, 0}); one != tasks_.end() && one->first.job == job; ++one) {
    if (one->second.phase == TaskPhase::kBound && pods_.contains(one->second.pod)) return true;
  }
  return false;
}

void Cluster::Impl::watch_desertion(Group& group) {
  if (!group.job.valid()) return;
  const bool peopled = std::any_of(group.pods.begin(), group.pods.end(), [&](const std::string& uid) {
    const PodObject& pod = pods_.at(uid).object;
    return !is_over(pod) && !(pod.leaving && pod.node.empty());
  });
  if (peopled || runs_pods(group.job)) {
    group.deserted_since = Timestamp::never();
    return;
  }
  if (group.deserted_since.is_never()) group.deserted_since = now_;
  if (!group.ownerless && now_ - group.deserted_since < kDesertedMs) return;
  group.ownerless = false;
  group.deserted_since = now_;  // again after the same time, should it not be heard
  command(CancelJob{group.job, "kubernetes"});
}

// Returns what the pod uses of its node beyond what the core has charged for it. It is all of it, unless the pod is a
// task: then it is what it has grown by since it was bound.
Cluster::Impl::Usage Cluster::Impl::foreign_use(const Pod& pod) const {
  const PodObject& object = pod.object;
  if (object.node.empty() || is_over(object)) return {};
  Usage all{object.request.cpu_milli, object.request.memory_mib, object.devices, {}};
  for (const auto& [name, amount] : object.request.countables) all.countables[name] = amount;
  all.countables[std::string(kPodsCountable)] = 1;
  const auto task = pod.assigned ? tasks_.find(*pod.assigned) : tasks_.end();
  if (task != tasks_.end()) {
    const StartTask& start = task->second.start;
    return {std::max<std::int64_t>(0, all.cpu_milli - start.cpu_milli),
            std::max<std::int64_t>(0, all.memory_mib - start.memory_mib),
            {},
            {}};
  }
  const bool named_soon = !open_ || (pod.seen <= opened_ && now_ - opened_ < kUnclaimedMs);
  if (named_soon && object.task && !tasks_.contains(*object.task) && carries_its_task(object.uid, pod)) return {};
  return all;
}

// Whether a pod of the group is bound or is being bound.
bool Cluster::Impl::is_peopled(const Group& group) const {
  return std::any_of(group.pods.begin(), group.pods.end(), [&](const std::string& uid) {
    const Pod& pod = pods_.at(uid);
    return pod.assigned && !pod.object.leaving && !is_over(pod.object);
  });
}

// Returns why these pods of the group wait, or nothing if it is for the core to say.
std::string Cluster::Impl::why_it_waits(const std::string& key, const Group& group,
                                        const std::vector<Pod*>& pods) const {
  const auto have = [&] {
    const auto made = std::count_if(group.pods.begin(), group.pods.end(),
                                    [&](const std::string& uid) { return !is_over(pods_.at(uid).object); });
    const std::string size = std::to_string(group.size);
    if (!pods.front()->owner_group.empty() && made < group.size)
      return "its controller has made " + std::to_string(made) + " of " + size + " pods";
    return std::to_string(pods.size()) + " of the " + size + " pods of its group wait";
  };
  if (group.job.valid()) {
    const auto next = waiting_tasks_.lower_bound(TaskKey{group.job, 0, 0, 0});
    if (next != waiting_tasks_.end() && next->job == group.job) return {};
    if (const std::string node = silent_node_of(group); !node.empty())
      return "job " + std::to_string(group.job.value()) + " of its group has a pod on node " + node +
             ", which is out of contact; it waits until that is back, has no Node object any more, or has the taint " +
             "node.kubernetes.io/out-of-service";
    if (!is_peopled(group)) return {};
    if (growing_owner(*pods.front()) != nullptr)
      return "it is beyond the least size of its group, and starts when all pods of job " +
             std::to_string(group.job.value()) + " run";
    return "job " + std::to_string(group.job.value()) + " of its group runs without it; it waits until that is over";
  }
  if (group.cancelled)
    return "the job of its group was cancelled; make its pods anew when all pods of the group are gone";
  if (group.size <= 0 && key.starts_with(kOfPodGroup))
    return "its PodGroup " + shown(group.name, 80) + " does not exist, or has no gang.minCount";
  if (group.size <= 0 && !pods.front()->object.member.owner.empty())
    return "its " + text_of_owner(*pods.front()) + " does not say of how many pods it is";
  if (group.size <= 0) return "label berth.dev/group-size of a pod of its group is no number of pods";
  if (pods.size() < static_cast<std::size_t>(group.size)) return have();
  if (std::string volumes = why_volumes_wait(pods); !volumes.empty()) return volumes;
  return "the job of these pods is over; make them anew";
}

void Cluster::Impl::explain_wait(const std::string& key, Group& group) {
  const bool no_more = group.pods.size() <= static_cast<std::size_t>(std::max(1, group.size));
  const bool others_speak = group.submitting || !group.refused_at.is_never() || (group.job.valid() && no_more);
  const std::vector<Pod*> pods = others_speak ? std::vector<Pod*>() : waiting_pods(group);
  const std::string why = pods.empty() ? std::string() : why_it_waits(key, group, pods);
  if (why.empty()) {
    group.waits_since = Timestamp::never();
    return;
  }
  if (group.waits_since.is_never()) group.waits_since = now_;
  if (now_ - group.waits_since < kExplainAfterMs) return;
  group.waits_since = now_ + (kExplainAgainMs - kExplainAfterMs);
  bool first = true;
  for (Pod* pod : pods) {
    if (!pod->object.wish.problem.empty()) continue;  // it was told that
    tell(*pod, "Waiting", why, first);
    first = false;
  }
}

// Counts the foreign use of the pod, or what it is now.
void Cluster::Impl::count_foreign(Pod& pod) {
  const Usage use = foreign_use(pod);
  const std::string node = use == Usage{} ? std::string() : pod.object.node;
  if (node == pod.foreign_on && use == pod.foreign) return;
  const auto add = [&](const std::string& name, std::int64_t sign, const Usage& more) {
    Usage& sum = foreign_[name];
    sum.cpu_milli += sign * more.cpu_milli;
    sum.memory_mib += sign * more.memory_mib;
    kube::add(sum.devices, more.devices, sign);
    kube::add(sum.countables, more.countables, sign);
    if (sum == Usage{}) foreign_.erase(name);
  };
  const std::string before = pod.foreign_on;
  if (!before.empty()) add(before, -1, pod.foreign);
  if (!node.empty()) add(node, 1, use);
  pod.foreign_on = node;
  pod.foreign = use;
  for (const std::string& name : {before, node}) {
    if (const auto found = nodes_.find(name); found != nodes_.end()) update_node(name, found->second);
    if (before == node) break;
  }
}

}  // namespace berth::kube
