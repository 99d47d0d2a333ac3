#pragma once
// PresenceIndex: on which nodes tasks run of jobs with labels, ports or required anti-affinity. Affinity terms and port
// requests are checked against it.
//
// Jobs of one queue with the same labels, required anti-affinity and ports share one entry. The entry counts, per node,
// the bound tasks and the nominated tasks. A task counts as bound until its attempt ends, so stopping and unknown tasks
// count. The topology index says in which domain a node is, so a node that moves to another domain takes its tasks
// along. Jobs without labels, required anti-affinity and ports have no entry and cost nothing.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/ids.h"
#include "model/job.h"

namespace berth::state {

// The key of an entry: what its jobs have in common.
struct Presence {
  QueueId queue;
  Labels labels;
  std::vector<AffinityTerm> excludes;  // required anti-affinity terms
  std::vector<std::int32_t> ports;     // ascending
  auto operator<=>(const Presence&) const = default;
};

struct PresentTasks {
  std::int32_t bound = 0;
  std::int32_t nominated = 0;
  bool operator==(const PresentTasks&) const = default;
};

// Returns true if a job with these labels has all labels of the term.
bool matches(const AffinityTerm& term, const Labels& labels);
// Returns true if at least one port is in both lists. Requires that both are ascending.
bool share_a_port(const std::vector<std::int32_t>& some, const std::vector<std::int32_t>& others);

class PresenceIndex {
 public:
  PresenceIndex() = default;
  PresenceIndex(PresenceIndex&&) = default;  // no copies: the lists point into the map
  PresenceIndex& operator=(PresenceIndex&&) = default;

  using Nodes = std::map<NodeId, PresentTasks>;
  using Entry = std::pair<const Presence, Nodes>;

  void bind(QueueId queue, const JobSpec& spec, NodeId node, int sign) { count(queue, spec, node, {sign, 0}); }
  void nominate(QueueId queue, const JobSpec& spec, NodeId node, int sign) { count(queue, spec, node, {0, sign}); }
  // Removes all counts of the node. The caller counts its tasks again.
  void forget(NodeId node);

  // Returns the entries whose jobs match the term.
  std::vector<const Entry*> meant_by(const AffinityTerm& term) const;
  // Returns the entries whose required anti-affinity matches jobs with these labels.
  std::vector<const Entry*> excluding(const Labels& labels) const;
  // Returns the entries with at least one of these ports, each entry once.
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
