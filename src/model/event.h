#pragma once
// Events: every change of the state, in the past tense. The state and the usage records are computed from them. The
// order of the variant and of the fields of each struct is append-only: a stored record names its alternative by index,
// and may have fewer fields than the struct of today.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/timestamp.h"
#include "model/cluster_config.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/node.h"
#include "model/origin.h"
#include "model/pod_risk.h"
#include "model/price_book.h"
#include "model/queue_edit.h"
#include "model/resources.h"

namespace berth {

struct ClusterConfigured {
  ClusterConfig config;
  std::uint64_t version = 0;
  std::string user;
  std::vector<QueueMove> moves =
      {};  // the queues that got another name, before anything else of the configuration holds
  std::vector<LimitsOfQueue> kept = {};  // limits that were set by command and stay in force over the configuration
  static constexpr auto fields() {
    return field_list(field("config", &ClusterConfigured::config), field("version", &ClusterConfigured::version),
                      field("user", &ClusterConfigured::user), field_if_set("moves", &ClusterConfigured::moves),
                      field_if_set("kept", &ClusterConfigured::kept));
  }
};

// Returns the configuration that is in force after the event.
ClusterConfig config_after(const ClusterConfigured& event);

// A node registered: it is new, came back, or has changed. `lease` rises with each registration; reports under an older
// lease are refused. A node that registers under another name stays the same node. If a lost node has the new name, it
// gets the earlier one.
struct NodeRegistered {
  NodeId node;
  NodeSpec spec;
  std::uint64_t lease = 0;
  std::string renamed_from = {};  // its earlier name; empty: the name is as before
  ForeignUse foreign = {};        // what others use of it now
  static constexpr auto fields() {
    return field_list(field("node", &NodeRegistered::node), field("spec", &NodeRegistered::spec),
                      field("lease", &NodeRegistered::lease),
                      field_if_set("renamed_from", &NodeRegistered::renamed_from),
                      field_if_set("foreign", &NodeRegistered::foreign));
  }
};

struct NodeStatusChanged {
  NodeId node;
  NodeStatus status = NodeStatus::kReady;
  std::string why;
  bool loss_deferred = false;  // unknown: silent, but not declared lost while too many nodes are
  bool removed = false;        // lost: it is no more part of the fleet; NodeRemoved follows as soon as nothing holds it
  static constexpr auto fields() {
    return field_list(field("node", &NodeStatusChanged::node), field("status", &NodeStatusChanged::status),
                      field("why", &NodeStatusChanged::why), field("loss_deferred", &NodeStatusChanged::loss_deferred),
                      field_if_set("removed", &NodeStatusChanged::removed));
  }
};

// The fleet forgets what the node had; only its name stays, for what ran there. It may register again.
struct NodeRemoved {
  NodeId node;
  static constexpr auto fields() { return field_list(field("node", &NodeRemoved::node)); }
};

struct NodeCordoned {
  NodeId node;
  bool cordoned = false;
  bool draining = false;
  std::string user;
  std::string why;    // berth's reason, or what the user stated; may be empty
  Timestamp gone_at;  // drains: announced time of the shutdown; 0: none
  static constexpr auto fields() {
    return field_list(field("node", &NodeCordoned::node), field("cordoned", &NodeCordoned::cordoned),
                      field("draining", &NodeCordoned::draining), field("user", &NodeCordoned::user),
                      field("why", &NodeCordoned::why), field("gone_at", &NodeCordoned::gone_at));
  }
};

struct GpuHealthChanged {
  NodeId node;
  std::uint8_t gpu = 0;
  bool healthy = true;
  std::string why;
  bool fenced = false;    // unhealthy until an operator lifts it
  std::string user = {};  // the operator that lifts a fence
  bool failed = false;    // of a fenced one: its node reports it as unhealthy
  static constexpr auto fields() {
    return field_list(field("node", &GpuHealthChanged::node), field("gpu", &GpuHealthChanged::gpu),
                      field("healthy", &GpuHealthChanged::healthy), field("why", &GpuHealthChanged::why),
                      field_if_set("fenced", &GpuHealthChanged::fenced), field_if_set("user", &GpuHealthChanged::user),
                      field_if_set("failed", &GpuHealthChanged::failed));
  }
};

// What others use of the node has changed: all of it, as it is now.
struct ForeignUseChanged {
  NodeId node;
  ForeignUse use;
  static constexpr auto fields() {
    return field_list(field("node", &ForeignUseChanged::node), field("use", &ForeignUseChanged::use));
  }
};

struct JobSubmitted {
  JobId job;
  JobSpec spec;
  std::int32_t priority = 0;
  std::string key;                             // idempotency key; empty: none
  std::uint64_t body_hash = 0;                 // of the submitted spec; tells a repetition from a conflict
  JobId parent;                                // the service or array that it belongs to
  std::int32_t index = 0;                      // replica or element number
  std::uint32_t generation = 0;                // replicas: the generation of the service that they belong to
  std::vector<std::string> broken_rules = {};  // admission rules that it breaks and that did not refuse it: QUEUE:RULE
  PodRisks pod_risks = {};                     // of pods that existed; absent: also in events of an older release
  static constexpr auto fields() {
    return field_list(field("job", &JobSubmitted::job), field("spec", &JobSubmitted::spec),
                      field("priority", &JobSubmitted::priority), field("key", &JobSubmitted::key),
                      field("body_hash", &JobSubmitted::body_hash), field("parent", &JobSubmitted::parent),
                      field("index", &JobSubmitted::index), field("generation", &JobSubmitted::generation),
                      field_if_set("broken_rules", &JobSubmitted::broken_rules),
                      field_if_set("pod_risks", &JobSubmitted::pod_risks));
  }
};

struct JobHoldChanged {
  JobId job;
  bool held = false;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("job", &JobHoldChanged::job), field("held", &JobHoldChanged::held),
                      field("user", &JobHoldChanged::user));
  }
};

