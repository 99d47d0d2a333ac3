#pragma once
// State: the result of applying all events in order, with its indexes kept current by `apply`.
//
// 1. `apply` accepts exactly the events that control emits. Any other event fails a CHECK, because it means a bug in
//    berth. Damaged logs are detected before this point (hash chain, decoder).
// 2. Equal event sequences give equal states on every machine (P7, P10); `digest()` compares them.
// 3. The state makes no decision. sched and control compute what may follow from it.
// 4. A transaction (state/transaction.h) changes nodes and queues tentatively and undoes all its changes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "model/event.h"
#include "model/ids.h"
#include "state/eviction_rate.h"
#include "state/fragmentation/fragmentation_index.h"
#include "state/image_index.h"
#include "state/job_state.h"
#include "state/job_table.h"
#include "state/node_identities.h"
#include "state/node_index.h"
#include "state/node_state.h"
#include "state/nominated_shares.h"
#include "state/presence_index.h"
#include "state/queue_state.h"
#include "state/quota_path.h"
#include "state/replica_spread.h"
#include "state/run_times.h"
#include "state/running_table.h"
#include "state/topology_index.h"
#include "state/wait_index.h"

namespace berth::state {

struct GpuModelState {
  std::string name;
  std::int64_t weight_permille = 1000;
  const MigGeometry* mig = nullptr;  // how its GPUs are cut into MIG instances; null: they are not
};

// Returns true if the request may run on GPUs of the model. If it names models, this must be one of them; if it names
// none, the model is no resource (model/gpu_model.h). A request for a MIG profile needs a model that is cut into MIG
// instances and on which the profile is `gpu_milli` of a GPU. Any other request needs a model that is not cut.
bool accepts(const TaskRequest& request, const GpuModelState& model);
// Returns true if the request names this model, or names none.
bool may_be_of(const TaskRequest& request, const GpuModelState& model);

struct PoolState {
  std::string name;
  std::vector<QueueId> queues = {};    // queues that may use it, with all below them; empty: all
  std::vector<JobClass> classes = {};  // classes of the jobs that may use it; empty: all
  bool burst = false;
  // Trust domain isolation: only one trust domain may run in each domain of this topology level. The number of levels
  // stands for the node itself; nothing means no isolation.
  std::optional<std::size_t> trust_domain_isolation = {};

  std::vector<GpuLevel> gpu_levels = {};  // at which its GPUs may be used; empty: all

