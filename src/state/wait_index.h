#pragma once
// Which lanes of waiting jobs (one queue, one shape) are worth asking, and what the others wait for.
//
// A lane that a cycle has refused goes to sleep with the ceilings and guarantees that would have to make room for it,
// and, when it was places that it lacked, with the remark that some node must get freer. One whose refusal is not so
// simple, above all a claim that no victims could serve, sleeps until anything changes or a victim has run its minimum.
// The choke points of the state only mark queues and nodes as eased; the next cycle compares the marks with what
// sleeps. Waking a lane in vain costs time; letting one sleep that could start would be a bug, which the property test
// of the cycle looks for.
//
// Lanes of one shape and standpoint that sleep for the same are a cohort: whatever quota or places answer to one of
// them they answer to all. Where many wait for one ceiling, room for one of them stirs them all, and is gone again when
// that one has started. So a lane that is stirred stays in its cohort, and goes back to sleep when one comparison says
// for the cohort that the same ceiling refuses it again.
//
// This is an index: it is not part of the state's digest, a state that was just loaded has every lane awake, and no
// decision depends on who sleeps.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "model/ids.h"
#include "model/resources.h"
#include "state/queue_state.h"

namespace berth::state {

struct EquivalenceKey {
  QueueId queue;
  std::uint64_t shape = 0;
  auto operator<=>(const EquivalenceKey&) const = default;
};

// What a sleeping lane needs of a queue on its way to the root.
struct QuotaNeed {
  QueueId queue;
  Amounts asked;
  bool within = false;    // room inside the guarantee (it could then reclaim); else room below the ceiling
  bool any_model = true;  // asked on whatever GPUs; else on one model, and another may do
  std::string user = {};  // not empty: room below what this user may have there
  bool operator==(const QuotaNeed&) const = default;
};

// What one of its tasks needs of a node, whatever pool, labels and trust domain. It stands here so that nobody has to
// fetch a job of every shape that waits when a node gets freer.
struct NodeNeed {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int32_t gpus = 0;
  std::int32_t milli_of_each = 0;
  std::uint32_t models = 0;  // bit m: GPU model m may be used; models that come to be known later wake all
  bool operator==(const NodeNeed&) const = default;
};

struct WaitCause {
  std::vector<QuotaNeed> quota;
  std::optional<NodeNeed> places;  // a node that gets freer may help
  // What it waits for cannot be told so exactly: whatever is given back, allowed or open to claims may help, but what
  // somebody else takes cannot; or any change of what is bound, promised or allowed may; or only the time when the next
  // victim has run its minimum.
  bool on_any_release = false;
  bool any_change = false;
  Timestamp until = Timestamp::never();
  bool holds = false;  // it fits but for the holds of others
  bool operator==(const WaitCause&) const = default;
};

class WaitIndex {
 public:
  struct WaitGroup;
  // The first waiting job of a lane, as far as the order of asking looks at it.
  struct Head {
    PendingKey key;
    Timestamp not_before;
  };
  // A lane that sleeps, or was only stirred.
  struct ParkedClass {
    static constexpr std::size_t kNot = std::numeric_limits<std::size_t>::max();
    EquivalenceKey eq_class;
    WaitGroup* wait_group = nullptr;
    std::size_t in_wait_group = 0;    // its place there
    std::size_t in_signalled = kNot;  // and among those that are stirred
    std::optional<Head> head;         // remembered until that job leaves the lane
    bool signalled() const { return in_signalled != kNot; }
  };
  struct WaitGroup {
    std::uint64_t shape = 0;
    std::uint32_t quota_path = 0;
    WaitCause wait_cause;
    std::vector<ParkedClass*> parked_classes;  // in no order
    std::size_t signalled = 0;                 // so many of them are
    std::vector<NodeId> by_node;  // the nodes that have stirred it since all of it slept, up to kMostNodes and one
  };
  static constexpr std::size_t kMostNodes = 8;
  // Cohorts of one shape that wait for places.
  struct ForPlaces {
    NodeNeed need;
    std::vector<WaitGroup*> wait_groups;
  };

