#pragma once
// Events: everything that ever changes the state, in the past tense. State and bill are folds over them. The order of
// the variant and of each struct's fields is append-only: a stored record names its alternative by index and may have
// fewer fields than today's struct.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/timestamp.h"
#include "model/cluster_config.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/node.h"
#include "model/resources.h"

namespace berth {

struct ClusterConfigured {
  ClusterConfig config;
  std::uint64_t version = 0;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("config", &ClusterConfigured::config), field("version", &ClusterConfigured::version),
                      field("user", &ClusterConfigured::user));
  }
};

// A node came, or came back, or changed. `lease` rises with each registration; reports under an older lease are
// refused.
struct NodeRegistered {
  NodeId node;
  NodeSpec spec;
  std::uint64_t lease = 0;
  static constexpr auto fields() {
    return field_list(field("node", &NodeRegistered::node), field("spec", &NodeRegistered::spec),
                      field("lease", &NodeRegistered::lease));
  }
};

struct NodeStatusChanged {
  NodeId node;
  NodeStatus status = NodeStatus::kReady;
  std::string why;
  bool loss_deferred = false;  // unknown: taken for dead, but not given up while so many are silent
  static constexpr auto fields() {
    return field_list(field("node", &NodeStatusChanged::node), field("status", &NodeStatusChanged::status),
                      field("why", &NodeStatusChanged::why), field("loss_deferred", &NodeStatusChanged::loss_deferred));
  }
};

struct NodeCordoned {
  NodeId node;
  bool cordoned = false;
  bool draining = false;
  std::string user;
  std::string why;    // empty: the user's own reasons
  Timestamp gone_at;  // drains: the node goes away then; 0: it stays
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
  static constexpr auto fields() {
    return field_list(field("node", &GpuHealthChanged::node), field("gpu", &GpuHealthChanged::gpu),
                      field("healthy", &GpuHealthChanged::healthy), field("why", &GpuHealthChanged::why));
  }
};

