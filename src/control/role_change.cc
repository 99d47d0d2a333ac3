#include "control/role_change.h"

#include <algorithm>

#include "model/group_subject.h"

namespace berth::control {

namespace {

using state::State;

constexpr std::size_t kMostGranted = 50'000;
constexpr std::size_t kMostBlocked = 10'000;

constexpr std::string_view kToken = "token:";

// Returns true if a request can come from the subject: not from a group without an issuer, nor from a token that was
// not created, has ended or is about to be revoked. The token in the data directory is root's, who can administer
// anyway.
bool has_source(const State& state, Timestamp now, const std::string& subject, const std::string& revoked) {
  if (is_group_of_nobody(subject)) return false;
  if (!subject.starts_with(kToken)) return true;
  const auto token = state.tokens().find(subject.substr(kToken.size()));
  return token != state.tokens().end() && token->second.expires > now && subject != revoked;
}

// Returns true if one of the bindings gives the role admin at the root.
bool has_bound_admin(const State& state, Timestamp now, const std::vector<RoleBinding>& bindings,
                     const std::string& revoked) {
  return std::any_of(bindings.begin(), bindings.end(), [&](const RoleBinding& binding) {
    return binding.role == Role::kAdmin && binding.queue.empty() && has_source(state, now, binding.subject, revoked);
  });
}

// Returns true if a token that is good is an admin's.
bool has_admin_token(const State& state, Timestamp now, const std::string& blocked) {
  return std::any_of(state.tokens().begin(), state.tokens().end(), [&](const auto& one) {
    const state::Token& token = one.second;
    const auto is_out = [&](const std::string& subject) {
      return subject == blocked || state.blocked().contains(subject);
    };
    return token.role == Role::kAdmin && token.queue.empty() && token.expires > now && !is_out("token:" + token.name) &&
           !is_out("user:" + token.as_user);
  });
}

// Returns true if one of the bindings, or a token of its own, gives the role admin at the root, without what is out.
bool has_admin(const State& state, Timestamp now, const std::vector<RoleBinding>& bindings, const std::string& out) {
  return has_bound_admin(state, now, bindings, out) || has_admin_token(state, now, out);
}

// Refuses a change that takes away the last role admin at the root.
Result<void> check_admins(bool before, bool after) {
  if (after || !before) return {};
  return conflict(
      "that would leave nobody able to administer but root of the server's machine; grant the role admin at / to "
      "another subject first");
}

// Token admin lies in the data directory.
bool names_no_token(const State& state, const std::string& subject) {
  if (!subject.starts_with(kToken)) return false;
  const std::string name = subject.substr(kToken.size());
  return name != "admin" && !state.tokens().contains(name);
}

std::string where(const RoleBinding& binding) { return binding.queue.empty() ? "/" : binding.queue; }

std::string words(const RoleBinding& binding) {
  return binding.subject.substr(0, 200) + " as " + std::string(name_of(binding.role)) + " at " + where(binding);
}

bool has(const std::vector<RoleBinding>& roles, const RoleBinding& binding) {
  return std::find(roles.begin(), roles.end(), binding) != roles.end();
}

Result<Reply> grant(Batch& batch, const BindRole& command) {
  const State& state = batch.state();
  if (has(state.config().roles, command.binding) || state.granted().contains(command.binding))
    return Reply{.job = {}, .unchanged = true};
  if (state.granted().size() >= kMostGranted)
    return conflict("there are " + std::to_string(kMostGranted) + " granted roles already; revoke some");
  batch.emit(RoleBound{command.binding, true, command.user});
  return Reply{};
}

Result<Reply> revoke(Batch& batch, const BindRole& command) {
  const State& state = batch.state();
  if (!state.granted().contains(command.binding)) {
    if (has(state.config().roles, command.binding))
      return conflict("the configuration file binds " + words(command.binding) +
                      "; take it out there and apply that (berth apply), or end all access of the subject at once "
                      "(berth revoke --subject)");
    return not_found("no role is granted to " + words(command.binding));
  }
  std::vector<RoleBinding> after = state.bindings();
  std::erase(after, command.binding);
  if (auto ok =
          check_admins(has_admin(state, batch.now(), state.bindings(), {}), has_admin(state, batch.now(), after, {}));
      !ok)
    return ok.error();
  batch.emit(RoleBound{command.binding, false, command.user});
  return Reply{};
}

}  // namespace

Result<Reply> bind_role(Batch& batch, const BindRole& command) {
  if (const std::string wrong = mistake_in_subject(command.binding.subject); !wrong.empty())
    return invalid("subject '" + command.binding.subject.substr(0, 80) + "': " + wrong);
  if (command.bound && is_group_of_nobody(command.binding.subject))
    return invalid("subject '" + command.binding.subject.substr(0, 80) + "': " + std::string(kGroupRule));
  if (command.bound && names_no_token(batch.state(), command.binding.subject))
    return not_found("there is no " + command.binding.subject.substr(0, 80) +
                     ", and the next token of that name would have the role; create it first (berth token create)");
  if (batch.state().queue_at(command.binding.queue) == nullptr)
    return not_found("no such queue '" + command.binding.queue.substr(0, 200) + "'");
  if (const std::string flaw = flaw_of_place(command.binding.role, command.binding.queue); !flaw.empty())
    return invalid(flaw);
  return command.bound ? grant(batch, command) : revoke(batch, command);
}

Result<Reply> block_subject(Batch& batch, const BlockSubject& command) {
  const State& state = batch.state();
  if (const std::string wrong = mistake_in_subject(command.subject); !wrong.empty())
    return invalid("subject '" + command.subject.substr(0, 80) + "': " + wrong);
  // A token of that name may have been created; without one it is the token that lies in the data directory.
  if (command.blocked && command.subject == "token:admin" && !state.tokens().contains("admin"))
    return invalid(
        "token:admin is the token in the data directory, whose access is not ended: root of the server's machine can "
        "always read it");
  if (state.blocked().contains(command.subject) == command.blocked) return Reply{.job = {}, .unchanged = true};
  if (command.blocked) {
    if (state.blocked().size() >= kMostBlocked)
      return conflict("the access of " + std::to_string(kMostBlocked) + " subjects is ended already; lift some");
    std::vector<RoleBinding> after = state.bindings();
    std::erase_if(after, [&](const RoleBinding& binding) { return binding.subject == command.subject; });
    if (auto ok = check_admins(has_admin(state, batch.now(), state.bindings(), {}),
                               has_admin(state, batch.now(), after, command.subject));
        !ok)
      return ok.error();
  }
  batch.emit(SubjectBlocked{command.subject, command.blocked, command.user});
  return Reply{};
}

Result<void> check_admins_after(const Batch& batch, const RevokeToken& command) {
  if (command.user == "admin") return {};
  const State& state = batch.state();
  const std::string subject = "token:" + command.name;
  std::vector<RoleBinding> after = state.bindings();
  std::erase_if(after, [&](const RoleBinding& binding) { return binding.subject == subject; });
  return check_admins(has_admin(state, batch.now(), state.bindings(), {}),
                      has_admin(state, batch.now(), after, subject));
}

Result<void> check_admins_after(const Batch& batch, const ApplyConfig& command) {
  if (command.user == "admin" || command.user == "berth serve") return {};
  const State& state = batch.state();
  std::vector<RoleBinding> after;
  for (const RoleBinding& binding : command.config.roles) {
    if (!state.blocked().contains(binding.subject)) after.push_back(binding);
  }
  for (const auto& [binding, origin] : state.granted()) {
    if (!state.blocked().contains(binding.subject)) after.push_back(binding);
  }
  return check_admins(has_admin(state, batch.now(), state.bindings(), {}), has_admin(state, batch.now(), after, {}));
}

}  // namespace berth::control
