#pragma once
// AffinityFilter: which nodes a job may use, and prefers, because of other jobs there. It is computed once for a gang
// that is being placed, from what runs and what is nominated. The gang's own tasks are added one by one.
//
// 1. Trust domains: a pool may keep trust domains apart within the domains of a level. Then a node is closed while a
//    task of another trust domain runs or is nominated in its domain.
// 2. Required anti-affinity: a term closes each domain of its level in which a job that it matches has tasks. It also
//    works the other way: running jobs close their domains to the jobs that their own required terms match. A node in
//    no domain of the level stays open.
// 3. Required affinity: only the domains of the term's level in which a matching job runs are open. If there is none
//    and the job matches its own term, the job must be together within one domain of the level.
// 4. A term that matches the job itself applies among its own tasks: by anti-affinity each task is in another domain.
// 5. Terms that are not required make nodes preferred or less preferred.
// 6. Ports: a node is closed if a task of any job there has, or is nominated with, one of the job's ports. Two tasks of
//    a job with ports are never on one node.
//
// Terms match only jobs of the same trust domain. The rules are those of Kubernetes' inter-pod affinity, for a gang
// that is placed task by task.

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

// What is regarded: everything; all but trust domains; nothing.
enum class Besides { kAll, kTerms, kNobody };

// Returns true if `job` must be near jobs such as `other` and does not match that term itself. Evicting `other` for it
// could not help.
bool is_company(const state::JobState& job, const state::JobState& other);

// Returns "port 8080" or "ports 80, 443 and 8080".
std::string ports_text(const std::vector<std::int32_t>& ports);

class AffinityFilter {
 public:
  AffinityFilter(const state::State& state, const state::JobState& job, Besides besides = Besides::kAll);

  // Returns true if a node could be closed or less preferred, or if the job must be together.
  bool matter() const { return apart_ || has_terms(); }
  // The same without trust domains.
  bool has_terms() const {
    return !closed_.empty() || !ports_taken_.empty() || !near_.empty() || !alone_.empty() || together_ || prefers();
  }
  bool prefers() const { return !wishes_.empty(); }
  // Returns true if few nodes are open or some are preferred: then all nodes are compared.
  bool choosy() const { return !near_.empty() || prefers(); }
  // The level (a number) within one domain of which the job must be: it must be near jobs like itself, and none runs
  // yet.
  std::optional<std::size_t> together() const { return together_; }

  bool allows(NodeId node) const;
  // Returns true if no two tasks of the job may be on the node.
  bool alone_on(NodeId node) const;
  // How little the job prefers the node: less is better.
  std::int64_t dislike(NodeId node) const;
  // Adds (+1) or removes (-1) a task of the job itself on the node.
  void enter(NodeId node, int sign);
  // Returns true if all these tasks of the job may be at their places together.
  bool allow(std::span<const TaskPlacement> placements);
  // Returns the nodes that become more or less preferred when a task of the job goes to `node`.
  std::vector<NodeId> touched_by(NodeId node) const;

  // Returns why the node is closed; if it is not, why the tasks could not be together.
  Reason why_closed(NodeId node) const;
  // Returns the jobs that would have to leave to open the node. Empty if the node is not closed by jobs that are there.
  std::vector<JobId> in_the_way(NodeId node) const;

 private:
  // A level, and the number of a domain of it (or of the node).
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
    bool own = false;  // the job matches the term itself
  };

  std::size_t level_of(const AffinityTerm& term) const;
  std::optional<Place> place_of(NodeId node, std::size_t level) const;
  void add_places(const state::PresenceIndex::Entry& entry, std::size_t level, bool nominated, Places& places) const;
  Places places_of(const AffinityTerm& term, bool nominated) const;
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
  std::vector<std::size_t> alone_;  // levels of which each task needs its own domain
  std::vector<Wish> wishes_;
  std::optional<std::size_t> together_;
  std::map<Place, std::int32_t> own_;  // its own tasks, at the levels that matter
  // Cached by pool and place: whether another trust domain is in the domain around a node.
  mutable std::map<std::pair<std::uint32_t, Place>, bool> apart_known_;
};

}  // namespace berth::sched
