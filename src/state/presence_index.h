#pragma once
// What affinity and ports go by: on which nodes run tasks of jobs that have labels or ports, or that keep others away.
//
// Jobs of one queue with the same labels, required anti-affinity and ports are one presence. It counts per node its
// tasks that are bound there (until their attempt is over, so leaving and unknown ones count) and those that are
// promised a place. Where that is in the topology is asked of the topology index, so a node that moves takes its tasks
// along. Jobs without labels, anti-affinity and ports are not in here and cost nothing.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/ids.h"
#include "model/job.h"

namespace berth::state {

struct Presence {
  QueueId queue;
  Labels labels;
  std::vector<AffinityTerm> excludes;  // required terms of anti-affinity
  std::vector<std::int32_t> ports;     // ascending
  auto operator<=>(const Presence&) const = default;
};

struct PresentTasks {
  std::int32_t bound = 0;
  std::int32_t promised = 0;
  bool operator==(const PresentTasks&) const = default;
};

// Whether a job with these labels is meant by the term.
bool matches(const AffinityTerm& term, const Labels& labels);
// Whether some port is in both; both ascending.
bool share_a_port(const std::vector<std::int32_t>& some, const std::vector<std::int32_t>& others);

class PresenceIndex {
 public:
  PresenceIndex() = default;
  PresenceIndex(PresenceIndex&&) = default;  // its lists point into its map
  PresenceIndex& operator=(PresenceIndex&&) = default;

  using Nodes = std::map<NodeId, PresentTasks>;
  using Entry = std::pair<const Presence, Nodes>;

  void bind(QueueId queue, const JobSpec& spec, NodeId node, int sign) { count(queue, spec, node, {sign, 0}); }
  void promise(QueueId queue, const JobSpec& spec, NodeId node, int sign) { count(queue, spec, node, {0, sign}); }
  // What is there is about to be counted anew.
  void forget(NodeId node);

  // Those that the term means; and those that keep jobs with these labels away from somewhere.
  std::vector<const Entry*> meant_by(const AffinityTerm& term) const;
  std::vector<const Entry*> excluding(const Labels& labels) const;
  // Those that have one of these ports, each once.
  std::vector<const Entry*> having(const std::vector<std::int32_t>& ports) const;
  bool empty() const { return presences_.empty(); }

  bool operator==(const PresenceIndex& other) const { return presences_ == other.presences_; }

 private:
  using Label = std::pair<std::string, std::string>;
  using Listed = std::map<Label, std::vector<const Entry*>>;

  void count(QueueId queue, const JobSpec& spec, NodeId node, const PresentTasks& more);
  void list(const Entry& entry);
  void strike(const Entry& entry);

  std::map<Presence, Nodes> presences_;
  Listed by_label_;     // by each of its labels
  Listed by_excluded_;  // by the first label of each of its terms
  std::map<std::int32_t, std::vector<const Entry*>> by_port_;
};

}  // namespace berth::state
