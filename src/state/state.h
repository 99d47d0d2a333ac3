#pragma once
// State: the fold over all events, with its indexes kept current by `apply`.
//
// 1. `apply` accepts exactly the events that control emits; an impossible one is a CHECK, because it would mean that
// berth
//    contradicts itself. Damaged logs are caught before (hash chain, decoder), never here.
// 2. Equal event sequences give equal states, on every machine (P7, P10); `digest()` compares them.
// 3. Nothing here decides. What may follow from the state is computed by sched and control.
// 4. Trials (state/transaction.h) change nodes and queues tentatively and take everything back.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
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
#include "state/node_index.h"
#include "state/node_state.h"
#include "state/presence_index.h"
#include "state/queue_state.h"
#include "state/quota_path.h"
#include "state/replica_spread.h"
#include "state/run_times.h"
#include "state/running_table.h"
#include "state/share_promises.h"
#include "state/topology_index.h"
#include "state/wait_index.h"

namespace berth::state {

struct GpuModelState {
  std::string name;
  std::int64_t weight_permille = 1000;
  const MigGeometry* mig = nullptr;  // how its GPUs are cut; null: they are not
};

// Whether the request may go to GPUs of the model: one that asks a MIG profile to those that are cut into such, where
// it is the part of a GPU that the request counts; all others to those that are not cut. Each only to those it names,
// if it names any.
bool accepts(const TaskRequest& request, const GpuModelState& model);
// Whether the request names the model, or none.
bool may_be_of(const TaskRequest& request, const GpuModelState& model);

struct PoolState {
  std::string name;
  std::vector<QueueId> queues = {};    // subtrees that may use it; empty: all
  std::vector<JobClass> classes = {};  // of jobs that may use it; empty: all
  bool burst = false;
  // The topology level within whose domains it runs one trust domain; the number of levels for the node.
  std::optional<std::size_t> trust_domain_isolation = {};

  bool admits(JobClass job_class) const {
    return classes.empty() || std::find(classes.begin(), classes.end(), job_class) != classes.end();
  }
};

// A maintenance window that is not over.
struct Maintenance : MaintenancePlanned {
  bool begun = false;
  static constexpr auto fields() {
    return joined_fields(MaintenancePlanned::fields(), field_list(field("begun", &Maintenance::begun)));
  }
};

struct KeyEntry {
  JobId job;
  std::uint64_t body_hash = 0;
  Timestamp time;
};

struct FinishedJob {
  Outcome outcome = Outcome::kSucceeded;
  std::int32_t code = 0;
};

inline constexpr std::size_t kFinishedRemembered = 100'000;        // outcomes kept for dependencies
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

  // Folds one event. Sequence numbers follow each other without a gap.
  void apply(const EventRecord& record);

  Seq last_seq() const { return last_seq_; }
  Timestamp now() const { return now_; }  // time of the last event
  JobId next_job_id() const { return next_job_; }
  std::uint64_t config_version() const { return config_version_; }
  const ClusterConfig& config() const { return config_; }

  const JobTable<JobState>& jobs() const { return jobs_; }
  const JobState* job(JobId id) const { return jobs_.find(id); }
  const std::vector<NodeState>& nodes() const { return nodes_; }
  const NodeState& node(NodeId id) const { return nodes_[id.index()]; }
  const NodeState* node_named(std::string_view name) const;
  std::size_t nodes_in(NodeStatus status) const { return nodes_by_status_[static_cast<std::size_t>(status)]; }
  const std::set<NodeId>& deferred_losses() const { return deferred_losses_; }
  const NodeIndex& node_index() const { return node_index_; }
  const TopologyIndex& topology() const { return topology_; }
  const PresenceIndex& presences() const { return presences_; }
  const ReplicaPlaces& replica_places() const { return replica_places_; }
  // Where tasks of another trust domain may not run beside those of this node: all nodes of its pool that are in its
  // domain of the pool's level, or itself where it is in none; none where its pool keeps nobody apart.
  std::vector<NodeId> kept_apart_with(NodeId node) const;
  const ImageIndex& images() const { return images_; }
  const FragmentationIndex& fragmentation() const { return fragmentation_; }
  const EvictionRate& evictions() const { return evictions_; }       // where their rate is limited
  const EvictionRate& moves() const { return moves_; }               // where jobs may be moved
  bool fragmentation_alarm() const { return fragmentation_alarm_; }  // raised and not cleared since
  const std::vector<QueueState>& queues() const { return queues_; }
  const QueueState& queue(QueueId id) const { return queues_[id.index()]; }
  const QueueState* queue_at(std::string_view path) const;
  // What the queue sees on its way to the root; equal ones have equal `QueueState::standpoint`.
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
  // Whether the pool is for the queue; and whether jobs of the queue and class may use it.
  bool is_open_to(QueueId queue, std::uint32_t pool) const;
  bool may_use(QueueId queue, JobClass job_class, std::uint32_t pool) const;

