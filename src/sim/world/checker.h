#pragma once
// An independent check of the invariants. It folds the durable events by itself, in its own structures, and shares no
// code with state, sched or control except the plain values of the model. What really runs it learns from the fake
// backend.
//
// After each event it checks what that event may not break, in time that does not depend on the size of the cluster: P1
// capacity and nominated places, P2 whole gangs, P3 guarantees and promotion, P4 max, P5 causes and proofs of
// evictions, P8 answers, P9 one life at a time, P11 trust domains, P12 the integral of usage, and the marks of budgets
// and grants. `check_from_scratch`
// recomputes all sums and compares them with the state, and its own accounts with the meter's (P12). It also looks for
// jobs that wait without a reason (P6, P3).

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "backend/fake/fake_backend.h"
#include "billing/meter.h"
#include "sim/world/world.h"

namespace berth::sim {

class Checker : public Witness {
 public:
  explicit Checker(const backend::FakeBackend& fleet) : fleet_(fleet) {}

  // Notes a submission that was sent. Its answer is compared with the earlier answers for the same key.
  void expect_submission(std::uint64_t ticket, const std::string& user, const std::string& key);

  void on_records(std::span<const EventRecord> records, const state::State& durable) override;
  void on_effect(const Effect& effect, const state::State& durable) override;
  void on_real_time(Timestamp real) override { real_ = real; }
  void on_answer(const Answer& answer) override;
  void on_iteration_end(const state::State& durable, Timestamp now, bool quiet) override;

  // Checks that each budget and grant of GPU-hours has the mark that it has passed. Requires: all marks of this instant
  // are told.
  void check_marks(Timestamp now);
  // Recomputes everything from nothing. `quiet`: the last iteration left nothing that could start at once.
  void check_from_scratch(const state::State& durable, const billing::Meter& meter, Timestamp now, bool quiet);
  std::uint64_t scratch_checks() const { return scratch_checks_; }
  // Returns how often each case was seen: jobs that waited, ran or ended in each way. A simulation that never sees a
  // case proves nothing about it.
  const std::map<std::string, std::uint64_t>& seen() const { return seen_; }

  const std::optional<std::string>& violation() const { return violation_; }

