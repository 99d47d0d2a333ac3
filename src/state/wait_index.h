#pragma once
// WaitIndex: which equivalence classes of pending jobs a cycle must evaluate, and what the other classes wait for. A
// class is the jobs of one queue with equal requests.
//
// A class that a cycle refused is parked with its wait cause: the ceilings and guarantees that would need room, and, if
// it lacked places, that some node must be freed. Some refusals cannot be stated so exactly. The main one is a
// preemption for which no set of victims is enough. Such a class is parked until anything changes, or until a victim
// has run its min_runtime. The state only marks queues and nodes as freed; the next cycle compares the marks with the
// wait causes. To activate a class in vain costs time. To leave a class parked that could start would be a bug, which
// the property test of the cycle looks for.
//
// Parked classes with equal requests, quota path and wait cause form a wait group: quota and placement give all of them
// the same answer. When a ceiling that a group waits for gets room, all its classes are signalled. The first job that
// starts may use up the room, so a signalled class stays in its group. If the ceiling is reached again, one comparison
// parks all classes of the group again.
//
// This is an index. It is no part of the state's digest, a loaded state has every class active, and no decision depends
// on which classes are parked.

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

// Names an equivalence class: the queue, and a hash of what its jobs request.
struct EquivalenceKey {
  QueueId queue;
  std::uint64_t shape = 0;
  auto operator<=>(const EquivalenceKey&) const = default;
};

// What a parked class needs from one queue on its quota path.
struct QuotaNeed {
  QueueId queue;
  Amounts asked;
  bool within = false;    // room inside the guarantee (then it could reclaim); else room below max
  bool any_model = true;  // needed on any GPU model; else on one model, and another may do
  std::string user = {};  // if not empty: room below the limit of this user
  bool operator==(const QuotaNeed&) const = default;
};

// What one task of a parked class needs from a node; pool, labels and trust domain are ignored. It is stored here so
// that no job has to be looked up when a node is freed.
struct NodeNeed {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int32_t gpus = 0;
  std::int32_t milli_of_each = 0;
  std::uint32_t models = 0;  // bit m: GPU model m may be used; a new model activates all classes
  bool operator==(const NodeNeed&) const = default;
};

// Why a class is parked: what must change before it can start or preempt.
struct WaitCause {
  std::vector<QuotaNeed> quota;
  std::optional<NodeNeed> places;  // a freed node may help
  // Used if the cause cannot be stated exactly. `on_any_release`: anything that is released or newly allowed, or a new
  // victim, may help. `any_change`: any change of what is bound, nominated or allowed may help. `until`: only time
  // helps, when the next victim has run its min_runtime.
  bool on_any_release = false;
  bool any_change = false;
  Timestamp until = Timestamp::never();
  bool holds = false;  // it fits, except for backfill reservations of other jobs
  bool operator==(const WaitCause&) const = default;
};

class WaitIndex {
 public:
  struct WaitGroup;
  // The first pending job of a class, as the order of evaluation needs it.
  struct Head {
    PendingKey key;
    Timestamp not_before;
  };
  // A class that is parked or signalled.
  struct ParkedClass {
    static constexpr std::size_t kNot = std::numeric_limits<std::size_t>::max();
    EquivalenceKey eq_class;
    WaitGroup* wait_group = nullptr;
    std::size_t in_wait_group = 0;    // its index in WaitGroup::parked_classes
    std::size_t in_signalled = kNot;  // its index in `signalled_`; kNot: it is not signalled
    std::optional<Head> head;         // cached until that job leaves the class
    bool signalled() const { return in_signalled != kNot; }
  };
  // Parked classes with equal requests, quota path and wait cause.
  struct WaitGroup {
    std::uint64_t shape = 0;
    std::uint32_t quota_path = 0;
    WaitCause wait_cause;
    std::vector<ParkedClass*> parked_classes;  // in no order
    std::size_t signalled = 0;                 // how many of its classes are signalled
    // The nodes that have signalled it since all its classes were parked. Above kMostNodes no more are added.
    std::vector<NodeId> by_node;
  };
  static constexpr std::size_t kMostNodes = 8;
  // The wait groups with equal requests that wait for places.
  struct ForPlaces {
    NodeNeed need;
    std::vector<WaitGroup*> wait_groups;
  };

  // Active classes are evaluated by the next cycle. active(): those in no wait group. signalled(): those that stay in
  // their wait groups.
  const std::set<EquivalenceKey>& active() const { return active_; }
  const std::vector<ParkedClass*>& signalled() const { return signalled_; }
  std::size_t active_count() const { return active_.size() + signalled_.size(); }
  bool is_active(const EquivalenceKey& eq_class) const;
  bool is_parked(const EquivalenceKey& eq_class) const;
  // for_places(): the wait groups that wait for places, by request. waiting_for(): the wait groups that wait for this
  // queue.
  const std::map<std::uint64_t, ForPlaces>& for_places() const { return for_places_; }
  const std::vector<WaitGroup*>& waiting_for(QueueId queue) const;
  const std::set<EquivalenceKey>& for_any_release() const { return for_any_release_; }
  const std::set<EquivalenceKey>& for_any_change() const { return for_any_change_; }
  const std::set<std::pair<Timestamp, EquivalenceKey>>& for_time() const { return for_time_; }

  void activate(const EquivalenceKey& eq_class);
  void activate_all();
  ParkedClass* find_parked(const EquivalenceKey& eq_class);
  // signal_class() makes a parked class active and leaves it in its wait group. resume() parks a signalled class again.
  void signal_class(ParkedClass& parked_class);
  void resume(ParkedClass& parked_class);
  // Parks a class. It may be parked already, for the same cause or another.
  void park(const EquivalenceKey& eq_class, std::uint32_t quota_path, const WaitCause& wait_cause);
  void forget(const EquivalenceKey& eq_class);       // its last job left the class
  void forget_head(const EquivalenceKey& eq_class);  // one of its jobs left the class

  // The marks that were set since the last cycle cleared them.
  struct Freed {
    std::set<QueueId> queues;
    std::set<NodeId> nodes;
    bool holds = false;    // a backfill reservation was moved or dropped
    bool victims = false;  // a job became a possible victim
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
  // Marks that something bound, nominated or allowed has changed. What a transaction rolls back is no change.
  void mark_changed() { changed_ = true; }
  bool changed() const { return changed_; }
  void clear_marks();

 private:
  void strike_out(const EquivalenceKey& eq_class);
  void leave_wait_group(ParkedClass& parked_class);
  WaitGroup& wait_group_of(std::uint64_t shape, std::uint32_t quota_path, const WaitCause& wait_cause);

  std::set<EquivalenceKey> active_;
  std::map<EquivalenceKey, ParkedClass> parked_;  // also signalled classes
  std::vector<ParkedClass*> signalled_;           // in no order
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::unique_ptr<WaitGroup>>>
      wait_groups_;  // by request and quota path
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