  // Maintenance windows that are not over, by name.
  const std::map<std::string, Maintenance, std::less<>>& maintenance() const { return maintenance_; }
  // When the first of them begins or ends; never() if none will.
  Timestamp next_maintenance() const {
    return maintenance_times_.empty() ? Timestamp::never() : maintenance_times_.begin()->first;
  }
  const std::set<std::pair<Timestamp, std::string>>& maintenance_times() const { return maintenance_times_; }
  // When the job has to be asked to leave for a window of one of its nodes, by running jobs that are not gone before.
  const std::set<std::pair<Timestamp, JobId>>& departures() const { return departures_; }
  Timestamp departure_of(const JobState& job) const;  // of one; it may be past
  std::int64_t grace_ms(const JobState& job) const;
  // The nearest queue that limits how many gangs below it are stopped for others, and from that one the next towards
  // the root; none() after the last. The cluster's own limit is another.
  QueueId limits_evictions(QueueId queue_id) const { return queue(queue_id).eviction.limited_by; }
  QueueId next_limit(QueueId limiting) const { return queue(queue(limiting).parent).eviction.limited_by; }
  // The `now` of the cycle or explanation that looks at the state: what starts would start then (sched/closing.h).
  Timestamp asked_at() const { return asked_at_; }
  // The last moment at which it would start: later than that only where victims leave first.
  Timestamp asked_until() const { return std::max(asked_at_, asked_until_); }

  // When the guarantee of the first queue changes by the rule of use it or lose it, if nothing else does.
  Timestamp next_guarantee_change() const {
    return guarantee_times_.empty() ? Timestamp::never() : guarantee_times_.begin()->first;
  }
  const std::set<std::pair<Timestamp, QueueId>>& guarantee_times() const { return guarantee_times_; }

  const KeyEntry* key_entry(std::string_view user, std::string_view key) const;
  const FinishedJob* finished(JobId id) const { return finished_.find(id); }
  const RunTimes& run_times() const { return run_times_; }  // of jobs that finished; see state/estimate.h
  // The first job whose success this one waits for and which ended without, or whose outcome is forgotten.
  std::optional<JobId> broken_dependency(const JobState& job) const;

  // Indexes that control and sched walk.
  const std::set<JobId>& running() const { return running_; }           // jobs with an attempt
  const RunningTable& running_table() const { return running_table_; }  // the same, as searches look at them
  const std::set<JobId>& elastic() const { return elastic_; }           // those of them that may grow and shrink
  const std::set<JobId>& nominated() const { return nominated_; }
  const std::set<JobId>& reservations() const { return reservations_; }  // jobs that places are held for
  // When starts to hold were last looked for and fewer found than there are holds, since one became free.
  std::optional<Timestamp> starts_sought() const { return starts_sought_; }
  const std::set<JobId>& unreconciled() const { return unreconciled_; }  // touched since control last looked
  const std::set<std::pair<Timestamp, JobId>>& timers() const { return timers_; }
  const std::map<JobId, std::set<JobId>>& dependents() const { return dependents_; }
  const std::set<QueueId>& roomier() const { return roomier_; }                   // queues whose guarantee gained room
  const std::map<JobId, std::set<JobId>>& children() const { return children_; }  // of live services and arrays
  // When replicas of services may be relied on; see state/replicas.h.
  const std::set<std::pair<Timestamp, JobId>>& probations() const { return probations_; }
  // Moves jobs whose timer is due by `now` to the unsettled.
  void release_due_timers(Timestamp now);
  void clear_unreconciled() { unreconciled_.clear(); }
  void clear_roomier() { roomier_.clear(); }

