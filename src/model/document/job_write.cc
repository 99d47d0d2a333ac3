#include "model/document/job_document.h"
#include "model/document/job_keys.h"

namespace berth::document {
namespace {

void write_keys(std::string_view prefix, JobSource from, Node& map);

// One that is called as if it had no name, and has nothing that only an item of `groups` has, stands at the top.
void write_groups(const JobSpec& job, Node& map) {
  const std::vector<TaskGroup>& groups = job.groups;
  const bool flat =
      groups.size() == 1 && groups.front().name == TaskGroup().name && groups.front().topology == TopologyConstraint();
  if (flat) return write_keys(kGroupKeys, {job, groups.front()}, map);
  Node list = list_node();
  for (const TaskGroup& group : groups) {
    Node& item = list.items.emplace_back(map_node());
    item.set("name", string_node(group.name));  // also where it is the default
    write_keys(kGroupKeys, {job, group}, item);
  }
  map.set("groups", std::move(list));
}

void write_keys(std::string_view prefix, JobSource from, Node& map) {
  for (const JobKey* key : keys_in(prefix)) {
    if (key->form.kind == KeyKind::kGroups) {
      write_groups(from.job, map);
    } else if (key->form.kind == KeyKind::kMap) {
      Node inner = map_node();
      write_keys(std::string(key->path) + ".", from, inner);
      if (!inner.entries.empty()) map.set(key->name(), std::move(inner));
    } else if (Node value = key->form.write(key->form, from); value.kind != NodeKind::kNull) {
      map.set(key->name(), std::move(value));
    }
  }
}

}  // namespace

Node job_node(const JobSpec& spec) {
  const TaskGroup none;
  Node map = map_node();
  write_keys("", {spec, none}, map);
  return map;
}

std::string job_to_yaml(const JobSpec& spec) { return to_yaml(job_node(spec)); }

}  // namespace berth::document
