#include "model/document/custom_keys.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "model/document/node_rule_keys.h"
#include "model/document/plain_keys.h"
#include "model/document/quantity.h"

namespace berth::document {
namespace {

bool is_blank(const std::string& text) { return text.find_first_not_of(" \n") == std::string::npos; }

}  // namespace

void read_gpus(const Value& value, JobTarget to) {
  const std::int64_t milli = value.milli();
  if (milli > kMilli && milli % kMilli != 0) {
    return value.refuse(milli_text(milli) + " is neither whole GPUs nor a share of one; give 1, 2, ... or less than 1");
  }
  if (milli > static_cast<std::int64_t>(kMaxGpusPerNode) * kMilli) {
    return value.refuse(milli_text(milli) + " is more than one node has; give at most " +
                        std::to_string(kMaxGpusPerNode) + " per task and more tasks");
  }
  TaskRequest& request = to.group.request;
  const bool share = milli > 0 && milli < kMilli;
  request.gpus = share ? 1 : static_cast<std::int32_t>(milli / kMilli);
  request.gpu_milli = share ? static_cast<std::int32_t>(milli) : 1000;
}
Node gpus_node(JobSource from) {
  const TaskRequest& request = from.group.request;
  return request.gpus == 0 ? Node() : plain_node(milli_text(request.total_gpu_milli()));
}

void read_cpus(const Value& value, JobTarget to) {
  const std::int64_t milli = value.milli();
  if (milli > kMaxCpus * kMilli)
    value.refuse(milli_text(milli) + " is more than any node has; give at most " + std::to_string(kMaxCpus));
  to.group.request.cpu_milli = milli;
}
Node cpus_node(JobSource from) { return plain_node(milli_text(from.group.request.cpu_milli)); }

void read_command(const Value& value, JobTarget to) {
  if (value.node().kind != NodeKind::kScalar) {
    to.group.command = value.strings();
    return;
  }
  if (is_blank(value.node().text)) value.refuse("this is empty; give a line for the shell, or a list of words");
  to.group.command = {"/bin/sh", "-c", value.string()};
}
// What the shell runs is written as its line, unless the line is blank: a reader would refuse that.
Node command_node(JobSource from) {
  const std::vector<std::string>& command = from.group.command;
  if (command.empty()) return {};
  const bool of_shell = command.size() == 3 && command[0] == "/bin/sh" && command[1] == "-c";
  return of_shell && !is_blank(command[2]) ? string_node(command[2]) : AsTexts::node(command);
}

namespace {

// Calls `visit` for each item of a list; a single value stands for a list of one.
template <class Visit>
void each_or_one(const Value& value, const Visit& visit) {
  if (value.node().kind == NodeKind::kList) return value.each_item(visit);
  visit(value);
}

}  // namespace

void read_tolerations(const Value& value, JobTarget to) {
  std::vector<std::string>& all = to.group.tolerations;
  each_or_one(value, [&](const Value& item) {
    std::string one = toleration_of(item);
    if (std::find(all.begin(), all.end(), one) != all.end())
      item.refuse("'" + one.substr(0, 80) + "' is given twice; leave one out");
    all.push_back(std::move(one));
  });
}
Node tolerations_node(JobSource from) {
  return from.group.tolerations.empty() ? Node() : AsTexts::node(from.group.tolerations);
}

void read_node_rules(const Value& value, JobTarget to) {
  each_or_one(value, [&](const Value& item) { to.group.node_rules.push_back(node_rule_of(item)); });
  if (to.group.node_rules.size() > kMaxNodeRules)
    value.refuse("there are more than " + std::to_string(kMaxNodeRules) + " rules");
}
Node node_rules_node(JobSource from) {
  if (from.group.node_rules.empty()) return {};
  Node list = list_node();
  for (const NodeRule& rule : from.group.node_rules) {
    const auto line = line_of(rule);
    list.items.push_back(line ? string_node(*line) : rule_node(rule));
  }
  return list;
}

void read_signal(const Value& value, JobTarget to) {
  const auto signal = parse_signal(value.string());
  if (!signal) return value.refuse(signal.error().message);
  to.job.checkpoint.signal = *signal;
}
Node signal_node(JobSource from) {
  const std::int32_t signal = from.job.checkpoint.signal;
  return signal == CheckpointContract().signal ? Node() : string_node(signal_text(signal));
}

void read_ports(const Value& value, JobTarget to) {
  std::vector<std::int32_t>& ports = to.job.ports;
  value.each_item([&](const Value& item) {
    const std::int32_t port = static_cast<std::int32_t>(item.integer(1, kLastPort));
    const auto at = std::lower_bound(ports.begin(), ports.end(), port);
    if (at != ports.end() && *at == port) return item.refuse(std::to_string(port) + " is given twice; leave one out");
    ports.insert(at, port);
  });
}
Node ports_node(JobSource from) {
  if (from.job.ports.empty()) return {};
  Node list = list_node();
  for (const std::int32_t port : from.job.ports) list.items.push_back(plain_node(std::to_string(port)));
  return list;
}

namespace {

// Returns the key that asks for what the name says; nothing if it is a countable.
std::optional<std::string_view> key_for(std::string_view name) {
  if (name == "cpu" || name == "cpus") return "cpus";
  if (name == "memory") return "memory";
  if (name == "gpu" || name == "gpus" || name == "nvidia.com/gpu") return "gpus";
  return std::nullopt;
}

}  // namespace

void read_countables(const Value& value, JobTarget to) {
  Countables& countables = to.group.request.countables;
  const std::size_t mistakes = value.reading().mistakes().size();
  value.each_entry([&](const Entry& entry, const Value& amount) {
    if (entry.key == kPodsCountable) return amount.refuse("each task takes one of 'pods'; leave it out");
    if (const auto other = key_for(entry.key))
      return amount.refuse("'" + entry.key + "' is no countable; ask for it with " + std::string(*other));
    countables.emplace_back(entry.key, amount.integer(1, kMaxCountable));
  });
  std::sort(countables.begin(), countables.end());
  if (value.reading().mistakes().size() == mistakes && !is_well_formed(countables))
    value.refuse(std::string(kCountablesRule));
}
Node countables_node(JobSource from) {
  const Countables& countables = from.group.request.countables;
  if (countables.empty()) return {};
  Node map = map_node();
  for (const auto& [name, amount] : countables) map.set(name, integer_node(amount));
  return map;
}

void read_dependencies(const Value& value, DependencyKind kind, JobSpec& spec) {
  const auto add = [&](const Value& id) {
    const std::int64_t number = id.integer(0, std::numeric_limits<std::int64_t>::max());
    spec.dependencies.push_back({kind, JobId(static_cast<std::uint64_t>(number))});
  };
  if (value.node().kind == NodeKind::kScalar) return add(value);
  value.each_item(add);
}
Node dependencies_node(DependencyKind kind, const JobSpec& spec) {
  Node list = list_node();
  for (const Dependency& one : spec.dependencies) {
    if (one.kind == kind) list.items.push_back(plain_node(std::to_string(one.job.value())));
  }
  return list.items.empty() ? Node() : list;
}

void read_terms(const Value& value, std::vector<AffinityTerm>& terms) {
  value.each_item([&](const Value& item) {
    AffinityTerm& term = terms.emplace_back();
    item.map({{"labels", [&](const Value& v) { term.labels = AsLabels::read({}, v); }},
              {"level", [&](const Value& v) { term.level = v.string(); }},
              {"required", [&](const Value& v) { term.required = v.boolean(); }}});
  });
}
Node terms_node(const std::vector<AffinityTerm>& terms) {
  if (terms.empty()) return {};
  Node list = list_node();
  for (const AffinityTerm& term : terms) {
    Node& item = list.items.emplace_back(map_node());
    if (!term.labels.empty()) item.set("labels", AsLabels::node(term.labels));
    if (!term.level.empty()) item.set("level", string_node(term.level));
    if (!term.required) item.set("required", plain_node("false"));
  }
  return list;
}

}  // namespace berth::document