struct JobPriorityChanged {
  JobId job;
  std::int32_t priority = 0;
  std::string user;
  std::optional<std::int32_t> before = {};  // nothing: an event of an older release
  static constexpr auto fields() {
    return field_list(field("job", &JobPriorityChanged::job), field("priority", &JobPriorityChanged::priority),
                      field("user", &JobPriorityChanged::user), field_if_set("before", &JobPriorityChanged::before));
  }
};

struct JobCancelRequested {
  JobId job;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("job", &JobCancelRequested::job), field("user", &JobCancelRequested::user));
  }
};

// A preemptor is nominated: these places are reserved for it until its victims have exited. The victims are asked to
// stop in the same commit.
struct Nominated {
  JobId job;
  std::vector<TaskPlacement> placements;
  std::vector<JobId> victims;
  StopCause cause = StopCause::kReclaim;
  std::vector<std::uint32_t> keeps;  // tasks that each victim keeps; 0: none. Empty: no victim keeps any
  // Bit d: room in the guarantee of the ancestor queue at depth d is reserved (0: the root). Old records without this
  // field reserved room at every depth.
  std::uint64_t within = ~std::uint64_t{0};
  static constexpr auto fields() {
    return field_list(field("job", &Nominated::job), field("placements", &Nominated::placements),
                      field("victims", &Nominated::victims), field("cause", &Nominated::cause),
                      field("keeps", &Nominated::keeps), field("within", &Nominated::within));
  }
};

struct NominationDropped {
  JobId job;
  std::string why;
  static constexpr auto fields() {
    return field_list(field("job", &NominationDropped::job), field("why", &NominationDropped::why));
  }
};

// An attempt started: the whole gang (or at least its min_count) is bound in one event. Bit d of `within` is set if the
// charge is within the guarantee of the ancestor queue at depth d (0: the root).
struct AttemptStarted {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<TaskPlacement> placements;
  std::uint64_t within = 0;
  std::int32_t master_port = 0;  // on the node of task 0; 0: not needed, or no port is free
  // Within the guarantee of every ancestor queue that states one: usage is billed as guaranteed.
  bool guaranteed = false;
  static constexpr auto fields() {
    return field_list(field("job", &AttemptStarted::job), field("attempt", &AttemptStarted::attempt),
                      field("placements", &AttemptStarted::placements), field("within", &AttemptStarted::within),
                      field("master_port", &AttemptStarted::master_port),
                      field("guaranteed", &AttemptStarted::guaranteed));
  }
};

