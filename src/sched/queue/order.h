#pragma once
// Order: which waiting job is asked next. From the root down, the most deserving child: one whose next job would lie
// within its guarantee before one that would borrow, then the smaller share over weight (sched/queue/share.h), then the
// job's own priority and age; inside a queue that says so, its attained service (state/attained_service.h) before its
// age. A total order; no ties are left open.
//
// What a cycle asks depends on the shapes that wait, not on how many wait: a leaf keeps its jobs in lanes of equal
// shape, and when one job of a lane is refused, the rest of the lane would be too. Lanes that sleep
// (sched/requeue/requeue.h) are not looked at, and neither are queues below which all lanes sleep. Standings are
// remembered per queue and recomputed only on the path of the job that was asked last, because only there anything can
// have changed; each parent keeps its other children in a heap, so that the next job costs a step per level and not a
// walk over all siblings.

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

// A lane that a cycle asks: the first of its jobs that may be asked, and what each of them counts at least.
struct EvaluatedClass {
  state::EquivalenceKey key;
  state::PendingKey first;
  const Amounts* least = nullptr;
};

// Walks all waiting jobs of one cycle, each at most once, always by the order of the moment.
class Order {
 public:
  // Of all that wait; and of the lanes that are awake, which are given in their order and outlive it.
  Order(const state::State& state, Timestamp now);
  Order(const state::State& state, Timestamp now, std::span<const EvaluatedClass> active);

  // The next job to ask, or nothing when all have been asked.
  std::optional<JobId> next();
  // The next of one leaf, where nobody else is worth asking.
  std::optional<JobId> next_of(QueueId leaf);
  // The same as next(), but it stays the next.
  std::optional<JobId> first();
  // Of what waits below one queue; by that the queue is compared with its siblings.
  std::optional<JobId> first_of(QueueId queue);
  // The lane of the job that next() gave last, by its place among those that are awake.
  std::size_t eq_class_of_last() const {
    return first_of_[last_->leaf.index()] + last_->eq_class - leaves_[last_->leaf.index()].begin;
  }
  // What the job that next() gave last counts at least.
  const Amounts& counts_of_last() { return asked_by(*last_); }
  // The first of every lane that is still to be asked; in a strict queue its head alone.
  std::vector<JobId> rest() const;
  // What the queue counts among its siblings as long as something below it is to be asked.
  std::optional<Fraction> share(QueueId queue);
  // The job that next() gave last was refused: neither it nor others of its shape and queue are asked again. In a
  // strict queue nobody else of the queue is.
  void refuse();
  // It counts so much where it would start, more than was known before: it is asked again when that has its turn.
  void reconsider_as(const Amounts& counts);
  // It would borrow where it would start, in a burst pool say: it is asked again when that has its turn.
  void reconsider_as_borrowing();
  bool asked_as_borrowing() const { return eq_classes_[last_->eq_class].borrows; }
  // Whether somebody who waits behind the head of a queue could reclaim from the job that next() gave last: heads alone
  // are compared, and that one would borrow. He is the next then, or before him who is of higher priority in his queue,
  // and the job is asked again after him. Who has found places at which he would borrow is one of them if he `reclaims`
  // from the job that starts, elsewhere. Only where lanes were given with what they count.
  using Reclaims = std::function<bool(JobId)>;
  bool defers_to_owner(const Reclaims& reclaims);
  // It fits but for a hold: others of its lane that run as long would be refused too. In a strict queue all are.
  void refuse_as_long();

 private:
  struct Candidate {
    JobId job;
    QueueId leaf;
    std::size_t eq_class = 0;  // its place in `eq_classes_`
    state::PendingKey key;
  };
  struct EquivalenceClass {
    using Jobs = std::set<state::PendingKey>;
    std::uint64_t shape = 0;
    state::PendingKey at;            // its next job, of those that are not `over`
    const Amounts* least = nullptr;  // what one job of the lane counts; null: nobody has asked yet
    bool eligible = false;           // the next job is known to be one that may be asked
    bool taken = false;              // the next job was given: what follows it is next
    bool over = false;
    bool borrows = false;    // its next job would, whatever it counts
    bool preferred = false;  // somebody has yielded to its next job: nobody does twice
    // Once a job was refused for a hold: those that are expected to run as long, or longer, need not be asked.
    std::optional<std::int64_t> refused_length_s;
    std::size_t looked_at = 0;  // since then
  };
  // The lanes of one leaf, which stand together.
  struct Leaf {
    bool begun = false;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Rank {
    int standing = 0;  // 0 within or as a claim within, 1 borrows, 2 borrows with weight 0
    Fraction share;
  };
  // What a queue counts, and the share that this is over its weight.
  struct Counted {
    SharedAmounts amounts;
    Fraction share;
  };
  struct Standing {
    bool known = false;
    bool ranked = false;  // its parent's heap has it
    std::uint32_t version = 0;
    std::optional<Candidate> candidate;
    std::optional<Counted> counted;  // nothing: not asked for yet
    Fraction rescaled_to{0, 0};      // the share to which it was rescaled last; 0/0: to none yet
    SharedAmounts rescaled{};        // what it counted then
  };
  // A child as its parent compared it; void once the child's standing has another version.
  struct Contender {
    Rank rank;
    state::PendingKey key;
    QueueId queue;
    std::uint32_t version = 0;
  };
  // The children of one parent that have somebody to ask.
  struct SiblingHeap {
    bool begun = false;
    std::vector<QueueId> unranked;
    std::vector<Contender> heap;  // the most deserving on top; among void ones
    std::size_t ranked = 0;       // of the heap, those that are not void
  };

  const std::optional<Candidate>& head(QueueId queue);
  std::optional<Candidate> leaf_head(const state::QueueState& leaf);
  // Goes on to the first job of the lane that may be asked, or says that there is none.
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
  static bool would_be_refused(EquivalenceClass& eq_class, const state::JobState& job);
  bool waits(const state::PendingKey& key) const;
  void advance(const state::QueueState& leaf, EquivalenceClass& eq_class) const;
  bool head_is_parked(const state::QueueState& leaf) const;
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
  std::vector<std::uint32_t> first_of_;             // by queue: the first lane of it that is awake
  std::deque<Amounts> own_least_;                   // of lanes that were not given with it
  std::vector<bool> asked_below_;                   // by queue: some lane is asked
  std::optional<Candidate> last_;                   // that next() gave
  std::optional<Candidate> owner_;                  // who goes before all others
  std::optional<std::vector<std::size_t>> owners_;  // of the lanes that are awake, those that may lie within somewhere
};

}  // namespace berth::sched
