#include "policy/authorize.h"

#include <algorithm>

#include "model/queue_path.h"

namespace berth::policy {
namespace {

bool reaches(Reach reach, const Subject& subject, const Object& object) {
  if (reach == Reach::kAll) return true;
  return reach == Reach::kOwn && !subject.user.empty() && object.owner == subject.user;
}

std::optional<Role> least_role(const Subject& subject, Verb verb, const Object& object) {
  if (reaches(reach_of(Role::kMetrics, verb), subject, object)) return Role::kMetrics;
  for (std::size_t role = 0; role < EnumNames<Role>::kNames.size(); ++role) {
    if (reaches(reach_of(static_cast<Role>(role), verb), subject, object)) return static_cast<Role>(role);
  }
  return std::nullopt;
}

}  // namespace

bool job_has(Verb verb) { return verb == Verb::kSeeJob || verb == Verb::kReportCheckpoint; }

Decision authorize(const Subject& subject, Verb verb, const Object& object) {
  if (subject.job.valid()) {
    const bool has = subject.saves_only ? verb == Verb::kReportCheckpoint : job_has(verb);
    return {.allowed = subject.job == object.job && has};
  }
  for (const RoleBinding& binding : subject.roles) {
    if (is_at_or_below(object.queue, binding.queue) && reaches(reach_of(binding.role, verb), subject, object))
      return {.allowed = true, .by = binding};
  }
  return {.needs = least_role(subject, verb, object)};
}

Reach reach_anywhere(const Subject& subject, Verb verb) {
  Reach best = Reach::kNone;
  for (const RoleBinding& binding : subject.roles) best = std::max(best, reach_of(binding.role, verb));
  return best;
}

bool may_do_everything(const Subject& subject) {
  return std::any_of(subject.roles.begin(), subject.roles.end(),
                     [](const RoleBinding& one) { return one.role == Role::kAdmin && one.queue.empty(); });
}

bool may_bind(const Subject& subject, const RoleBinding& binding) {
  // At the root a role has verbs of the whole cluster, which only an admin has all of.
  if (binding.queue.empty()) return may_do_everything(subject);
  return std::any_of(subject.roles.begin(), subject.roles.end(), [&](const RoleBinding& own) {
    return is_at_or_below(binding.queue, own.queue) && reach_of(own.role, Verb::kManageRoles) == Reach::kAll &&
           may_grant(own.role, binding.role);
  });
}

std::vector<RoleBinding> roles_of(std::span<const RoleBinding> bindings, std::string_view name,
                                  std::span<const std::string> groups) {
  std::vector<RoleBinding> found;
  if (name.empty()) return found;
  for (const RoleBinding& binding : bindings) {
    if (binding.subject == name || std::find(groups.begin(), groups.end(), binding.subject) != groups.end())
      found.push_back(binding);
  }
  return found;
}

}  // namespace berth::policy