  bool admits(GpuLevel level) const {
    return gpu_levels.empty() || std::find(gpu_levels.begin(), gpu_levels.end(), level) != gpu_levels.end();
  }
  bool admits(JobClass job_class) const {
    return classes.empty() || std::find(classes.begin(), classes.end(), job_class) != classes.end();
  }
};

// A token that is not revoked. It may have expired.
struct Token : TokenCreated {
  Timestamp created;
  static constexpr auto fields() {
    return joined_fields(TokenCreated::fields(), field_list(field("created", &Token::created)));
  }
};

// Who granted a role or blocked a subject, and when.
struct BindingOrigin {
  std::string user;
  Timestamp time;
  bool operator==(const BindingOrigin&) const = default;
  static constexpr auto fields() {
    return field_list(field("user", &BindingOrigin::user), field("time", &BindingOrigin::time));
  }
};

// A log that was read by break-glass: by whom, when and why.
struct BrokenGlass {
  JobId job;
  std::string subject;
  std::string reason;
  Timestamp time;
  bool operator==(const BrokenGlass&) const = default;
  static constexpr auto fields() {
    return field_list(field("job", &BrokenGlass::job), field("subject", &BrokenGlass::subject),
                      field("reason", &BrokenGlass::reason), field("time", &BrokenGlass::time));
  }
};

// What was changed by command beside the configuration file, as a checkpoint has it; and whose logs were read by
// break-glass.
struct SavedDelegation {
  std::optional<ClusterConfig> file;  // absent: no queue is changed
  std::vector<std::pair<std::string, std::vector<QueueEdit>>> edits;
  std::vector<std::pair<RoleBinding, BindingOrigin>> granted;
  std::vector<std::pair<std::string, BindingOrigin>> blocked;
  std::vector<std::pair<QueueId, std::vector<AdmissionRule>>> rules = {};  // set by command, by queue
  std::vector<BrokenGlass> broken_glass = {};
  std::vector<std::pair<std::string, QueueId>> former_paths = {};  // of queues that were renamed
  bool empty() const {
    return edits.empty() && granted.empty() && blocked.empty() && rules.empty() && broken_glass.empty() &&
           former_paths.empty();
  }
  static constexpr auto fields() {
    return field_list(field("file", &SavedDelegation::file), field("edits", &SavedDelegation::edits),
                      field("granted", &SavedDelegation::granted), field("blocked", &SavedDelegation::blocked),
                      field_if_set("rules", &SavedDelegation::rules),
                      field_if_set("broken_glass", &SavedDelegation::broken_glass),
                      field_if_set("former_paths", &SavedDelegation::former_paths));
  }
};

// A month that was closed (MonthClosed).
struct ClosedMonth : MonthClosed {
  Timestamp closed;
  bool operator==(const ClosedMonth& other) const {
    const auto all = [](const ClosedMonth& one) {
      return std::tie(one.month, one.price_version, one.last_seq, one.hash, one.total_micro, one.user, one.reports,
                      one.closed);
    };
    return all(*this) == all(other);
  }
  static constexpr auto fields() {
    return joined_fields(MonthClosed::fields(), field_list(field("closed", &ClosedMonth::closed)));
  }
};

// Prices, closed months and budgets, as a checkpoint has them.
struct SavedMoney {
  PriceBook prices;
  std::uint64_t price_version = 0;
  std::vector<ClosedMonth> closed;
  std::vector<std::pair<QueueId, BudgetMark>> marks;
  std::vector<QuantityReported> reports = {};
  std::vector<BillCorrected> corrections = {};
  std::vector<std::pair<QueueId, BudgetMark>> grant_marks = {};
  bool empty() const {
    return price_version == 0 && closed.empty() && marks.empty() && reports.empty() && corrections.empty() &&
           grant_marks.empty();
  }
  static constexpr auto fields() {
    return field_list(field("prices", &SavedMoney::prices), field("price_version", &SavedMoney::price_version),
                      field("closed", &SavedMoney::closed), field("marks", &SavedMoney::marks),
                      field_if_set("reports", &SavedMoney::reports),
                      field_if_set("corrections", &SavedMoney::corrections),
                      field_if_set("grant_marks", &SavedMoney::grant_marks));
  }
};

// A maintenance window that is planned or has begun.
struct Maintenance : MaintenancePlanned {
  bool begun = false;
  static constexpr auto fields() {
    return joined_fields(MaintenancePlanned::fields(), field_list(field("begun", &Maintenance::begun)));
  }
};

// An idempotency key that was used: the job that it submitted, and a hash of the request.
struct KeyEntry {
  JobId job;
  std::uint64_t body_hash = 0;
  Timestamp time;
};

// The outcome of a finished job, remembered for the jobs that depend on it.
struct FinishedJob {
  Outcome outcome = Outcome::kSucceeded;
  std::int32_t code = 0;
};

inline constexpr std::size_t kFinishedRemembered = 100'000;        // number of outcomes kept for dependencies
inline constexpr std::int64_t kKeyRetentionMs = 7LL * 86'400'000;  // idempotency keys are honoured this long
inline constexpr std::int32_t kFirstMasterPort = 20'000;
inline constexpr std::int32_t kLastMasterPort = 29'999;

class State {
 public:
  State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  State(State&&) = default;
  State& operator=(State&&) = default;

  // Applies one event. Requires that its sequence number is the last one plus 1, and that no transaction is open.
  void apply(const EventRecord& record);