  // Those that are awake and on no list; and those that are awake but in their cohorts.
  const std::set<EquivalenceKey>& active() const { return active_; }
  const std::vector<ParkedClass*>& signalled() const { return signalled_; }
  std::size_t active_count() const { return active_.size() + signalled_.size(); }
  bool is_active(const EquivalenceKey& eq_class) const;
  bool is_parked(const EquivalenceKey& eq_class) const;
  // Cohorts that wait for places, by shape; and those that wait for this queue.
  const std::map<std::uint64_t, ForPlaces>& for_places() const { return for_places_; }
  const std::vector<WaitGroup*>& waiting_for(QueueId queue) const;
  const std::set<EquivalenceKey>& for_any_release() const { return for_any_release_; }
  const std::set<EquivalenceKey>& for_any_change() const { return for_any_change_; }
  const std::set<std::pair<Timestamp, EquivalenceKey>>& for_time() const { return for_time_; }

  void activate(const EquivalenceKey& eq_class);
  void activate_all();
  ParkedClass* find_parked(const EquivalenceKey& eq_class);
  // Wakes a lane that sleeps and leaves it in its cohort; and the reverse.
  void signal_class(ParkedClass& parked_class);
  void resume(ParkedClass& parked_class);
  // It may sleep already, for the same or for another reason.
  void park(const EquivalenceKey& eq_class, std::uint32_t quota_path, const WaitCause& wait_cause);
  void forget(const EquivalenceKey& eq_class);       // its last job left
  void forget_head(const EquivalenceKey& eq_class);  // one of its jobs left

  // What was marked since the lanes were last woken.
  struct Freed {
    std::set<QueueId> queues;
    std::set<NodeId> nodes;
    bool holds = false;    // some hold was moved or dropped
    bool victims = false;  // somebody more may be stopped
  };
  void mark_freed(QueueId queue) { freed_.queues.insert(queue); }
  void mark_freed(NodeId node) { freed_.nodes.insert(node); }
  const std::set<QueueId>& freed_queues() const { return freed_.queues; }
  const std::set<NodeId>& freed_nodes() const { return freed_.nodes; }
  bool any_freed() const { return freed_.victims || !freed_.queues.empty() || !freed_.nodes.empty(); }
  void mark_victims_available() { freed_.victims = true; }
  void mark_reservations_freed() { freed_.holds = true; }
  bool reservations_freed() const { return freed_.holds; }
  const std::set<EquivalenceKey>& behind_reservations() const { return behind_reservations_; }
  // Something is bound, promised or allowed otherwise than before; what a trial takes back is no change.
  void mark_changed() { changed_ = true; }
  bool changed() const { return changed_; }
  void clear_marks();

 private:
  void strike_out(const EquivalenceKey& eq_class);
  void leave_wait_group(ParkedClass& parked_class);
  WaitGroup& wait_group_of(std::uint64_t shape, std::uint32_t quota_path, const WaitCause& wait_cause);

  std::set<EquivalenceKey> active_;
  std::map<EquivalenceKey, ParkedClass> parked_;  // and stirred
  std::vector<ParkedClass*> signalled_;           // in no order
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::unique_ptr<WaitGroup>>>
      wait_groups_;  // by what they are
  std::map<QueueId, std::vector<WaitGroup*>> for_queue_;
  std::map<std::uint64_t, ForPlaces> for_places_;
  std::set<EquivalenceKey> for_any_release_;
  std::set<EquivalenceKey> for_any_change_;
  std::set<std::pair<Timestamp, EquivalenceKey>> for_time_;
  std::set<EquivalenceKey> behind_reservations_;
  bool changed_ = false;
  Freed freed_;
};

}  // namespace berth::state
