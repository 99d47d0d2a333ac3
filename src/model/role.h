#pragma once
// Roles: what a subject may do at a queue and in all queues below it (docs/roles.md). A subject is a name with its kind
// in front: `user:ada`, `group:nlp`, `token:ci`. The verbs of each role stand in policy/roles.h.

#include <string>

#include "base/fields.h"

namespace berth {

// The log has their numbers: a new one comes last.
enum class Role { kViewer, kMember, kLead, kOrgAdmin, kFinance, kAuditor, kOperator, kAdmin, kMetrics };
BERTH_ENUM_NAMES(Role, "viewer", "member", "lead", "org-admin", "finance", "auditor", "operator", "admin", "metrics");

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

// Returns what is wrong with having the role at that queue; empty: nothing.
inline std::string flaw_of_place(Role role, const std::string& queue) {
  if (role != Role::kMetrics || queue.empty()) return {};
  return "the role metrics reads what is of the whole cluster, so it is had at the root alone (queue /)";
}

}  // namespace berth