// An elastic gang was scaled up by these tasks; their numbers continue those of the gang.
struct AttemptGrown {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<TaskPlacement> placements;
  std::uint64_t within = 0;
  bool guaranteed = false;
  static constexpr auto fields() {
    return field_list(field("job", &AttemptGrown::job), field("attempt", &AttemptGrown::attempt),
                      field("placements", &AttemptGrown::placements), field("within", &AttemptGrown::within),
                      field("guaranteed", &AttemptGrown::guaranteed));
  }
};

// A charge of a running attempt changed its mask `within`. Room in the guarantee of an ancestor queue appeared, was
// taken by a charge that is within further down, or shrank with the guarantee (control/guarantee_accounting.h).
struct ChargePromoted {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t charge = 0;  // 0: the start; 1 and up: scale-ups
  std::uint64_t within = 0;
  bool guaranteed = false;
  static constexpr auto fields() {
    return field_list(field("job", &ChargePromoted::job), field("attempt", &ChargePromoted::attempt),
                      field("charge", &ChargePromoted::charge), field("within", &ChargePromoted::within),
                      field("guaranteed", &ChargePromoted::guaranteed));
  }
};

struct TaskStarted {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t task = 0;
  std::uint32_t incarnation = 1;
  static constexpr auto fields() {
    return field_list(field("job", &TaskStarted::job), field("attempt", &TaskStarted::attempt),
                      field("task", &TaskStarted::task), field("incarnation", &TaskStarted::incarnation));
  }
};

// How a task ended, as its executor saw it.
enum class ExitReason {
  kExited,
  kSignalled,
  kTimeLimit,
  kOutOfMemory,
  kKilled,
  kStartFailed,
  kSupervisorLost,
  kNodeLost
};
BERTH_ENUM_NAMES(ExitReason, "exited", "signalled", "time-limit", "out-of-memory", "killed", "start-failed",
                 "supervisor-lost", "node-lost");

struct TaskExited {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t task = 0;
  std::uint32_t incarnation = 1;
  ExitReason reason = ExitReason::kExited;
  std::int32_t code = 0;  // exit status, or 128 + signal
  std::string message;
  bool node_doubtful = false;  // its node may be at fault (control/suspect.h); set by control
  static constexpr auto fields() {
    return field_list(field("job", &TaskExited::job), field("attempt", &TaskExited::attempt),
                      field("task", &TaskExited::task), field("incarnation", &TaskExited::incarnation),
                      field("reason", &TaskExited::reason), field("code", &TaskExited::code),
                      field("message", &TaskExited::message),
                      field_if_set("node_doubtful", &TaskExited::node_doubtful));
  }
};

// An attempt is asked to stop: the signal of its checkpoint contract is sent now, and the kill follows at `deadline` or
// when it acknowledges. If `keep` is set, only the last tasks of the elastic gang stop, and its first `keep` tasks
// continue.
struct StopBegan {
  JobId job;
  std::uint32_t attempt = 0;
  StopCause cause = StopCause::kUser;
  JobId preemptor;  // reclaim, preempt and consolidate: the preemptor
  Timestamp deadline;
  std::uint32_t keep = 0;  // 0: the whole job stops
  static constexpr auto fields() {
    return field_list(field("job", &StopBegan::job), field("attempt", &StopBegan::attempt),
                      field("cause", &StopBegan::cause), field("preemptor", &StopBegan::preemptor),
                      field("deadline", &StopBegan::deadline), field("keep", &StopBegan::keep));
  }
};

// An operator ordered a move of the attempt. The request to stop and the reservation of its new places follow at once.
struct MoveOrdered {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<NodeId> off;  // nodes to avoid; it runs on some of them
  bool lose_work = false;   // move it even if it cannot save its work
  std::string user;
  static constexpr auto fields() {
    return field_list(field("job", &MoveOrdered::job), field("attempt", &MoveOrdered::attempt),
                      field("off", &MoveOrdered::off), field("lose_work", &MoveOrdered::lose_work),
                      field("user", &MoveOrdered::user));
  }
};

// A job that is stopped for a move (by consolidation or an operator) has its new places reserved. It starts again there
// after it has exited.
struct MoveNominated {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<TaskPlacement> placements;
  static constexpr auto fields() {
    return field_list(field("job", &MoveNominated::job), field("attempt", &MoveNominated::attempt),
                      field("placements", &MoveNominated::placements));
  }
};