  Seq last_seq() const { return last_seq_; }
  Timestamp now() const { return now_; }  // time of the last event
  JobId next_job_id() const { return next_job_; }
  std::uint64_t config_version() const { return config_version_; }
  const ClusterConfig& config() const { return config_; }
  // The configuration as it was applied, without the changes of queues by command; config() has them.
  const ClusterConfig& file_config() const { return file_config_ ? *file_config_ : config_; }
  const QueueEdits& queue_edits() const { return edits_; }
  // Returns the end of the first lease of a change; never() if none is leased.
  Timestamp next_lease_end() const { return lease_ends_.empty() ? Timestamp::never() : lease_ends_.begin()->first; }
  // Leased changes by their end: their version and queue.
  const std::set<std::pair<Timestamp, std::pair<std::uint64_t, std::string>>>& lease_ends() const {
    return lease_ends_;
  }
  // Returns the changes of queues that another file with these renames would leave in force.
  QueueEdits edits_after(const ClusterConfig& file, const std::vector<QueueMove>& moves) const {
    return berth::edits_after(edits_, file_config(), file, moves);
  }

  const JobTable<JobState>& jobs() const { return jobs_; }
  const JobState* job(JobId id) const { return jobs_.find(id); }
  const std::vector<NodeState>& nodes() const { return nodes_; }
  const NodeState& node(NodeId id) const { return nodes_[id.index()]; }
  const NodeState* node_named(std::string_view name) const;
  // Return the node that is this machine, or that has this GPU, or null. Of several nodes that name the same one it is
  // the one that is not lost.
  const NodeState* node_of_machine(std::string_view machine) const;
  const NodeState* node_of_gpu(std::string_view uuid) const;
  std::size_t nodes_in(NodeStatus status) const { return nodes_by_status_[static_cast<std::size_t>(status)]; }
  const std::set<NodeId>& deferred_losses() const { return deferred_losses_; }
  // Lost nodes that are no more part of the fleet, and for which NodeRemoved is still to come.
  const std::set<NodeId>& removals() const { return removals_; }
  const NodeIndex& node_index() const { return node_index_; }
  const TopologyIndex& topology() const { return topology_; }
  const PresenceIndex& presences() const { return presences_; }
  const ReplicaPlaces& replica_places() const { return replica_places_; }
  // Returns the nodes on which only one trust domain may run together with `node`: the nodes of its pool in its
  // topology domain, itself included. Returns only `node` if it is in no domain of the pool's isolation level, and
  // nothing if its pool has no isolation.
  std::vector<NodeId> kept_apart_with(NodeId node) const;
  const ImageIndex& images() const { return images_; }
  const FragmentationIndex& fragmentation() const { return fragmentation_; }
  const EvictionRate& evictions() const { return evictions_; }       // recorded only if the cluster limits evictions
  const EvictionRate& moves() const { return moves_; }               // recorded only if consolidation is on
  bool fragmentation_alarm() const { return fragmentation_alarm_; }  // raised and not cleared
  const std::vector<QueueState>& queues() const { return queues_; }
  const QueueState& queue(QueueId id) const { return queues_[id.index()]; }
  const QueueState* queue_at(std::string_view path) const;
  bool ever_had_queue(std::string_view path) const { return queue_paths_.contains(path); }  // removed ones, too
  // The paths that queues had before they were renamed. What has finished, and its bills, stay under them.
  const std::map<std::string, QueueId, std::less<>>& former_paths() const { return former_paths_; }
  // Returns the path that the queue of this path has now; the path itself where it was not renamed.
  std::string_view present_path(std::string_view path) const;
  // Returns the quota path of the queue; queues with equal paths have an equal QueueState::quota_path.
  const QuotaPath& quota_path_of(QueueId id) const { return quota_paths_[queue(id).quota_path]; }
  QueueId root() const { return QueueId(0); }
  const std::vector<PoolState>& pools() const { return pools_; }
  const std::vector<GpuModelState>& gpu_models() const { return models_; }
  std::optional<GpuModelId> gpu_model_named(std::string_view name) const;
  const std::vector<std::string>& trust_domains() const { return trust_domains_; }
  const Amounts& capacity() const { return capacity_; }              // of nodes that are not lost
  const Amounts& burst_capacity() const { return burst_capacity_; }  // the part of it in burst pools
  bool has_burst_pools() const { return has_burst_pools_; }
  bool is_burst(NodeId id) const { return pools_[node(id).pool].burst; }
  // is_open_to() returns true if the configuration opens the pool to the queue. may_use() returns true if jobs of this
  // class may use it, too.
  bool is_open_to(QueueId queue, std::uint32_t pool) const;
  bool may_use(QueueId queue, JobClass job_class, std::uint32_t pool) const;

