#include "daemon/access_table.h"

#include <algorithm>
#include <variant>

#include "api/http/peer.h"

namespace berth::daemon {

AccessTable::AccessTable(const state::State& state) {
  configure(state.config().roles);
  for (const auto& [binding, origin] : state.granted()) granted_[binding.subject].push_back(binding);
  for (const auto& [subject, origin] : state.blocked()) blocked_.insert(subject);
  for (const auto& [name, token] : state.tokens()) {
    by_digest_.emplace(token.digest, token);
    digest_of_.emplace(name, token.digest);
  }
  for (const JobId job : state.running()) attempts_[job.value()] = state.job(job)->attempt->number;
}

void AccessTable::configure(const std::vector<RoleBinding>& bindings) {
  configured_.clear();
  for (const RoleBinding& binding : bindings) configured_[binding.subject].push_back(binding);
}

void AccessTable::add_roles(const std::string& subject, std::vector<RoleBinding>& roles) const {
  for (const auto* bindings : {&configured_, &granted_}) {
    const auto bound = bindings->find(subject);
    if (bound != bindings->end()) roles.insert(roles.end(), bound->second.begin(), bound->second.end());
  }
}

// Another configuration may rename queues, and take away queues at which roles were granted.
void AccessTable::follow(const ClusterConfigured& event) {
  configure(event.config.roles);
  for (auto& [digest, token] : by_digest_) token.queue = moved_path(token.queue, event.moves);
  std::set<std::string_view> queues{""};
  for (const QueueConfig& queue : event.config.queues) queues.insert(queue.path);
  for (auto& [subject, bindings] : granted_) {
    for (RoleBinding& binding : bindings) binding.queue = moved_path(binding.queue, event.moves);
    std::erase_if(bindings, [&](const RoleBinding& binding) { return !queues.contains(binding.queue); });
  }
}

void AccessTable::bind(const RoleBound& event) {
  std::vector<RoleBinding>& bindings = granted_[event.binding.subject];
  if (event.bound) {
    bindings.push_back(event.binding);
  } else {
    std::erase(bindings, event.binding);
  }
}

void AccessTable::on(const Event& event) {
  if (const auto* configured = std::get_if<ClusterConfigured>(&event)) {
    const std::lock_guard lock(mutex_);
    follow(*configured);
  } else if (const auto* started = std::get_if<AttemptStarted>(&event)) {
    const std::lock_guard lock(mutex_);
    attempts_[started->job.value()] = started->attempt;
  } else if (const auto* ended = std::get_if<AttemptEnded>(&event)) {
    const std::lock_guard lock(mutex_);
    attempts_.erase(ended->job.value());
  } else if (const auto* created = std::get_if<TokenCreated>(&event)) {
    const std::lock_guard lock(mutex_);
    by_digest_.insert_or_assign(created->digest, *created);
    digest_of_.insert_or_assign(created->name, created->digest);
  } else if (const auto* bound = std::get_if<RoleBound>(&event)) {
    const std::lock_guard lock(mutex_);
    bind(*bound);
  } else if (const auto* blocked = std::get_if<SubjectBlocked>(&event)) {
    const std::lock_guard lock(mutex_);
    if (blocked->blocked) {
      blocked_.insert(blocked->subject);
    } else {
      blocked_.erase(blocked->subject);
    }
  } else if (const auto* revoked = std::get_if<TokenRevoked>(&event)) {
    const std::lock_guard lock(mutex_);
    const auto known = digest_of_.find(revoked->name);
    if (known == digest_of_.end()) return;
    by_digest_.erase(known->second);
    uses_.erase(known->second);
    digest_of_.erase(known);
  }
}

std::optional<policy::Subject> AccessTable::find(const std::string& digest, Timestamp now) const {
  const std::lock_guard lock(mutex_);
  const auto known = by_digest_.find(digest);
  if (known == by_digest_.end() || known->second.expires <= now) return std::nullopt;
  const TokenCreated& token = known->second;
  if (blocked_.contains("token:" + token.name) || blocked_.contains("user:" + token.as_user)) return std::nullopt;
  policy::Subject subject{.name = "token:" + token.name, .user = token.as_user};
  add_roles(subject.name, subject.roles);
  subject.roles.push_back({subject.name, token.role, token.queue});
  Timestamp& used = uses_[digest];
  used = std::max(used, now);
  return subject;
}

AccessTable::Uses AccessTable::uses() const {
  const std::lock_guard lock(mutex_);
  return uses_;
}

void AccessTable::note_uses(const Uses& uses) {
  const std::lock_guard lock(mutex_);
  for (const auto& [digest, time] : uses) {
    if (by_digest_.contains(digest)) uses_[digest] = std::max(uses_[digest], time);
  }
}

std::optional<policy::Subject> AccessTable::subject_of(JobId job, std::uint32_t attempt) const {
  const std::lock_guard lock(mutex_);
  const auto runs = attempts_.find(job.value());
  if (runs == attempts_.end() || runs->second != attempt) return std::nullopt;
  return policy::Subject{.name = "job:" + std::to_string(job.value()), .proof = http::kByJob, .job = job};
}

std::optional<policy::Subject> AccessTable::subject_of(const identity::Identity& identity) const {
  policy::Subject subject{.name = "user:" + identity.user, .user = identity.user, .proof = http::kByIssuer};
  for (const std::string& group : identity.groups) subject.groups.push_back("group:" + group);
  const std::lock_guard lock(mutex_);
  if (blocked_.contains(subject.name)) return std::nullopt;
  for (const std::string& group : subject.groups) {
    if (blocked_.contains(group)) return std::nullopt;
  }
  for (const std::string& group : subject.groups) add_roles(group, subject.roles);
  add_roles(subject.name, subject.roles);
  return subject;
}

bool AccessTable::is_blocked(const std::string& subject) const {
  const std::lock_guard lock(mutex_);
  return blocked_.contains(subject);
}

std::vector<RoleBinding> AccessTable::roles_of(const std::string& subject) const {
  const std::lock_guard lock(mutex_);
  std::vector<RoleBinding> roles;
  add_roles(subject, roles);
  return roles;
}

}  // namespace berth::daemon
