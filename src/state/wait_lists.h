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

struct LaneKey {
  QueueId queue;
  std::uint64_t shape = 0;
  auto operator<=>(const LaneKey&) const = default;
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

struct Sleep {
  std::vector<QuotaNeed> quota;
  std::optional<NodeNeed> places;  // a node that gets freer may help
  // What it waits for cannot be told so exactly: whatever is given back, allowed or open to claims may help, but what
  // somebody else takes cannot; or any change of what is bound, promised or allowed may; or only the time when the next
  // victim has run its minimum.
  bool any_easing = false;
  bool any_change = false;
  Timestamp until = Timestamp::never();
  bool holds = false;  // it fits but for the holds of others
  bool operator==(const Sleep&) const = default;
};

class WaitLists {
 public:
  struct Cohort;
  // The first waiting job of a lane, as far as the order of asking looks at it.
  struct Head {
    PendingKey key;
    Timestamp not_before;
  };
  // A lane that sleeps, or was only stirred.
  struct Sleeper {
    static constexpr std::size_t kNot = std::numeric_limits<std::size_t>::max();
    LaneKey lane;
    Cohort* cohort = nullptr;
    std::size_t in_cohort = 0;      // its place there
    std::size_t in_stirred = kNot;  // and among those that are stirred
    std::optional<Head> head;       // remembered until that job leaves the lane
    bool stirred() const { return in_stirred != kNot; }
  };
  struct Cohort {
    std::uint64_t shape = 0;
    std::uint32_t standpoint = 0;
    Sleep sleep;
    std::vector<Sleeper*> sleepers;  // in no order
    std::size_t stirred = 0;         // so many of them are
    std::vector<NodeId> by_node;     // the nodes that have stirred it since all of it slept, up to kMostNodes and one
  };
  static constexpr std::size_t kMostNodes = 8;
  // Cohorts of one shape that wait for places.
  struct ForPlaces {
    NodeNeed need;
    std::vector<Cohort*> cohorts;
  };

  // Those that are awake and on no list; and those that are awake but in their cohorts.
  const std::set<LaneKey>& awake() const { return awake_; }
  const std::vector<Sleeper*>& stirred() const { return stirred_; }
  std::size_t awake_count() const { return awake_.size() + stirred_.size(); }
  bool is_awake(const LaneKey& lane) const;
  bool sleeps(const LaneKey& lane) const;
  // Cohorts that wait for places, by shape; and those that wait for this queue.
  const std::map<std::uint64_t, ForPlaces>& for_places() const { return for_places_; }
  const std::vector<Cohort*>& waiting_for(QueueId queue) const;
  const std::set<LaneKey>& for_any_easing() const { return for_any_easing_; }
  const std::set<LaneKey>& for_any_change() const { return for_any_change_; }
  const std::set<std::pair<Timestamp, LaneKey>>& for_time() const { return for_time_; }

  void wake(const LaneKey& lane);
  void wake_all();
  Sleeper* find_sleeper(const LaneKey& lane);
  // Wakes a lane that sleeps and leaves it in its cohort; and the reverse.
  void stir(Sleeper& sleeper);
  void resume(Sleeper& sleeper);
  // It may sleep already, for the same or for another reason.
  void put_to_sleep(const LaneKey& lane, std::uint32_t standpoint, const Sleep& sleep);
  void forget(const LaneKey& lane);       // its last job left
  void forget_head(const LaneKey& lane);  // one of its jobs left

  // What was marked since the lanes were last woken.
  struct Eased {
    std::set<QueueId> queues;
    std::set<NodeId> nodes;
    bool holds = false;    // some hold was moved or dropped
    bool victims = false;  // somebody more may be stopped
  };
  void ease(QueueId queue) { eased_.queues.insert(queue); }
  void ease(NodeId node) { eased_.nodes.insert(node); }
  const std::set<QueueId>& eased_queues() const { return eased_.queues; }
  const std::set<NodeId>& eased_nodes() const { return eased_.nodes; }
  bool eased() const { return eased_.victims || !eased_.queues.empty() || !eased_.nodes.empty(); }
  void ease_victims() { eased_.victims = true; }
  void ease_holds() { eased_.holds = true; }
  bool eased_holds() const { return eased_.holds; }
  const std::set<LaneKey>& behind_holds() const { return behind_holds_; }
  // Something is bound, promised or allowed otherwise than before; what a trial takes back is no change.
  void mark_changed() { changed_ = true; }
  bool changed() const { return changed_; }
  void clear_marks();

 private:
  void strike_out(const LaneKey& lane);
  void leave_cohort(Sleeper& sleeper);
  Cohort& cohort_of(std::uint64_t shape, std::uint32_t standpoint, const Sleep& sleep);

  std::set<LaneKey> awake_;
  std::map<LaneKey, Sleeper> asleep_;                                                                // and stirred
  std::vector<Sleeper*> stirred_;                                                                    // in no order
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::unique_ptr<Cohort>>> cohorts_;  // by what they are
  std::map<QueueId, std::vector<Cohort*>> for_queue_;
  std::map<std::uint64_t, ForPlaces> for_places_;
  std::set<LaneKey> for_any_easing_;
  std::set<LaneKey> for_any_change_;
  std::set<std::pair<Timestamp, LaneKey>> for_time_;
  std::set<LaneKey> behind_holds_;
  bool changed_ = false;
  Eased eased_;
};

}  // namespace berth::state
