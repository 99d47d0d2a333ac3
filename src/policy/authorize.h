#pragma once
// Authorization: a subject may do what a role of its bindings allows at the queue of the object or at a queue above it.
// What no binding allows is denied. A running job is a subject without roles, which speaks for itself alone. Total and
// pure: no clock, no I/O.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "model/role.h"
#include "policy/roles.h"

namespace berth::policy {

// The subject of a request, as the server has authenticated it, with its roles at that moment.
struct Subject {
  std::string name;       // `user:ada`, `token:ci`
  std::string user = {};  // the owner of the jobs that it submits: `ada`
  std::vector<RoleBinding> roles = {};
  std::string_view proof = {};           // how it was authenticated, of static storage: token, certificate, socket
  std::vector<std::string> groups = {};  // `group:corp:nlp`, as its issuer states them
  JobId job = JobId::none();             // the subject is this running job: `job:17`
  bool saves_only = false;               // and may report its saves, and nothing else
  bool operator==(const Subject&) const = default;
};

// What is asked about: a queue, or a job of it. The empty path is the root: the whole cluster.
struct Object {
  std::string_view queue = {};
  std::string_view owner = {};  // the user of the job; empty for what belongs to no user
  JobId job = JobId::none();    // the job itself
};

struct Decision {
  bool allowed = false;
  std::optional<RoleBinding> by = {};  // the binding that allows it
  // If denied: the least role that would allow it, bound at the queue of the object.
  std::optional<Role> needs = {};
};

Decision authorize(const Subject& subject, Verb verb, const Object& object);

// Returns true if a running job has the verb on itself. It has none on anything else.
bool job_has(Verb verb);

// Returns the greatest reach of the verb that the subject has at any queue. What lists show is decided for each row; a
// subject with no reach at all is refused the list.
Reach reach_anywhere(const Subject& subject, Verb verb);

// Returns true if the subject is an admin at the root: every verb on every object.
bool may_do_everything(const Subject& subject);

// Returns true if the subject may grant the role, or revoke it: it has a role at that queue or above that may.
bool may_bind(const Subject& subject, const RoleBinding& binding);

// Returns the bindings of the subject `name` and of its groups.
std::vector<RoleBinding> roles_of(std::span<const RoleBinding> bindings, std::string_view name,
                                  std::span<const std::string> groups = {});

}  // namespace berth::policy