 private:
  // A budget or grant, and its last mark.
  struct BudgetView {
    std::optional<BudgetConfig> config;
    std::int32_t percent = 0;
    Timestamp until;  // the end of the period of that mark
    bool ended = false;
  };
  struct QueueView {
    std::string path;
    std::uint32_t parent = 0;
    std::uint32_t depth = 0;
    bool removed = false;
    bool strict = false;
    std::optional<AttainedServiceConfig> attained_service;
    QuotaAmounts guaranteed;
    QuotaAmounts configured;
    std::int64_t guarantee_decay_ms = 0;
    Timestamp guarantee_since;                   // when the guarantee was last configured or changed
    Timestamp busy_at;                           // when the queue last used more than half of the guarantee
    Timestamp short_since = Timestamp::never();  // since when it uses more than is left of a decayed guarantee
    EvictionTermsConfig eviction;                // inherited terms included, except the rate
    std::vector<Timestamp> evictions;            // evictions for preemptors, kept while the queue limits their rate
    Amounts max = Amounts::unlimited();
    Amounts lending = Amounts::unlimited();
    std::string domain;
    std::vector<std::uint32_t> children;
    Amounts usage;
    Amounts within;
    Amounts nominated, nominated_within;
    std::set<std::tuple<Seq, JobId, std::uint32_t>> borrowed;
    std::int64_t integral = 0;  // milli-GPU x ms of usage
    Timestamp integrated_to;
    std::int64_t billed = 0;                            // the same integral, added up by attempts
    std::array<BudgetView, 2> budgets;                  // by BudgetKind
    std::vector<std::pair<Timestamp, Int128>> history;  // the integral whenever the usage changed, if there are prices
  };
  struct GpuView {
    std::uint32_t model = 0;
    std::int32_t bound = 0;
    std::int32_t nominated = 0;
    std::int32_t sharers = 0;
    std::array<std::int32_t, 8> slices{};  // of a GPU with MIG: how many instances use each slice
    std::string domain;
    bool healthy = true;
    bool foreign = false;
  };
  struct NodeView {
    NodeSpec spec;
    NodeStatus status = NodeStatus::kReady;
    bool cordoned = false;
    bool draining = false;
    Timestamp gone_at;
    std::multiset<std::pair<Timestamp, Timestamp>> windows;  // maintenance windows that are not over
    std::int32_t maintained = 0;                             // how many of them have begun
    std::vector<Timestamp> losses;                           // losses of contact since it was last let in
    std::uint64_t lease = 0;
    std::int64_t cpu = 0;  // bound
    std::int64_t memory = 0;
    std::int64_t nominated_cpu = 0;
    std::int64_t nominated_memory = 0;
    std::map<std::string, std::int64_t> counted;            // of countables: bound
    std::map<std::string, std::int64_t> nominated_counted;  // and nominated
    ForeignUse foreign;
    std::int32_t exclusive = 0;  // bound tasks of exclusive jobs
    std::vector<GpuView> gpus;
  };
  struct ChargeView {
    Amounts amounts;
    std::uint64_t within = 0;
    bool guaranteed = false;
    bool burst = false;  // some of it is in a burst pool
    Seq order = 0;
    std::uint32_t first = 0;
    std::uint32_t tasks = 0;
    Timestamp since;  // when it was last added to the accounts
  };
  struct StopView {
    StopCause cause = StopCause::kUser;
    JobId preemptor;
    Timestamp began;
    Timestamp deadline;
    bool acknowledged = false;
    bool forced = false;
    std::uint32_t over_before = 0;
    std::uint32_t keep = 0;
    std::vector<TaskPlacement> to = {};  // consolidate, move: the places that are kept for the next attempt
  };
  struct NominationView {
    std::vector<TaskPlacement> placements;
    std::vector<JobId> victims;
    Amounts amounts;
    std::map<JobId, std::uint32_t> keeps;
    StopCause cause = StopCause::kReclaim;
    std::uint64_t within = ~std::uint64_t{0};  // bit d: room is kept in the guarantee at depth d
    bool has_moved() const { return is_move(cause) && victims.empty(); }
  };
  struct JobView {
    JobId id;
    JobSpec spec;
    std::uint32_t queue = 0;
    std::int32_t priority = 0;
    JobId parent;
    std::int32_t index = 0;  // index of a replica or element
    bool held = false;
    bool cancelled = false;
    Timestamp submitted;
    Timestamp not_before;
    std::int32_t failures = 0;
    std::uint32_t attempts = 0;
    bool running = false;
    Timestamp started;
    std::vector<TaskPlacement> placements;
    std::vector<bool> over;
    std::vector<bool> began;
    std::vector<std::uint32_t> incarnations;
    std::uint32_t shrinks = 0;
    std::uint32_t over_count = 0;
    bool failed = false;
    std::vector<ChargeView> charges;
    std::optional<StopView> stop;
    std::int64_t grace_used_ms = 0;  // grace used before the eviction was cancelled
    Timestamp cancel_eviction;
    std::optional<NominationView> nomination;
    std::vector<TaskPlacement> moved_to;  // the places for which it has left, in a move
    std::vector<NodeId> ordered_off;      // nodes that the attempt was ordered to leave
    std::uint32_t failed_attempt = 0;     // the last one that failed; 0: none
    std::set<NodeId> failed_on;           // its nodes, until one is blamed
    bool failure_counted = false;
    bool given_back = false;  // a try, because it blamed a node

