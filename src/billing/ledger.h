#pragma once
// The ledger: the accounts of money, as a fold over the events of the log. At each instant every thousandth of every
// GPU lies in exactly one account of its model (P12):
//
//   failed      unused, and the GPU is unhealthy or its node is unknown or lost
//   foreign     unused, and others than berth use it (ForeignUse)
//   drained     unused, and its node is cordoned
//   floor used  used by a job that is within (AttemptStarted::guaranteed)
//   floor lent  used by another job, on GPUs that back the floor of a queue
//   burst       used by another job, on other GPUs
//   floor idle  unused, and backs the floor of a queue
//   unowned     unused, and backs no floor
//
// The floor of a queue is its guarantee in GPUs less those of its children. Which part of it is not used, which GPUs
// back it, and who borrows from whom follow from the amounts alone, in five steps at each instant (docs/billing.md):
//
//  1. Unused floor of a queue and model: the floor stated for the model less what its jobs within use; of a floor that
//     names no model, what is left over of it.
//  2. The pool of a model: what is idle (not failed, foreign or drained) and what is borrowed, without burst pools. It
//     backs unused floors of that model first, in proportion if it is smaller. What is left backs the floors without a
//     model, model by model in the order of their names, in proportion.
//  3. Own jobs first. Leaf by leaf in the order of their paths, borrowed use lies on the backed unused floor of the
//     leaf, then of its parent, and so on up.
//  4. Other borrowed use lies on GPUs that back no floor as long as there are any (burst), shared in proportion; the
//     rest is lent by the remaining backed floors, in proportion.
//  5. Lenders and borrowers are paired in the order of their paths.
//
// "In proportion" is by running sums in the order of the paths: the first n of N get floor(total * sum of n / sum of
// N). Amounts are thousandths of GPUs, so no GPU-millisecond is lost or counted twice.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "billing/billed_job.h"
#include "billing/invoice.h"
#include "model/event.h"
#include "model/price_book.h"

namespace berth::billing {

// The time of the log that is counted, and the instants at which it is split (prices change, an off-peak window begins
// or ends). What lies between two cuts belongs to a part; several such times may belong to the same. Requires: the cuts
// are ascending and inside.
struct Window {
  Timestamp from;
  Timestamp to;
  std::vector<Timestamp> cuts = {};
  std::vector<std::uint32_t> parts = {};  // of the time after so many cuts; empty: the number of cuts before it
  bool operator==(const Window&) const = default;
  std::uint32_t part_after(std::size_t passed) const {
    return parts.empty() ? static_cast<std::uint32_t>(passed) : parts[passed];
  }
};

// What a job used in one part.
struct JobUse {
  JobId job = {};
  std::uint32_t part = 0;
  std::uint16_t model = 0;  // index into Ledger::names(); 0: cores and memory of its tasks
  std::uint16_t slice = 0;  // MIG profile, likewise; 0: whole GPUs
  bool guaranteed = false;
  std::int64_t gpu_milli_ms = 0;
  std::int64_t units_milli_ms = 0;  // whole GPUs, or MIG instances
  std::int64_t cpu_milli_ms = 0;
  std::int64_t memory_mib_ms = 0;
};

// What became of the floor of a queue in one part; the use by jobs within is in JobUse.
struct FloorUse {
  std::string queue;
  std::uint32_t part = 0;
  std::string model;
  std::string borrower;  // empty: idle
  bool own = false;      // the borrower is the queue or below it
  std::int64_t gpu_milli_ms = 0;
};

// A stretch of time in which what a line counts was used evenly.
struct Stretch {
  Timestamp from;
  Timestamp to;
  JobUse rate;    // per millisecond; of floors gpu_milli_ms alone
  Seq began = 0;  // the event; 0: the month, its prices or a window began, or what is counted did
  Seq ended = 0;  // the event; 0: they ended, or it goes on
};

// What is followed through the log, stretch by stretch: one kind of use of a job, or a part of a floor.
struct Followed {
  JobId job = JobId::none();
  std::string model = {};  // of the job's use
  std::string slice = {};
  bool guaranteed = false;
  std::uint32_t lender = 0;  // of the floor, by Ledger::queue()
  std::uint32_t borrower = 0;
  bool idle = false;
  bool own = false;
};

struct Correction : BillCorrected {
  Seq seq = 0;
  Timestamp time;
};

struct Report : QuantityReported {
  Seq seq = 0;
};

class Ledger {
 public:
  explicit Ledger(Window window);
  Ledger(Ledger&&) = default;
  Ledger& operator=(Ledger&&) = default;
  Ledger(const Ledger&) = delete;  // resumed() makes another one
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger() = default;

