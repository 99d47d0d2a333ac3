#pragma once
// Order: which pending job is evaluated next. It goes from the root of the quota tree down and takes at each parent the
// most deserving child. A child whose next job would be within its guarantee goes before one that would borrow. Then
// goes the smaller share over weight (sched/queue/share.h), then the job's own priority and age. A queue may order its
// own jobs by attained service (state/attained_service.h) before age. The order is total: no ties are left.
//
// The cost of a cycle depends on the number of equivalence classes, not on the number of pending jobs: a leaf groups
// its jobs by what they request, and when one job of a class is refused, the others of the class are too. Parked
// classes (sched/requeue/requeue.h) are not looked at, nor are queues below which all classes are parked. The standing
// of each queue is cached. It is computed again only on the quota path of the job that was evaluated last, because only
// there anything can have changed. Each parent keeps its other children in a heap, so the next job costs one step per
// level and not a walk over all siblings.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/timestamp.h"
#include "model/ids.h"
#include "model/resources.h"
#include "sched/queue/share.h"
#include "state/state.h"

namespace berth::sched {

// An equivalence class that the cycle evaluates: its first job that may be evaluated now, and what each of its jobs
// counts at least (least_amounts).
struct EvaluatedClass {
  state::EquivalenceKey key;
  state::PendingKey first;
  const Amounts* least = nullptr;
};

// Walks the pending jobs of one cycle, each job at most once, always in the order of this moment.
class Order {
 public:
  // The first form walks all pending jobs. The second walks the active classes only; `active` is sorted by key and must
  // outlive this object.
  Order(const state::State& state, Timestamp now);
  Order(const state::State& state, Timestamp now, std::span<const EvaluatedClass> active);

  // Returns the next job to evaluate, or nothing when all have been evaluated.
  std::optional<JobId> next();
  // Returns the next job of one leaf. For use when no job of another leaf can start or evict.
  std::optional<JobId> next_of(QueueId leaf);
  // Returns the same job as next() would, without taking it.
  std::optional<JobId> first();
  // Returns the best job below one queue; the queue is compared with its siblings by that job.
  std::optional<JobId> first_of(QueueId queue);
  // The class of the job that next() returned last, as an index into `active`.
  std::size_t eq_class_of_last() const {
    return first_of_[last_->leaf.index()] + last_->eq_class - leaves_[last_->leaf.index()].begin;
  }
  // What the job that next() returned last counts at least.
  const Amounts& counts_of_last() { return asked_by(*last_); }
  // Returns the first job of every class that is not finished; of a strict queue only its first job.
  std::vector<JobId> rest() const;
  // Returns the share over weight by which the queue is compared with its siblings; nothing if no job below it is to be
  // evaluated.
  std::optional<Fraction> share(QueueId queue);
  // The job that next() returned last was refused. No other job of its class is evaluated in this cycle; in a strict
  // queue no other job of the queue.
  void refuse();
  // The last job would count `counts` at its places, more than was known before. It is evaluated again at its turn by
  // those amounts.
  void reconsider_as(const Amounts& counts);
  // The last job would borrow at its places, for example in a burst pool. It is evaluated again when it is its turn as
  // a borrower.
  void reconsider_as_borrowing();
  bool asked_as_borrowing() const { return eq_classes_[last_->eq_class].borrows; }
  // Returns true if the last job defers: it would borrow, and a pending job of another queue could reclaim from it at
  // once. Such a job was not compared before, because only the head of each queue is. It becomes the next job, or a job
  // of higher priority in its queue does, and the last job is evaluated again after it. No job is deferred to twice. A
  // pending job that was found to borrow at its own places counts only if `reclaims` returns true for it: then it would
  // reclaim from the last job for other places. Requires the constructor with `active`.
  using Reclaims = std::function<bool(JobId)>;
  bool defers_to_owner(const Reclaims& reclaims);
  // The last job fits except for a backfill reservation. Jobs of its class that are expected to run at least as long
  // are not evaluated: they would be refused too. In a strict queue no other job is.
  void refuse_as_long();