    // Returns the places that are nominated, or kept, for the job.
    std::span<const TaskPlacement> promised() const {
      if (nomination) return nomination->placements;
      return stop ? std::span<const TaskPlacement>(stop->to) : std::span<const TaskPlacement>();
    }
    bool serves() const {
      return running && !stop && !cancelled && over_count == 0 &&
             std::find(began.begin(), began.end(), false) == began.end();
    }
    bool stopping() const { return stop && stop->keep == 0; }
    // Returns true if the gang scales down and this task is one that stops.
    bool gives_back(std::uint32_t task) const { return stop && stop->keep > 0 && task >= stop->keep; }
    std::set<std::size_t> held_nodes;  // indexes of the nodes of its backfill reservation
    Timestamp reserved_start;
    std::int64_t ran_ms = 0;            // run time of ended attempts
    bool evicted_last = false;          // its last attempt ended for a preemptor; moves do not count
    Timestamp runs_since;               // start of the current run; moves do not interrupt it
    std::optional<Timestamp> moved;     // when its last attempt ended for a move
    std::uint64_t stood = 0;            // the `within` mask of all its charges when its last attempt ended
    std::int64_t past_service = 0;      // as far as it is accounted for, in milli-GPU x ms
    std::int32_t own_ends = 0;          // failures in a row since its last long run, which counts as one
    std::int32_t lost_nominations = 0;  // nominations lost since it last started
    Timestamp lost_nominations_from;    // because of lost nominations it evicts no job before then
    Timestamp evicts_from;              // it may evict jobs from then on
  };
  struct WindowView {
    std::vector<NodeId> nodes;
    Timestamp from;
    Timestamp to;
    bool begun = false;
  };
  struct Submission {
    std::string user;
    std::string key;
  };
  // The checker's own accounts, by queue, user, GPU model (index + 1; 0 without a GPU) and whether borrowed.
  using BookKey = std::tuple<std::string, std::string, std::uint32_t, bool>;
  struct Book {
    std::int64_t gpu = 0;  // milli-GPU x ms, milli-CPU x ms, MiB x ms
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    bool operator==(const Book&) const = default;
  };
  // The GPUs of one model: how many milli-GPUs there are, how many are down or used by others, and the integrals.
  struct FleetBook {
    std::int64_t there = 0;
    std::int64_t down = 0;
    std::int64_t foreign = 0;
    std::int64_t there_ms = 0;
    std::int64_t down_ms = 0;
    std::int64_t foreign_ms = 0;
  };
  // Resources that a preemptor could reclaim from borrowers.
  struct Removable {
    struct Node {
      std::int64_t cpu = 0;
      std::int64_t memory = 0;
      std::map<std::string, std::int64_t> counted;
      std::vector<std::int32_t> gpus;
    };
    std::vector<Node> nodes;
    std::int64_t jobs = 0;
    std::map<std::uint32_t, std::int64_t> below;  // number of these jobs by queue; jobs that only scale down count, too
  };

  void on(const ClusterConfigured& event);
  void configure(const ClusterConfig& config, const std::vector<QueueMove>& moves);
  void change(const std::string& queue, const std::vector<LimitChange>& limits, std::uint64_t version);
  void follow_moves(const std::vector<QueueMove>& moves);
  void on(const NodeRegistered& event);
  void on(const NodeStatusChanged& event);
  void on(const NodeCordoned& event);
  void on(const NodeRemoved& event);
  void on(const GpuHealthChanged& event);
  void on(const ForeignUseChanged& event);
  static void mark_foreign(NodeView& node, const ForeignUse& use);
  static void count_countables(std::map<std::string, std::int64_t>& sums, const TaskPlacement& placement, int sign);
  void check_countables(const NodeView& node, const TaskPlacement& placement, const std::string& where);
  // The unused part of a GPU is down, foreign, or idle.
  std::int64_t* account_of_unused(const NodeView& node, const GpuView& gpu);
  void on(const NodeImagesChanged& event);
  void on(const ClockConfirmed& event);
  void on(const LogRestored& event);
  void on(const NodeBlamed& event);
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
  void on(const CycleRan&) { last_cycle_ = seq_; }
  void on(const FragmentationAlarm& event) {
    require(event.raised != fragmentation_alarm_, "alarm", "a fragmentation alarm that changes nothing");
    require(event.unusable_milli <= event.idle_milli, "alarm", "more GPUs of no use than idle ones");
    fragmentation_alarm_ = event.raised;
  }
  void on(const AttemptShrunk& event);
  void on(const ReservationMade& event);
  void on(const ReservationDropped& event);
  void on(const MoveNominated& event);
  void on(const MoveOrdered& event);
  void on(const TokenCreated&) {}
  void on(const TokenRevoked&) {}
  void on(const PricesApplied&) { has_prices_ = true; }
  void on(const MonthClosed&) {}
  void on(const BillCorrected&) {}
  void on(const QuantityReported&) {}
  void on(const BudgetMarked& event);
  void on(const QueueChanged& event);
  void on(const QueueChangeEnded& event);
  void on(const RoleBound&) {}
  void on(const SubjectBlocked&) {}
  void on(const RulesSet&) {}
  void on(const AccessDenied&) {}
  void on(const LogRead&) {}
  void on(const SignedIn&) {}
  void on(const JobSignalled&) {}
  void on(const ShellOpened&) {}
  void on(const ShellEnded&) {}
  void on(const StartsSought&) { count("starts sought"); }
  void on(const ServiceUpdated& event);
  void on(const GuaranteeChanged& event);
  void on(const MaintenancePlanned& event);
  void on(const MaintenanceBegan& event);
  void on(const MaintenanceEnded& event);

