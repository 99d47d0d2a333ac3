#include "model/document/job_document.h"
#include "model/document/quantity.h"

namespace berth::document {
namespace {

void set_text(Node& map, std::string_view key, const std::string& text) {
  if (!text.empty()) map.set(key, string_node(text));
}
void set_strings(Node& map, std::string_view key, const std::vector<std::string>& items) {
  if (items.empty()) return;
  Node list = list_node();
  for (const std::string& item : items) list.items.push_back(string_node(item));
  map.set(key, std::move(list));
}
void set_pairs(Node& map, std::string_view key, const std::vector<std::pair<std::string, std::string>>& pairs) {
  if (pairs.empty()) return;
  Node body = map_node();
  for (const auto& [name, value] : pairs) body.set(name, string_node(value));
  map.set(key, std::move(body));
}
void set_duration(Node& map, std::string_view key, std::int64_t seconds) {
  if (seconds != 0) map.set(key, plain_node(duration_text(seconds)));
}
void set_flag(Node& map, std::string_view key, bool flag) {
  if (flag) map.set(key, plain_node("true"));
}
void set_map(Node& map, std::string_view key, Node body) {
  if (!body.entries.empty()) map.set(key, std::move(body));
}

// Writes the command. A shell command is written as its line, unless the line is blank: a document cannot state a blank
// command.
void set_command(Node& map, const std::vector<std::string>& command) {
  const bool of_shell = command.size() == 3 && command[0] == "/bin/sh" && command[1] == "-c";
  if (of_shell && command[2].find_first_not_of(" \n") != std::string::npos) {
    map.set("command", string_node(command[2]));
  } else {
    set_strings(map, "command", command);
  }
}

// Writes one task group. CPUs and memory are always stated, so that a later default cannot change them.
void set_group(Node& map, const TaskGroup& group) {
  map.set("tasks", integer_node(group.count));
  if (group.min_count != 0) map.set("min_tasks", integer_node(group.min_count));
  if (group.request.gpus != 0) map.set("gpus", plain_node(milli_text(group.request.total_gpu_milli())));
  set_strings(map, "gpu_models", group.request.gpu_models);
  set_text(map, "mig_profile", group.request.mig_profile);
  map.set("cpus", plain_node(milli_text(group.request.cpu_milli)));
  map.set("memory", plain_node(memory_text(group.request.memory_mib)));
  set_command(map, group.command);
  set_pairs(map, "env", group.env);
  set_text(map, "workdir", group.workdir);
  set_text(map, "image", group.image);
  if (group.launch != Launch::kPerTask) map.set("launch", string_node(name_of(group.launch)));
  set_text(map, "pool", group.pool);
  set_pairs(map, "node_selector", group.node_selector);
  set_strings(map, "tolerations", group.tolerations);
  if (group.numa != NumaPolicy::kBestEffort) map.set("numa", string_node(name_of(group.numa)));
}

Node topology_node(const TopologyConstraint& topology) {
  Node map = map_node();
  set_text(map, "required", topology.required);
  set_text(map, "preferred", topology.preferred);
  return map;
}

// Writes the task groups. A single group with the default name and no topology of its own is written at the top.
void set_groups(Node& map, const std::vector<TaskGroup>& groups) {
  const bool flat =
      groups.size() == 1 && groups.front().name == TaskGroup().name && groups.front().topology == TopologyConstraint();
  if (flat) return set_group(map, groups.front());
  Node list = list_node();
  for (const TaskGroup& group : groups) {
    Node& item = list.items.emplace_back(map_node());
    item.set("name", string_node(group.name));
    set_group(item, group);
    set_map(item, "topology", topology_node(group.topology));
  }
  map.set("groups", std::move(list));
}

void set_terms(Node& map, std::string_view key, const std::vector<AffinityTerm>& terms) {
  if (terms.empty()) return;
  Node list = list_node();
  for (const AffinityTerm& term : terms) {
    Node& item = list.items.emplace_back(map_node());
    set_pairs(item, "labels", term.labels);
    set_text(item, "level", term.level);
    if (!term.required) item.set("required", plain_node("false"));
  }
  map.set(key, std::move(list));
}

Node checkpoint_node(const CheckpointContract& checkpoint) {
  Node map = map_node();
  set_flag(map, "on_signal", checkpoint.on_signal);
  if (checkpoint.signal != CheckpointContract().signal) map.set("signal", string_node(signal_text(checkpoint.signal)));
  set_duration(map, "grace", checkpoint.grace_s);
  set_duration(map, "interval", checkpoint.interval_s);
  return map;
}

Node array_node(const JobSpec& spec) {
  Node map = map_node();
  if (spec.array_size != 0) map.set("size", integer_node(spec.array_size));
  if (spec.array_running != 0) map.set("running", integer_node(spec.array_running));
  return map;
}

void set_dependencies(Node& map, const std::vector<Dependency>& dependencies) {
  for (const DependencyKind kind : {DependencyKind::kAfter, DependencyKind::kAfterOk, DependencyKind::kAfterAny}) {
    Node list = list_node();
    for (const Dependency& one : dependencies) {
      if (one.kind == kind) list.items.push_back(plain_node(std::to_string(one.job.value())));
    }
    if (!list.items.empty()) map.set(name_of(kind), std::move(list));
  }
}

}  // namespace

Node job_node(const JobSpec& spec) {
  Node map = map_node();
  set_text(map, "name", spec.name);
  set_text(map, "queue", spec.queue);
  set_text(map, "user", spec.user);
  if (spec.kind != JobKind::kGang) map.set("kind", string_node(name_of(spec.kind)));
  if (spec.job_class != JobClass::kTraining) map.set("class", string_node(name_of(spec.job_class)));
  set_text(map, "priority", spec.priority_class);
  set_groups(map, spec.groups);
  set_map(map, "topology", topology_node(spec.topology));
  set_duration(map, "time_limit", spec.time_limit_s);
  set_duration(map, "estimate", spec.estimate_s);
  set_map(map, "checkpoint", checkpoint_node(spec.checkpoint));
  if (spec.retries != 0) map.set("retries", integer_node(spec.retries));
  set_dependencies(map, spec.dependencies);
  if (spec.deadline) map.set("deadline", string_node(to_iso8601(*spec.deadline)));
  if (spec.earliest_start) map.set("earliest_start", string_node(to_iso8601(*spec.earliest_start)));
  set_flag(map, "hold", spec.held);
  set_flag(map, "exclusive", spec.exclusive);
  set_flag(map, "spread", spec.spread);
  set_map(map, "array", array_node(spec));
  set_pairs(map, "labels", spec.labels);
  set_terms(map, "affinity", spec.affinity);
  set_terms(map, "anti_affinity", spec.anti_affinity);
  if (!spec.ports.empty()) {
    Node list = list_node();
    for (const std::int32_t port : spec.ports) list.items.push_back(integer_node(port));
    map.set("ports", std::move(list));
  }
  if (spec.max_unavailable != 0) map.set("max_unavailable", integer_node(spec.max_unavailable));
  return map;
}

std::string job_to_yaml(const JobSpec& spec) { return to_yaml(job_node(spec)); }

}  // namespace berth::document