// An eviction is cancelled before the victim has exited, because its preemptor no longer needs it. The victim
// continues.
struct StopCancelled {
  JobId job;
  std::uint32_t attempt = 0;
  static constexpr auto fields() {
    return field_list(field("job", &StopCancelled::job), field("attempt", &StopCancelled::attempt));
  }
};

// The grace period is over or the checkpoint is acknowledged: tasks that still run are killed.
struct StopForced {
  JobId job;
  std::uint32_t attempt = 0;
  static constexpr auto fields() {
    return field_list(field("job", &StopForced::job), field("attempt", &StopForced::attempt));
  }
};

struct CheckpointReported {
  JobId job;
  std::uint32_t attempt = 0;
  std::int64_t step = 0;
  static constexpr auto fields() {
    return field_list(field("job", &CheckpointReported::job), field("attempt", &CheckpointReported::attempt),
                      field("step", &CheckpointReported::step));
  }
};

// An attempt ended: all its tasks have provably exited, and its charges are released.
struct AttemptEnded {
  JobId job;
  std::uint32_t attempt = 0;
  Outcome outcome = Outcome::kSucceeded;
  std::int32_t code = 0;
  std::string message;
  static constexpr auto fields() {
    return field_list(field("job", &AttemptEnded::job), field("attempt", &AttemptEnded::attempt),
                      field("outcome", &AttemptEnded::outcome), field("code", &AttemptEnded::code),
                      field("message", &AttemptEnded::message));
  }
};

// A job is requeued at its old age. It does not start before `not_before` (back-off after failures).
struct JobRequeued {
  JobId job;
  Timestamp not_before;
  static constexpr auto fields() {
    return field_list(field("job", &JobRequeued::job), field("not_before", &JobRequeued::not_before));
  }
};

// A job is finished. It is removed from the state and goes to history.
struct JobFinished {
  JobId job;
  Outcome outcome = Outcome::kSucceeded;
  std::int32_t code = 0;
  std::string message;
  static constexpr auto fields() {
    return field_list(field("job", &JobFinished::job), field("outcome", &JobFinished::outcome),
                      field("code", &JobFinished::code), field("message", &JobFinished::message));
  }
};

// A cycle made decisions. The events up to the next CycleRan or command are its plan. Replay runs the cycle again on
// the state before this event and compares the hash.
struct CycleRan {
  std::uint64_t plan_hash = 0;
  std::uint32_t decisions = 0;
  static constexpr auto fields() {
    return field_list(field("plan_hash", &CycleRan::plan_hash), field("decisions", &CycleRan::decisions));
  }
};

// Fragmentation crossed its alert limit: the idle GPUs that are expected to be unusable, as a part of the fleet.
struct FragmentationAlarm {
  bool raised = false;  // it is above the limit; else below it again
  std::int64_t unusable_milli = 0;
  std::int64_t idle_milli = 0;
  static constexpr auto fields() {
    return field_list(field("raised", &FragmentationAlarm::raised),
                      field("unusable_milli", &FragmentationAlarm::unusable_milli),
                      field("idle_milli", &FragmentationAlarm::idle_milli));
  }
};

// An elastic gang was scaled down: its last tasks have provably exited, their charges are released, and its first
// `keep` tasks continue.
struct AttemptShrunk {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t keep = 0;
  static constexpr auto fields() {
    return field_list(field("job", &AttemptShrunk::job), field("attempt", &AttemptShrunk::attempt),
                      field("keep", &AttemptShrunk::keep));
  }
};

// A blocked job gets a backfill reservation: it is expected to start at `start` on these places, which are not free
// yet. Jobs that use them until then must have exited by then. A later reservation for the same job replaces the
// earlier one.
struct ReservationMade {
  JobId job;
  std::vector<TaskPlacement> placements;
  Timestamp start;
  static constexpr auto fields() {
    return field_list(field("job", &ReservationMade::job), field("placements", &ReservationMade::placements),
                      field("start", &ReservationMade::start));
  }
};