  // Requires: the events are those of the log from its first one on, in their order.
  void apply(const EventRecord& record);
  // Takes a quantity that was reported after the window for a time within it. Others are ignored.
  void add_report(const QuantityReported& report, Seq seq);
  // Counts until `now`, or the end of the window. Requires: no event of an earlier time follows.
  void advance(Timestamp now);
  // Lets what is read below be as of `until`, if nothing changes between the last event and then. Events that follow
  // are counted as if it had not been called.
  void look_ahead(Timestamp until);

  const Window& window() const { return window_; }
  Timestamp counted_until() const;
  // The first and the last event within the window; 0: none.
  Seq first_seq() const { return first_seq_; }
  Seq last_seq() const { return last_seq_; }
  Timestamp began() const { return began_; }  // of the first event of all; never: there is none
  bool simulated() const { return simulated_; }

  std::vector<JobUse> jobs() const;  // by job and part; of running jobs until counted_until()
  std::vector<JobUse> uses_of(JobId id) const;
  std::vector<JobUse> uses_in(const std::string& queue) const;  // of the jobs of this very queue
  std::vector<FloorUse> floors() const;                         // by queue, part, model and borrower
  std::vector<FleetAccounts> fleet() const;
  const BilledJob& job(JobId id) const { return jobs_.at(id).facts; }
  bool knows(JobId id) const { return jobs_.contains(id); }
  // The events that say what the job used and which of it lay within guarantees, in their order.
  std::vector<Seq> events_of(JobId id) const;
  // The registrations of the node. A ledger that applies these, of all nodes of a job, and the events of the job
  // counts the same use of it.
  std::vector<Seq> registrations_of(NodeId id) const { return nodes_.at(id.index()).registrations; }
  // The number by which a ledger that applies the same events knows the queue.
  std::optional<std::uint32_t> queue(const std::string& path) const;

  // Returns a ledger that goes on from here and has counted nothing so far. It keeps no finished jobs.
  Ledger resumed() const;
  // From now on keeps the stretches of that. Requires: it is called once.
  void follow(Followed what) { following_.emplace(Following{std::move(what), {}, 0}); }
  // Returns the stretches that are over, in their order; neighbours differ in their rates.
  const std::vector<Stretch>& stretches() const { return following_->stretches; }
  // Ends the stretch of the present instant. Requires: nothing is applied any more.
  void end_stretch();
  const std::string& name(std::uint16_t index) const { return names_[index]; }
  const std::vector<Correction>& corrections() const { return corrections_; }  // made within the window
  const std::vector<Report>& reports() const { return reports_; }              // whose time lies within the window
  // The price books that were applied until the end of the window and after it, by version.
  const std::map<std::uint64_t, PriceBook>& books() const { return books_; }
  const std::string& cluster() const { return cluster_; }

  // Checks that the accounts of each model add up to its capacity, now and in sum (P12). Returns what differs.
  std::optional<std::string> check() const;

 private:
  struct Gpu {
    std::uint16_t model = 0;
    bool healthy = true;
    bool foreign = false;
    std::int32_t capacity = 0;  // 1000, or 0 once it is gone from its node
    std::int32_t used = 0;
  };
  struct Node {
    std::string pool;
    std::vector<Gpu> gpus;
    NodeStatus status = NodeStatus::kReady;
    bool cordoned = false;
    bool burst = false;
    std::vector<Seq> registrations;
  };
  struct Charge {
    bool guaranteed = false;
    std::vector<TaskPlacement> placements;
  };
  struct Job {
    BilledJob facts;
    std::uint32_t queue = 0;
    std::vector<std::uint16_t> slices;  // of each group: its MIG profile
    std::vector<Charge> charges;
    std::vector<JobUse> rates;  // amounts per millisecond, by model, slice and guaranteed
    std::vector<JobUse> uses;   // of the present part
    Timestamp since;
    bool used = false;  // within the window
    bool finished = false;
    std::vector<Seq> events;
  };
  // Rates are in thousandths of GPUs.
  struct PerModel {
    std::int64_t within = 0;
    std::int64_t borrowed = 0;           // outside burst pools
    std::int64_t borrowed_in_burst = 0;  // in burst pools
  };
  struct Queue {
    std::string path;
    std::optional<std::uint32_t> parent;
    ResourceAmounts configured;
    std::int64_t decay_s = 0;
    ResourceAmounts guaranteed;           // in force; less than configured after guarantee decay
    std::vector<std::int64_t> own_floor;  // by model
    std::int64_t own_any = 0;             // of the floor that names no model
    std::vector<PerModel> use;            // by model
  };
  struct Model {
    std::int64_t idle = 0;
    std::int64_t idle_in_burst = 0;
    std::int64_t drained = 0;
    std::int64_t failed = 0;
    std::int64_t foreign = 0;
    std::int64_t capacity = 0;
    std::int64_t within = 0;
    FleetAccounts now;  // rates
    FleetAccounts sum;
  };
  // A part of a floor: lender, borrower (or the lender itself where it is idle), model.
  struct Share {
    std::uint32_t lender = 0;
    std::uint32_t borrower = 0;
    std::uint16_t model = 0;
    bool idle = false;
    bool own = false;
    auto operator<=>(const Share&) const = default;
  };
  // A share of the present instant, and since when it has been the same.
  struct HeldShare {
    Share share;
    std::int64_t rate = 0;
    Timestamp since;
  };

