#include "policy/audit.h"

#include <doctest/doctest.h>

namespace berth::policy {
namespace {

Origin by_ada() { return {"user:corp:ada", "issuer", "10.2.0.7", "r-1"}; }

EventRecord asked(Event event, Origin by = by_ada()) {
  return {.seq = 7, .time = Timestamp{1'700'000'000'000}, .event = std::move(event), .by = std::move(by)};
}

// "VERB QUEUE OBJECT key:before->after,...": what an entry says, in short.
std::string in_short(const std::optional<AuditEntry>& entry) {
  if (!entry) return "none";
  std::string text = entry->verb + " " + (entry->queue.empty() ? "/" : entry->queue);
  if (entry->job.valid()) text += " job" + std::to_string(entry->job.value());
  if (!entry->object.empty()) text += " " + entry->object;
  for (const AuditChange& one : entry->changes)
    text += " " + one.key + ":" + (one.before ? *one.before + "->" : "") + one.after;
  return text;
}

JobSubmitted submission_with_secrets() {
  JobSubmitted event;
  event.job = JobId(4);
  event.spec.name = "hush-name";
  event.spec.queue = "research/nlp";
  event.spec.user = "ada";
  event.spec.comment = "hush-comment";
  event.key = "hush-key";
  return event;
}

TEST_CASE("each change that was asked for is an entry with verb, queue, object and values") {
  const auto said = [](Event event, Origin by = by_ada()) {
    return in_short(audit_entry(asked(std::move(event), by)));
  };
  Origin of_job = by_ada();
  of_job.queue = "research";
  Origin of_node = by_ada();
  of_node.node = "n1";
  ClusterConfigured configured;
  configured.version = 3;
  configured.moves = {{"old", "new"}};
  CHECK_EQ(said(configured), "change-config / version:2->3 queue:old->new");
  CHECK_EQ(said(NodeCordoned{NodeId(0), true, true, "ops", "", {}}, of_node),
           "manage-nodes / node:n1 takes_jobs:no, drains");
  CHECK_EQ(said(NodeStatusChanged{NodeId(0), NodeStatus::kLost, "fenced", false}, of_node),
           "manage-nodes / node:n1 status:lost");
  CHECK_EQ(said(submission_with_secrets()), "submit research/nlp job4 user:ada");
  CHECK_EQ(said(JobHoldChanged{JobId(4), true, "ada"}, of_job), "hold-job research job4 held:false->true");
  CHECK_EQ(said(JobPriorityChanged{JobId(4), 7, "ada", -3}, of_job), "prioritize-job research job4 priority:-3->7");
  CHECK_EQ(said(JobPriorityChanged{JobId(4), 7, "ada"}, of_job), "prioritize-job research job4 priority:7");
  CHECK_EQ(said(JobSignalled{JobId(4), 10, "ada"}, of_job), "stop-job research job4 signal:10");
  CHECK_EQ(said(JobCancelRequested{JobId(4), "ada"}, of_job), "stop-job research job4");
  CHECK_EQ(said(MoveOrdered{JobId(4), 1, {}, false, "ops"}, of_job), "move-job research job4");
  CHECK_EQ(said(CheckpointReported{JobId(4), 1, 30}, of_job), "report-checkpoint research job4 step:30");
  CHECK_EQ(said(MaintenanceEnded{"disks", true, "ops"}), "manage-nodes / maintenance:disks");
  CHECK_EQ(said(ClockConfirmed{5000, "ops"}), "confirm-clock / offset_ms:5000");
  TokenCreated token;
  token.name = "ci";
  token.digest = "hush-digest";
  token.role = Role::kMember;
  token.queue = "research";
  token.as_user = "ci";
  CHECK_EQ(said(token), "manage-tokens research token:ci role:none->member user:ci expires:never");
  CHECK_EQ(said(TokenRevoked{"ci", "admin"}), "manage-tokens / token:ci");
  PricesApplied prices;
  prices.version = 2;
  CHECK_EQ(said(prices), "manage-billing / version:1->2");
  MonthClosed month;
  month.month = "2026-10";
  month.total_micro = 5;
  CHECK_EQ(said(month), "manage-billing / month:2026-10 total_micro:5");
  CHECK_EQ(said(BillCorrected{"research", "2026-10", JobId::none(), -3, "a node was lost", "fin"}),
           "manage-billing research month:2026-10 amount_micro:-3");
  CHECK_EQ(said(QuantityReported{"nas-7", "research", "storage", "GiB-hours", 5, {}, {}, "fin"}),
           "report-quantities research report:nas-7 storage:5 GiB-hours");
  CHECK_EQ(
      said(QueueChanged{"research/nlp", 4, {{"max.gpus", 8000, 4000}, {"weight", 3, {}}}, Timestamp::never(), "u"}),
      "change-queue research/nlp max.gpus:4->8 weight:none->3");
  CHECK_EQ(said(QueueChangeEnded{"research/nlp", 4, 5, {{"max.gpus", 4000, 8000}}, true, "u"}),
           "change-queue research/nlp max.gpus:8->4");
  CHECK_EQ(said(RoleBound{{"user:bob", Role::kLead, "research"}, true, "u"}),
           "manage-roles research user:bob role:none->lead");
  CHECK_EQ(said(RoleBound{{"user:bob", Role::kLead, "research"}, false, "u"}),
           "manage-roles research user:bob role:lead->none");
  CHECK_EQ(said(SubjectBlocked{"user:bob", true, "u"}), "manage-tokens / user:bob access:as its roles say->ended");
  AdmissionRule rule;
  rule.name = "small";
  CHECK_EQ(said(RulesSet{"research", {rule}, "u"}), "manage-rules research rules:small");
  CHECK_EQ(said(LogRead{JobId(4), "research", "ada", "user:ops", "why not"}), "break-glass research job4 user:ada");
  CHECK_EQ(said(LogRead{JobId(4), "research", "ada", "user:lea"}), "read-log research job4 user:ada");
  CHECK_EQ(said(ShellOpened{JobId(4), 1, "research", "ada", "user:lea", "bash"}),
           "open-shell research job4 user:ada task 1:opened bash");
  CHECK_EQ(said(ShellOpened{JobId(4), 0, "research", "ada", "user:ada", ""}),
           "open-shell research job4 user:ada task 0:terminal attached");
  CHECK_EQ(said(ShellEnded{JobId(4), 1, "research", "ada", "user:lea", "bash", 3, {}}),
           "open-shell research job4 user:ada task 1:bash ended with code 3");
  CHECK_EQ(said(ShellEnded{JobId(4), 0, "research", "ada", "user:ada", "", std::nullopt, "its client went away"}),
           "open-shell research job4 user:ada task 0:terminal ended: its client went away");
  CHECK_EQ(said(SignedIn{"user:corp:ada", "issuer", "10.2.0.7"}, {}), "sign-in /");
}

TEST_CASE("an entry says who asked, how that was proved, from where and in which request") {
  const auto entry = audit_entry(asked(TokenRevoked{"ci", "user:corp:ada"}));
  REQUIRE(entry);
  CHECK_EQ(entry->seq, 7);
  CHECK_EQ(entry->kind, "token-revoked");
  CHECK_EQ(entry->by.subject, "user:corp:ada");
  CHECK_EQ(entry->by.proof, "issuer");
  CHECK_EQ(entry->by.address, "10.2.0.7");
  CHECK_EQ(entry->by.request, "r-1");
  CHECK_FALSE(entry->denied);
}

TEST_CASE("an event of an older log, which has no origin, names the user that it has") {
  const auto entry = audit_entry(asked(TokenRevoked{"ci", "token:old"}, {}));
  REQUIRE(entry);
  CHECK_EQ(entry->by.subject, "token:old");
  CHECK(entry->by.proof.empty());
}

TEST_CASE("what nobody asked for is no entry: what follows from a change, and reports of backends") {
  CHECK_FALSE(audit_entry(asked(TaskStarted{JobId(4), 1, 0, 1}, {})));
  CHECK_FALSE(audit_entry(asked(JobHoldChanged{JobId(4), true, "berth"}, {})));
  CHECK_FALSE(audit_entry(asked(JobPriorityChanged{JobId(4), 7, "berth", 0}, {})));
  CHECK_FALSE(audit_entry(asked(NodeCordoned{NodeId(0), true, false, "berth", "", {}}, {})));
  CHECK_FALSE(audit_entry(asked(NodeStatusChanged{NodeId(0), NodeStatus::kLost, "silent", false}, {})));
  CHECK_FALSE(audit_entry(asked(CheckpointReported{JobId(4), 1, 30}, {})));
  CHECK_FALSE(audit_entry(asked(QueueChangeEnded{"q", 4, 5, {}, false, ""}, {})));
  JobSubmitted element = submission_with_secrets();
  element.parent = JobId(3);
  CHECK_FALSE(audit_entry(asked(element, {})));
}

TEST_CASE("denials carry their number and times, and those that prove nobody their address") {
  AccessDenied denied;
  denied.subject = "token:ci";
  denied.proof = "token";
  denied.address = "10.2.0.9";
  denied.verb = "read-log";
  denied.queue = "research";
  denied.job = JobId(4);
  denied.count = 12;
  denied.first = Timestamp{1'699'999'990'000};
  denied.last = Timestamp{1'699'999'999'000};
  const auto entry = audit_entry(asked(denied, {}));
  REQUIRE(entry);
  CHECK(entry->denied);
  CHECK_EQ(entry->count, 12);
  CHECK_EQ(entry->first, denied.first);
  CHECK_EQ(entry->last, denied.last);
  CHECK_EQ(in_short(entry), "read-log research job4");
  denied.subject.clear();
  denied.verb = kSignInVerb;
  const auto nobody = audit_entry(asked(denied, {}));
  REQUIRE(nobody);
  CHECK(nobody->by.subject.empty());
  CHECK_EQ(nobody->by.address, "10.2.0.9");
}

TEST_CASE("no secret is in an entry, and its texts are bounded at the end of a character") {
  TokenCreated token;
  token.name = "ci";
  token.digest = "hush-digest";
  for (const Event& event : {Event(submission_with_secrets()), Event(token)}) {
    const auto entry = audit_entry(asked(event));
    REQUIRE(entry);
    const std::string all = in_short(entry) + entry->reason + entry->by.subject;
    CHECK_EQ(all.find("hush"), std::string::npos);
  }
  MaintenancePlanned window;
  window.name = std::string(1000, 'n');
  for (int i = 0; i < 300; ++i) window.reason += "\xC3\xA9";
  const auto entry = audit_entry(asked(window));
  REQUIRE(entry);
  CHECK_LE(entry->object.size(), kLongestAuditText + 3);
  CHECK_EQ(entry->reason.size(), kLongestAuditText + 3);
  CHECK_EQ(audit_text("x" + window.reason).size(), kLongestAuditText - 1 + 3);
}

TEST_CASE("a filter chooses by subject, queue, verb, denial and time") {
  const auto entry = audit_entry(asked(RoleBound{{"user:bob", Role::kLead, "research/nlp"}, true, "u"}));
  REQUIRE(entry);
  CHECK(passes(*entry, {}));
  CHECK(passes(*entry, {.subject = "user:corp:ada", .queue = "research", .verb = "manage-roles"}));
  CHECK_FALSE(passes(*entry, {.subject = "user:corp:ad"}));
  CHECK_FALSE(passes(*entry, {.queue = "research/nlp/x"}));
  CHECK_FALSE(passes(*entry, {.queue = "res"}));
  CHECK_FALSE(passes(*entry, {.verb = "submit"}));
  CHECK_FALSE(passes(*entry, {.denied = true}));
  CHECK(passes(*entry, {.since = entry->time}));
  CHECK_FALSE(passes(*entry, {.since = entry->time + 1}));
}

TEST_CASE("an auditor of a queue sees what is of it and below, and nothing of the whole cluster") {
  const auto subject = [](Role role, const char* queue) {
    return Subject{.name = "user:x", .user = "x", .roles = {{"user:x", role, queue}}};
  };
  AuditEntry nlp;
  nlp.queue = "research/nlp";
  AuditEntry cluster;
  CHECK(may_see_entry(subject(Role::kAuditor, "research"), nlp));
  CHECK(may_see_entry(subject(Role::kOrgAdmin, "research/nlp"), nlp));
  CHECK_FALSE(may_see_entry(subject(Role::kAuditor, "sales"), nlp));
  CHECK_FALSE(may_see_entry(subject(Role::kAuditor, "research"), cluster));
  CHECK(may_see_entry(subject(Role::kAuditor, ""), cluster));
  for (const Role role : {Role::kViewer, Role::kMember, Role::kLead, Role::kFinance, Role::kOperator})
    CHECK_FALSE(may_see_entry(subject(role, ""), nlp));
}

}  // namespace
}  // namespace berth::policy