struct ReservationDropped {
  JobId job;
  std::string why;
  static constexpr auto fields() {
    return field_list(field("job", &ReservationDropped::job), field("why", &ReservationDropped::why));
  }
};

// A cycle looked for more backfill reservations and found fewer than it may make. It is recorded so that the next cycle
// does not search again at once.
struct StartsSought {
  std::int32_t reserved = 0;  // number of reservations now
  static constexpr auto fields() { return field_list(field("reserved", &StartsSought::reserved)); }
};

// A service was submitted again under its name. If the new spec changes its replicas, `generation` rises by one, and
// replicas of older generations are replaced.
struct ServiceUpdated {
  JobId job;
  JobSpec spec;
  std::int32_t priority = 0;
  std::uint32_t generation = 0;
  std::string key;  // as in JobSubmitted
  std::uint64_t body_hash = 0;
  static constexpr auto fields() {
    return field_list(field("job", &ServiceUpdated::job), field("spec", &ServiceUpdated::spec),
                      field("priority", &ServiceUpdated::priority), field("generation", &ServiceUpdated::generation),
                      field("key", &ServiceUpdated::key), field("body_hash", &ServiceUpdated::body_hash));
  }
};

// Guarantee decay changed the guarantee of a queue. It shrank because the queue was idle for long, or the configured
// guarantee is restored.
struct GuaranteeChanged {
  std::string queue;
  ResourceAmounts from;
  ResourceAmounts to;
  bool restored = false;
  static constexpr auto fields() {
    return field_list(field("queue", &GuaranteeChanged::queue), field("from", &GuaranteeChanged::from),
                      field("to", &GuaranteeChanged::to), field("restored", &GuaranteeChanged::restored));
  }
};

// A maintenance window is planned: from `from` to `to` nothing runs on the nodes. A job that would still run there at
// `from` does not start there.
struct MaintenancePlanned {
  std::string name;
  std::vector<NodeId> nodes;
  Timestamp from;
  Timestamp to;
  std::string reason;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("name", &MaintenancePlanned::name), field("nodes", &MaintenancePlanned::nodes),
                      field("from", &MaintenancePlanned::from), field("to", &MaintenancePlanned::to),
                      field("reason", &MaintenancePlanned::reason), field("user", &MaintenancePlanned::user));
  }
};

struct MaintenanceBegan {
  std::string name;
  static constexpr auto fields() { return field_list(field("name", &MaintenanceBegan::name)); }
};

// A maintenance window is over or was cancelled. It no longer closes its nodes.
struct MaintenanceEnded {
  std::string name;
  bool cancelled = false;
  std::string user;  // the user that cancelled it
  static constexpr auto fields() {
    return field_list(field("name", &MaintenanceEnded::name), field("cancelled", &MaintenanceEnded::cancelled),
                      field("user", &MaintenanceEnded::user));
  }
};

// Images were pulled to a node or dropped from it.
struct NodeImagesChanged {
  NodeId node;
  std::vector<std::string> pulled;   // sorted
  std::vector<std::string> dropped;  // sorted
  static constexpr auto fields() {
    return field_list(field("node", &NodeImagesChanged::node), field("pulled", &NodeImagesChanged::pulled),
                      field("dropped", &NodeImagesChanged::dropped));
  }
};

// An operator confirmed the wall clock. The server's clock follows it from now on; until then it did not believe it.
struct ClockConfirmed {
  std::int64_t offset_ms = 0;  // by how much the wall clock is ahead of the server's clock
  std::string user;
  static constexpr auto fields() {
    return field_list(field("offset_ms", &ClockConfirmed::offset_ms), field("user", &ClockConfirmed::user));
  }
};

// A token was created. Only its SHA-256 digest is stored; the token itself is shown once to its creator.
struct TokenCreated {
  std::string name;
  std::string digest;  // 64 hexadecimal digits
  Role role = Role::kViewer;
  std::string queue;    // where it has the role; empty: the root
  std::string as_user;  // the owner of the jobs that it submits
  Timestamp expires = Timestamp::never();
  std::string user;  // the subject that created it
  static constexpr auto fields() {
    return field_list(field("name", &TokenCreated::name), field("digest", &TokenCreated::digest),
                      field("role", &TokenCreated::role), field("queue", &TokenCreated::queue),
                      field("as_user", &TokenCreated::as_user), field("expires", &TokenCreated::expires),
                      field("user", &TokenCreated::user));
  }
};
// A token was revoked; it is good for nothing from now on.
struct TokenRevoked {
  std::string name;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("name", &TokenRevoked::name), field("user", &TokenRevoked::user));
  }
};