 private:
  struct Candidate {
    JobId job;
    QueueId leaf;
    std::size_t eq_class = 0;  // index into `eq_classes_`
    state::PendingKey key;
  };
  struct EquivalenceClass {
    using Jobs = std::set<state::PendingKey>;
    std::uint64_t shape = 0;
    state::PendingKey at;            // its next job, if not `over`
    const Amounts* least = nullptr;  // what one job of the class counts; null: not computed yet
    bool eligible = false;           // the next job is known to be one that may be evaluated
    bool taken = false;              // next() has returned this job: the one after it is next
    bool over = false;
    bool borrows = false;    // the next job would borrow, whatever it counts
    bool preferred = false;  // another job has deferred to the next job; none does so twice
    // Set when a job of the class was refused for a backfill reservation: the least expected run time so refused. Jobs
    // that are expected to run at least as long are not evaluated.
    std::optional<std::int64_t> refused_length_ms;
    std::size_t looked_at = 0;  // jobs checked against that run time so far
  };
  // The classes of one leaf: a range of `eq_classes_`. `begun`: the range is filled. `blocked_from`: the first job of a
  // strict queue that waits and is parked. No job behind it is evaluated.
  struct Leaf {
    bool begun = false;
    std::optional<state::PendingKey> blocked_from;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Rank {
    int standing = 0;  // 0: within, also by displacement; 1: borrows; 2: borrows with weight 0
    Fraction share;
  };
  // What a queue counts when its parent sums its children, and its share over weight.
  struct Counted {
    SharedAmounts amounts;
    Fraction share;
  };
  struct Standing {
    bool known = false;
    bool ranked = false;  // it is in its parent's heap
    std::uint32_t version = 0;
    std::optional<Candidate> candidate;
    std::optional<Counted> counted;  // computed on first use
    Fraction rescaled_to{0, 0};      // the share of its last rescaling; 0/0: none yet
    SharedAmounts rescaled{};        // the amounts after that rescaling
  };
  // A child in its parent's heap, as it was when it was compared. It is void once the child's standing has another
  // version.
  struct Contender {
    Rank rank;
    state::PendingKey key;
    QueueId queue;
    std::uint32_t version = 0;
  };
  // The children of one parent that have a job to evaluate.
  struct SiblingHeap {
    bool begun = false;
    std::vector<QueueId> unranked;
    std::vector<Contender> heap;  // the most deserving on top; some entries are void
    std::size_t ranked = 0;       // number of entries that are not void
  };

  const std::optional<Candidate>& head(QueueId queue);
  std::optional<Candidate> leaf_head(const state::QueueState& leaf);
  // Moves the class on to its next job that may be evaluated. Returns false if it has none.
  bool ready(const state::QueueState& leaf, EquivalenceClass& eq_class) const;
  std::optional<Candidate> owner_among(std::size_t place, QueueId borrower, const Amounts& counts,
                                       const Reclaims& reclaims);
  void list_owners();
  std::optional<Candidate> best_child(const state::QueueState& queue);
  void rank(SiblingHeap& sibling_heap);
  const Counted& counted(QueueId queue);
  SharedAmounts counted_below(const state::QueueState& queue, const Candidate& next);
  Rank rank_of(QueueId queue);
  static bool later(const Contender& a, const Contender& b);
  const Amounts& asked_by(const Candidate& candidate);
  bool would_be_refused(EquivalenceClass& eq_class, const state::JobState& job) const;
  bool waits(const state::PendingKey& key) const;
  void advance(const state::QueueState& leaf, EquivalenceClass& eq_class) const;
  std::optional<state::PendingKey> first_parked(const state::QueueState& leaf) const;
  bool is_blocked(const state::QueueState& leaf, const state::PendingKey& key) const;
  std::span<EquivalenceClass> eq_classes_of(const state::QueueState& leaf);
  void add_classes_of(const state::QueueState& leaf);
  void forget_path(QueueId leaf);
  std::optional<JobId> give(const std::optional<Candidate>& candidate);

  const state::State& state_;
  Timestamp now_;
  std::vector<EquivalenceClass> eq_classes_;
  std::vector<Leaf> leaves_;                // by queue
  std::vector<Standing> standings_;         // by queue
  std::vector<SiblingHeap> sibling_heaps_;  // by queue
  bool all_ = false;
  std::span<const EvaluatedClass> active_;
  std::vector<std::uint32_t> first_of_;             // by queue: its first class in `active_`
  std::deque<Amounts> own_least_;                   // amounts that were not given in `active_`
  std::vector<bool> asked_below_;                   // by queue: a class below it is evaluated
  std::optional<Candidate> last_;                   // what next() returned last
  std::optional<Candidate> owner_;                  // the job that the last one deferred to
  std::optional<std::vector<std::size_t>> owners_;  // classes (indexes into `active_`) that could be within a guarantee
};

}  // namespace berth::sched