  // Which waiting jobs are worth asking; the cycle keeps it (sched/requeue/requeue.h).
  const WaitIndex& waits() const { return waits_; }
  WaitIndex& waits() { return waits_; }

  // Jobs whose deadline is near at `now` are listed as urgent from here on, and those that have waited long enough in a
  // queue that orders by attained service as promoted. The cycle and explanations call it, so that
  // what they see depends on their `now` alone; it is an index and no part of the digest.
  void pass_deadlines(Timestamp now);
  // When the next waiting job becomes urgent; never() if none will.
  Timestamp next_urgent() const { return deadlines_.empty() ? Timestamp::never() : deadlines_.begin()->first; }
  // When the next waiting job is promoted (state/attained_service.h); never() if none will be.
  Timestamp next_promotion() const { return promotions_.empty() ? Timestamp::never() : promotions_.begin()->first; }
  // So long before its deadline that its time limit or estimate and the slack just fit; never() without a deadline.
  Timestamp urgent_from(const JobSpec& spec) const;

  // Nobody who waits has waited since before this, a whole minute; never() if nobody waits.
  Timestamp waits_since() const {
    return waits_by_minute_.empty() ? Timestamp::never() : waits_by_minute_.begin()->first;
  }
  // The first minute after this time in which somebody who waits began to; never() if there is none.
  Timestamp next_waits_since(Timestamp after) const {
    const auto next = waits_by_minute_.upper_bound(after);
    return next == waits_by_minute_.end() ? Timestamp::never() : next->first;
  }

  // Rises whenever something was given back or allowed that could let a waiting job start.
  std::uint64_t opportunity() const { return opportunity_; }

  // One task of it, as the score of placements sees it.
  fragmentation::Request request_of(const TaskRequest& request) const;

  // Queues from the root to `queue`, both included; index is depth.
  std::vector<QueueId> path_to(QueueId queue) const;
  bool is_below(QueueId queue, QueueId ancestor) const;

  // The decaying average of what the queue has used; nothing without a half-life.
  SharedAmounts past_usage(const QueueState& queue, Timestamp now) const;

  // What `placements` of a job count, by the GPU models they sit on.
  Amounts amounts_of(const JobSpec& spec, std::span<const TaskPlacement> placements) const;
  // The part of it that is in burst pools, if there is any.
  std::optional<Amounts> burst_amounts_of(const JobSpec& spec, std::span<const TaskPlacement> placements) const;
  // The ancestors (bit = depth) whose guarantee still has room for `amounts` below `queue`, beside what runs within it
  // and what is kept for promises, but for `own` of the same job.
  std::uint64_t within_mask(QueueId queue, const Amounts& amounts, const Nomination* own = nullptr) const;
  // The same of what the waiting job starts with. Who has left to start elsewhere stands as it did: what is promised to
  // others does not come before that, whoever of them starts first.
  std::uint64_t within_when_started(const JobState& job, const Amounts& amounts, const Nomination* own = nullptr) const;
  // Whether a charge with this mask is within at every ancestor that states a guarantee, there being at least one.
  bool guaranteed(QueueId queue, std::uint64_t within) const;

  // A hash over everything that is state (not indexes).
  std::uint64_t digest() const;

  // A checkpoint of the state and back. Indexes are rebuilt.
  std::string save() const;
  static Result<State> load(std::string_view bytes);

  // Recomputes every index and sum from the primary facts and names the first that differs, or nothing (P10, tests).
  std::optional<std::string> audit() const;

 private:
  friend class Transaction;

  void on(const ClusterConfigured& event);
  void on(const NodeRegistered& event);
  void on(const NodeStatusChanged& event);
  void on(const NodeCordoned& event);
  void on(const GpuHealthChanged& event);
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

  template <class Writer>
  void write(Writer& out) const;  // everything that is state: what save() saves and digest() hashes

  JobState& existing(JobId id);
  NodeState& node_mut(NodeId id) { return nodes_[id.index()]; }
  QueueState& queue_mut(QueueId id) { return queues_[id.index()]; }