// A price book came into force, as a whole. Its periods say from which day on which prices count.
struct PricesApplied {
  PriceBook book;
  std::uint64_t version = 0;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("book", &PricesApplied::book), field("version", &PricesApplied::version),
                      field("user", &PricesApplied::user));
  }
};

// A month was closed: its invoices are those of this price book and of these corrections for good, and can be computed
// again at any time. `hash` and `total_micro` are those of the invoice of the root (billing/invoice.h).
struct MonthClosed {
  std::string month;  // such as 2026-11
  std::uint64_t price_version = 0;
  Seq last_seq = 0;  // the last event that was counted
  std::string hash;
  std::int64_t total_micro = 0;
  std::string user;
  std::int64_t reports = 0;  // reported quantities that were counted
  static constexpr auto fields() {
    return field_list(field("month", &MonthClosed::month), field("price_version", &MonthClosed::price_version),
                      field("last_seq", &MonthClosed::last_seq), field("hash", &MonthClosed::hash),
                      field("total_micro", &MonthClosed::total_micro), field("user", &MonthClosed::user),
                      field_if_set("reports", &MonthClosed::reports));
  }
};

// A bill is corrected by an amount of its own, in the month in which it is made. Nothing that was billed is edited.
struct BillCorrected {
  std::string queue;
  std::string month;              // that is corrected
  JobId job;                      // none(): no single job
  std::int64_t amount_micro = 0;  // negative: a refund
  std::string reason;
  std::string user;
  std::string key = {};  // idempotency key; empty: none
  bool operator==(const BillCorrected&) const = default;
  static constexpr auto fields() {
    return field_list(field("queue", &BillCorrected::queue), field("month", &BillCorrected::month),
                      field("job", &BillCorrected::job), field("amount_micro", &BillCorrected::amount_micro),
                      field("reason", &BillCorrected::reason), field("user", &BillCorrected::user),
                      field_if_set("key", &BillCorrected::key));
  }
};

// A quantity that berth does not measure was reported: storage, egress, energy. It is on the bill of the month in which
// it lies, by the prices that were in force at its begin, whenever it was reported.
struct QuantityReported {
  std::string id;  // of this report: the same one counts once
  std::string queue;
  std::string kind;  // as the prices name it
  std::string unit;
  std::int64_t quantity = 0;
  Timestamp from;
  Timestamp to;  // in the same month
  std::string user;
  bool operator==(const QuantityReported&) const = default;
  static constexpr auto fields() {
    return field_list(field("id", &QuantityReported::id), field("queue", &QuantityReported::queue),
                      field("quantity_kind", &QuantityReported::kind), field("unit", &QuantityReported::unit),
                      field("quantity", &QuantityReported::quantity), field("from", &QuantityReported::from),
                      field("to", &QuantityReported::to), field("user", &QuantityReported::user));
  }
};

// The use of a queue's budget or grant passed a mark (50, 80, 100 percent), or it was set back (0): a new month began,
// or it or the prices were changed; or the grant ended. `until` is the end of its period: of the month, or the grant.
struct BudgetMarked {
  std::string queue;
  std::int32_t percent = 0;
  std::string month;  // of a budget
  Timestamp until;
  std::int64_t used = 0;   // micro units of money, or milli-GPU-hours, as the budget is stated
  std::int64_t limit = 0;  // likewise
  BudgetKind of = BudgetKind::kBudget;
  bool ended = false;
  static constexpr auto fields() {
    return field_list(field("queue", &BudgetMarked::queue), field("percent", &BudgetMarked::percent),
                      field("month", &BudgetMarked::month), field("until", &BudgetMarked::until),
                      field("used", &BudgetMarked::used), field("limit", &BudgetMarked::limit),
                      field_if_set("of", &BudgetMarked::of), field_if_set("ended", &BudgetMarked::ended));
  }
};

