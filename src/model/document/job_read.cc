#include <algorithm>
#include <limits>
#include <optional>

#include "model/document/job_document.h"
#include "model/document/quantity.h"
#include "model/document/reading.h"

namespace berth::document {
namespace {

constexpr std::int64_t kMaxCpuMilli = 10'000 * kMilli;

std::int32_t count(const Value& value, std::int32_t low, std::int32_t high) {
  return static_cast<std::int32_t>(value.integer(low, high));
}

// Reads a duration above zero. A document states "no limit" by leaving the key out.
std::int64_t positive_duration(const Value& value) {
  const std::int64_t seconds = value.duration_s();
  if (seconds == 0) value.refuse("0 is no time; give one such as 10m or 2h, or leave it out for none");
  return seconds;
}

std::vector<std::string> command(const Value& value) {
  if (value.node().kind != NodeKind::kScalar) return value.strings();
  if (value.node().text.find_first_not_of(" \n") == std::string::npos)
    value.refuse("this is empty; give a line for the shell, or a list of words");
  return {"/bin/sh", "-c", value.string()};
}

Labels labels(const Value& value) {
  Labels all = value.string_map();
  std::sort(all.begin(), all.end());
  return all;
}

void read_gpus(const Value& value, TaskRequest& request) {
  const std::int64_t milli = value.milli();
  if (milli > kMilli && milli % kMilli != 0) {
    return value.refuse(milli_text(milli) + " is neither whole GPUs nor a share of one; give 1, 2, ... or less than 1");
  }
  if (milli > static_cast<std::int64_t>(kMaxGpusPerNode) * kMilli) {
    return value.refuse(milli_text(milli) + " is more than one node has; give at most " +
                        std::to_string(kMaxGpusPerNode) + " per task and more tasks");
  }
  const bool share = milli > 0 && milli < kMilli;
  request.gpus = share ? 1 : static_cast<std::int32_t>(milli / kMilli);
  request.gpu_milli = share ? static_cast<std::int32_t>(milli) : 1000;
}

std::int64_t read_cpus(const Value& value) {
  const std::int64_t milli = value.milli();
  if (milli > kMaxCpuMilli) value.refuse(milli_text(milli) + " is more than any node has; give at most 10000");
  return milli;
}

// Reads one task group, from the top of the document or from an item of `groups`.
struct GroupReader {
  TaskGroup group;
  bool stated = false;  // at least one of its keys was there
  std::optional<Position> min_tasks_at;
  std::optional<Position> gpu_models_at;
  std::optional<Position> launch_at;
  bool cpus_stated = false;
  bool memory_stated = false;

  std::vector<Key> keys() {
    const auto key = [this](std::string_view name, auto read) {
      return Key{name, [this, read](const Value& value) {
                   stated = true;
                   read(value);
                 }};
    };
    return {
        key("tasks", [this](const Value& v) { group.count = count(v, 1, kMaxTasksPerJob); }),
        key("min_tasks", [this](const Value& v) { read_min_tasks(v); }),
        key("gpus", [this](const Value& v) { read_gpus(v, group.request); }),
        key("gpu_models", [this](const Value& v) { read_gpu_models(v); }),
        key("mig_profile", [this](const Value& v) { group.request.mig_profile = v.string(); }),
        key("cpus", [this](const Value& v) { cpus_stated = true, group.request.cpu_milli = read_cpus(v); }),
        key("memory", [this](const Value& v) { memory_stated = true, group.request.memory_mib = v.memory_mib(); }),
        key("command", [this](const Value& v) { group.command = command(v); }),
        key("env", [this](const Value& v) { group.env = v.string_map(); }),
        key("workdir", [this](const Value& v) { group.workdir = v.string(); }),
        key("image", [this](const Value& v) { group.image = v.string(); }),
        key("launch", [this](const Value& v) { launch_at = v.node().at, group.launch = v.word<Launch>(); }),
        key("pool", [this](const Value& v) { group.pool = v.string(); }),
        key("node_selector", [this](const Value& v) { group.node_selector = labels(v); }),
        key("tolerations", [this](const Value& v) { group.tolerations = v.strings(); }),
        key("numa", [this](const Value& v) { group.numa = v.word<NumaPolicy>(); }),
    };
  }