  static void set_budget(BudgetView& view, const std::optional<BudgetConfig>& config);
  Int128 integral_at(const QueueView& queue, Timestamp time) const;
  void keep_history(QueueView& queue);
  static std::optional<std::pair<Timestamp, Timestamp>> period_of(const BudgetConfig& config, Timestamp now);
  std::int64_t used_in(const QueueView& queue, std::pair<Timestamp, Timestamp> period, Timestamp now) const;
  static bool budget_stops(const QueueView& queue, BudgetAction what);
  bool might_borrow(const JobView& job, const Amounts& asked) const;
  void check_budgets_allow(const JobView& job, bool guaranteed);
  void check_borrows_nothing();

  JobView* live(JobId id, const char* what);
  JobView* live_attempt(JobId id, std::uint32_t attempt, const char* what);
  std::uint32_t model_index(const std::string& name);
  void set_limits(QueueView& queue, const QueueConfig& config);
  QuotaAmounts guarantee_of(const ResourceAmounts& named);
  static bool is_busy(const QueueView& queue);
  void note_shortness(QueueView& queue);
  void check_restored(Timestamp now);
  const PoolConfig* pool_of(NodeId node) const;
  bool in_burst(const std::vector<TaskPlacement>& placements) const;
  bool closed_to(const JobView& job, const NodeView& node) const;
  std::int64_t grace_ms(const JobView& job) const;
  std::int64_t limit_and_grace_ms(const JobView& job) const;
  void check_move(const JobView& job, const StopBegan& event);
  void check_order(const JobView& job, const StopBegan& event);
  void check_moves_to(JobView& job, const std::vector<TaskPlacement>& to);
  void drop_move(JobView& job);
  static std::int64_t gpu_milli_of(std::span<const TaskPlacement> placements);
  bool is_replica(const JobView& job) const;
  bool departs(const JobView& job) const;
  void check_windows(Timestamp now);
  void check_time(Timestamp time);
  void check_gpu_owners(std::size_t node);
  void check_departures();
  void install(NodeView& node);
  void recount();
  void bind(const JobView& job, const TaskPlacement& placement, int sign);
  void promise(const TaskPlacement& placement, int sign);
  void charge(const JobView& job, const ChargeView& charge, std::uint32_t index, int sign);
  void book(JobView& job, ChargeView& charge);
  void count_fleet(const NodeView& node, int sign);
  void pass_time(Timestamp now);
  void drop_nomination(JobView& job);
  const MigGeometry* geometry_of(std::uint32_t model) const;
  void check_instance(const JobView& job, const TaskPlacement& placement, const GpuView& gpu);
  void promise_of_queues(const JobView& job, int sign);
  void check_kept_room(const JobView& job);
  void drop_reservation(JobView& job);
  void integrate(QueueView& queue);
  Amounts amounts_of(const std::vector<TaskPlacement>& placements) const;
  std::uint64_t within_of(const JobView& job, const ChargeView& charge, std::uint64_t stood = 0) const;
  bool guaranteed(std::uint32_t queue, std::uint64_t within) const;
  static bool is_of(const QuotaAmounts& floor, const Amounts& asked);
  bool fits_guarantee(const QueueView& queue, const Amounts& used, const Amounts& asked) const;
  std::pair<std::uint32_t, std::uint32_t> siblings(std::uint32_t a, std::uint32_t b) const;
  bool nominated_elsewhere(JobId victim, JobId preemptor) const;
  bool has_no_more(std::uint32_t one, std::uint32_t other) const;
  Amounts others_within(std::uint32_t queue, const JobView& preemptor, std::optional<std::uint32_t> child) const;
  bool within_guarantee(std::uint32_t side, const JobView& preemptor) const;
  void check_demotion(const JobView& job, const ChargeView& one, std::uint64_t within);

