// Checks which jobs may run near each other: trust domains that a pool keeps apart, affinity and anti-affinity, and the
// topology levels of groups.

#include <algorithm>

#include "sim/world/checker.h"

namespace berth::sim {

namespace {

bool is_meant(const AffinityTerm& term, const JobSpec& spec) {
  return std::all_of(term.labels.begin(), term.labels.end(), [&](const auto& label) {
    return std::find(spec.labels.begin(), spec.labels.end(), label) != spec.labels.end();
  });
}

}  // namespace

// Returns true if both nodes are in the same domain of the level. A node in no domain is near only to itself.
bool Checker::near(NodeId a, NodeId b, const std::string& level) const {
  if (a == b) return true;
  const auto domain = domain_of(nodes_[a.index()].spec, level);
  return !domain.empty() && domain == domain_of(nodes_[b.index()].spec, level);
}

bool Checker::in_a_domain(NodeId node, const std::string& level) const {
  return !domain_of(nodes_[node.index()].spec, level).empty();
}

std::string Checker::apart_in(const std::string& pool) const {
  for (const PoolConfig& one : config_.pools) {
    if (one.name == pool) return one.trust_domain_isolation;
  }
  return {};
}

// Returns true if the pool must keep the job away from the node, because a task of another trust domain runs or is
// nominated there.
bool Checker::apart_from_others(const JobView& job, NodeId node) const {
  const std::string& pool = nodes_[node.index()].spec.pool;
  const std::string level = apart_in(pool);
  if (level.empty()) return true;
  const auto in_the_way = [&](const TaskPlacement& other) {
    return nodes_[other.node.index()].spec.pool == pool && near(node, other.node, level);
  };
  return std::none_of(jobs_.begin(), jobs_.end(), [&](const auto& one) {
    const JobView& other = one.second;
    if (queues_[other.queue].domain == queues_[job.queue].domain) return false;
    const auto promised = other.promised();
    return (other.running && std::any_of(other.placements.begin(), other.placements.end(), in_the_way)) ||
           std::any_of(promised.begin(), promised.end(), in_the_way);
  });
}

// Returns the nodes of running tasks that match the term and that the job may know of.
std::vector<NodeId> Checker::meant_by(const AffinityTerm& term, const JobView& job) const {
  std::vector<NodeId> nodes;
  for (const auto& [id, other] : jobs_) {
    if (!other.running || queues_[other.queue].domain != queues_[job.queue].domain) continue;
    if (!is_meant(term, other.spec)) continue;
    for (const TaskPlacement& task : other.placements) nodes.push_back(task.node);
  }
  return nodes;
}

// Returns true if no task there uses a port of the job.
bool Checker::ports_free(const JobView& job, NodeId node, std::span<const TaskPlacement> own) const {
  const auto there = [&](const TaskPlacement& task) { return task.node == node; };
  for (const std::int32_t port : job.spec.ports) {
    if (std::any_of(own.begin(), own.end(), there)) return false;
    for (const JobId id : with_rules_) {
      const JobView& other = jobs_.at(id);
      const auto& ports = other.spec.ports;
      if (!other.running || std::find(ports.begin(), ports.end(), port) == ports.end()) continue;
      if (std::any_of(other.placements.begin(), other.placements.end(), there)) return false;
    }
  }
  return true;
}

// Returns true if the required terms of the job, and those of running jobs, allow one more of its tasks on the node.
// `own` are the placements of its tasks that are already placed in this start.
bool Checker::may_stand(const JobView& job, NodeId node, std::span<const TaskPlacement> own) const {
  if (!ports_free(job, node, own)) return false;
  for (const AffinityTerm& term : job.spec.anti_affinity) {
    if (!term.required || !in_a_domain(node, term.level)) continue;
    for (const NodeId other : meant_by(term, job)) {
      if (near(node, other, term.level)) return false;
    }
    for (const TaskPlacement& task : own) {
      if (is_meant(term, job.spec) && near(node, task.node, term.level)) return false;
    }
  }
  for (const JobId id : with_rules_) {
    const JobView& other = jobs_.at(id);
    if (!other.running || queues_[other.queue].domain != queues_[job.queue].domain) continue;
    for (const AffinityTerm& term : other.spec.anti_affinity) {
      if (!term.required || !is_meant(term, job.spec) || !in_a_domain(node, term.level)) continue;
      for (const TaskPlacement& task : other.placements) {
        if (near(node, task.node, term.level)) return false;
      }
    }
  }
  for (const AffinityTerm& term : job.spec.affinity) {
    if (!term.required) continue;
    std::vector<NodeId> meant = meant_by(term, job);
    std::erase_if(meant, [&](NodeId other) { return !in_a_domain(other, term.level); });
    const bool first = meant.empty() && is_meant(term, job.spec);
    if (first && !own.empty()) meant.push_back(own.front().node);
    const bool met =
        std::any_of(meant.begin(), meant.end(), [&](NodeId other) { return near(node, other, term.level); });
    if (!in_a_domain(node, term.level) || !(met || (first && own.empty()))) return false;
  }
  return true;
}

// Called before the placements are bound.
void Checker::check_affinity_rules(const JobView& job, std::span<const TaskPlacement> placements) {
  for (std::size_t t = 0; t < placements.size() && !violation_; ++t) {
    const std::string where = text_of(job.id) + " on " + nodes_[placements[t].node.index()].spec.name;
    require(apart_from_others(job, placements[t].node), "P11", where + ": beside another trust domain, kept apart");
    require(may_stand(job, placements[t].node, placements.first(t)), "P2",
            where + ": against affinity, or a port that is taken");
  }
  if (!job.spec.ports.empty()) count("with ports");
  const auto kept_apart = [&](const TaskPlacement& task) {
    return !apart_in(nodes_[task.node.index()].spec.pool).empty();
  };
  if (std::any_of(placements.begin(), placements.end(), kept_apart)) count("apart");
  for (const AffinityTerm& term : job.spec.affinity) {
    if (term.required) count(is_meant(term, job.spec) ? "near its like" : "near others");
  }
  for (const AffinityTerm& term : job.spec.anti_affinity) {
    if (term.required) count(is_meant(term, job.spec) ? "away from its like" : "away from others");
  }
}

// Checks that the tasks of a group with a required level are within one domain of it.
void Checker::check_groups(const JobView& job, const std::vector<TaskPlacement>& placements) {
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const std::string& level = job.spec.groups[g].topology.required;
    if (level.empty() || violation_) continue;
    const TaskPlacement* first = nullptr;
    for (const TaskPlacement& placement : placements) {
      if (placement.group != g) continue;
      if (first == nullptr) first = &placement;
      require(in_a_domain(placement.node, level) && near(first->node, placement.node, level), "P2",
              text_of(job.id) + ": a group spans two domains of level " + level);
    }
    count("group within one " + level);
  }
}