  // Tokens that are not revoked, by name.
  const std::map<std::string, Token, std::less<>>& tokens() const { return tokens_; }
  // Roles that were granted by command, and subjects whose access is ended.
  const std::map<RoleBinding, BindingOrigin>& granted() const { return granted_; }
  const std::map<std::string, BindingOrigin, std::less<>>& blocked() const { return blocked_; }
  // Logs that were read by break-glass, oldest first: the last kMostBrokenGlass, and of one job the last
  // kMostBrokenGlassOfJob. The jobs may have finished.
  static constexpr std::size_t kMostBrokenGlass = 1000;
  static constexpr std::size_t kMostBrokenGlassOfJob = 10;
  const std::vector<BrokenGlass>& broken_glass() const { return broken_glass_; }
  // Returns the roles of the configuration and those that were granted, of subjects that are not blocked.
  std::vector<RoleBinding> bindings() const;
  // The price book in force; version 0: none was applied yet.
  const PriceBook& prices() const { return prices_; }
  std::uint64_t price_version() const { return price_version_; }
  const std::map<std::string, ClosedMonth, std::less<>>& closed_months() const { return closed_months_; }
  // Reported quantities of months that are not closed, by their id.
  const std::map<std::string, QuantityReported, std::less<>>& quantity_reports() const { return quantity_reports_; }
  // Returns the correction that the user has made under this key, or null.
  const BillCorrected* correction_of(std::string_view user, std::string_view key) const;
  // Maintenance windows that are planned or have begun, by name.
  const std::map<std::string, Maintenance, std::less<>>& maintenance() const { return maintenance_; }
  // Returns when the next maintenance window begins or ends; never() if there is none.
  Timestamp next_maintenance() const {
    return maintenance_times_.empty() ? Timestamp::never() : maintenance_times_.begin()->first;
  }
  const std::set<std::pair<Timestamp, std::string>>& maintenance_times() const { return maintenance_times_; }
  // Running jobs by the time at which they must be asked to stop for a maintenance window on one of their nodes. Jobs
  // whose time limit ends before the window are not listed.
  const std::set<std::pair<Timestamp, JobId>>& departures() const { return departures_; }
  Timestamp departure_of(const JobState& job) const;  // of one job; may be in the past
  // Returns the grace period of the job in milliseconds: its own, else that of its queue's eviction terms.
  std::int64_t grace_ms(const JobState& job) const;
  // limits_evictions() returns the nearest queue, from this one up, that limits evictions per hour. next_limit()
  // returns the next one towards the root; none() after the last. The cluster's own limit is separate.
  QueueId limits_evictions(QueueId queue_id) const { return queue(queue_id).eviction.limited_by; }
  QueueId next_limit(QueueId limiting) const { return queue(queue(limiting).parent).eviction.limited_by; }
  // Returns the time at which a job would start in the cycle or explanation that is running: its `now`.
  Timestamp asked_at() const { return asked_at_; }
  // Returns the latest time at which a job could start. It is later than asked_at() only if victims must exit first.
  Timestamp asked_until() const { return std::max(asked_at_, asked_until_); }

  // Returns when the next guarantee decays or is restored (state/guarantee_decay.h) if no load changes.
  Timestamp next_guarantee_change() const {
    return guarantee_times_.empty() ? Timestamp::never() : guarantee_times_.begin()->first;
  }
  const std::set<std::pair<Timestamp, QueueId>>& guarantee_times() const { return guarantee_times_; }

  const KeyEntry* key_entry(std::string_view user, std::string_view key) const;
  const FinishedJob* finished(JobId id) const { return finished_.find(id); }
  const RunTimes& run_times() const { return run_times_; }  // of finished jobs; see state/estimate.h
  // Returns the first job on whose success `job` depends (afterok) and that ended without success. A job whose outcome
  // is forgotten counts as ended without success.
  std::optional<JobId> broken_dependency(const JobState& job) const;