  // The choke points: every change of what is bound goes through these.
  void bind_tasks(const JobState& job, std::span<const TaskPlacement> placements, int sign);
  void nominate_tasks(const JobState& job, std::span<const TaskPlacement> placements, int sign);
  void bind_task(const JobState& job, const TaskPlacement& placement, int sign);  // leaves the node index to the caller
  void nominate_task(const JobState& job, const TaskPlacement& placement, int sign);  // likewise
  void count_tenant(NodeState& node, QueueId queue, int sign);
  void charge_queues(const JobState& job, const Charge& charge, std::uint32_t index, int sign);
  void nominate_queues(const JobState& job, const Amounts& amounts, std::uint64_t within, int sign);
  void count_user(QueueState& queue, const std::string& user, const UserUsage& more, int sign);
  void count_submitted(const JobState& job, int sign);
  void set_cordoned(NodeId node, bool cordoned);
  // Something became freer, for good: what a trial gives back it takes again.
  void mark_freed(QueueId queue) {
    if (transactions_ == 0) waits_.mark_freed(queue);
  }
  void mark_freed(NodeId node) {
    if (transactions_ == 0) waits_.mark_freed(node);
  }
  void note_usage(QueueId queue);  // after a change of what is bound below it
  void count_demand(const JobState& job, int sign);
  void touch_load(QueueId queue);  // what is bound or waits below it has changed for good
  void note_loads();               // of those that were touched, when the event is over
  void note_load(QueueState& queue);
  void set_guarantee_due(QueueState& queue, Timestamp due);
  void forget_guarantee_use(QueueState& queue);
  void relist_waiting();  // their lanes have changed
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
  void enter_line(JobState& job);  // insert_pending, and its wait begins
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

  void configure_queues(const ClusterConfig& config);
  void configure_limits(QueueState& queue, const QueueConfig& config);
  void configure_eviction(QueueState& queue, const EvictionTermsConfig& terms);
  void configure_pools();
  void configure_quota_paths();
  GpuModelId model_id(const std::string& name);
  TrustDomainId trust_domain_id(const std::string& name);
  std::uint32_t pool_index(const std::string& name);
  void install_node(NodeState& node);
  void install_in_indexes(const NodeState& node);
  void refresh_in_indexes(NodeId node);
  void configure_topology();
  void recount_capacity();
  void count_capacity(const NodeState& node, int sign);
  void set_status(NodeState& node, NodeStatus status);
  void add_for_a_transaction(const NodeSpec& spec);
  void remove_after_a_transaction();  // the last node
  void count_again(const NodeState& node);
  void recount_charges();

  Seq last_seq_ = 0;
  Timestamp now_;
  JobId next_job_ = JobId(1);
  ClusterConfig config_;
  std::uint64_t config_version_ = 0;

  JobTable<JobState> jobs_;
  std::vector<NodeState> nodes_;
  std::map<std::string, NodeId, std::less<>> node_names_;
  std::array<std::size_t, 3> nodes_by_status_{};
  std::set<NodeId> deferred_losses_;
  NodeIndex node_index_;
  TopologyIndex topology_;
  PresenceIndex presences_;
  ReplicaPlaces replica_places_;
  NominatedShares nominated_shares_;
  ImageIndex images_;
  FragmentationIndex fragmentation_;
  bool fragmentation_alarm_ = false;
  EvictionRate evictions_;  // kept while their rate is limited
  EvictionRate moves_;      // likewise
  std::vector<QueueState> queues_;
  std::vector<QuotaPath> quota_paths_;
  std::map<std::string, QueueId, std::less<>> queue_paths_;
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
  std::set<std::pair<Timestamp, JobId>> promotions_;  // waiting jobs that are not promoted yet, by when they will be
  std::set<std::pair<Timestamp, JobId>> deadlines_;   // waiting jobs that are not urgent yet, by when they will be
  std::map<Timestamp, std::size_t> waits_by_minute_;  // so many that wait have waited since then
  WaitIndex waits_;
  std::map<std::string, Maintenance, std::less<>> maintenance_;
  std::set<std::pair<Timestamp, std::string>> maintenance_times_;
  std::set<std::pair<Timestamp, JobId>> departures_;
  Timestamp asked_at_;
  Timestamp asked_until_;
  std::set<std::pair<Timestamp, QueueId>> guarantee_times_;
  std::set<QueueId> touched_loads_;  // leaves
  std::uint32_t transactions_ = 0;   // that are under way
  std::uint64_t opportunity_ = 0;
};

}  // namespace berth::state