// Returns true if the places of the job depend only on what runs now, so that a search can be checked from outside: its
// own tasks do not restrict each other.
bool Checker::stands_by_itself(const JobView& job) const {
  const auto of_its_like = [&](const AffinityTerm& term) { return term.required && is_meant(term, job.spec); };
  return job.spec.ports.empty() && std::none_of(job.spec.affinity.begin(), job.spec.affinity.end(), of_its_like) &&
         std::none_of(job.spec.anti_affinity.begin(), job.spec.anti_affinity.end(), of_its_like);
}

// Nominated and reserved places keep other jobs away, too; only the product knows them completely.
bool Checker::is_open(const JobView& job, std::size_t node) const {
  const NodeId id(static_cast<std::uint32_t>(node));
  if (!apart_from_others(job, id)) return false;
  const auto is_kept = [&](const auto& one) {
    return !one.second.promised().empty() || (one.first != job.id && !one.second.held_nodes.empty());
  };
  const bool may_be_kept_away = job.spec.has_terms() || !job.spec.labels.empty();
  if (may_be_kept_away && std::any_of(jobs_.begin(), jobs_.end(), is_kept)) return false;
  return may_stand(job, id, {});
}

// Returns the fewest NUMA domains in which the empty node has so many GPUs of the model; tries all sets of domains.
std::size_t Checker::fewest_domains(const NodeView& node, std::uint32_t model, std::size_t gpus) const {
  std::map<std::int32_t, std::size_t> there;
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    if (node.gpus[g].model == model) ++there[node.spec.gpus[g].numa];
  }
  std::size_t fewest = there.size() + 1;
  for (std::uint32_t set = 1; set < 1U << there.size(); ++set) {
    std::size_t sum = 0;
    std::size_t domains = 0;
    std::uint32_t bit = 1;
    for (const auto& [domain, count] : there) {
      if ((set & bit) != 0) sum += count, ++domains;
      bit <<= 1U;
    }
    if (sum >= gpus) fewest = std::min(fewest, domains);
  }
  return fewest;
}

// Checks that the GPUs of a task keep its NUMA policy.
void Checker::check_numa(const JobView& job, const TaskPlacement& placement) {
  const TaskGroup& group = job.spec.groups[placement.group];
  const bool single = group.numa == NumaPolicy::kSingleNumaNode;
  if ((!single && group.numa != NumaPolicy::kRestricted) || placement.gpus.size() < 2) return;
  const NodeView& node = nodes_[placement.node.index()];
  std::set<std::int32_t> domains;
  for (const std::uint8_t gpu : placement.gpus) domains.insert(node.spec.gpus[gpu].numa);
  const std::string where = text_of(job.id) + " on " + node.spec.name;
  if (single) {
    require(domains.size() == 1, "P2", where + ": GPUs of several NUMA domains");
    count("in one NUMA domain");
  } else if (!job.spec.exclusive) {
    const std::size_t fewest = fewest_domains(node, node.gpus[placement.gpus.front()].model, placement.gpus.size());
    require(domains.size() <= fewest, "P2", where + ": GPUs of more NUMA domains than an empty node would need");
    count("in few NUMA domains");
  }
}

}  // namespace berth::sim
