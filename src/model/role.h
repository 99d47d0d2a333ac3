#pragma once
// Roles: what a subject may do at a queue and in all queues below it (docs/roles.md). A subject is a name with its kind
// in front: `user:ada`, `group:nlp`, `token:ci`. The verbs of each role stand in policy/roles.h.

#include <string>

#include "base/fields.h"

namespace berth {

enum class Role { kViewer, kMember, kLead, kOrgAdmin, kFinance, kAuditor, kOperator, kAdmin };
BERTH_ENUM_NAMES(Role, "viewer", "member", "lead", "org-admin", "finance", "auditor", "operator", "admin");

struct RoleBinding {
  std::string subject;
  Role role = Role::kViewer;
  std::string queue = {};  // such as "research/nlp"; empty: the root, and so all queues
  auto operator<=>(const RoleBinding&) const = default;
  static constexpr auto fields() {
    return field_list(field("subject", &RoleBinding::subject), field("role", &RoleBinding::role),
                      field("queue", &RoleBinding::queue));
  }
};

}  // namespace berth
