#pragma once
// Transaction: changes to the state that are undone when it ends. The scheduler places and removes jobs in it. So a
// question such as "does the job fit if these victims exit?" is answered by the real indexes. The changes of a
// transaction are no events; its results are written into a Plan.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/ids.h"
#include "model/job.h"
#include "state/state.h"

namespace berth::state {

class Transaction {
 public:
  explicit Transaction(State& state) : state_(state) { ++state_.transactions_; }
  ~Transaction() {
    rollback_to(0);
    --state_.transactions_;
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  using Mark = std::size_t;
  Mark mark() const { return undo_.size(); }

  // Binds a pending job. Its charge comes after all running charges in the start order.
  void place(JobId job, std::span<const TaskPlacement> placements);
  // Binds more tasks of an elastic gang that runs or was placed just before (scale-up).
  void grow(JobId job, std::span<const TaskPlacement> placements);
  // Binds a pending job and lists it as running from now on, so that a search for victims can find it. Requires that
  // the nomination of the job, if any, is lifted.
  void start(JobId job, std::span<const TaskPlacement> placements);
  // Cancels an eviction: a job that was asked to stop as a whole continues. The eviction no longer counts against
  // limits.
  void cancel_eviction(JobId job);
  // Releases everything that a running or tentatively placed job holds.
  void remove(JobId job);
  // Releases the tasks of a running gang from number `keep` on.
  void shrink(JobId job, std::uint32_t keep);
  // Lifts the nomination of the job, so that the job itself can be placed there.
  void lift_nomination(JobId job);
  // Nominates a pending job at the placements and reserves room in the guarantees of `within`, as the event Nominated
  // does.
  void nominate(JobId job, std::span<const TaskPlacement> placements, std::uint64_t within);
  // Reserves the placements for a pending job, as its backfill reservation does: no other job can use them.
  void set_aside(JobId owner, std::span<const TaskPlacement> placements);
  // Drops the backfill reservation of the job. Requires that it has one.
  void drop_reservation(JobId owner);
  // Changes that an operator could make, to answer what-if questions. These two set one limit of a queue.
  void set_max(QueueId queue, std::size_t dim, std::int64_t amount);
  void set_lending_limit(QueueId queue, std::size_t dim, std::int64_t amount);
  // Sets the limit of each user below the queue: jobs if `dim` is kDims, else milli-GPUs. Requires that the limit is
  // stated and stays stated, because usage by user is counted only in queues that limit it.
  void set_user_limit(QueueId queue, std::size_t dim, std::int64_t amount);
  void uncordon(NodeId node);
  void cordon(NodeId node);
  // Adds a node. Requires that the state knows its pool, GPU models, taints and topology domains. References to nodes
  // become invalid.
  void add_node(const NodeSpec& spec);
  // Sets the time at which starts would take place (State::asked_at).
  void look_at(Timestamp when);
  // Sets the latest time at which a start could take place (State::asked_until).
  void look_until(Timestamp latest);
  // Ends the maintenance windows that have begun and are over by `by`: they no longer close their nodes. Requires that
  // it is called at most once per transaction.
  void end_windows(Timestamp by);

  void rollback_to(Mark mark);

  // holds(): the job is tentatively placed now. removed(): remove() was called for it.
  bool holds(JobId job) const;
  bool removed(JobId job) const;

 private:
  enum class Step {
    kPlaced,
    kStarted,
    kEvictionCancelled,
    kRemoved,
    kShrunk,
    kLifted,
    kNominated,
    kSetAside,
    kReservationDropped,
    kMaxSet,
    kLendingSet,
    kUserLimitSet,
    kUncordoned,
    kCordoned,
    kNodeAdded,
    kReopened,
    kLookedAt,
    kLookedUntil
  };
  struct Undo {
    Step step = Step::kPlaced;
    JobId job = {};
    std::vector<TaskPlacement> placements = {};
    std::vector<Charge> charges = {};
    std::uint32_t first_charge = 0;     // index of the first of `charges` in the attempt
    std::optional<Charge> shrunk = {};  // kShrunk: the part of the first charge that stays
    Amounts amounts = {};
    std::uint64_t within = 0;  // mask of the guarantees in which the nomination reserves room
    QueueId queue = {};        // the queue whose limit was `before`
    std::size_t dim = 0;
    std::int64_t before = 0;
    NodeId node = {};
    Timestamp when = {};
    std::optional<Stop> stop = {};
    std::uint64_t counted =
        // kEvictionCancelled, bit d: the stop counted against the limit of the queue at depth d; bit 0: the cluster's
        // limit.
        0;
    std::optional<BackfillReservation> hold = {};
  };
  void undo_change(const Undo& entry);
  void bind(JobId job, const Undo& entry, int sign);
  void bind_more(JobId job, std::span<const TaskPlacement> placements, std::uint32_t index);
  void list(JobState& job, int sign);
  void nominate(JobId job, const Undo& entry, int sign);

  State& state_;
  std::vector<Undo> undo_;
  std::vector<std::size_t> bindings_;  // indexes in `undo_` at which jobs are placed or shrunk
};

}  // namespace berth::state