  void check_counts(const JobView& job, const std::vector<TaskPlacement>& placements);
  void check_topology(const JobView& job, const std::vector<TaskPlacement>& placements);
  void check_numa(const JobView& job, const TaskPlacement& placement);
  void check_groups(const JobView& job, const std::vector<TaskPlacement>& placements);
  void check_affinity_rules(const JobView& job, std::span<const TaskPlacement> placements);
  bool near(NodeId a, NodeId b, const std::string& level) const;
  bool in_a_domain(NodeId node, const std::string& level) const;
  std::string apart_in(const std::string& pool) const;
  bool apart_from_others(const JobView& job, NodeId node) const;
  bool ports_free(const JobView& job, NodeId node, std::span<const TaskPlacement> own) const;
  std::vector<NodeId> meant_by(const AffinityTerm& term, const JobView& job) const;
  bool may_stand(const JobView& job, NodeId node, std::span<const TaskPlacement> own) const;
  bool stands_by_itself(const JobView& job) const;
  bool is_open(const JobView& job, std::size_t node) const;
  std::vector<std::string> domain_of(const NodeSpec& node, const std::string& level) const;
  bool nominated_to_others(const JobView& job, NodeId node, std::uint8_t gpu) const;
  std::int64_t leaving_milli(NodeId node, std::uint8_t gpu) const;
  void check_place(const JobView& job, const TaskPlacement& placement, bool promised);
  void check_max(const JobView& job, const Amounts& amounts);
  void check_no_life(JobId job, const char* when);
  void check_eviction(const JobView& victim, const StopBegan& event);
  std::int64_t minimum_ms(const JobView& victim) const;
  std::int64_t evictions_left() const;
  std::int64_t evictions_left_below(std::uint32_t queue) const;
  void check_rates(const JobView& victim);
  void check_replacement(const JobView& replica);
  std::int32_t away_of(const JobView& service) const;
  bool many_are_silent() const;
  void set_status(std::size_t node, NodeStatus status);
  void check_disruption(const JobView& replica);
  void check_shrink(const JobView& victim, const StopBegan& event);
  static std::uint32_t borrowed_from(const JobView& job, std::uint32_t depth);
  std::int64_t service_of(const JobView& job) const;
  bool outserved(const JobView& victim, const JobView& preemptor) const;
  void check_promotions(const QueueView& queue);
  void check_deadlines(Timestamp now);
  void check_sums(const state::State& durable);
  void check_integrals();
  void check_meter(const billing::Meter& meter);
  void check_meter_rows(const billing::Usage& usage);
  void check_meter_fleet(const billing::Usage& usage);
  void check_fleet();
  void check_gpu_health(const state::State& durable);
  void check_waiting(Timestamp now);
  bool dependencies_met(const JobView& job) const;
  bool may_use_pool(const JobView& job, const std::string& pool) const;
  bool gives_gpus_as(const TaskPlacement& placement, const std::string& pool, bool share) const;
  static bool is_allowed(const TaskGroup& group, const NodeSpec& node);
  Removable nothing_removable() const;
  Removable removable_for(const JobView& job, Timestamp now) const;
  Amounts least_amounts(const JobView& job, std::uint32_t model) const;
  std::size_t fewest_domains(const NodeView& node, std::uint32_t model, std::size_t gpus) const;
  std::int64_t gpu_slots(const JobView& job, const NodeView& node, std::uint32_t model,
                         const Removable::Node& away) const;
  std::int64_t slots(const JobView& job, const NodeView& node, std::uint32_t model, const Removable::Node& away) const;
  // `held`: indexes of nodes that are left out.
  bool fits(const JobView& job, const Removable& removable, const std::set<std::size_t>& held = {}) const;
  std::set<std::size_t> held_from(const JobView& job, Timestamp now) const;
  bool answerable(const JobView& job, Timestamp now) const;
  bool over_quota(const JobView& job, const Amounts& asked) const;
  void check_claim(const JobView& job, Timestamp now);
  void note_own_end(JobView& job);