// Limits of a queue were changed by command (model/queue_edit.h). `version` is the new version of the configuration.
struct QueueChanged {
  std::string queue;
  std::uint64_t version = 0;
  std::vector<LimitChange> limits;
  Timestamp until = Timestamp::never();  // the end of its lease; never: it is not leased
  std::string user;
  static constexpr auto fields() {
    return field_list(field("queue", &QueueChanged::queue), field("version", &QueueChanged::version),
                      field("limits", &QueueChanged::limits), field("until", &QueueChanged::until),
                      field("user", &QueueChanged::user));
  }
};

// A change of a queue by command was undone, or its lease ended.
struct QueueChangeEnded {
  std::string queue;
  std::uint64_t change = 0;  // the version of the change
  std::uint64_t version = 0;
  std::vector<LimitChange> limits;  // what is in force again
  bool undone = false;
  std::string user;  // the subject that undid it; empty: its lease ended
  static constexpr auto fields() {
    return field_list(field("queue", &QueueChangeEnded::queue), field("change", &QueueChangeEnded::change),
                      field("version", &QueueChangeEnded::version), field("limits", &QueueChangeEnded::limits),
                      field("undone", &QueueChangeEnded::undone), field("user", &QueueChangeEnded::user));
  }
};

// A role was granted by command, or what was granted by command was revoked.
struct RoleBound {
  RoleBinding binding;
  bool bound = true;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("binding", &RoleBound::binding), field("bound", &RoleBound::bound),
                      field("user", &RoleBound::user));
  }
};

// All access of a subject was ended, whatever its roles and tokens are; or that was lifted again.
struct SubjectBlocked {
  std::string subject;
  bool blocked = true;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("subject", &SubjectBlocked::subject), field("blocked", &SubjectBlocked::blocked),
                      field("user", &SubjectBlocked::user));
  }
};

// The admission rules that a command has set at a queue, beside those of the configuration, are these from now on.
struct RulesSet {
  std::string queue;  // empty: the root
  std::vector<AdmissionRule> rules;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("queue", &RulesSet::queue), field("rules", &RulesSet::rules),
                      field("user", &RulesSet::user));
  }
};

// Requests were denied: so many of one subject, for one verb and one object, between two times. They are counted in
// memory and written at most once a minute (policy/denial_counter.h), so that a flood of them is few events.
struct AccessDenied {
  std::string subject;  // empty: nobody was proved; counted by the address
  std::string proof;    // how it was authenticated, at the last of them
  std::string address;  // of the last of them
  std::string verb;     // empty: several; of requests without a valid proof "sign-in"
  std::string queue;    // empty: the root, or several
  JobId job;            // none(): no single job
  std::uint64_t count = 0;
  Timestamp first;
  Timestamp last;
  bool others = false;  // what did not fit the table; without a subject: of several subjects
  static constexpr auto fields() {
    return field_list(field("subject", &AccessDenied::subject), field("proof", &AccessDenied::proof),
                      field("address", &AccessDenied::address), field("verb", &AccessDenied::verb),
                      field("queue", &AccessDenied::queue), field("job", &AccessDenied::job),
                      field("count", &AccessDenied::count), field("first", &AccessDenied::first),
                      field("last", &AccessDenied::last), field_if_set("others", &AccessDenied::others));
  }
};

// What the tasks of a job wrote was read by another subject than its owner. With a reason it was read by break-glass,
// which the owner of the job sees.
struct LogRead {
  JobId job;
  std::string queue;
  std::string owner;  // the user of the job
  std::string subject;
  std::string reason = {};  // empty: a role allows it
  static constexpr auto fields() {
    return field_list(field("job", &LogRead::job), field("queue", &LogRead::queue), field("owner", &LogRead::owner),
                      field("subject", &LogRead::subject), field_if_set("reason", &LogRead::reason));
  }
};

// A subject of an identity provider signed in: on the web page, or a first request with its token after a long time.
struct SignedIn {
  std::string subject;
  std::string proof;  // session, issuer
  std::string address;
  static constexpr auto fields() {
    return field_list(field("subject", &SignedIn::subject), field("proof", &SignedIn::proof),
                      field("address", &SignedIn::address));
  }
};

// A user's signal is passed on to every process that the job runs now, once. The state does not change.
struct JobSignalled {
  JobId job;
  std::int32_t signal = 0;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("job", &JobSignalled::job), field("signal", &JobSignalled::signal),
                      field("user", &JobSignalled::user));
  }
};