struct JobSubmitted {
  JobId job;
  JobSpec spec;
  std::int32_t priority = 0;
  std::string key;               // idempotency key; empty: none
  std::uint64_t body_hash = 0;   // of the submitted spec, to tell a repeat from a conflict
  JobId parent;                  // the service or array this one belongs to
  std::int32_t index = 0;        // replica or element number
  std::uint32_t generation = 0;  // replicas: the version of the service that they are made of
  static constexpr auto fields() {
    return field_list(field("job", &JobSubmitted::job), field("spec", &JobSubmitted::spec),
                      field("priority", &JobSubmitted::priority), field("key", &JobSubmitted::key),
                      field("body_hash", &JobSubmitted::body_hash), field("parent", &JobSubmitted::parent),
                      field("index", &JobSubmitted::index), field("generation", &JobSubmitted::generation));
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
  static constexpr auto fields() {
    return field_list(field("job", &JobPriorityChanged::job), field("priority", &JobPriorityChanged::priority),
                      field("user", &JobPriorityChanged::user));
  }
};

struct JobCancelRequested {
  JobId job;
  std::string user;
  static constexpr auto fields() {
    return field_list(field("job", &JobCancelRequested::job), field("user", &JobCancelRequested::user));
  }
};

// A claimant is promised these places, which become free when the victims (stopped in the same commit) have left.
struct Nominated {
  JobId job;
  std::vector<TaskPlacement> placements;
  std::vector<JobId> victims;
  StopCause cause = StopCause::kReclaim;
  std::vector<std::uint32_t> keeps;  // of each victim: so many tasks stay; 0: none. Empty: none of any
  // Bit d: the promise keeps room of the guarantee of the queue's ancestor at depth d (0: the root). Records that do
  // not say it kept room of all.
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

// The whole gang (or its least part) is bound, in one event. `within` has bit d set when the charge is within the
// guarantee of the queue's ancestor at depth d (0: the root).
struct AttemptStarted {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<TaskPlacement> placements;
  std::uint64_t within = 0;
  std::int32_t master_port = 0;  // on the node of task 0; 0: it needs none, or all are taken
  bool guaranteed = false;       // within at every ancestor that states a guarantee: how usage is billed
  static constexpr auto fields() {
    return field_list(field("job", &AttemptStarted::job), field("attempt", &AttemptStarted::attempt),
                      field("placements", &AttemptStarted::placements), field("within", &AttemptStarted::within),
                      field("master_port", &AttemptStarted::master_port),
                      field("guaranteed", &AttemptStarted::guaranteed));
  }
};

// One step of growth of an elastic gang; its tasks continue the numbering.
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

// This charge of a running attempt is now within at these depths: room appeared in the guarantee of some ancestors, or
// was taken there by who is within further down, or a guarantee was lowered (control/guarantee_accounting.h).
struct ChargePromoted {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t charge = 0;  // 0: the start, 1..: growth steps
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

// How a task came to its end, as its executor saw it.
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
  static constexpr auto fields() {
    return field_list(field("job", &TaskExited::job), field("attempt", &TaskExited::attempt),
                      field("task", &TaskExited::task), field("incarnation", &TaskExited::incarnation),
                      field("reason", &TaskExited::reason), field("code", &TaskExited::code),
                      field("message", &TaskExited::message));
  }
};

// The attempt is asked to stop: the contract's signal now, the kill at `deadline` or as soon as it acknowledges. With
// `keep`, only its last tasks are: the first `keep` of an elastic gang go on.
struct StopBegan {
  JobId job;
  std::uint32_t attempt = 0;
  StopCause cause = StopCause::kUser;
  JobId preemptor;  // reclaim, preempt and consolidate: for whom
  Timestamp deadline;
  std::uint32_t keep = 0;  // 0: all of it stops
  static constexpr auto fields() {
    return field_list(field("job", &StopBegan::job), field("attempt", &StopBegan::attempt),
                      field("cause", &StopBegan::cause), field("preemptor", &StopBegan::preemptor),
                      field("deadline", &StopBegan::deadline), field("keep", &StopBegan::keep));
  }
};

// An operator wants the attempt elsewhere. That it is asked to stop and the places that it is promised follow at once.
struct MoveOrdered {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<NodeId> off;  // where it does not go, some of which it is on
  bool lose_work = false;   // also if it does not save when it is asked to stop
  std::string user;
  static constexpr auto fields() {
    return field_list(field("job", &MoveOrdered::job), field("attempt", &MoveOrdered::attempt),
                      field("off", &MoveOrdered::off), field("lose_work", &MoveOrdered::lose_work),
                      field("user", &MoveOrdered::user));
  }
};

// A job that was asked to stop so that another fits, or by an operator's order, starts again at these places when it
// has left: they are kept for it until then.
struct MoveNominated {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<TaskPlacement> placements;
  static constexpr auto fields() {
    return field_list(field("job", &MoveNominated::job), field("attempt", &MoveNominated::attempt),
                      field("placements", &MoveNominated::placements));
  }
};

// The claimant went away before the victim had stopped: the victim may run on.
struct StopCancelled {
  JobId job;
  std::uint32_t attempt = 0;
  static constexpr auto fields() {
    return field_list(field("job", &StopCancelled::job), field("attempt", &StopCancelled::attempt));
  }
};

// Grace is over or the checkpoint is acknowledged: what still runs is killed.
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

// Every task of the attempt is provably over; its charges are given back.
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

// The job waits again, at its old age, not before `not_before` (back-off after failures).
struct JobRequeued {
  JobId job;
  Timestamp not_before;
  static constexpr auto fields() {
    return field_list(field("job", &JobRequeued::job), field("not_before", &JobRequeued::not_before));
  }
};

// The job is over for good and leaves the state for history.
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

// A cycle that decided something. The events up to the next CycleRan or command are its plan; replay runs the cycle
// again on the state before this event and compares the hash.
struct CycleRan {
  std::uint64_t plan_hash = 0;
  std::uint32_t decisions = 0;
  static constexpr auto fields() {
    return field_list(field("plan_hash", &CycleRan::plan_hash), field("decisions", &CycleRan::decisions));
  }
};

// What is idle and, by the mix of requests, expected to be of no use has crossed the configured part of the fleet.
struct FragmentationAlarm {
  bool raised = false;  // it is above; else it is below again
  std::int64_t unusable_milli = 0;
  std::int64_t idle_milli = 0;
  static constexpr auto fields() {
    return field_list(field("raised", &FragmentationAlarm::raised),
                      field("unusable_milli", &FragmentationAlarm::unusable_milli),
                      field("idle_milli", &FragmentationAlarm::idle_milli));
  }
};

// The last tasks of an elastic gang are provably over; their charges are given back and it goes on with `keep`.
struct AttemptShrunk {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t keep = 0;
  static constexpr auto fields() {
    return field_list(field("job", &AttemptShrunk::job), field("attempt", &AttemptShrunk::attempt),
                      field("keep", &AttemptShrunk::keep));
  }
};

// A blocked job is promised a start at `start` on these places, which are not free yet; whoever uses them until then
// must be gone by then. A later one for the same job replaces the earlier.
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

// The cycle looked for more starts to hold and found none; it does not look again at once.
struct StartsSought {
  std::int32_t reserved = 0;  // so many starts are held
  static constexpr auto fields() { return field_list(field("reserved", &StartsSought::reserved)); }
};

// A service was submitted again under its name. Where replicas of the new spec differ, `generation` is one more than
// before, and those of older ones are replaced.
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

// What is guaranteed to a queue, by the rule of use it or lose it: less, because for long it asked for no more than
// half of it, or all that is configured again.
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

// From `from` to `to` nothing runs on the nodes; what would still run there then does not start there.
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

// The window is over, or was cancelled: it closes its nodes no longer.
struct MaintenanceEnded {
  std::string name;
  bool cancelled = false;
  std::string user;  // who cancelled it
  static constexpr auto fields() {
    return field_list(field("name", &MaintenanceEnded::name), field("cancelled", &MaintenanceEnded::cancelled),
                      field("user", &MaintenanceEnded::user));
  }
};

// Images have come to a node and others are gone from it.
struct NodeImagesChanged {
  NodeId node;
  std::vector<std::string> pulled;   // sorted
  std::vector<std::string> dropped;  // sorted
  static constexpr auto fields() {
    return field_list(field("node", &NodeImagesChanged::node), field("pulled", &NodeImagesChanged::pulled),
                      field("dropped", &NodeImagesChanged::dropped));
  }
};

using Event =
    std::variant<ClusterConfigured, NodeRegistered, NodeStatusChanged, NodeCordoned, GpuHealthChanged, JobSubmitted,
                 JobHoldChanged, JobPriorityChanged, JobCancelRequested, Nominated, NominationDropped, AttemptStarted,
                 AttemptGrown, ChargePromoted, TaskStarted, TaskExited, StopBegan, StopCancelled, StopForced,
                 CheckpointReported, AttemptEnded, JobRequeued, JobFinished, CycleRan, FragmentationAlarm,
                 AttemptShrunk, ReservationMade, ReservationDropped, StartsSought, ServiceUpdated, GuaranteeChanged,
                 MaintenancePlanned, MaintenanceBegan, MaintenanceEnded, MoveNominated, MoveOrdered, NodeImagesChanged>;

struct EventRecord {
  Seq seq = 0;
  Timestamp time;
  Event event;
};

// The alternative's name in kebab-case, e.g. "attempt-started"; and its stable number in the log.
std::string_view kind_name(const Event& event);
inline std::uint16_t kind_of(const Event& event) { return static_cast<std::uint16_t>(event.index()); }

// The job an event is about, or JobId::none().
JobId job_of(const Event& event);

}  // namespace berth
