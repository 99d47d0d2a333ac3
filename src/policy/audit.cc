#include "policy/audit.h"

#include <utility>

#include "model/document/limit_setting.h"
#include "model/queue_path.h"

namespace berth::policy {
namespace {

// What the events say of the change; each function fills in the verb, the object and the changes.
struct AuditWriter {
  AuditEntry& entry;

  void asked(Verb verb, const std::string& user) {
    entry.verb = name_of(verb);
    if (entry.by.empty()) entry.by.subject = user;
  }
  void at_queue(const std::string& queue) { entry.queue = queue; }
  void about_node(NodeId node) {
    entry.object = "node:" + (entry.by.node.empty() ? "#" + std::to_string(node.value()) : entry.by.node);
  }
  void change(std::string key, std::optional<std::string> before, std::string after) {
    if (before) before = audit_text(*before);
    entry.changes.push_back({std::move(key), std::move(before), audit_text(after)});
  }
  void set(std::string key, std::string after) { change(std::move(key), std::nullopt, std::move(after)); }
  void limits(const std::vector<LimitChange>& limits) {
    for (const LimitChange& one : limits)
      change(one.key, document::limit_text(one.key, one.before), document::limit_text(one.key, one.value));
  }

  void on(const ClusterConfigured& event) {
    asked(Verb::kChangeConfig, event.user);
    change("version", std::to_string(event.version - 1), std::to_string(event.version));
    for (const QueueMove& move : event.moves) change("queue", move.from, move.to);
  }
  void on(const NodeStatusChanged& event) {
    if (entry.by.empty()) return;  // a report of the backend
    asked(Verb::kManageNodes, {});
    about_node(event.node);
    set("status", std::string(name_of(event.status)));
  }
  void on(const NodeCordoned& event) {
    if (event.user != "berth") asked(Verb::kManageNodes, event.user);
    about_node(event.node);
    set("takes_jobs", event.draining ? "no, drains" : event.cordoned ? "no" : "yes");
  }
  void on(const GpuHealthChanged& event) {
    if (event.user.empty()) return;  // a report of the backend
    asked(Verb::kManageNodes, event.user);
    about_node(event.node);
    set("gpu " + std::to_string(event.gpu), "fence lifted");
  }
  void on(const JobSubmitted& event) {
    if (event.parent.valid()) return;
    asked(Verb::kSubmit, event.spec.user);
    at_queue(event.spec.queue);
    entry.job = event.job;
    set("user", event.spec.user);
  }
  void on(const ServiceUpdated& event) {
    asked(Verb::kSubmit, event.spec.user);
    at_queue(event.spec.queue);
    entry.job = event.job;
    set("generation", std::to_string(event.generation));
  }
  void on(const JobHoldChanged& event) {
    if (event.user != "berth") asked(Verb::kHoldJob, event.user);
    entry.job = event.job;
    change("held", event.held ? "false" : "true", event.held ? "true" : "false");
  }
  void on(const JobPriorityChanged& event) {
    if (event.user != "berth") asked(Verb::kPrioritizeJob, event.user);
    entry.job = event.job;
    const auto before = event.before ? std::optional(std::to_string(*event.before)) : std::nullopt;
    change("priority", before, std::to_string(event.priority));
  }
  void on(const JobCancelRequested& event) {
    if (event.user != "berth") asked(Verb::kStopJob, event.user);
    entry.job = event.job;
  }
  void on(const JobSignalled& event) {
    asked(Verb::kStopJob, event.user);
    entry.job = event.job;
    set("signal", std::to_string(event.signal));
  }
  void on(const MoveOrdered& event) {
    asked(Verb::kMoveJob, event.user);
    entry.job = event.job;
  }
  void on(const CheckpointReported& event) {
    if (entry.by.empty()) return;
    asked(Verb::kReportCheckpoint, {});
    entry.job = event.job;
    set("step", std::to_string(event.step));
  }
  void on(const MaintenancePlanned& event) {
    asked(Verb::kManageNodes, event.user);
    entry.object = "maintenance:" + event.name;
    set("from", to_iso8601(event.from));
    set("to", to_iso8601(event.to));
    entry.reason = event.reason;
  }
  void on(const MaintenanceEnded& event) {
    if (!event.cancelled) return;
    asked(Verb::kManageNodes, event.user);
    entry.object = "maintenance:" + event.name;
  }
  void on(const ClockConfirmed& event) {
    asked(Verb::kConfirmClock, event.user);
    set("offset_ms", std::to_string(event.offset_ms));
  }
  void on(const TokenCreated& event) {
    asked(Verb::kManageTokens, event.user);
    at_queue(event.queue);
    entry.object = "token:" + event.name;
    change("role", "none", std::string(name_of(event.role)));
    set("user", event.as_user);
    set("expires", event.expires.is_never() ? "never" : to_iso8601(event.expires));
  }
  void on(const TokenRevoked& event) {
    asked(Verb::kManageTokens, event.user);
    entry.object = "token:" + event.name;
  }
  void on(const PricesApplied& event) {
    asked(Verb::kManageBilling, event.user);
    change("version", std::to_string(event.version - 1), std::to_string(event.version));
  }
  void on(const MonthClosed& event) {
    asked(Verb::kManageBilling, event.user);
    entry.object = "month:" + event.month;
    set("total_micro", std::to_string(event.total_micro));
  }
  void on(const BillCorrected& event) {
    asked(Verb::kManageBilling, event.user);
    at_queue(event.queue);
    entry.job = event.job;
    entry.object = "month:" + event.month;
    set("amount_micro", std::to_string(event.amount_micro));
    entry.reason = event.reason;
  }
  void on(const QuantityReported& event) {
    asked(Verb::kReportQuantities, event.user);
    at_queue(event.queue);
    entry.object = "report:" + event.id;
    set(event.kind, std::to_string(event.quantity) + " " + event.unit);
  }
  void on(const QueueChanged& event) {
    asked(Verb::kChangeQueue, event.user);
    at_queue(event.queue);
    limits(event.limits);
    if (!event.until.is_never()) set("until", to_iso8601(event.until));
  }
  void on(const QueueChangeEnded& event) {
    if (!event.undone) return;
    asked(Verb::kChangeQueue, event.user);
    at_queue(event.queue);
    limits(event.limits);
  }
  void on(const RoleBound& event) {
    asked(Verb::kManageRoles, event.user);
    at_queue(event.binding.queue);
    entry.object = event.binding.subject;
    const std::string role(name_of(event.binding.role));
    change("role", event.bound ? "none" : role, event.bound ? role : "none");
  }
  void on(const SubjectBlocked& event) {
    asked(Verb::kManageTokens, event.user);
    entry.object = event.subject;
    change("access", event.blocked ? "as its roles say" : "ended", event.blocked ? "ended" : "as its roles say");
  }
  void on(const RulesSet& event) {
    asked(Verb::kManageRules, event.user);
    at_queue(event.queue);
    std::string names;
    for (const AdmissionRule& rule : event.rules) names += (names.empty() ? "" : ", ") + rule.name;
    set("rules", names.empty() ? "none" : names);
  }
  void on(const AccessDenied& event) {
    entry.denied = true;
    entry.by = {.subject = event.subject, .proof = event.proof, .address = event.address};
    entry.verb = event.verb;
    at_queue(event.queue);
    entry.job = event.job;
    entry.count = event.count;
    entry.first = event.first;
    entry.last = event.last;
    entry.others = event.others;
  }
  void on(const LogRead& event) {
    asked(event.reason.empty() ? Verb::kReadLog : Verb::kBreakGlass, event.subject);
    at_queue(event.queue);
    entry.job = event.job;
    entry.object = "user:" + event.owner;
    entry.reason = event.reason;
  }
  void shell(const std::string& subject, const std::string& queue, JobId job, const std::string& owner) {
    asked(Verb::kOpenShell, subject);
    at_queue(queue);
    entry.job = job;
    entry.object = "user:" + owner;
  }
  void on(const ShellOpened& event) {
    shell(event.subject, event.queue, event.job, event.owner);
    set("task " + std::to_string(event.task), event.program.empty() ? "terminal attached" : "opened " + event.program);
  }
  void on(const ShellEnded& event) {
    shell(event.subject, event.queue, event.job, event.owner);
    const std::string what = event.program.empty() ? "terminal" : event.program;
    set("task " + std::to_string(event.task),
        what + (event.code ? " ended with code " + std::to_string(*event.code) : " ended: " + event.message));
  }
  void on(const SignedIn& event) {
    entry.by = {.subject = event.subject, .proof = event.proof, .address = event.address};
    entry.verb = kSignInVerb;
  }
  // The rest follows from what was asked for, or is seen by backends.
  template <class T>
  void on(const T&) {}
};

}  // namespace

std::string audit_text(std::string_view text) {
  if (text.size() <= kLongestAuditText) return std::string(text);
  std::size_t end = kLongestAuditText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::optional<AuditEntry> audit_entry(const EventRecord& record) {
  AuditEntry entry;
  entry.seq = record.seq;
  entry.time = record.time;
  entry.kind = kind_name(record.event);
  entry.by = record.by;
  entry.queue = record.by.queue;
  entry.first = record.time;
  entry.last = record.time;
  std::visit([writer = AuditWriter{entry}](const auto& event) mutable { writer.on(event); }, record.event);
  const bool asked_for = !entry.verb.empty() && !entry.by.empty();
  if (!asked_for && !entry.denied) return std::nullopt;
  entry.by.subject = audit_text(entry.by.subject);
  entry.object = audit_text(entry.object);
  entry.reason = audit_text(entry.reason);
  return entry;
}

bool passes(const AuditEntry& entry, const AuditFilter& filter) {
  if (!filter.subject.empty() && entry.by.subject != filter.subject) return false;
  if (!filter.verb.empty() && entry.verb != filter.verb) return false;
  if (filter.denied && !entry.denied) return false;
  if (!filter.queue.empty() && !is_at_or_below(entry.queue, filter.queue)) return false;
  return entry.last >= filter.since;
}

bool may_see_entry(const Subject& subject, const AuditEntry& entry) {
  return authorize(subject, Verb::kSeeAudit, {.queue = entry.queue, .owner = {}}).allowed;
}

}  // namespace berth::policy