  void require(bool holds, const char* promise, const std::string& what) {
    if (!holds) breach(promise, what);
  }
  void breach(const char* promise, const std::string& what);
  void count(const std::string& what) { ++seen_[what]; }
  static std::string text_of(JobId job) { return "job " + std::to_string(job.value()); }
  static bool is_down(const NodeView& node, const GpuView& gpu) {
    return node.status != NodeStatus::kReady || !gpu.healthy;
  }

  const backend::FakeBackend& fleet_;
  ClusterConfig config_;
  std::uint64_t config_version_ = 0;
  std::vector<std::string> models_;
  std::vector<std::int64_t> weights_;
  std::vector<QueueView> queues_;
  std::map<std::string, std::uint32_t, std::less<>> queue_of_;
  std::vector<NodeView> nodes_;
  std::map<std::string, WindowView> windows_;
  std::map<JobId, JobView> jobs_;
  std::set<JobId> with_rules_;  // live jobs with ports or anti-affinity, which may keep other jobs away
  std::set<JobId> holders_;     // live jobs with a backfill reservation
  std::map<JobId, Outcome> finished_;
  JobId last_job_;
  Timestamp now_;
  Timestamp real_;                                        // the time that has really passed
  std::optional<std::pair<Timestamp, Timestamp>> began_;  // the time and the real time of the first event
  std::int64_t confirmed_ms_ = 0;                         // what operators have said that the clock is behind
  std::map<std::string, std::size_t> gpu_owners_;         // the node that registered a GPU last, by uuid
  std::vector<Timestamp> evictions_;                      // evictions for preemptors, kept while their rate is limited
  std::vector<Timestamp> moves_;
  Seq seq_ = 0;
  bool fragmentation_alarm_ = false;
  bool has_prices_ = false;
  Seq last_cycle_ = 0;  // the last cycle that decided something
  std::int64_t bound_milli_ = 0;
  std::int64_t total_integral_ = 0;
  Timestamp total_to_;
  std::map<BookKey, Book> books_;
  std::vector<FleetBook> fleet_books_;  // by model

  std::set<std::pair<Timestamp, JobId>> deadlines_;  // deadlines of stops that are not forced, and of time limits
  std::set<JobId> complete_;                         // jobs whose tasks are all over, but whose attempt has not ended
  bool less_is_kept_ = false;  // a reservation or a nomination ended since the last search for startable jobs
  std::set<JobId> failing_;    // jobs with a failed task whose other tasks are not stopped yet
  std::set<JobId> shrinking_;  // gangs that scale down
  std::set<JobId> on_notice_;  // victims whose eviction could still be cancelled
  std::set<JobId> cancelling_;
  std::set<std::pair<JobId, std::size_t>> may_not_borrow_;  // charges that have to be within when the iteration ends
  std::set<std::uint32_t> roomier_;
  std::set<std::uint32_t> contended_;  // queues where room was taken from one charge for another
  std::set<std::size_t> flapping_;     // nodes that are back and have to be cordoned
  std::map<std::size_t, std::set<std::string>>
      accusers_;  // users whose jobs have blamed a node, since it was uncordoned

  std::map<std::uint64_t, Submission> expected_;
  std::map<std::pair<std::string, std::string>, JobId> answered_;
  std::uint64_t scratch_checks_ = 0;
  std::map<std::string, std::uint64_t> seen_;
  std::optional<std::string> violation_;
};

}  // namespace berth::sim
