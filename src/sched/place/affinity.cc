#include "sched/place/affinity.h"

#include <algorithm>
#include <iterator>

namespace berth::sched {

using state::JobState;
using state::matches;
using state::PresenceIndex;
using state::State;

std::string ports_text(const std::vector<std::int32_t>& ports) {
  std::string text = ports.size() == 1 ? "port" : "ports";
  for (std::size_t i = 0; i < ports.size(); ++i)
    text += (i == 0 ? " " : i + 1 == ports.size() ? " and " : ", ") + std::to_string(ports[i]);
  return text;
}

bool is_company(const JobState& job, const JobState& other) {
  return std::any_of(job.spec.affinity.begin(), job.spec.affinity.end(), [&](const AffinityTerm& term) {
    return term.required && matches(term, other.spec.labels) && !matches(term, job.spec.labels);
  });
}

AffinityFilter::AffinityFilter(const State& state, const JobState& job, Besides besides)
    : state_(state), job_(job), trust_domain_(state.queue(job.queue).trust_domain) {
  if (besides == Besides::kAll) {
    apart_ = std::any_of(state.pools().begin(), state.pools().end(),
                         [](const auto& pool) { return pool.trust_domain_isolation; });
  }
  if (besides == Besides::kNobody) return;
  for (const AffinityTerm& term : job.spec.affinity) read_affinity(term);
  for (const AffinityTerm& term : job.spec.anti_affinity) read_anti_affinity(term);
  if (!job.spec.labels.empty()) read_excluders();
  if (!job.spec.ports.empty()) read_ports();
}

// Returns the level as a number; the node comes after the configured levels.
std::size_t AffinityFilter::level_of(const AffinityTerm& term) const {
  return state_.topology().level_named(term.level).value_or(state_.topology().levels().size());
}

std::optional<AffinityFilter::Place> AffinityFilter::place_of(NodeId node, std::size_t level) const {
  if (level == state_.topology().levels().size()) return Place(level, node.value());
  for (const DomainId id : state_.topology().of_node(node)) {
    if (state_.topology().domain(id).level == level) return Place(level, id.value());
  }
  return std::nullopt;
}

bool AffinityFilter::ours(const PresenceIndex::Entry& entry) const {
  return state_.queue(entry.first.queue).trust_domain == trust_domain_;
}

void AffinityFilter::add_places(const PresenceIndex::Entry& entry, std::size_t level, bool nominated,
                                Places& places) const {
  for (const auto& [node, tasks] : entry.second) {
    if (tasks.bound == 0 && !nominated) continue;
    if (const auto place = place_of(node, level)) places.insert(*place);
  }
}

AffinityFilter::Places AffinityFilter::places_of(const AffinityTerm& term, bool nominated) const {
  Places places;
  for (const PresenceIndex::Entry* entry : state_.presences().meant_by(term)) {
    if (ours(*entry)) add_places(*entry, level_of(term), nominated, places);
  }
  return places;
}

void AffinityFilter::read_affinity(const AffinityTerm& term) {
  const std::size_t level = level_of(term);
  const bool own = matches(term, job_.spec.labels);
  Places places = places_of(term, false);
  if (!term.required)
    wishes_.push_back({level, std::move(places), false, own});
  else if (places.empty() && own)
    together_ = std::max(together_.value_or(0), level);
  else
    near_.push_back({level, std::move(places)});
}

void AffinityFilter::read_anti_affinity(const AffinityTerm& term) {
  const std::size_t level = level_of(term);
  const bool own = matches(term, job_.spec.labels);
  Places places = places_of(term, true);
  if (!term.required) {
    wishes_.push_back({level, std::move(places), true, own});
    return;
  }
  if (!places.empty()) closed_levels_.insert(level);
  closed_.merge(places);
  if (own) alone_.push_back(level);
}

// Reads the running and nominated jobs whose own anti-affinity keeps jobs like this one away.
void AffinityFilter::read_excluders() {
  for (const PresenceIndex::Entry* entry : state_.presences().excluding(job_.spec.labels)) {
    if (!ours(*entry)) continue;
    for (const AffinityTerm& term : entry->first.excludes) {
      if (!matches(term, job_.spec.labels)) continue;
      closed_levels_.insert(level_of(term));
      add_places(*entry, level_of(term), true, closed_);
    }
  }
}

void AffinityFilter::read_ports() {
  for (const PresenceIndex::Entry* entry : state_.presences().having(job_.spec.ports)) {
    for (const auto& [node, tasks] : entry->second) ports_taken_.insert(node);
  }
  alone_.push_back(state_.topology().levels().size());
}

bool AffinityFilter::is_at(const Places& places, NodeId node, std::size_t level) const {
  const auto place = place_of(node, level);
  return place && places.contains(*place);
}

bool AffinityFilter::alone_on(NodeId node) const {
  return std::any_of(alone_.begin(), alone_.end(),
                     [&](std::size_t level) { return place_of(node, level).has_value(); });
}

bool AffinityFilter::own_at(NodeId node, std::size_t level) const {
  const auto place = place_of(node, level);
  return place && own_.contains(*place);
}

bool AffinityFilter::is_apart(NodeId node) const {
  const std::uint32_t pool = state_.node(node).pool;
  const auto level = state_.pools()[pool].trust_domain_isolation;
  if (!level) return false;
  // A node in no domain of the level counts as a domain by itself.
  const Place place = place_of(node, *level).value_or(Place(state_.topology().levels().size(), node.value()));
  const auto [known, fresh] = apart_known_.try_emplace({pool, place}, false);
  if (!fresh) return known->second;
  for (const NodeId other : state_.kept_apart_with(node)) {
    const auto& tenants = state_.node(other).tenants;
    known->second = known->second || std::any_of(tenants.begin(), tenants.end(), [&](const auto& tenant) {
                      return state_.queue(tenant.first).trust_domain != trust_domain_;
                    });
  }
  return known->second;
}

bool AffinityFilter::allows(NodeId node) const { return !(apart_ && is_apart(node)) && may_stand(node); }

bool AffinityFilter::may_stand(NodeId node) const {
  return !ports_taken_.contains(node) &&
         std::none_of(closed_levels_.begin(), closed_levels_.end(),
                      [&](std::size_t level) { return is_at(closed_, node, level); }) &&
         std::all_of(near_.begin(), near_.end(),
                     [&](const Near& near) { return is_at(near.open, node, near.level); }) &&
         std::none_of(alone_.begin(), alone_.end(), [&](std::size_t level) { return own_at(node, level); });
}

std::int64_t AffinityFilter::dislike(NodeId node) const {
  std::int64_t dislike = 0;
  for (const Wish& wish : wishes_) {
    const bool there = is_at(wish.places, node, wish.level) || (wish.own && own_at(node, wish.level));
    if (there) dislike += wish.away ? 1 : -1;
  }
  return dislike;
}

void AffinityFilter::enter(NodeId node, int sign) {
  if (alone_.empty() && wishes_.empty()) return;
  std::set<std::size_t> levels(alone_.begin(), alone_.end());
  for (const Wish& wish : wishes_) {
    if (wish.own) levels.insert(wish.level);
  }
  for (const std::size_t level : levels) {
    const auto place = place_of(node, level);
    if (place && (own_[*place] += sign) == 0) own_.erase(*place);
  }
}

bool AffinityFilter::allow(std::span<const TaskPlacement> placements) {
  std::size_t entered = 0;
  bool all = true;
  for (; all && entered < placements.size(); ++entered) {
    const NodeId node = placements[entered].node;
    const bool near = !together_ || place_of(node, *together_) == place_of(placements.front().node, *together_);
    all = near && allows(node) && (!together_ || place_of(node, *together_));
    enter(node, +1);
  }
  while (entered > 0) enter(placements[--entered].node, -1);
  return all;
}

std::vector<NodeId> AffinityFilter::touched_by(NodeId node) const {
  std::set<NodeId> nodes;
  for (const Wish& wish : wishes_) {
    const auto place = wish.own ? place_of(node, wish.level) : std::nullopt;
    if (!place || wish.level == state_.topology().levels().size()) continue;
    const auto& domain = state_.topology().domain(DomainId(place->second));
    nodes.insert(domain.nodes.begin(), domain.nodes.end());
  }
  return {nodes.begin(), nodes.end()};
}

// --- why -----------------------------------------------------------------------------------------------------------

std::string AffinityFilter::text_of(const AffinityTerm& term) const {
  std::string text;
  for (const auto& [key, value] : term.labels) text += (text.empty() ? "" : ",") + key + "=" + value;
  return text + " within one " + term.level;
}

bool AffinityFilter::is_meant(const JobState& other) const {
  const auto means = [](const JobSpec& spec, const JobSpec& whom) {
    return std::any_of(spec.anti_affinity.begin(), spec.anti_affinity.end(),
                       [&](const AffinityTerm& term) { return term.required && matches(term, whom.labels); });
  };
  return state_.queue(other.queue).trust_domain == trust_domain_ &&
         (means(job_.spec, other.spec) || means(other.spec, job_.spec));
}

// Returns the running jobs, then the nominated ones, that close the node.
template <class Counts, class StandsThere>
std::vector<JobId> AffinityFilter::jobs_there(const Counts& counts, const StandsThere& stands_there) const {
  std::vector<JobId> jobs;
  for (const JobId id : state_.running()) {
    const JobState& other = *state_.job(id);
    const auto& tasks = other.attempt->tasks;
    const bool there = id != job_.id && counts(other) && std::any_of(tasks.begin(), tasks.end(), [&](const auto& task) {
                         return stands_there(task.placement);
                       });
    if (there) jobs.push_back(id);
  }
  for (const JobId id : state_.nominated()) {
    const JobState& other = *state_.job(id);
    const auto& nominated = other.nomination->placements;
    if (id != job_.id && counts(other) && std::any_of(nominated.begin(), nominated.end(), stands_there))
      jobs.push_back(id);
  }
  return jobs;
}

std::vector<JobId> AffinityFilter::meant_at(NodeId node, std::size_t level) const {
  const auto here = place_of(node, level);
  return jobs_there([&](const JobState& other) { return here && is_meant(other); },
                    [&](const TaskPlacement& placement) { return place_of(placement.node, level) == here; });
}

std::vector<JobId> AffinityFilter::with_its_ports_on(NodeId node) const {
  return jobs_there([&](const JobState& other) { return state::share_a_port(job_.spec.ports, other.spec.ports); },
                    [&](const TaskPlacement& placement) { return placement.node == node; });
}

std::vector<JobId> AffinityFilter::other_trust_domains_near(NodeId node) const {
  const std::vector<NodeId> near = state_.kept_apart_with(node);
  return jobs_there([&](const JobState& other) { return state_.queue(other.queue).trust_domain != trust_domain_; },
                    [&](const TaskPlacement& placement) {
                      return std::find(near.begin(), near.end(), placement.node) != near.end();
                    });
}

std::vector<JobId> AffinityFilter::in_the_way(NodeId node) const {
  std::vector<JobId> jobs;
  const auto add = [&](const std::vector<JobId>& more) {
    for (const JobId id : more) {
      if (std::find(jobs.begin(), jobs.end(), id) == jobs.end()) jobs.push_back(id);
    }
  };
  if (apart_) add(other_trust_domains_near(node));
  for (const std::size_t level : closed_levels_) add(meant_at(node, level));
  if (!ports_taken_.empty()) add(with_its_ports_on(node));
  return jobs;
}

namespace {

JobId first_of(const std::vector<JobId>& jobs) { return jobs.empty() ? JobId::none() : jobs.front(); }

std::vector<std::int32_t> shared_ports(const JobSpec& one, const JobSpec& other) {
  std::vector<std::int32_t> shared;
  std::set_intersection(one.ports.begin(), one.ports.end(), other.ports.begin(), other.ports.end(),
                        std::back_inserter(shared));
  return shared;
}

}  // namespace

Reason AffinityFilter::why_closed(NodeId node) const {
  Reason why;
  why.node = node;
  if (apart_ && is_apart(node)) {
    why.code = ReasonCode::kTrustDomain;
    why.job = first_of(other_trust_domains_near(node));
    return why;
  }
  why.code = ReasonCode::kAffinity;
  // Affinity comes first: a job that keeps this one from a node is not the cause if affinity closes the node anyway.
  for (const AffinityTerm& term : job_.spec.affinity) {
    why.wish = text_of(term);
    why.rule = matches(term, job_.spec.labels) && together_ ? PlaceRule::kTogether : PlaceRule::kNear;
    if (term.required && !is_at(places_of(term, false), node, level_of(term))) return why;
  }
  for (const AffinityTerm& term : job_.spec.anti_affinity) {
    if (!term.required) continue;
    why.wish = text_of(term);
    if (is_at(places_of(term, true), node, level_of(term))) {
      why.rule = PlaceRule::kAway;
      why.job = first_of(meant_at(node, level_of(term)));
      return why;
    }
    if (matches(term, job_.spec.labels) && own_at(node, level_of(term))) {
      why.rule = PlaceRule::kAlone;
      return why;
    }
  }
  if (!job_.spec.ports.empty() && (ports_taken_.contains(node) || own_at(node, state_.topology().levels().size()))) {
    why.code = ReasonCode::kPorts;
    why.rule = ports_taken_.contains(node) ? PlaceRule::kJob : PlaceRule::kAlone;
    why.job = first_of(with_its_ports_on(node));
    why.wish = ports_text(why.job.valid() ? shared_ports(job_.spec, state_.job(why.job)->spec) : job_.spec.ports);
    return why;
  }
  for (const std::size_t level : closed_levels_) {
    if (!is_at(closed_, node, level)) continue;
    why.rule = PlaceRule::kExcluded;
    why.wish = level == state_.topology().levels().size() ? "node" : state_.topology().levels()[level];
    why.job = first_of(meant_at(node, level));
    return why;
  }
  return why;
}

}  // namespace berth::sched
