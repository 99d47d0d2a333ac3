#include <algorithm>
#include <map>
#include <optional>

#include "model/document/job_document.h"
#include "model/document/job_keys.h"
#include "model/document/reading.h"

namespace berth::document {
namespace {

// A job while its document is read: the job, one task group, and where each key stands, by the path of its row.
struct Draft {
  JobSpec& job;
  TaskGroup group = {};
  std::map<std::string_view, Position> stated = {};
  bool sound = true;  // no mistake in the keys of the group
  const Node* groups = nullptr;

  const Position* at(std::string_view path) const {
    const auto found = stated.find(path);
    return found == stated.end() ? nullptr : &found->second;
  }
  bool states_group() const {
    const auto first = stated.lower_bound(kGroupKeys);
    return first != stated.end() && first->first.starts_with(kGroupKeys);
  }
};

void add_keys(std::string_view prefix, Draft& draft, std::vector<Key>& keys);

void read_key(const JobKey& key, const Value& value, Draft& draft) {
  draft.stated.emplace(key.path, value.node().at);
  if (key.form.kind == KeyKind::kGroups) {
    draft.groups = &value.node();
  } else if (key.form.kind == KeyKind::kMap) {
    std::vector<Key> inner;
    add_keys(std::string(key.path) + ".", draft, inner);
    value.map(inner);
  } else {
    key.form.read(key.form, value, {draft.job, draft.group});
  }
}

// A name that is among the keys already stays what it is: at the top of a document `name` and `topology` are the job's.
void add_keys(std::string_view prefix, Draft& draft, std::vector<Key>& keys) {
  for (const JobKey* key : keys_in(prefix)) {
    const bool taken = std::any_of(keys.begin(), keys.end(), [&](const Key& one) { return one.name == key->name(); });
    if (!taken) keys.push_back({key->name(), [key, &draft](const Value& value) { read_key(*key, value, draft); }});
  }
}

// What follows from the keys of a task group that are not stated; and what must hold between its keys. After a mistake
// the second is not looked at: a key that could not be read has its default.
TaskGroup finish_group(Draft& draft, const Value& value) {
  TaskGroup& group = draft.group;
  const auto refuse = [&](const Position& at, std::string_view key, const std::string& message) {
    value.reading().refuse(at, (value.path().empty() ? "" : value.path() + ".") + std::string(key), message);
  };
  fill_request(group.request, draft.at("groups[].cpus") != nullptr, draft.at("groups[].memory") != nullptr);
  if (!draft.sound) return std::move(group);
  const Position* min_tasks = draft.at("groups[].min_tasks");
  if (min_tasks != nullptr && group.min_count > group.count) {
    refuse(
        *min_tasks, "min_tasks",
        std::to_string(group.min_count) + " is more than tasks " + std::to_string(group.count) + "; give at most that");
  }
  const bool no_gpus = group.request.gpus == 0 && group.request.mig_profile.empty();
  const Position* gpu_models = draft.at("groups[].gpu_models");
  if (gpu_models != nullptr && !group.request.gpu_models.empty() && no_gpus)
    refuse(*gpu_models, "gpu_models", "no GPUs are asked for; give gpus, or leave it out");
  const Position* launch = draft.at("groups[].launch");
  if (launch != nullptr && group.launch == Launch::kPerGpu && no_gpus)
    refuse(*launch, "launch", "per-gpu, but no GPUs are asked for; give gpus, or leave it out");
  return std::move(group);
}

void read_groups(const Value& value, JobSpec& spec) {
  value.each_item([&](const Value& item) {
    Draft draft{.job = spec};
    std::vector<Key> keys;
    add_keys(kGroupKeys, draft, keys);
    const std::size_t before = item.reading().mistakes().size();
    item.map(keys);
    draft.sound = item.reading().mistakes().size() == before;
    spec.groups.push_back(finish_group(draft, item));
  });
}

}  // namespace

void fill_request(TaskRequest& request, bool cpus_stated, bool memory_stated) {
  const std::int64_t gpus = request.mig_profile.empty() ? request.gpus : 1;
  if (!cpus_stated) request.cpu_milli = gpus > 0 ? gpus * kDefaultCpuMilli : kDefaultCpuMilli;
  if (!memory_stated) request.memory_mib = gpus > 0 ? gpus * kDefaultMemoryMibPerGpu : kDefaultMemoryMib;
}

Checked<JobSpec> check_job(const Node& document) {
  JobSpec spec;
  Reading reading;
  const Value top(reading, document, "");
  Draft draft{.job = spec};
  std::vector<Key> keys;
  add_keys("", draft, keys);
  add_keys(kGroupKeys, draft, keys);
  top.map(keys);
  draft.sound = reading.mistakes().empty();
  if (spec.deadline && spec.earliest_start && *spec.deadline <= *spec.earliest_start)
    reading.refuse(*draft.at("deadline"), "deadline",
                   "the job may not start before that; give a deadline after its earliest_start");
  if (draft.groups != nullptr) {
    const Value value(reading, *draft.groups, "groups");
    if (draft.states_group()) value.refuse("the job also has fields of a task group beside it; move them into a group");
    read_groups(value, spec);
  } else {
    spec.groups.push_back(finish_group(draft, top));
  }
  if (!reading.mistakes().empty()) return {std::nullopt, reading.take_mistakes()};
  return {std::move(spec)};
}

Result<JobSpec> read_job(const Node& document, std::string_view file) { return result_of(file, check_job(document)); }

Result<JobSpec> read_job(std::string_view text, std::string_view file) {
  const auto tree = parse(text, file);
  if (!tree) return tree.error();
  return read_job(*tree, file);
}

}  // namespace berth::document