  // Indexes that control and sched iterate over.
  const std::set<JobId>& running() const { return running_; }           // jobs with an attempt
  const RunningTable& running_table() const { return running_table_; }  // the same jobs as rows for searches
  const std::set<JobId>& elastic() const { return elastic_; }           // running elastic gangs
  const std::set<JobId>& nominated() const { return nominated_; }
  const std::set<JobId>& reservations() const { return reservations_; }  // jobs with a backfill reservation
  // Returns when the cycle last looked for more backfill reservations and found fewer than it may make; nothing if one
  // was dropped since.
  std::optional<Timestamp> starts_sought() const { return starts_sought_; }
  const std::set<JobId>& unreconciled() const { return unreconciled_; }  // changed since control last reconciled them
  const std::set<std::pair<Timestamp, JobId>>& timers() const { return timers_; }
  const std::set<QueueId>& roomier() const { return roomier_; }                   // queues whose guarantee gained room
  const std::map<JobId, std::set<JobId>>& children() const { return children_; }  // of live services and arrays
  // Replicas of updated services by the time at which they become reliable (state/replicas.h).
  const std::set<std::pair<Timestamp, JobId>>& probations() const { return probations_; }
  // Adds the jobs whose timer is due by `now` to unreconciled().
  void release_due_timers(Timestamp now);
  void clear_unreconciled() { unreconciled_.clear(); }
  void clear_roomier() { roomier_.clear(); }

  // Which equivalence classes of pending jobs the next cycle must evaluate (sched/requeue/requeue.h).
  const WaitIndex& waits() const { return waits_; }
  WaitIndex& waits() { return waits_; }

  // Marks the jobs whose deadline is near at `now` as urgent, and promotes those that have waited long enough
  // (state/attained_service.h). A cycle or explanation calls it first, so that its result depends on its own `now`
  // alone. It changes indexes that are no part of the digest.
  void pass_deadlines(Timestamp now);
  // Returns when the next pending job becomes urgent; never() if none will.
  Timestamp next_urgent() const { return deadlines_.empty() ? Timestamp::never() : deadlines_.begin()->first; }
  // Returns when the next pending job is promoted (state/attained_service.h); never() if none will be.
  Timestamp next_promotion() const { return promotions_.empty() ? Timestamp::never() : promotions_.begin()->first; }
  // Returns when a job with this spec becomes urgent: at its deadline minus its time limit (or stated estimate) minus
  // deadline_slack; never() without a deadline.
  Timestamp urgent_from(const JobSpec& spec) const;

  // Returns the minute in which the longest-pending job began to wait; never() if no job is pending.
  Timestamp waits_since() const {
    return waits_by_minute_.empty() ? Timestamp::never() : waits_by_minute_.begin()->first;
  }
  // Returns the first minute after `after` in which a job began to wait that is still pending; never() if there is
  // none.
  Timestamp next_waits_since(Timestamp after) const {
    const auto next = waits_by_minute_.upper_bound(after);
    return next == waits_by_minute_.end() ? Timestamp::never() : next->first;
  }

  // Returns a counter that rises whenever something is released or allowed that could let a pending job start.
  std::uint64_t opportunity() const { return opportunity_; }

  // Returns one task of the request as the fragmentation score sees it.
  fragmentation::Request request_of(const TaskRequest& request) const;

  // Returns the queues from the root to `queue`, both included; the index is the depth.
  std::vector<QueueId> path_to(QueueId queue) const;
  // Returns true if `queue` is `ancestor` or a queue below it.
  bool is_below(QueueId queue, QueueId ancestor) const;

  // Returns the decaying average of the queue's usage at `now`; zero if no half-life is configured.
  SharedAmounts past_usage(const QueueState& queue, Timestamp now) const;

