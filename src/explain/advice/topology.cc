// Advice about topology: levels that no node names, labels for levels that are not configured, and gangs without a
// topology constraint that are spread over domains.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "explain/advice/rules.h"
#include "explain/text_list.h"
#include "sched/place/node_fit.h"

namespace berth::explain {

using namespace sched;

using state::Domain;
using state::JobState;
using state::NodeState;
using state::State;

namespace {

// Of the nodes that are not lost, how many lie in no domain of each level.
std::vector<std::size_t> nodes_without(const State& state) {
  std::vector<std::size_t> without(state.topology().levels().size());
  for (const NodeState& node : state.nodes()) {
    if (node.status == NodeStatus::kLost) continue;
    for (std::size_t& count : without) ++count;
    for (const DomainId id : state.topology().of_node(node.id)) --without[state.topology().domain(id).level];
  }
  return without;
}

void advise_on_levels(Survey& survey) {
  const std::vector<std::string>& levels = survey.state().topology().levels();
  const std::vector<std::size_t> without = nodes_without(survey.state());
  const std::size_t nodes = survey.nodes();
  for (std::size_t l = 0; l < levels.size(); ++l) {
    if (without[l] == 0) continue;
    const bool all = without[l] == nodes;
    survey.say({AdviceCode::kNodesWithoutPlace,
                all ? AdviceSeverity::kWarning : AdviceSeverity::kNote,
                AdviceAbout::kCluster,
                {},
                (all ? "None of the " + std::to_string(nodes) + " nodes says"
                     : std::to_string(without[l]) + " of the " + std::to_string(nodes) + " nodes " +
                           verb(without[l], "do", "does") + " not say") +
                    " in which " + levels[l] + " of `topology` it stands: a gang that requires one " +
                    (all ? "never starts." : "does not go there."),
                "Name the domains of each node, by `--node-at` of its server or a label " + levels[l] +
                    ", or leave the level out of `topology`."},
               static_cast<std::int64_t>(without[l]));
  }
}

// Labels by which fleets usually say where a node stands.
constexpr std::array<std::string_view, 6> kUsual = {"zone", "block", "row", "rack", "switch", "nvlink"};

void advise_on_labels(Survey& survey) {
  std::map<std::string_view, std::pair<std::size_t, std::set<std::string_view>>> labelled;
  for (const NodeState& node : survey.state().nodes()) {
    if (node.status == NodeStatus::kLost) continue;
    for (const auto& [key, value] : node.spec.labels) {
      if (std::find(kUsual.begin(), kUsual.end(), key) == kUsual.end()) continue;
      ++labelled[key].first;
      labelled[key].second.insert(value);
    }
  }
  std::vector<std::string> found;
  std::vector<std::string> levels;
  for (const std::string_view key : kUsual) {
    const auto& [nodes, values] = labelled[key];
    if (values.size() < 2) continue;
    levels.emplace_back(key);
    found.push_back(std::to_string(values.size()) + " values of " + std::string(key) + " on " +
                    counted(static_cast<std::int64_t>(nodes), "node"));
  }
  if (levels.empty()) return;
  const auto word = [](const std::string& one) { return one; };
  std::string list;
  for (const std::string& level : levels) list += (list.empty() ? "" : ", ") + level;
  survey.say({AdviceCode::kTopologyNotConfigured,
              AdviceSeverity::kNote,
              AdviceAbout::kCluster,
              {},
              "Labels say where nodes stand (" + listed(found, word) +
                  "), and no level is configured: gangs are not kept together and cannot ask for it.",
              "Configure `topology: [" + list + "]`, outermost first."},
             static_cast<std::int64_t>(levels.size()));
}

}  // namespace

// Where there are several nodes: each level of which some are in no domain, a warning if none is in one; and, without
// any level, labels called as levels usually are that have several values.
void advise_on_places(Survey& survey) {
  if (survey.nodes() < 2) return;
  if (survey.state().topology().levels().empty())
    advise_on_labels(survey);
  else
    advise_on_levels(survey);
}

namespace {

// Tasks that would fit if they were alone: on the largest node, and at each level in the largest domain.
struct Largest {
  std::int64_t node = 0;
  std::vector<std::int64_t> domain;
};

std::int64_t slots_in(const TaskRequirements& ask, const Domain& domain) {
  std::int64_t slots = 0;
  for (const auto& [shape, nodes] : domain.shapes) {
    if (ask.classes[shape.node_class.index()]) slots += std::int64_t{nodes} * slots_when_empty(ask, shape);
  }
  return slots;
}

std::optional<Largest> largest_for(Survey& survey, const JobState& job) {
  const State& state = survey.state();
  const TaskRequirements ask = task_requirements(state, job, 0, kAllModels);
  Largest largest;
  std::size_t looks = state.node_index().shapes().size();
  for (std::size_t l = 0; l < state.topology().levels().size(); ++l) {
    for (const DomainId id : state.topology().at_level(l)) looks += 1 + state.topology().domain(id).shapes.size();
  }
  if (!survey.look(looks)) return std::nullopt;
  for (const auto& [shape, count] : state.node_index().shapes()) {
    if (count.there > 0 && ask.classes[shape.node_class.index()])
      largest.node = std::max(largest.node, slots_when_empty(ask, shape));
  }
  for (std::size_t l = 0; l < state.topology().levels().size(); ++l) {
    std::int64_t most = 0;
    for (const DomainId id : state.topology().at_level(l))
      most = std::max(most, slots_in(ask, state.topology().domain(id)));
    largest.domain.push_back(most);
  }
  return largest;
}

// Returns true for a gang of one group with GPUs and no topology constraint.
bool wishes_nothing(const JobState& job) {
  const JobSpec& spec = job.spec;
  const TopologyConstraint none;
  return spec.kind == JobKind::kGang && !job.parent.valid() && spec.groups.size() == 1 && spec.groups[0].count > 1 &&
         spec.groups[0].request.gpus > 0 && spec.groups[0].node_selector.empty() && spec.groups[0].node_rules.empty() &&
         spec.topology == none && spec.groups[0].topology == none && !spec.spread && !spec.has_terms();
}

// In how many domains of the level the job's tasks stand; 0 if some stand in none.
std::size_t domains_of(const State& state, const JobState& job, std::size_t level) {
  std::set<DomainId> domains;
  for (const state::TaskState& task : job.attempt->tasks) {
    const auto path = state.topology().of_node(task.placement.node);
    const auto here =
        std::find_if(path.begin(), path.end(), [&](DomainId id) { return state.topology().domain(id).level == level; });
    if (here == path.end()) return 0;
    domains.insert(*here);
  }
  return domains.size();
}

// The tally of one pool.
struct PoolTally {
  std::size_t gangs = 0;
  struct Cut {
    std::vector<JobId> jobs;
    std::size_t most = 0;  // domains that one gang is spread over
  };
  std::map<std::size_t, Cut> cut;  // by level
};

void say_of(Survey& survey, std::uint32_t pool, const PoolTally& tally) {
  const State& state = survey.state();
  if (tally.cut.empty()) return;
  const auto& [level, cut] = *tally.cut.begin();
  const std::string& name = state.topology().levels()[level];
  survey.say(
      {AdviceCode::kGangsCutApart, AdviceSeverity::kWarning, AdviceAbout::kPool, state.pools()[pool].name,
       "Of " + counted(static_cast<std::int64_t>(tally.gangs), "gang") + " larger than a node that " +
           verb(tally.gangs, "run and ask", "runs and asks") + " for no `topology`, " +
           std::to_string(cut.jobs.size()) + verb(cut.jobs.size(), " stand", " stands") + " in more than one " + name +
           ", though one could hold " + verb(cut.jobs.size(), "each of them", "it") + ": " + jobs_words(cut.jobs) +
           ", in up to " + std::to_string(cut.most) + ".",
       "State `topology: {required: " + name + "}` in such jobs: they then wait for one " + name + " that has room."},
      static_cast<std::int64_t>(cut.jobs.size()));
}

}  // namespace

// Gangs larger than a node without a topology constraint, some of which stand in several domains of a level although
// one, were it empty, could hold them. The outermost such level is told.
void advise_on_cuts(Survey& survey) {
  const State& state = survey.state();
  if (state.topology().levels().empty()) return;
  std::map<RequestKey, std::optional<Largest>> known;
  std::map<std::uint32_t, PoolTally> tallies;
  for (const JobState* job : survey.jobs()) {
    if (!job->attempt || !wishes_nothing(*job)) continue;
    const auto [found, fresh] = known.try_emplace(request_key(*job, 0));
    if (fresh) found->second = largest_for(survey, *job);
    const std::optional<Largest>& largest = found->second;
    const auto tasks = static_cast<std::int64_t>(job->attempt->tasks.size());
    if (!largest || largest->node == 0 || tasks <= largest->node) continue;
    PoolTally& tally = tallies[state.node(job->attempt->tasks.front().placement.node).pool];
    ++tally.gangs;
    for (std::size_t l = 0; l < largest->domain.size(); ++l) {
      if (tasks > largest->domain[l]) break;
      const std::size_t domains = domains_of(state, *job, l);
      if (domains < 2) continue;
      tally.cut[l].jobs.push_back(job->id);
      tally.cut[l].most = std::max(tally.cut[l].most, domains);
    }
  }
  for (const auto& [pool, tally] : tallies) say_of(survey, pool, tally);
}

}  // namespace berth::explain