// A job failed on the node in this attempt and then did well without it: the node may be at fault (control/suspect.h).
// The failure costs the job no try.
struct NodeBlamed {
  NodeId node;
  JobId job;
  std::uint32_t attempt = 0;
  static constexpr auto fields() {
    return field_list(field("node", &NodeBlamed::node), field("job", &NodeBlamed::job),
                      field("attempt", &NodeBlamed::attempt));
  }
};

// The log was restored from a backup. What came after it is forgotten, and the numbers that were given then are not
// given again: a job that is submitted from now on has none below `next_job`. So nothing that a forgotten job has left
// (pods, directories in volumes) is taken for a new job's.
struct LogRestored {
  JobId next_job;
  static constexpr auto fields() { return field_list(field("next_job", &LogRestored::next_job)); }
};

// A shell was opened in a task of a job, or the terminal of an interactive job attached. It is written before a process
// is started; of its command it has the program alone.
struct ShellOpened {
  JobId job;
  std::uint32_t task = 0;
  std::string queue;
  std::string owner;  // the user of the job
  std::string subject;
  std::string program;  // the first word of its command; empty: the terminal was attached
  static constexpr auto fields() {
    return field_list(field("job", &ShellOpened::job), field("task", &ShellOpened::task),
                      field("queue", &ShellOpened::queue), field("owner", &ShellOpened::owner),
                      field("subject", &ShellOpened::subject), field("program", &ShellOpened::program));
  }
};

// A shell that was opened has ended, or its client has gone. Its request is that of the event before.
struct ShellEnded {
  JobId job;
  std::uint32_t task = 0;
  std::string queue;
  std::string owner;
  std::string subject;
  std::string program;
  std::optional<std::int32_t> code;  // its exit code; absent: it is not known, and `message` says why
  std::string message = {};
  static constexpr auto fields() {
    return field_list(field("job", &ShellEnded::job), field("task", &ShellEnded::task),
                      field("queue", &ShellEnded::queue), field("owner", &ShellEnded::owner),
                      field("subject", &ShellEnded::subject), field("program", &ShellEnded::program),
                      field("code", &ShellEnded::code), field_if_set("message", &ShellEnded::message));
  }
};

using Event =
    std::variant<ClusterConfigured, NodeRegistered, NodeStatusChanged, NodeCordoned, GpuHealthChanged, JobSubmitted,
                 JobHoldChanged, JobPriorityChanged, JobCancelRequested, Nominated, NominationDropped, AttemptStarted,
                 AttemptGrown, ChargePromoted, TaskStarted, TaskExited, StopBegan, StopCancelled, StopForced,
                 CheckpointReported, AttemptEnded, JobRequeued, JobFinished, CycleRan, FragmentationAlarm,
                 AttemptShrunk, ReservationMade, ReservationDropped, StartsSought, ServiceUpdated, GuaranteeChanged,
                 MaintenancePlanned, MaintenanceBegan, MaintenanceEnded, MoveNominated, MoveOrdered, NodeImagesChanged,
                 ClockConfirmed, TokenCreated, TokenRevoked, PricesApplied, MonthClosed, BillCorrected, BudgetMarked,
                 QueueChanged, QueueChangeEnded, RoleBound, SubjectBlocked, RulesSet, AccessDenied, LogRead, SignedIn,
                 QuantityReported, JobSignalled, ForeignUseChanged, NodeRemoved, LogRestored, NodeBlamed, ShellOpened,
                 ShellEnded>;

struct EventRecord {
  Seq seq = 0;
  Timestamp time;
  Event event;
  Origin by = {};  // of the first event of a change that a request asked for; else empty
};

// kind_name() returns the name of the alternative in kebab-case, such as "attempt-started". kind_of() returns its
// stable number in the log.
std::string_view kind_name(const Event& event);
inline std::uint16_t kind_of(const Event& event) { return static_cast<std::uint16_t>(event.index()); }

// Returns the job that the event is about, or JobId::none().
JobId job_of(const Event& event);
// Returns the node that the event is about, or NodeId::none().
NodeId node_of(const Event& event);

}  // namespace berth