  // Returns what the placements count against quota, by the GPU models of their nodes.
  Amounts amounts_of(const JobSpec& spec, std::span<const TaskPlacement> placements) const;
  // Returns the part of these amounts that is in burst pools; nothing if none is.
  std::optional<Amounts> burst_amounts_of(const JobSpec& spec, std::span<const TaskPlacement> placements) const;
  // Returns the queues on the path from `queue` to the root (bit = depth) whose guarantee has room for `amounts`. Usage
  // within the guarantee and room reserved for nominations count as occupied, except for `own`, the job's own
  // nomination.
  std::uint64_t within_mask(QueueId queue, const Amounts& amounts, const Nomination* own = nullptr) const;
  // Returns the mask with which the pending job would start: within_mask(), with one exception. A job that was moved
  // stays within each guarantee that it was within before, if usage leaves room there. Nominations of other jobs do not
  // come before it.
  std::uint64_t within_when_started(const JobState& job, const Amounts& amounts, const Nomination* own = nullptr) const;
  // Returns true if a charge with this mask is guaranteed: within at every queue on the path that states a guarantee.
  // At least one queue must state one.
  bool guaranteed(QueueId queue, std::uint64_t within) const;

  // Returns a hash over all that is state; indexes are left out.
  std::uint64_t digest() const;

  // save() returns a checkpoint of the state. load() restores it and rebuilds the indexes.
  std::string save() const;
  static Result<State> load(std::string_view bytes);

  // Recomputes every index and sum from the primary facts. Returns the name of the first that differs, or nothing (P10,
  // tests).
  std::optional<std::string> audit() const;

 private:
  friend class Transaction;

  void on(const ClusterConfigured& event);
  void on(const NodeRegistered& event);
  void on(const NodeStatusChanged& event);
  void on(const NodeCordoned& event);
  void on(const NodeRemoved& event);
  void on(const GpuHealthChanged& event);
  void on(const ForeignUseChanged& event);
  void on(const JobSubmitted& event);
  void on(const JobHoldChanged& event);
  void on(const JobPriorityChanged& event);
  void on(const JobCancelRequested& event);
  void on(const Nominated& event);
  void on(const NominationDropped& event);
  void on(const AttemptStarted& event);
  void on(const AttemptGrown& event);
  void on(const ChargePromoted& event);
  void on(const TaskStarted& event);
  void on(const TaskExited& event);
  void on(const StopBegan& event);
  void on(const StopCancelled& event);
  void on(const StopForced& event);
  void on(const CheckpointReported& event);
  void on(const AttemptEnded& event);
  void on(const JobRequeued& event);
  void on(const JobFinished& event);
  void on(const CycleRan& event);
  void on(const FragmentationAlarm& event);
  void on(const AttemptShrunk& event);
  void on(const ReservationMade& event);
  void on(const ReservationDropped& event);
  void on(const StartsSought& event);
  void on(const ServiceUpdated& event);
  void on(const GuaranteeChanged& event);
  void on(const MaintenancePlanned& event);
  void on(const MaintenanceBegan& event);
  void on(const MaintenanceEnded& event);
  void on(const MoveNominated& event);
  void on(const MoveOrdered&) {}
  void on(const NodeImagesChanged& event);
  void on(const ClockConfirmed&) {}
  void on(const LogRestored& event);
  void on(const NodeBlamed& event);
  void on(const TokenCreated& event);
  void on(const TokenRevoked& event);
  void on(const QueueChanged& event);
  void on(const QueueChangeEnded& event);
  void on(const RoleBound& event);
  void on(const SubjectBlocked& event);
  void on(const RulesSet& event);
  void on(const AccessDenied&) {}
  void on(const LogRead& event);
  void on(const SignedIn&) {}
  void on(const JobSignalled&) {}
  void on(const ShellOpened&) {}
  void on(const ShellEnded&) {}
  void on(const PricesApplied& event);
  void on(const MonthClosed& event);
  void on(const BillCorrected& event);
  void on(const QuantityReported& event);
  void on(const BudgetMarked& event);

  SavedMoney saved_money() const;
  bool load_money(SavedMoney money);  // false: it is of no state
  bool load_marks(BudgetKind kind, const std::vector<std::pair<QueueId, BudgetMark>>& marks);  // likewise
  template <class Writer>
  void write(Writer& out) const;  // everything that is state: used by save() and digest()

  JobState& existing(JobId id);
  NodeState& node_mut(NodeId id) { return nodes_[id.index()]; }
  QueueState& queue_mut(QueueId id) { return queues_[id.index()]; }

