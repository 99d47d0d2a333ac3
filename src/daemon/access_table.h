#pragma once
// Which tokens are good, those of running jobs too, and what each may do, for the threads that serve the API. It never
// waits for a read of the state. The reader tells it of each event before the event is answered, so that what was
// answered is in force.

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "identity/claims.h"
#include "model/event.h"
#include "policy/authorize.h"
#include "state/state.h"

namespace berth::daemon {

class AccessTable {
 public:
  // Begins with the tokens and roles of the state.
  explicit AccessTable(const state::State& state);

  void on(const Event& event);

  // Returns the subject of the token with this digest (64 hexadecimal digits) and its roles; nothing if there is no
  // such token, or if it has expired by `now`.
  std::optional<policy::Subject> find(const std::string& digest, Timestamp now) const;

  // When each token was last used, by digest. It is no event: what is known at the start is given by note_uses(), and
  // token_uses.h stores it.
  using Uses = std::map<std::string, Timestamp>;
  Uses uses() const;
  void note_uses(const Uses& uses);

  // Returns the job as a subject of its own, without roles; nothing unless this attempt of it runs.
  std::optional<policy::Subject> subject_of(JobId job, std::uint32_t attempt) const;

  // Returns the subject that a token of an issuer proves, with the roles of it and of its groups; nothing if the access
  // of it or of one of its groups is ended.
  std::optional<policy::Subject> subject_of(const identity::Identity& identity) const;

  // Returns true if the access of the subject is ended, whatever its roles are.
  bool is_blocked(const std::string& subject) const;

  // Returns the roles of a subject that is no token.
  std::vector<RoleBinding> roles_of(const std::string& subject) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, TokenCreated> by_digest_;
  std::map<std::string, std::string> digest_of_;                // by name
  std::map<std::string, std::vector<RoleBinding>> configured_;  // by subject

  std::map<std::string, std::vector<RoleBinding>> granted_;  // by command, by subject
  std::set<std::string, std::less<>> blocked_;
  mutable Uses uses_;                                          // of tokens that there are
  std::unordered_map<std::uint64_t, std::uint32_t> attempts_;  // that run, by job

  void configure(const std::vector<RoleBinding>& bindings);
  void follow(const ClusterConfigured& event);                                        // requires the lock
  void bind(const RoleBound& event);                                                  // requires the lock
  void add_roles(const std::string& subject, std::vector<RoleBinding>& roles) const;  // requires the lock
};

}  // namespace berth::daemon