  TaskGroup finish(const Value& value) {
    const std::string path = value.path().empty() ? "" : value.path() + ".";
    if (min_tasks_at && group.min_count > group.count) {
      value.reading().refuse(*min_tasks_at, path + "min_tasks: " + std::to_string(group.min_count) +
                                                " is more than tasks " + std::to_string(group.count) +
                                                "; give at most that");
    }
    const bool no_gpus = group.request.gpus == 0 && group.request.mig_profile.empty();
    if (gpu_models_at && !group.request.gpu_models.empty() && no_gpus)
      value.reading().refuse(*gpu_models_at, path + "gpu_models: no GPUs are asked for; give gpus, or leave it out");
    if (launch_at && group.launch == Launch::kPerGpu && no_gpus) {
      value.reading().refuse(*launch_at,
                             path + "launch: per-gpu, but no GPUs are asked for; give gpus, or leave it out");
    }
    fill_request(group.request, cpus_stated, memory_stated);
    return std::move(group);
  }

 private:
  void read_gpu_models(const Value& value) {
    group.request.gpu_models = value.strings();
    gpu_models_at = value.node().at;
  }
  void read_min_tasks(const Value& value) {
    group.min_count = count(value, 1, kMaxTasksPerJob);
    min_tasks_at = value.node().at;
  }
};

std::string level(const Value& value) {
  std::string name = value.string();
  if (name.empty()) value.refuse("this is empty; give a level of the topology, or leave it out");
  return name;
}

void read_topology(const Value& value, TopologyConstraint& topology) {
  value.map({{"required", [&](const Value& v) { topology.required = level(v); }},
             {"preferred", [&](const Value& v) { topology.preferred = level(v); }}});
}

// Reads the items of `groups`. Only an item may have `topology` of its own: at the top of a document it belongs to the
// job.
void read_groups(const Value& value, std::vector<TaskGroup>& groups) {
  value.each_item([&](const Value& item) {
    GroupReader reader;
    std::vector<Key> keys = reader.keys();
    keys.push_back({"name", [&](const Value& v) { reader.group.name = v.string(); }});
    keys.push_back({"topology", [&](const Value& v) { read_topology(v, reader.group.topology); }});
    item.map(keys);
    groups.push_back(reader.finish(item));
  });
}

void read_terms(const Value& value, std::vector<AffinityTerm>& terms) {
  value.each_item([&](const Value& item) {
    AffinityTerm& term = terms.emplace_back();
    item.map({{"labels", [&](const Value& v) { term.labels = labels(v); }},
              {"level", [&](const Value& v) { term.level = v.string(); }},
              {"required", [&](const Value& v) { term.required = v.boolean(); }}});
  });
}

void read_ports(const Value& value, std::vector<std::int32_t>& ports) {
  value.each_item([&](const Value& item) {
    const std::int32_t port = static_cast<std::int32_t>(item.integer(1, kLastPort));
    const auto at = std::lower_bound(ports.begin(), ports.end(), port);
    if (at != ports.end() && *at == port) return item.refuse(std::to_string(port) + " is given twice; leave one out");
    ports.insert(at, port);
  });
}

void read_signal(const Value& value, CheckpointContract& checkpoint) {
  const auto signal = parse_signal(value.string());
  if (!signal) return value.refuse(signal.error().message);
  checkpoint.signal = *signal;
}

void read_checkpoint(const Value& value, CheckpointContract& checkpoint) {
  value.map({{"on_signal", [&](const Value& v) { checkpoint.on_signal = v.boolean(); }},
             {"signal", [&](const Value& v) { read_signal(v, checkpoint); }},
             {"grace", [&](const Value& v) { checkpoint.grace_s = positive_duration(v); }},
             {"interval", [&](const Value& v) { checkpoint.interval_s = positive_duration(v); }}});
}

void read_array(const Value& value, JobSpec& spec) {
  value.map({{"size", [&](const Value& v) { spec.array_size = count(v, 1, kMaxArraySize); }},
             {"running", [&](const Value& v) { spec.array_running = count(v, 1, kMaxArraySize); }}});
}

void read_dependencies(const Value& value, DependencyKind kind, JobSpec& spec) {
  const auto add = [&](const Value& id) {
    const std::int64_t number = id.integer(0, std::numeric_limits<std::int64_t>::max());
    spec.dependencies.push_back({kind, JobId(static_cast<std::uint64_t>(number))});
  };
  if (value.node().kind == NodeKind::kScalar) return add(value);
  value.each_item(add);
}

std::vector<Key> job_keys(JobSpec& spec, const Node*& groups, std::optional<Position>& deadline_at) {
  return {
      {"name", [&](const Value& v) { spec.name = v.string(); }},
      {"queue", [&](const Value& v) { spec.queue = v.string(); }},
      {"user", [&](const Value& v) { spec.user = v.string(); }},
      {"kind", [&](const Value& v) { spec.kind = v.word<JobKind>(); }},
      {"class", [&](const Value& v) { spec.job_class = v.word<JobClass>(); }},
      {"priority", [&](const Value& v) { spec.priority_class = v.string(); }},
      {"groups", [&](const Value& v) { groups = &v.node(); }},
      {"topology", [&](const Value& v) { read_topology(v, spec.topology); }},
      {"time_limit", [&](const Value& v) { spec.time_limit_s = positive_duration(v); }},
      {"estimate", [&](const Value& v) { spec.estimate_s = positive_duration(v); }},
      {"checkpoint", [&](const Value& v) { read_checkpoint(v, spec.checkpoint); }},
      {"retries", [&](const Value& v) { spec.retries = count(v, 0, kMaxRetries); }},
      {"after", [&](const Value& v) { read_dependencies(v, DependencyKind::kAfter, spec); }},
      {"afterok", [&](const Value& v) { read_dependencies(v, DependencyKind::kAfterOk, spec); }},
      {"afterany", [&](const Value& v) { read_dependencies(v, DependencyKind::kAfterAny, spec); }},
      {"deadline", [&](const Value& v) { deadline_at = v.node().at, spec.deadline = v.time(); }},
      {"earliest_start", [&](const Value& v) { spec.earliest_start = v.time(); }},
      {"hold", [&](const Value& v) { spec.held = v.boolean(); }},
      {"exclusive", [&](const Value& v) { spec.exclusive = v.boolean(); }},
      {"spread", [&](const Value& v) { spec.spread = v.boolean(); }},
      {"array", [&](const Value& v) { read_array(v, spec); }},
      {"labels", [&](const Value& v) { spec.labels = labels(v); }},
      {"affinity", [&](const Value& v) { read_terms(v, spec.affinity); }},
      {"anti_affinity", [&](const Value& v) { read_terms(v, spec.anti_affinity); }},
      {"ports", [&](const Value& v) { read_ports(v, spec.ports); }},
      {"max_unavailable", [&](const Value& v) { spec.max_unavailable = count(v, 1, kMaxTasksPerJob); }},
  };
}

}  // namespace

void fill_request(TaskRequest& request, bool cpus_stated, bool memory_stated) {
  const std::int64_t gpus = request.mig_profile.empty() ? request.gpus : 1;
  if (!cpus_stated) request.cpu_milli = gpus > 0 ? gpus * kDefaultCpuMilli : kDefaultCpuMilli;
  if (!memory_stated) request.memory_mib = gpus > 0 ? gpus * kDefaultMemoryMibPerGpu : kDefaultMemoryMib;
}

Result<JobSpec> read_job(const Node& document, std::string_view file) {
  JobSpec spec;
  Reading reading(file);
  const Value top(reading, document, "");
  GroupReader flat;
  const Node* groups = nullptr;
  std::optional<Position> deadline_at;
  std::vector<Key> keys = job_keys(spec, groups, deadline_at);
  for (Key& key : flat.keys()) keys.push_back(std::move(key));
  top.map(keys);
  if (spec.deadline && spec.earliest_start && *spec.deadline <= *spec.earliest_start)
    reading.refuse(*deadline_at,
                   "deadline: the job may not start before that; give a deadline after its earliest_start");
  if (groups != nullptr) {
    const Value value(reading, *groups, "groups");
    if (flat.stated) value.refuse("the job also has fields of a task group beside it; move them into a group");
    read_groups(value, spec.groups);
  } else {
    spec.groups.push_back(flat.finish(top));
  }
  if (reading.error()) return *reading.error();
  return spec;
}

Result<JobSpec> read_job(std::string_view text, std::string_view file) {
  const auto tree = parse(text, file);
  if (!tree) return tree.error();
  return read_job(*tree, file);
}

}  // namespace berth::document