  // The choke points: every change of what is bound, nominated or charged goes through these functions.
  void bind_tasks(const JobState& job, std::span<const TaskPlacement> placements, int sign);
  void nominate_tasks(const JobState& job, std::span<const TaskPlacement> placements, int sign);
  // bind_task() and nominate_task() leave the update of the node index to the caller.
  void bind_task(const JobState& job, const TaskPlacement& placement, int sign);
  void nominate_task(const JobState& job, const TaskPlacement& placement, int sign);
  void count_tenant(NodeState& node, QueueId queue, int sign);
  void charge_queues(const JobState& job, const Charge& charge, std::uint32_t index, int sign);
  void nominate_queues(const JobState& job, const Amounts& amounts, std::uint64_t within, int sign);
  void count_user(QueueState& queue, const std::string& user, const UserUsage& more, int sign);
  void count_submitted(const JobState& job, int sign);
  void set_cordoned(NodeId node, bool cordoned);
  void forget_failures_on(NodeId node);
  // Marks a queue or node as freed, so that parked classes are evaluated again. A transaction marks nothing, because it
  // takes back what it releases.
  void mark_freed(QueueId queue) {
    if (transactions_ == 0) waits_.mark_freed(queue);
  }
  void mark_freed(NodeId node) {
    if (transactions_ == 0) waits_.mark_freed(node);
  }
  void note_usage(QueueId queue);  // called after a change of what is bound below it
  void count_demand(const JobState& job, int sign);
  void touch_load(QueueId queue);  // the load below it has changed, not tentatively
  void note_loads();               // updates the touched queues at the end of an event
  void note_load(QueueState& queue);
  void set_guarantee_due(QueueState& queue, Timestamp due);
  void forget_guarantee_use(QueueState& queue);
  void relist_waiting();  // their equivalence classes have changed
  void reset_departure(JobState& job);
  void release_attempt(JobState& job);
  void cut_charges(JobState& job, std::uint32_t keep);
  void activate_preemptors(const QueueState& leaf, std::int32_t priority);
  void drop_nomination(JobState& job);
  void has_more(QueueId leaf);
  void drop_reservation(JobState& job);

  std::uint64_t eq_class_of(const JobState& job) const;
  void list_pending(const JobState& job);
  void strike_pending(const JobState& job);
  void insert_pending(JobState& job);
  void enter_line(JobState& job);  // insert_pending, and its time in the line begins
  void remove_pending(JobState& job);
  void count_wait(const JobState& job, int sign);
  void list_running(JobState& job, int sign);
  void reset_timer(JobState& job);
  void count_open_dependencies(JobState& job);
  void notify_dependents(JobId id);
  void index_job(JobState& job);
  void remember_key(const std::string& user, const std::string& key, JobId job, std::uint64_t body_hash);
  void mark_service_unreconciled(const JobState& replica);
  void put_on_probation(const JobState& replica);
  void forget_old_keys();
  void learn_run_time(const JobState& job, Outcome outcome);
  void estimate_the_waiting();
  void learn_mix(const JobState& job);

  void move_queues(const std::vector<QueueMove>& moves);
  void configure(const ClusterConfig& config, const std::vector<QueueMove>& moves);
  void set_edits(QueueEdits edits, const ClusterConfig& file);
  SavedDelegation saved_delegation() const;
  bool load_delegation(SavedDelegation delegation);
  void configure_queues(const ClusterConfig& config);
  void configure_limits(QueueState& queue, const QueueConfig& config);
  void configure_eviction(QueueState& queue, const EvictionTermsConfig& terms);
  void configure_pools();
  void configure_quota_paths();
  GpuModelId model_id(const std::string& name);
  TrustDomainId trust_domain_id(const std::string& name);
  std::uint32_t pool_index(const std::string& name);
  void install_node(NodeState& node);
  static void count_foreign(NodeState& node);
  void enter_identity(const NodeState& node);
  void free_name(const NodeRegistered& event);
  void install_in_indexes(const NodeState& node);
  void refresh_in_indexes(NodeId node);
  void configure_topology();
  void recount_capacity();
  void count_capacity(const NodeState& node, int sign);
  void set_status(NodeState& node, NodeStatus status);
  void add_for_a_transaction(const NodeSpec& spec);
  void remove_after_a_transaction();  // removes the last node
  void count_again(const NodeState& node);
  void recount_charges();

