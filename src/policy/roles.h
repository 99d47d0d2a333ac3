#pragma once
// The verbs of the API and which role has which. This table is the code, the table of docs/roles.md (a test compares
// them), and what the routes declare.

#include <cstdint>

#include "base/fields.h"
#include "model/role.h"

namespace berth::policy {

enum class Verb : std::uint8_t {
  kSeeQueue,          // its limits, use and counts of jobs
  kSeeJob,            // a job's document, state, reasons and history
  kReadLog,           // what its tasks have written
  kSubmit,            // start a job in the queue
  kStopJob,           // cancel it, or send it a signal
  kHoldJob,           // hold and release it
  kPrioritizeJob,     // change its priority
  kMoveJob,           // move it to other nodes
  kReportCheckpoint,  // acknowledge that its work is saved
  kSeeUsage,          // GPU time by queue and user
  kSeeNodes,          // nodes, their GPUs, drains and maintenance
  kManageNodes,       // cordon, drain, fence, plan maintenance
  kSeeConfig,         // the configuration document
  kChangeConfig,      // apply another one
  kSeeEvents,         // all events, whatever their queue
  kSeeServer,         // status, capacity, advice
  kSeeMetrics,        // what a scraper reads
  kConfirmClock,      // say that the wall clock is right
  kManageTokens,      // create, list and revoke tokens
  kManageBilling,     // put prices in force, close months, correct bills
  kReportQuantities,  // report storage, egress and energy for the bill
  kManageRules,       // try admission rules on the jobs of the past, and set them
  kChangeQueue,       // change limits of the queues below by command
  kManageRoles,       // grant and revoke roles, as far as may_grant() goes
  kSeeAudit,          // who changed, tried and read what, of the queue and those below
  kBreakGlass,        // read the log of a job that the role does not cover; the reason is kept and shown to its owner
  kOpenShell,         // run commands in its tasks as its user, and attach its terminal
};

// On which objects of its queue and the queues below a role has a verb.
enum class Reach : std::uint8_t {
  kNone,
  kOwn,  // only what belongs to the subject
  kAll,
};

Reach reach_of(Role role, Verb verb);

// Returns true if a subject with the first role may grant and revoke the second one, at its queue and below.
bool may_grant(Role granter, Role granted);

}  // namespace berth::policy

namespace berth {
BERTH_ENUM_NAMES(policy::Verb, "see-queue", "see-job", "read-log", "submit", "stop-job", "hold-job", "prioritize-job",
                 "move-job", "report-checkpoint", "see-usage", "see-nodes", "manage-nodes", "see-config",
                 "change-config", "see-events", "see-server", "see-metrics", "confirm-clock", "manage-tokens",
                 "manage-billing", "report-quantities", "manage-rules", "change-queue", "manage-roles", "see-audit",
                 "break-glass", "open-shell");
BERTH_ENUM_NAMES(policy::Reach, "none", "own", "all");
}  // namespace berth
