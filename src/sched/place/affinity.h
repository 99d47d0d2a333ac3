#pragma once
// AffinityFilter: near what a job may run, and near what it would like to. Worked out once for a gang that is being
// placed, from what is bound and promised; its own tasks are told to it one by one.
//
// 1. Trust domains: where a pool keeps them apart within the domains of a level, a node is closed while a task of
//    another trust domain is bound or promised in its domain.
// 2. A required term of anti-affinity closes the domains of its level in which a job that it means has tasks; and what
//    runs closes its domains to the jobs that its own required terms mean. A node that is in no domain of the level
//    stays open.
// 3. A required term of affinity leaves open only the domains of its level in which a job that it means runs. Where
//    none does and the job itself is meant, the job has to be together within one domain of the level.
// 4. A term that means the job itself goes for its own tasks among each other: by anti-affinity each is in another
//    domain.
// 5. Terms that are not required make nodes liked or disliked.
// 6. A node where a task has a port of the job's, or is promised it, is closed, whoever's it is; and no two tasks of a
//    job that has ports are on one node.
// Terms know only jobs of the same trust domain. The rules are those of Kubernetes' inter-pod affinity, for a gang that
// is placed task by task.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/reason.h"
#include "state/state.h"

namespace berth::sched {

// What is looked at: everything; not the trust domains; nothing.
enum class Besides { kAll, kTerms, kNobody };

// Whether the job has to be near such as that other one, and is not such itself: if that left, it would help nobody.
bool is_company(const state::JobState& job, const state::JobState& other);

// "port 8080", "ports 80, 443 and 8080"
std::string ports_text(const std::vector<std::int32_t>& ports);

class AffinityFilter {
 public:
  AffinityFilter(const state::State& state, const state::JobState& job, Besides besides = Besides::kAll);

  // Whether any node could be closed or disliked, or the job have to be together.
  bool matter() const { return apart_ || has_terms(); }
  // Whether any but trust domains matter.
  bool has_terms() const {
    return !closed_.empty() || !ports_taken_.empty() || !near_.empty() || !alone_.empty() || together_ || prefers();
  }
  bool prefers() const { return !wishes_.empty(); }
  // Few nodes are open or some are better than others: all are to be looked at.
  bool choosy() const { return !near_.empty() || prefers(); }
  // The level, as a number, within one domain of which the job has to be because nobody else is near whom it could be.
  std::optional<std::size_t> together() const { return together_; }

  bool allows(NodeId node) const;
  // Whether no two of its tasks may stand there.
  bool alone_on(NodeId node) const;
  // Less is better.
  std::int64_t dislike(NodeId node) const;
  // Its own task goes there, or comes from there.
  void enter(NodeId node, int sign);
  // Whether all its tasks may stand there.
  bool allow(std::span<const TaskPlacement> placements);
  // The nodes that are liked more or less than before when a task of its own has gone to this one.
  std::vector<NodeId> touched_by(NodeId node) const;

  // Why the node is closed, or, where it is not, why its tasks could not be together.
  Reason why_closed(NodeId node) const;
  // Jobs that would have to be gone for the node to be open, as far as somebody has to be gone for that.
  std::vector<JobId> in_the_way(NodeId node) const;

 private:
  // A domain, or the node itself: a level and a number within it.
  using Place = std::pair<std::size_t, std::uint32_t>;
  using Places = std::set<Place>;
  struct Near {
    std::size_t level = 0;
    Places open;
  };
  struct Wish {
    std::size_t level = 0;
    Places places;
    bool away = false;
    bool own = false;  // its own tasks are meant too
  };

  std::size_t level_of(const AffinityTerm& term) const;
  std::optional<Place> place_of(NodeId node, std::size_t level) const;
  void add_places(const state::PresenceIndex::Entry& entry, std::size_t level, bool promised, Places& places) const;
  Places places_of(const AffinityTerm& term, bool promised) const;
  void read_affinity(const AffinityTerm& term);
  void read_anti_affinity(const AffinityTerm& term);
  void read_excluders();
  void read_ports();
  bool ours(const state::PresenceIndex::Entry& entry) const;
  bool is_at(const Places& places, NodeId node, std::size_t level) const;
  bool own_at(NodeId node, std::size_t level) const;
  bool is_apart(NodeId node) const;
  bool may_stand(NodeId node) const;
  bool is_meant(const state::JobState& other) const;
  template <class Counts, class StandsThere>
  std::vector<JobId> jobs_there(const Counts& counts, const StandsThere& stands_there) const;
  std::vector<JobId> meant_at(NodeId node, std::size_t level) const;
  std::vector<JobId> with_its_ports_on(NodeId node) const;
  std::vector<JobId> other_trust_domains_near(NodeId node) const;
  std::string text_of(const AffinityTerm& term) const;

  const state::State& state_;
  const state::JobState& job_;
  TrustDomainId trust_domain_;
  bool apart_ = false;
  Places closed_;
  std::set<std::size_t> closed_levels_;
  std::set<NodeId> ports_taken_;
  std::vector<Near> near_;
  std::vector<std::size_t> alone_;  // levels
  std::vector<Wish> wishes_;
  std::optional<std::size_t> together_;
  std::map<Place, std::int32_t> own_;  // its tasks, at the levels where they matter
  // Whether others have the domain around a node, by pool and place.
  mutable std::map<std::pair<std::uint32_t, Place>, bool> apart_known_;
};

}  // namespace berth::sched
