#pragma once
// The audit: who changed, tried and read what. Each entry is derived from one event of the hash-chained log, so an
// entry cannot be edited without the log showing it. Pure. An entry has no secrets: no command (of a shell its first
// word), environment, label or log line of a job, no token and no digest of one; and its texts are bounded.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/timestamp.h"
#include "model/event.h"
#include "policy/authorize.h"

namespace berth::policy {

// The verb of an entry that is about proving who one is, which is no verb of the API.
inline constexpr std::string_view kSignInVerb = "sign-in";

inline constexpr std::size_t kLongestAuditText = 200;  // bytes

struct AuditChange {
  std::string key;
  std::optional<std::string> before = {};  // nothing: the event does not say
  std::string after = {};
  bool operator==(const AuditChange&) const = default;
};

struct AuditEntry {
  Seq seq = 0;
  Timestamp time;
  std::string_view kind;  // of the event
  std::string verb;       // of policy/roles.h, or kSignInVerb; empty: several
  bool denied = false;
  Origin by;                // without a subject: nobody was proved
  std::string queue;        // where; empty: the whole cluster
  JobId job;                // none(): no single job
  std::string object = {};  // what else it is about: node:n1, token:ci, user:ada, month:2026-11
  std::uint64_t count = 1;
  Timestamp first;
  Timestamp last;
  bool others = false;  // denials of several objects, counted together
  std::vector<AuditChange> changes = {};
  std::string reason = {};
};

// Returns the entry of the event, or nothing if nobody asked for it.
std::optional<AuditEntry> audit_entry(const EventRecord& record);

struct AuditFilter {
  std::string subject = {};  // exactly this one; empty: any
  std::string queue = {};    // at or below; empty: any
  std::string verb = {};     // empty: any
  bool denied = false;       // only what was denied
  Timestamp since = {};
};

bool passes(const AuditEntry& entry, const AuditFilter& filter);

// Returns true if the subject may see the entry: it has see-audit at the queue of the entry or above. What is of no
// queue takes it at the root.
bool may_see_entry(const Subject& subject, const AuditEntry& entry);

// Returns the text cut to kLongestAuditText bytes, at the end of a character.
std::string audit_text(std::string_view text);

}  // namespace berth::policy