  Seq last_seq_ = 0;
  Timestamp now_;
  JobId next_job_ = JobId(1);
  ClusterConfig config_;                      // in force
  std::optional<ClusterConfig> file_config_;  // as it was applied; set if changes by command are over it
  QueueEdits edits_;
  std::set<std::pair<Timestamp, std::pair<std::uint64_t, std::string>>> lease_ends_;
  std::map<RoleBinding, BindingOrigin> granted_;
  std::map<std::string, BindingOrigin, std::less<>> blocked_;
  std::vector<BrokenGlass> broken_glass_;
  std::uint64_t config_version_ = 0;

  JobTable<JobState> jobs_;
  std::vector<NodeState> nodes_;
  NodeIdentities identities_;
  std::array<std::size_t, 3> nodes_by_status_{};
  std::set<NodeId> deferred_losses_;
  std::set<NodeId> removals_;
  NodeIndex node_index_;
  TopologyIndex topology_;
  PresenceIndex presences_;
  ReplicaPlaces replica_places_;
  NominatedShares nominated_shares_;
  ImageIndex images_;
  FragmentationIndex fragmentation_;
  bool fragmentation_alarm_ = false;
  EvictionRate evictions_;  // kept only if their rate is limited
  EvictionRate moves_;      // kept only if their rate is limited
  std::vector<QueueState> queues_;
  std::vector<QuotaPath> quota_paths_;
  std::map<std::string, QueueId, std::less<>> queue_paths_;
  std::map<std::string, QueueId, std::less<>> former_paths_;
  std::vector<PoolState> pools_;
  std::vector<GpuModelState> models_;
  std::vector<std::string> trust_domains_;
  Amounts capacity_;
  Amounts burst_capacity_;
  bool has_burst_pools_ = false;

  std::map<std::string, KeyEntry, std::less<>> keys_;  // user '\n' key
  std::set<std::pair<Timestamp, std::string>> key_ages_;
  JobTable<FinishedJob> finished_;
  RunTimes run_times_;

  std::set<JobId> running_;
  RunningTable running_table_;
  std::set<JobId> elastic_;
  std::set<JobId> nominated_;
  std::set<JobId> reservations_;
  std::optional<Timestamp> starts_sought_;
  std::set<JobId> unreconciled_;
  std::map<JobId, std::set<JobId>> children_;
  std::set<std::pair<Timestamp, JobId>> timers_;
  std::set<std::pair<Timestamp, JobId>> probations_;
  std::map<JobId, std::set<JobId>> dependents_;
  std::set<QueueId> roomier_;
  std::set<std::pair<Timestamp, JobId>> promotions_;  // pending jobs by the time of their promotion
  std::set<std::pair<Timestamp, JobId>> deadlines_;   // pending jobs by the time at which they become urgent
  std::map<Timestamp, std::size_t> waits_by_minute_;  // how many pending jobs began to wait in that minute
  WaitIndex waits_;
  std::map<std::string, Token, std::less<>> tokens_;
  PriceBook prices_;
  std::uint64_t price_version_ = 0;
  std::map<std::string, ClosedMonth, std::less<>> closed_months_;
  std::map<std::string, QuantityReported, std::less<>> quantity_reports_;
  std::map<std::string, BillCorrected, std::less<>> corrections_;  // those with a key, by user '\n' key
  std::map<std::string, Maintenance, std::less<>> maintenance_;
  std::set<std::pair<Timestamp, std::string>> maintenance_times_;
  std::set<std::pair<Timestamp, JobId>> departures_;
  Timestamp asked_at_;
  Timestamp asked_until_;
  std::set<std::pair<Timestamp, QueueId>> guarantee_times_;
  std::set<QueueId> touched_loads_;  // queues whose load changed in this event
  std::uint32_t transactions_ = 0;   // number of open transactions
  std::uint64_t opportunity_ = 0;
};

}  // namespace berth::state
