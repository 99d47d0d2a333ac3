#pragma once
// Commands: requests of users and operators, and reports of backends. `control::handle` checks a command against the
// state and turns it into events.

#include <cstdint>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "model/cluster_config.h"
#include "model/event.h"
#include "model/job.h"
#include "model/node.h"
#include "model/pod_risk.h"
#include "model/queue_edit.h"

namespace berth {

struct ApplyConfig {
  ClusterConfig config;
  std::string user;
  // The version that must be in force; absent: any. So that of two operators who change the same version, the second
  // is told, and does not undo what the first has done.
  std::optional<std::uint64_t> if_version = {};
  std::optional<Timestamp> log_begins = {};  // when the first event was stored; absent: it is not known, or none was
};
struct SubmitJob {
  JobSpec spec;
  std::string key;                            // idempotency key; empty: none
  std::optional<Role> role = {};              // with which it is submitted; absent: its users have no roles here
  std::vector<std::string> more_images = {};  // of pods that exist: images besides those of the task groups
  PodRisks pod_risks = {};                    // of pods that exist
};
struct CancelJob {
  JobId job;
  std::string user;
};
struct HoldJob {
  JobId job;
  bool held = true;
  std::string user;
};
struct PrioritizeJob {
  JobId job;
  std::int32_t priority = 0;
  std::string user;
};
// Moves a running job: it is asked to save and stop, and starts again at places that are reserved for it.
struct MoveJob {
  JobId job;
  std::vector<std::string> off;  // names of nodes to avoid; empty: all nodes that it runs on
  bool lose_work = false;        // move it even if it cannot save its work
  std::string user;
};
// Passes a signal on to what the job runs now.
struct SignalJob {
  JobId job;
  std::int32_t signal = 0;
  std::string user;
};
struct CordonNode {
  std::string node;
  bool cordoned = true;
  bool drain = false;  // with cordoned: also move the jobs that run there
  std::string user;
  std::int64_t gone_in_s = 0;   // drains: the node shuts down after this time; 0: it does not
  bool lose_work = false;       // drains: also stop jobs that cannot save their work
  bool when_idle = false;       // drains: ask no job to leave; all of them finish
  std::int64_t deadline_s = 0;  // drains: after this time nothing runs there; 0: no such time
};
// Plans a maintenance window: from `from` on, nothing runs on the nodes for `for_s`. The nodes are named, or they are
// all nodes with these labels in this pool.
struct PlanMaintenance {
  std::string name;  // empty: berth chooses a name
  std::vector<std::string> nodes;
  Labels labels;
  std::string pool;
  Timestamp from;  // 0: now
  std::int64_t for_s = 0;
  std::string reason;
  std::string user;
};
struct CancelMaintenance {
  std::string name;
  std::string user;
};
// Declares a node dead: an operator or provider guarantees that nothing runs on it any more.
struct FenceNode {
  std::string node;
  std::string user;
};
// Lifts the fence of a GPU: an operator has seen to it that nothing is left on it.
struct LiftGpuFence {
  std::string node;
  std::int64_t gpu = 0;  // index on the node
  std::string user;
};
// Follows the wall clock, which is `offset_ms` ahead of the server's clock.
struct ConfirmClock {
  std::int64_t offset_ms = 0;
  std::string user;
};
// Creates a token that has a role at a queue. The caller has drawn it at random, and gives its digest.
struct CreateToken {
  TokenCreated token;
};
struct RevokeToken {
  std::string name;
  std::string user;
};
// Puts a price book in force, as a whole.
struct ApplyPrices {
  PriceBook book;
  std::string user;
  std::optional<std::uint64_t> if_version = {};  // as in ApplyConfig
};
// Closes a month. The caller has computed its invoice.
struct CloseMonth {
  MonthClosed month;
};
// Reports quantities that berth does not measure: all of them or none.
struct ReportQuantities {
  std::vector<QuantityReported> reports;  // a report without a unit takes that of the prices
};
struct CorrectBill {
  BillCorrected correction;
};
// Says which mark the use of a queue's budget has passed. It comes from the daemon, which keeps the ledger.
struct MarkBudget {
  BudgetMarked mark;
};

// Sets limits of a queue, beside the configuration file (model/queue_edit.h).
struct SetQueue {
  std::string queue;
  std::vector<LimitSetting> settings;
  Timestamp until = Timestamp::never();  // leased: goes back then
  std::string user;
  bool operates = false;         // the user may set terms of eviction beyond those of the queue above
  std::string if_revision = {};  // the revision that the queue must have; empty: any
};
// Undoes the last change of a queue by command.
struct UndoQueueChange {
  std::string queue;
  std::string user;
  std::string if_revision = {};  // as in SetQueue
};
// Grants a role, or revokes one that was granted by command.
struct BindRole {
  RoleBinding binding;
  bool bound = true;
  std::string user;
};
// Ends all access of a subject, or lifts that.
// Sets the admission rules of a queue beside those of the configuration, as a whole.
struct SetRules {
  std::string queue;  // empty: the root
  std::vector<AdmissionRule> rules;
  std::string user;
};
struct BlockSubject {
  std::string subject;
  bool blocked = true;
  std::string user;
};
// Writes down what was denied since the last time. It comes from the daemon, which counts.
struct NoteDenials {
  std::vector<AccessDenied> denials;
};
// Writes down that a log is read. The caller reads it only once this is durable.
struct NoteLogRead {
  LogRead read;
};
// Writes down that a shell is opened, or has ended. The caller opens it only once this is durable.
struct NoteShell {
  std::variant<ShellOpened, ShellEnded> shell;
};
struct NoteSignIns {
  std::vector<SignedIn> sign_ins;
};
// Says that the log was restored from a backup. It is the first command after a restore.
struct NoteRestore {
  std::uint64_t least_number = 0;  // that a job may have from now on; rises with each restore, also of one backup
};

// The commands from here on are reports of backends.

// What others use of a node, as its backend knows it. GPUs by uuid; those that the core does not know are passed over.
struct ForeignReport {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::set<std::string> gpus = {};
  Countables countables = {};
  bool operator==(const ForeignReport&) const = default;
};
struct RegisterNode {
  NodeSpec spec;
  ForeignReport foreign = {};
};
struct ReportNodeStatus {
  std::string node;
  NodeStatus status = NodeStatus::kReady;
  std::string why;
  bool removed = false;  // lost: and taken out of the fleet, not only out of service
};
struct ReportGpuHealth {
  std::string node;
  std::uint8_t gpu = 0;
  bool healthy = true;
  std::string why;
  bool fence = false;     // of an unhealthy one: it stays so until an operator lifts it
  std::string uuid = {};  // of the GPU, instead of its index
};
// Reports all that others use of the node now.
struct ReportForeignUse {
  std::string node;
  ForeignReport use;
};
// Reports all images that the node has now, sorted.
struct ReportNodeImages {
  std::string node;
  std::vector<std::string> images;
};
struct ReportTaskStarted {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t task = 0;
  std::uint32_t incarnation = 1;
};
struct ReportTaskExited {
  TaskExited exit;
};
struct ReportCheckpoint {
  JobId job;
  std::uint32_t attempt = 0;
  std::int64_t step = 0;
};

using Command =
    std::variant<ApplyConfig, SubmitJob, CancelJob, HoldJob, PrioritizeJob, CordonNode, FenceNode, RegisterNode,
                 ReportNodeStatus, ReportGpuHealth, ReportTaskStarted, ReportTaskExited, ReportCheckpoint,
                 PlanMaintenance, CancelMaintenance, MoveJob, ReportNodeImages, ConfirmClock, CreateToken, RevokeToken,
                 ApplyPrices, CloseMonth, CorrectBill, MarkBudget, SetQueue, UndoQueueChange, BindRole, BlockSubject,
                 SetRules, NoteDenials, NoteLogRead, NoteSignIns, ReportQuantities, SignalJob, ReportForeignUse,
                 LiftGpuFence, NoteRestore, NoteShell>;

}  // namespace berth
