#include "explain/eligibility.h"

#include <algorithm>
#include <set>
#include <vector>

#include "explain/text_list.h"
#include "explain/unavailable.h"
#include "model/node_rule.h"
#include "model/sharing.h"
#include "model/toleration.h"

namespace berth::explain {

namespace {

using state::JobState;
using state::NodeState;
using state::State;
using NodeList = std::vector<const NodeState*>;
using NodeLabel = std::pair<std::string, std::string>;

constexpr std::size_t kMostListed = 4;

// "a, b and c"; of a longer list the first few "and 3 more".
std::string some_of(const std::set<std::string>& all) {
  std::vector<std::string> names(all.begin(), all.end());
  if (names.size() <= kMostListed) return listed(names, [](const std::string& name) { return name; });
  const std::size_t more = names.size() - kMostListed;
  names.resize(kMostListed);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text + " and " + std::to_string(more) + " more";
}

bool has_label(const NodeState& node, const NodeLabel& label) {
  const auto& labels = node.spec.labels;
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::string label_text(const NodeLabel& label) {
  return label.second.empty() ? label.first : label.first + "=" + label.second;
}

// The first label that none of the nodes has, with the values that they have instead; or that none has all of them.
std::string missing_label(const TaskGroup& group, const NodeList& nodes, const std::string& where) {
  for (const auto& label : group.node_selector) {
    const auto has = [&](const NodeState* node) { return has_label(*node, label); };
    if (std::any_of(nodes.begin(), nodes.end(), has)) continue;
    std::set<std::string> values;
    for (const NodeState* node : nodes) {
      for (const auto& [key, value] : node->spec.labels) {
        if (key == label.first && !value.empty()) values.insert(label_text({key, value}));
      }
    }
    return "no node" + where + " has the label " + label_text(label) +
           (values.empty() ? "" : "; there is " + some_of(values));
  }
  return "no node" + where + " has all the labels " +
         listed(group.node_selector, [](const auto& label) { return label_text(label); });
}

// The taints that keep the group off these nodes.
std::string untolerated(const TaskGroup& group, const NodeList& nodes) {
  std::set<std::string> keys;
  for (const NodeState* node : nodes) {
    for (const Taint& taint : node->spec.taints) {
      if (!tolerates(group.tolerations, taint)) keys.insert(text_of(taint));
    }
  }
  const std::string which = nodes.size() == 1 ? "the one node that it could use has"
                                              : "the " + std::to_string(nodes.size()) + " nodes that it could use have";
  return which + (keys.size() == 1 ? " the taint " : " taints ") + some_of(keys) + ", which it does not tolerate";
}

std::string node_count(const NodeList& nodes, const std::string& where) {
  return nodes.size() == 1 ? "the one node" + where : "none of the " + std::to_string(nodes.size()) + " nodes" + where;
}

// The first of the group's node rules that allows none of these nodes; or that no node obeys all of them.
std::string broken_rule(const TaskGroup& group, const NodeList& nodes, const std::string& where) {
  const std::string none = node_count(nodes, where) + (nodes.size() == 1 ? " does not match" : " matches");
  for (const NodeRule& rule : group.node_rules) {
    const bool allowed = std::any_of(nodes.begin(), nodes.end(), [&](const NodeState* node) {
      return allows(rule, node->spec.name, node->spec.labels);
    });
    if (!allowed) return none + " its rule: " + text_of(rule);
  }
  return none + " all its rules: " + listed(group.node_rules, [](const NodeRule& rule) { return text_of(rule); });
}

std::string of_pool(const Words& words, const JobState& job, const std::string& name, bool has_nodes) {
  const auto& pools = words.state().pools();
  const auto pool = std::find_if(pools.begin(), pools.end(), [&](const auto& one) { return one.name == name; });
  if (pool == pools.end()) return "there is no pool " + name;
  const std::string rule = pool_rule(words, job, *pool);
  if (has_nodes) return "pool " + name + " " + rule;
  return "pool " + name + " has no nodes" + (rule.empty() ? "" : ", and " + rule);
}

}  // namespace

std::string no_eligible_node(const Words& words, const JobState& job, std::size_t index) {
  const State& state = words.state();
  const TaskGroup& group = job.spec.groups[index];
  NodeList all;
  for (const NodeState& node : state.nodes()) {
    if (group.pool.empty() || state.pools()[node.pool].name == group.pool) all.push_back(&node);
  }
  NodeList left = all;
  const auto level = level_of(job.spec, group);
  std::erase_if(left, [&](const NodeState* node) {
    return !state.may_use(job.queue, job.spec.job_class, node->pool) ||
           (level && !state.pools()[node->pool].admits(*level));
  });
  if (left.empty() && !group.pool.empty()) return of_pool(words, job, group.pool, !all.empty());
  if (left.empty()) {
    const auto rules = pool_rules(words, job);
    return "no pool with nodes is open to it: " + listed(rules, [](const std::string& rule) { return rule; });
  }
  const std::string where = group.pool.empty() ? "" : " of pool " + group.pool;
  NodeList labelled = left;
  std::erase_if(labelled, [&](const NodeState* node) {
    return !std::all_of(group.node_selector.begin(), group.node_selector.end(),
                        [&](const auto& label) { return has_label(*node, label); });
  });
  if (labelled.empty()) return missing_label(group, left, where);
  NodeList allowed = labelled;
  std::erase_if(allowed, [&](const NodeState* node) {
    return !std::all_of(group.node_rules.begin(), group.node_rules.end(),
                        [&](const NodeRule& rule) { return allows(rule, node->spec.name, node->spec.labels); });
  });
  const std::string with = group.node_selector.empty() ? where : where + " with its labels";
  if (allowed.empty()) return broken_rule(group, labelled, with);
  NodeList tolerated = allowed;
  std::erase_if(tolerated, [&](const NodeState* node) { return !tolerates_all(group.tolerations, node->spec.taints); });
  if (tolerated.empty()) return untolerated(group, allowed);
  return "none of the nodes" + where + " runs containers for its image";
}

}  // namespace berth::explain
