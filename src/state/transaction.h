#pragma once
// A Transaction is the undo log that scheduling thinks with: it places and removes gangs in the state for a while, so
// that every question ("does it fit if these leave?") is asked of the real indexes, and takes everything back when it
// ends. Nothing a trial does is an event; what it found is written into a Plan.

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

  // Binds a waiting job tentatively. Its charge stacks above all running ones.
  void place(JobId job, std::span<const TaskPlacement> placements);
  // Binds more tasks of an elastic gang that runs, or that was placed just before.
  void grow(JobId job, std::span<const TaskPlacement> placements);
  // Binds a waiting job that is promised nothing any more, and counts it as running since now, so that a search for
  // victims may find it.
  void start(JobId job, std::span<const TaskPlacement> placements);
  // A job that was asked to stop as a whole goes on.
  void cancel_eviction(JobId job);
  // Takes back what a running (or tentatively placed) job holds.
  void remove(JobId job);
  // Takes back the tasks from `keep` on of a running gang.
  void shrink(JobId job, std::uint32_t keep);
  // Sets a nomination aside, so that its owner may be placed there.
  void lift_nomination(JobId job);
  // Promises the places to a waiting job, and keeps room of these guarantees for it, as the Nominated event will.
  void nominate(JobId job, std::span<const TaskPlacement> placements, std::uint64_t within);
  // Keeps the places for a waiting job from everybody, as its hold does.
  void set_aside(JobId owner, std::span<const TaskPlacement> placements);
  // As if no start were held for the job.
  void drop_reservation(JobId owner);
  // What an operator could change: one limit of a queue, and whether a node takes tasks.
  void set_max(QueueId queue, std::size_t dim, std::int64_t amount);
  void set_lending_limit(QueueId queue, std::size_t dim, std::int64_t amount);
  // What one user may have: jobs where dim is kDims, else milli-GPUs. A limit that is stated stays stated.
  void set_user_limit(QueueId queue, std::size_t dim, std::int64_t amount);
  void uncordon(NodeId node);
  void cordon(NodeId node);
  // One more node like this: of a pool, models, taints and domains that the state knows. References to nodes end here.
  void add_node(const NodeSpec& spec);
  // Asks what would start then.
  void look_at(Timestamp when);
  // Asks what could start at any time between now and then.
  void look_until(Timestamp latest);
  // The maintenance windows that have begun and are over by then do not close their nodes any more. Once.
  void end_windows(Timestamp by);

  void rollback_to(Mark mark);

  // Jobs tentatively placed or removed so far.
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
    std::uint32_t first_charge = 0;     // number of the first of `charges`
    std::optional<Charge> shrunk = {};  // kShrunk: what stays of the first of them
    Amounts amounts = {};
    std::uint64_t within = 0;  // of what is promised
    QueueId queue = {};        // of the limit that was `before`
    std::size_t dim = 0;
    std::int64_t before = 0;
    NodeId node = {};
    Timestamp when = {};
    std::optional<Stop> stop = {};
    std::uint64_t counted =
        0;  // kEvictionCancelled: bit d: the stop counted with the rate of the queue at depth d; 0: the cluster
    std::optional<BackfillReservation> hold = {};
  };
  void undo_change(const Undo& entry);
  void bind(JobId job, const Undo& entry, int sign);
  void bind_more(JobId job, std::span<const TaskPlacement> placements, std::uint32_t index);
  void list(JobState& job, int sign);
  void nominate(JobId job, const Undo& entry, int sign);

  State& state_;
  std::vector<Undo> undo_;
  std::vector<std::size_t> bindings_;  // where in `undo_` jobs are placed or shrunk
};

}  // namespace berth::state
