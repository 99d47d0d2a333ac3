#include "daemon/access_table.h"

#include <variant>

#include "api/http/peer.h"

namespace berth::daemon {

AccessTable::AccessTable(const state::State& state) {
  configure(state.config().roles);
  for (const auto& [name, token] : state.tokens()) {
    by_digest_.emplace(token.digest, token);
    digest_of_.emplace(name, token.digest);
  }
}

void AccessTable::configure(const std::vector<RoleBinding>& bindings) {
  configured_.clear();
  for (const RoleBinding& binding : bindings) configured_[binding.subject].push_back(binding);
}

void AccessTable::add_roles(const std::string& subject, std::vector<RoleBinding>& roles) const {
  const auto bound = configured_.find(subject);
  if (bound != configured_.end()) roles.insert(roles.end(), bound->second.begin(), bound->second.end());
}

void AccessTable::on(const Event& event) {
  if (const auto* configured = std::get_if<ClusterConfigured>(&event)) {
    const std::lock_guard lock(mutex_);
    configure(configured->config.roles);
    for (auto& [digest, token] : by_digest_) token.queue = moved_path(token.queue, configured->moves);
  } else if (const auto* created = std::get_if<TokenCreated>(&event)) {
    const std::lock_guard lock(mutex_);
    by_digest_.insert_or_assign(created->digest, *created);
    digest_of_.insert_or_assign(created->name, created->digest);
  } else if (const auto* revoked = std::get_if<TokenRevoked>(&event)) {
    const std::lock_guard lock(mutex_);
    const auto known = digest_of_.find(revoked->name);
    if (known == digest_of_.end()) return;
    by_digest_.erase(known->second);
    digest_of_.erase(known);
  }
}

std::optional<policy::Subject> AccessTable::find(const std::string& digest, Timestamp now) const {
  const std::lock_guard lock(mutex_);
  const auto known = by_digest_.find(digest);
  if (known == by_digest_.end() || known->second.expires <= now) return std::nullopt;
  const TokenCreated& token = known->second;
  policy::Subject subject{.name = "token:" + token.name, .user = token.as_user};
  add_roles(subject.name, subject.roles);
  subject.roles.push_back({subject.name, token.role, token.queue});
  return subject;
}

policy::Subject AccessTable::subject_of(const identity::Identity& identity) const {
  policy::Subject subject{.name = "user:" + identity.user, .user = identity.user, .proof = http::kByIssuer};
  for (const std::string& group : identity.groups) subject.groups.push_back("group:" + group);
  const std::lock_guard lock(mutex_);
  for (const std::string& group : subject.groups) add_roles(group, subject.roles);
  add_roles(subject.name, subject.roles);
  return subject;
}

std::vector<RoleBinding> AccessTable::roles_of(const std::string& subject) const {
  const std::lock_guard lock(mutex_);
  std::vector<RoleBinding> roles;
  add_roles(subject, roles);
  return roles;
}

}  // namespace berth::daemon
