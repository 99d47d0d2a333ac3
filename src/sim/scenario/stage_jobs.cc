// The lines of a scenario that submit jobs and act on them.

#include <algorithm>
#include <utility>

#include "sched/explain.h"
#include "sim/scenario/stage.h"

namespace berth::sim {

Result<JobId> Stage::job_named(const std::string& name) const {
  if (const auto found = jobs_.find(name); found != jobs_.end()) return found->second;
  JobId found;
  world_.durable().jobs().for_each([&](const state::JobState& job) {
    if (job.spec.name == name) found = job.id;
  });
  if (!found.valid()) return not_found("no job '" + name + "'");
  return found;
}

namespace {

// app:web,tier:front
Labels labels_in(const std::string& text) {
  Labels labels;
  for (const std::string& one : split(text, ',')) {
    const auto parts = split(one, ':');
    labels.emplace_back(parts.front(), parts.back());
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

// labels=LABELS, and near, away, likes and dislikes=LABELS@LEVEL
void read_affinity(const Line& line, JobSpec& spec) {
  if (const std::string* labels = line.option("labels")) spec.labels = labels_in(*labels);
  const auto read = [&](const char* key, bool required, std::vector<AffinityTerm>& terms) {
    const std::string* text = line.option(key);
    if (text == nullptr) return;
    const auto parts = split(*text, '@');
    terms.push_back({labels_in(parts.front()), parts.back(), required});
  };
  read("near", true, spec.affinity);
  read("likes", false, spec.affinity);
  read("away", true, spec.anti_affinity);
  read("dislikes", false, spec.anti_affinity);
}

// NAME:TASKSxGPUS or NAME:TASKSxGPUS@LEVEL: another group of the job, by itself within one domain of the level.
Result<void> add_groups(const std::string& text, JobSpec& spec) {
  for (const std::string& one : split(text, ',')) {
    const std::size_t colon = one.find(':');
    const std::size_t times = one.find('x', colon);
    const std::size_t at = one.find('@');
    if (colon == std::string::npos || times == std::string::npos) return invalid("also is NAME:TASKSxGPUS[@LEVEL]");
    TaskGroup group = spec.groups.front();
    group.name = one.substr(0, colon);
    const auto tasks = parse_count(one.substr(colon + 1, times - colon - 1));
    const auto gpus = parse_count(one.substr(times + 1, at - times - 1));
    if (!tasks || !gpus) return invalid("also is NAME:TASKSxGPUS[@LEVEL]");
    group.count = static_cast<std::int32_t>(*tasks);
    group.min_count = 0;
    group.request.gpus = static_cast<std::int32_t>(*gpus);
    group.request.gpu_milli = static_cast<std::int32_t>(kMilli);
    group.topology = {};
    if (at != std::string::npos) group.topology.required = one.substr(at + 1);
    spec.groups.push_back(group);
  }
  return {};
}

}  // namespace

Stage::Done Stage::submit(const Line& line) {
  JobSpec spec;
  spec.name = line.names[1];
  spec.user = "ann";
  TaskGroup group;
  group.command = {"train"};
  group.request.cpu_milli = 1000;
  if (const std::string* queue = line.option("queue")) spec.queue = *queue;
  if (const std::string* user = line.option("user")) spec.user = *user;
  if (const std::string* priority = line.option("priority")) spec.priority_class = *priority;
  if (const std::string* job_class = line.option("class")) {
    const auto known = enum_from_name<JobClass>(*job_class);
    if (!known) return invalid("no job class '" + *job_class + "'");
    spec.job_class = *known;
  }
  if (const std::string* model = line.option("model")) group.request.gpu_models = split(*model, ',');
  if (const std::string* pool = line.option("pool")) group.pool = *pool;
  if (const std::string* level = line.option("within")) spec.topology.required = *level;
  if (const std::string* level = line.option("prefers")) spec.topology.preferred = *level;
  if (const std::string* taint = line.option("tolerates")) group.tolerations = split(*taint, ',');
  if (const std::string* label = line.option("selects")) {
    const auto parts = split(*label, ':');
    group.node_selector.emplace_back(parts.front(), parts.back());
  }
  if (const std::string* policy = line.option("numa")) {
    const auto known = enum_from_name<NumaPolicy>(*policy);
    if (!known) return invalid("no NUMA policy '" + *policy + "'");
    group.numa = *known;
  }
  std::int64_t gpu_milli = 0;
  if (auto ok = read_option(line, "gpus", parse_milli, gpu_milli); !ok) return ok;
  if (gpu_milli > kMilli && gpu_milli % kMilli != 0) return invalid("gpus: whole GPUs, or a share of one");
  group.request.gpus = static_cast<std::int32_t>((gpu_milli + kMilli - 1) / kMilli);
  if (gpu_milli > 0 && gpu_milli < kMilli) group.request.gpu_milli = static_cast<std::int32_t>(gpu_milli);
  if (auto ok = read_option(line, "cpus", parse_milli, group.request.cpu_milli); !ok) return ok;
  if (auto ok = read_option(line, "memory", parse_mib, group.request.memory_mib); !ok) return ok;
  if (auto ok = read_option(line, "tasks", parse_count, group.count); !ok) return ok;
  if (auto ok = read_option(line, "min-tasks", parse_count, group.min_count); !ok) return ok;
  if (auto ok = read_option(line, "time-limit", parse_seconds, spec.time_limit_s); !ok) return ok;
  if (auto ok = read_option(line, "retries", parse_integer, spec.retries); !ok) return ok;
  if (auto ok = read_option(line, "grace", parse_seconds, spec.checkpoint.grace_s); !ok) return ok;
  if (auto ok = read_option(line, "at-once", parse_integer, spec.array_running); !ok) return ok;
  if (line.option("elements") != nullptr) {
    spec.kind = JobKind::kArray;
    if (auto ok = read_option(line, "elements", parse_count, spec.array_size); !ok) return ok;
  }
  if (line.has("service")) spec.kind = JobKind::kService;
  if (auto ok = read_option(line, "max-unavailable", parse_integer, spec.max_unavailable); !ok) return ok;
  spec.held = line.has("held");
  spec.exclusive = line.has("exclusive");
  spec.spread = line.has("spread");
  if (auto ok = read_option(line, "estimate", parse_seconds, spec.estimate_s); !ok) return ok;
  if (const std::string* by = line.option("deadline")) {
    const auto at = parse_duration(*by);
    if (!at) return at.error();
    spec.deadline = kBegin + *at;
  }
  if (const std::string* start = line.option("earliest")) {
    const auto at = parse_duration(*start);
    if (!at) return at.error();
    spec.earliest_start = kBegin + *at;
  }
  for (const auto& [key, kind] :
       {std::pair("after", DependencyKind::kAfter), std::pair("afterok", DependencyKind::kAfterOk),
        std::pair("afterany", DependencyKind::kAfterAny)}) {
    if (const std::string* names = line.option(key)) {
      for (const std::string& name : split(*names, ',')) {
        const auto job = job_named(name);
        if (!job) return job.error();
        spec.dependencies.push_back({kind, *job});
      }
    }
  }
  Behaviour behaviour;
  backend::TaskScript& script = behaviour.script;
  script = {0, true, -1, 0, -1, -1, 0, 143, 0};
  if (auto ok = read_option(line, "runs", parse_duration, script.run_ms); !ok) return ok;
  if (auto ok = read_option(line, "exit", parse_integer, script.exit_code); !ok) return ok;
  if (auto ok = read_option(line, "fails", parse_integer, behaviour.failing_attempts); !ok) return ok;
  if (auto ok = read_option(line, "leaves", parse_duration, script.leave_after_ms); !ok) return ok;
  if (line.option("saves") != nullptr) {
    spec.checkpoint.on_signal = true;
    if (auto ok = read_option(line, "saves", parse_duration, script.ack_after_ms); !ok) return ok;
    script.leave_after_ms = script.ack_after_ms + 1000;
    script.leave_code = 0;
  }
  if (line.has("ignores-signal")) script.leave_after_ms = -1;
  if (line.has("cannot-start")) script.starts = false;
  if (const std::string* level = line.option("group-within")) group.topology.required = *level;
  spec.groups.push_back(group);
  if (const std::string* groups = line.option("also")) {
    if (auto ok = add_groups(*groups, spec); !ok) return ok;
  }
  read_affinity(line, spec);
  std::string key;
  if (const std::string* text = line.option("key")) key = *text;
  behaviours_.insert_or_assign(spec.name, behaviour);
  submitting_ = spec.name;
  world_.send(SubmitJob{spec, key});
  world_.settle();
  submitting_.clear();
  world_.advance_to(world_.now());
  return {};
}

Stage::Done Stage::on_job(const std::string& verb, const Line& line) {
  const auto job = job_named(line.names[1]);
  if (verb == "cancel" || verb == "hold" || verb == "release" || verb == "prioritize") {
    if (!job) return job.error();
    if (verb == "cancel") ask(CancelJob{*job, "ann"});
    if (verb == "hold") ask(HoldJob{*job, true, "ann"});
    if (verb == "release") ask(HoldJob{*job, false, "ann"});
    if (verb == "prioritize") {
      const auto value =
          line.names.size() < 3 ? Result<std::int64_t>(invalid("prioritize JOB VALUE")) : parse_integer(line.names[2]);
      if (!value) return value.error();
      if (!std::in_range<std::int32_t>(*value)) return invalid("prioritize: " + line.names[2] + " is too large");
      ask(PrioritizeJob{*job, static_cast<std::int32_t>(*value), "ann"});
    }
    world_.advance_to(world_.now());
    return {};
  }
  return invalid("no directive '" + verb + "'");
}

Stage::Done Stage::exit(const Line& line) {
  const auto job = job_named(line.names[1]);
  if (!job) return job.error();
  const auto code = line.names.size() > 2 ? parse_count(line.names[2]) : Result<std::int64_t>(0);
  if (!code) return code.error();
  world_.fleet().exit_job(*job, static_cast<std::int32_t>(*code), world_.now());
  world_.advance_to(world_.now());
  return {};
}

Stage::Done Stage::why(const Line& line) {
  const auto job = job_named(line.names[1]);
  if (!job) return job.error();
  if (world_.durable().job(*job) == nullptr) return invalid(line.names[1] + " is finished");
  const sched::Explanation explanation = sched::explain(world_.working(), *job, world_.now());
  say(std::string(name_of(explanation.reason.code)) + (is_never(explanation.reason.code) ? " (never): " : ": ") +
      explanation.summary);
  if (line.names.size() > 2) {
    for (const std::string& detail : explanation.details) say("  " + detail);
    for (const sched::Change& change : explanation.changes) say("  " + sched::would_start(change));
  }
  return {};
}

}  // namespace berth::sim