  struct Following {
    Followed what;
    std::vector<Stretch> stretches;
    Seq began = 0;
  };

  template <class T>
  void on(const T&) {}
  void on(const ClusterConfigured& event);
  void move_queues(const std::vector<QueueMove>& moves);
  void on(const GuaranteeChanged& event);
  void on(const QueueChanged& event) { change_guarantee(event.queue, event.limits); }
  void on(const QueueChangeEnded& event) { change_guarantee(event.queue, event.limits); }
  void change_guarantee(const std::string& queue, const std::vector<LimitChange>& limits);
  void on(const NodeRegistered& event);
  void on(const NodeStatusChanged& event);
  void on(const NodeCordoned& event);
  void on(const NodeRemoved& event);
  void on(const GpuHealthChanged& event);
  void on(const ForeignUseChanged& event);
  static void mark_foreign(Node& node, const ForeignUse& use);
  void on(const JobSubmitted& event);
  void on(const AttemptStarted& event);
  void on(const AttemptGrown& event);
  void on(const ChargePromoted& event);
  void on(const AttemptShrunk& event);
  void on(const AttemptEnded& event);
  void on(const JobFinished& event);
  void on(const QuantityReported& event) { add_report(event, seq_); }
  void on(const PricesApplied& event) { books_.emplace(event.version, event.book); }

  std::uint16_t name_index(const std::string& name);
  std::uint32_t queue_index(const std::string& path);
  Model& model(std::uint16_t index);
  PerModel& use_of(std::uint32_t queue, std::uint16_t model);
  void configure_floors();
  void set_floor(Queue& queue, const std::vector<std::uint32_t>& children);

  bool counts() const { return now_ >= window_.from && !over(); }
  bool over() const { return now_ >= window_.to; }
  Timestamp next_edge() const;
  template <class Wanted>
  std::vector<JobUse> uses(Wanted&& wanted) const;
  std::int64_t ahead() const;  // milliseconds
  template <class Visit>
  void each_part_ahead(Timestamp since, Visit&& visit) const;
  void flow(std::int64_t ms);
  Seq cause() const { return at_edge_ ? 0 : seq_; }
  bool follows(const Share& share) const;
  void follow_job(JobId id, const Job& job, Timestamp from, Timestamp to);
  void add_stretch(Timestamp from, Timestamp to, const JobUse& rate);
  void settle_share(const HeldShare& held);
  void settle_shares();
  void replace_shares();
  void settle(JobId id, Job& job);
  void settle_all();
  void count_charge(JobId id, Job& job, const Charge& charge, int sign);
  void count_task(Job& job, bool guaranteed, const TaskPlacement& task, int sign);
  void count_gpu(const Node& node, const Gpu& gpu, int sign);
  template <class Change>
  void change_node(NodeId id, Change&& change);

  void share_out();
  void back_floors(std::vector<std::vector<std::int64_t>>& backed) const;
  void share_model(std::uint16_t index, const std::vector<std::int64_t>& backed, Model& model);

  Window window_;
  Timestamp now_;
  Timestamp look_;
  std::size_t passed_ = 0;  // cuts
  std::uint32_t part_ = 0;
  Timestamp began_ = Timestamp::never();
  Seq first_seq_ = 0;
  Seq last_seq_ = 0;
  Seq seq_ = 0;  // of the event that is being applied
  bool simulated_ = false;
  bool at_edge_ = false;  // of the window, or a cut
  bool dirty_ = true;
  std::optional<Following> following_;
  std::string cluster_;
  std::vector<std::string> names_{""};
  std::map<std::string, std::uint16_t, std::less<>> name_indexes_{{"", 0}};
  std::vector<std::uint16_t> models_by_name_;  // indexes of names_ that are GPU models
  std::vector<std::uint32_t> queues_by_path_;
  std::vector<Queue> queues_;
  std::map<std::string, std::uint32_t, std::less<>> queue_indexes_;
  std::vector<std::string> burst_pools_;
  std::vector<Node> nodes_;
  std::map<JobId, Job> jobs_;  // live jobs, and those that used something within the window
  std::map<JobId, Job*> running_;
  std::map<std::uint16_t, Model> models_;
  std::vector<HeldShare> shares_;      // by share
  std::vector<HeldShare> new_shares_;  // while they are shared out
  std::vector<JobUse> done_;
  std::map<std::pair<Share, std::uint32_t>, std::int64_t> floor_sums_;  // by share and part
  std::vector<Correction> corrections_;
  std::vector<Report> reports_;
  std::map<std::uint64_t, PriceBook> books_;
};

}  // namespace berth::billing
