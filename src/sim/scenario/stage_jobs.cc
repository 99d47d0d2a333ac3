// The lines of a scenario that submit jobs and act on them.

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "explain/advice/advice.h"
#include "explain/capacity/capacity.h"
#include "explain/shortage.h"
#include "explain/text_list.h"
#include "explain/why.h"
#include "model/document/quantity.h"
#include "model/name.h"
#include "sim/scenario/stage.h"

namespace berth::sim {

Result<JobId> Stage::job_named(const std::string& name) const {
  if (const auto found = jobs_.find(name); found != jobs_.end()) return found->second;
  JobId found;
  world_.durable().jobs().for_each([&](const state::JobState& job) {
    if (job.spec.name == name) found = job.id;
  });
  if (!found.valid()) return not_found("no job " + shown(name));
  return found;
}

namespace {

// The same bounds as in a job file.
Result<std::int64_t> parse_tasks(std::string_view text) { return parse_some(text, kMaxTasksPerJob); }
Result<std::int64_t> parse_elements(std::string_view text) { return parse_some(text, kMaxArraySize); }
Result<std::int64_t> parse_retries(std::string_view text) { return document::parse_integer(text, 0, kMaxRetries); }

// LABELS@LEVEL
Result<AffinityTerm> parse_term(const std::string& text) {
  const auto parts = split(text, '@');
  if (parts.size() != 2 || parts.back().empty()) return invalid(shown(text) + " is not KEY:VALUE@LEVEL");
  auto labels = parse_labels(parts.front());
  if (!labels) return labels.error();
  return AffinityTerm{std::move(*labels), parts.back(), false};
}

Result<void> read_affinity(const Line& line, JobSpec& spec) {
  const std::tuple<const char*, bool, std::vector<AffinityTerm>*> kinds[] = {{"near", true, &spec.affinity},
                                                                             {"likes", false, &spec.affinity},
                                                                             {"away", true, &spec.anti_affinity},
                                                                             {"dislikes", false, &spec.anti_affinity}};
  for (const auto& [key, required, terms] : kinds) {
    if (line.option(key) == nullptr) continue;
    AffinityTerm& term = terms->emplace_back();
    if (auto ok = read_option(line, key, parse_term, term); !ok) return ok;
    term.required = required;
  }
  return read_option(line, "labels", parse_labels, spec.labels);
}

// Bad or repeated ports are not refused here: the product refuses them.
Result<std::vector<std::int32_t>> parse_ports(const std::string& text) {
  std::vector<std::int32_t> ports;
  for (const std::string& part : split(text, ',')) {
    const auto port = document::parse_integer(part, std::numeric_limits<std::int32_t>::min(),
                                              std::numeric_limits<std::int32_t>::max());
    if (!port) return port.error();
    ports.push_back(static_cast<std::int32_t>(*port));
  }
  std::sort(ports.begin(), ports.end());
  return ports;
}

// NAME:TASKSxGPUS or NAME:TASKSxGPUS@LEVEL: another group of the job, by itself within one domain of the level.
Result<TaskGroup> read_group(const std::string& text, const TaskGroup& like) {
  const Error wrong = invalid("also: " + shown(text) + " is not NAME:TASKSxGPUS[@LEVEL]");
  const auto where = split(text, '@');
  const auto pair = split(where.front(), ':');
  const auto amounts = split(pair.back(), 'x');
  if (where.size() > 2 || where.back().empty() || pair.size() != 2 || amounts.size() != 2) return wrong;
  const auto tasks = parse_tasks(amounts.front());
  const auto gpus = parse_count(amounts.back());
  if (!tasks || !gpus) return wrong;
  TaskGroup group = like;
  group.name = pair.front();
  group.count = static_cast<std::int32_t>(*tasks);
  group.min_count = 0;
  group.request.gpus = static_cast<std::int32_t>(*gpus);
  group.request.gpu_milli = static_cast<std::int32_t>(kMilli);
  if (*gpus == 0) group.request.gpu_models.clear();
  group.topology = {};
  if (where.size() == 2) group.topology.required = where.back();
  return group;
}

Result<void> read_group(const Line& line, TaskGroup& group) {
  std::int64_t gpu_milli = 0;
  if (auto ok = read_option(line, "gpus", parse_milli, gpu_milli); !ok) return ok;
  if (gpu_milli > kMilli && gpu_milli % kMilli != 0) return invalid("gpus: whole GPUs, or a share of one");
  group.request.gpus = static_cast<std::int32_t>((gpu_milli + kMilli - 1) / kMilli);
  if (gpu_milli > 0 && gpu_milli < kMilli) group.request.gpu_milli = static_cast<std::int32_t>(gpu_milli);
  if (auto ok = read_option(line, "cpus", parse_milli, group.request.cpu_milli); !ok) return ok;
  if (auto ok = read_option(line, "memory", parse_mib, group.request.memory_mib); !ok) return ok;
  if (auto ok = read_option(line, "countables", parse_countables, group.request.countables); !ok) return ok;
  if (auto ok = read_option(line, "model", parse_list, group.request.gpu_models); !ok) return ok;
  if (const auto* mig = line.option("mig")) group.request.mig_profile = *mig;
  if (gpu_milli == 0 && group.request.mig_profile.empty() && line.option("model") != nullptr)
    return invalid("model is of use only with gpus");
  if (auto ok = read_option(line, "tasks", parse_tasks, group.count); !ok) return ok;
  if (auto ok = read_option(line, "min-tasks", parse_tasks, group.min_count); !ok) return ok;
  if (const std::string* pool = line.option("pool")) group.pool = *pool;
  if (auto ok = read_option(line, "tolerates", parse_tolerations, group.tolerations); !ok) return ok;
  if (auto ok = read_option(line, "image", parse_image, group.image); !ok) return ok;
  if (auto ok = read_option(line, "selects", parse_labels, group.node_selector); !ok) return ok;
  if (auto ok = read_option(line, "rules", parse_rules, group.node_rules); !ok) return ok;
  // An exclusive task gets all GPUs of its node, even if it requests none. Further groups take the policy of the first.
  if (gpu_milli == 0 && line.option("numa") != nullptr && !line.has("exclusive") && line.option("also") == nullptr)
    return invalid("numa is of use only with gpus");
  if (const std::string* level = line.option("group-within")) group.topology.required = *level;
  return read_enum(line, "numa", group.numa);
}

Result<void> read_groups(const Line& line, JobSpec& spec) {
  TaskGroup& first = spec.groups.emplace_back();
  first.command = {"train"};
  first.request.cpu_milli = 1000;
  if (auto ok = read_group(line, first); !ok) return ok;
  const std::string* more = line.option("also");
  for (const char* word : {"also-pool", "also-selects", "also-rules", "also-tolerates"}) {
    if (more == nullptr && line.option(word) != nullptr)
      return invalid(std::string(word) + " is of use only with also");
  }
  if (more == nullptr) return {};
  TaskGroup like = first;
  if (const std::string* pool = line.option("also-pool")) like.pool = *pool;
  if (auto ok = read_option(line, "also-selects", parse_labels, like.node_selector); !ok) return ok;
  if (auto ok = read_option(line, "also-rules", parse_rules, like.node_rules); !ok) return ok;
  if (auto ok = read_option(line, "also-tolerates", parse_tolerations, like.tolerations); !ok) return ok;
  for (const std::string& one : split(*more, ',')) {
    auto group = read_group(one, like);
    if (!group) return group.error();
    spec.groups.push_back(std::move(*group));
  }
  return {};
}

Result<void> read_kind(const Line& line, JobSpec& spec) {
  const bool array = line.option("elements") != nullptr;
  const bool service = line.has("service");
  if (array && service) return invalid("a job is a service or has elements, not both");
  if (!array && line.option("at-once") != nullptr) return invalid("at-once is of use only with elements");
  if (!service && line.option("max-unavailable") != nullptr)
    return invalid("max-unavailable is of use only with service");
  if (array) spec.kind = JobKind::kArray;
  if (service) spec.kind = JobKind::kService;
  if (auto ok = read_option(line, "elements", parse_elements, spec.array_size); !ok) return ok;
  if (auto ok = read_option(line, "at-once", parse_elements, spec.array_running); !ok) return ok;
  if (spec.array_running > spec.array_size)
    return invalid("at-once: there are no more than " + std::to_string(spec.array_size) + " elements");
  return read_option(line, "max-unavailable", parse_tasks, spec.max_unavailable);
}

Result<void> read_times(const Line& line, JobSpec& spec) {
  if (auto ok = read_option(line, "time-limit", parse_some_seconds, spec.time_limit_s); !ok) return ok;
  if (auto ok = read_option(line, "estimate", parse_some_seconds, spec.estimate_s); !ok) return ok;
  if (auto ok = read_option(line, "grace", parse_some_seconds, spec.checkpoint.grace_s); !ok) return ok;
  if (auto ok = read_option(line, "deadline", parse_instant, spec.deadline); !ok) return ok;
  if (auto ok = read_option(line, "earliest", parse_instant, spec.earliest_start); !ok) return ok;
  if (spec.deadline && spec.earliest_start && *spec.deadline <= *spec.earliest_start)
    return invalid("deadline: the job may not start before that; give one after earliest");
  return {};
}

Result<std::int64_t> parse_latency(std::string_view text) {
  return document::parse_integer(text, 1, kMaxLatencyObjectiveMs);
}

// Reads everything of a job that does not depend on the state of the cluster.
Result<JobSpec> read_job(const Line& line) {
  JobSpec spec;
  spec.name = line.names.front();
  if (!well_formed_name(spec.name)) return invalid(shown(spec.name) + " is not a name; " + std::string(kNameRule));
  spec.user = "ann";
  if (auto ok = read_groups(line, spec); !ok) return ok.error();
  if (auto ok = read_kind(line, spec); !ok) return ok.error();
  if (auto ok = read_times(line, spec); !ok) return ok.error();
  if (auto ok = read_affinity(line, spec); !ok) return ok.error();
  if (auto ok = read_option(line, "ports", parse_ports, spec.ports); !ok) return ok.error();
  if (auto ok = read_enum(line, "class", spec.job_class); !ok) return ok.error();
  if (auto ok = read_option(line, "latency-objective", parse_latency, spec.latency_objective_ms); !ok)
    return ok.error();
  if (auto ok = read_option(line, "retries", parse_retries, spec.retries); !ok) return ok.error();
  if (const std::string* queue = line.option("queue")) spec.queue = *queue;
  if (const std::string* user = line.option("user")) spec.user = *user;
  if (const std::string* priority = line.option("priority")) spec.priority_class = *priority;
  if (const std::string* level = line.option("within")) spec.topology.required = *level;
  if (const std::string* level = line.option("prefers")) spec.topology.preferred = *level;
  spec.held = line.has("held");
  spec.exclusive = line.has("exclusive");
  spec.spread = line.has("spread");
  spec.checkpoint.on_signal = line.option("saves") != nullptr;
  return spec;
}

Result<std::int64_t> parse_exit_code(std::string_view text) { return document::parse_integer(text, 0, 255); }

// Refuses two words for the same thing, of which only one would be used.
Result<void> check_behaviour(const Line& line) {
  const auto both = [&](const char* one, const char* other) {
    return line.option(one) != nullptr && line.option(other) != nullptr;
  };
  if (both("fails", "exit")) return invalid("fails and exit: one of them says how it ends");
  if (both("saves", "leaves")) return invalid("saves and leaves: one of them says when it leaves");
  if (line.has("ignores-signal") && (line.option("saves") != nullptr || line.option("leaves") != nullptr))
    return invalid("ignores-signal: it neither saves nor leaves then");
  for (const char* one : {"runs", "exit", "fails", "saves", "leaves", "ignores-signal"}) {
    if (line.has("cannot-start") && (line.option(one) != nullptr || line.has(one)))
      return invalid("cannot-start and " + std::string(one) + ": what does not start does nothing more");
  }
  for (const char* one : {"exit", "fails"}) {
    if (line.option(one) != nullptr && line.option("runs") == nullptr)
      return invalid(std::string(one) + " is of use only with runs; without it the tasks run until they are stopped");
  }
  return {};
}

// Reads OPTION, OPTION:WHERE or OPTION:WHERE:WHAT of a list, as the risks of pods are kept; `none`: there are none.
Result<void> read_risks(const Line& line, SubmitJob& command) {
  const std::string* text = line.option("risks");
  if (text == nullptr) return {};
  command.spec.source = {"pods", command.spec.name};
  auto& risks = command.pod_risks.emplace();
  if (*text == "none") return {};
  for (const std::string& one : split(*text, ',')) {
    const std::vector<std::string> parts = split(one, ':');
    const auto option = enum_from_name<ForbiddenOption>(parts.front());
    if (!option) return invalid("risks: " + none_of(parts.front(), EnumNames<ForbiddenOption>::kNames));
    if (parts.size() > 3) return invalid("risks: " + shown(one) + " is none; write OPTION:WHERE:WHAT");
    risks.push_back({*option, parts.size() > 1 ? parts[1] : "", parts.size() > 2 ? parts[2] : ""});
  }
  return {};
}

}  // namespace

Result<Stage::Behaviour> Stage::read_behaviour(const Line& line) {
  if (auto ok = check_behaviour(line); !ok) return ok.error();
  Behaviour behaviour;
  backend::TaskScript& script = behaviour.script;
  script = {0, true, -1, 0, -1, -1, 0, 143, 0};
  if (auto ok = read_option(line, "runs", parse_duration, script.run_ms); !ok) return ok.error();
  if (auto ok = read_option(line, "exit", parse_exit_code, script.exit_code); !ok) return ok.error();
  if (auto ok = read_option(line, "fails", parse_count, behaviour.failing_attempts); !ok) return ok.error();
  if (auto ok = read_option(line, "leaves", parse_duration, script.leave_after_ms); !ok) return ok.error();
  if (line.option("saves") != nullptr) {
    if (auto ok = read_option(line, "saves", parse_duration, script.ack_after_ms); !ok) return ok.error();
    script.leave_after_ms = script.ack_after_ms + 1000;
    script.leave_code = 0;
  }
  if (line.has("ignores-signal")) script.leave_after_ms = -1;
  if (line.has("cannot-start")) script.starts = false;
  return behaviour;
}

Result<void> Stage::read_dependencies(const Line& line, JobSpec& spec) const {
  for (const auto& [key, kind] :
       {std::pair("after", DependencyKind::kAfter), std::pair("afterok", DependencyKind::kAfterOk),
        std::pair("afterany", DependencyKind::kAfterAny)}) {
    std::vector<std::string> jobs;
    if (auto ok = read_option(line, key, parse_list, jobs); !ok) return ok;
    for (const std::string& name : jobs) {
      const auto job = job_named(name);
      if (!job) return invalid(std::string(key) + ": " + job.error().message);
      spec.dependencies.push_back({kind, *job});
    }
  }
  return {};
}

// Submits the job. The behaviour of its tasks is set before the answer comes; if no new job results, the old behaviour
// is restored.
Stage::Done Stage::submit(const Line& line) {
  auto spec = read_job(line);
  if (!spec) return spec.error();
  if (auto ok = read_dependencies(line, *spec); !ok) return ok;
  const auto behaviour = read_behaviour(line);
  if (!behaviour) return behaviour.error();
  const std::string* key = line.option("key");
  SubmitJob command{*spec, key == nullptr ? "" : *key};
  if (auto ok = read_risks(line, command); !ok) return ok;
  const auto known = behaviours_.find(spec->name);
  const auto before = known == behaviours_.end() ? std::nullopt : std::optional(known->second);
  behaviours_.insert_or_assign(spec->name, *behaviour);
  submitting_ = spec->name;
  world_.send(std::move(command));
  world_.reconcile();
  if (!std::exchange(submitting_, {}).empty()) {
    behaviours_.erase(spec->name);
    if (before) behaviours_.emplace(spec->name, *before);
  }
  world_.advance_to(world_.now());
  return {};
}

Stage::Done Stage::on_job(const Line& line) {
  const auto job = job_named(line.names.front());
  if (!job) return job.error();
  if (line.verb == "cancel") ask(CancelJob{*job, "ann"});
  if (line.verb == "hold") ask(HoldJob{*job, true, "ann"});
  if (line.verb == "release") ask(HoldJob{*job, false, "ann"});
  if (line.verb == "prioritize") {
    const auto value = parse_priority(line.names.back());
    if (!value) return value.error();
    ask(PrioritizeJob{*job, static_cast<std::int32_t>(*value), "ann"});
  }
  if (line.verb == "move") {
    MoveJob move{*job, {}, line.has("lose-work"), "operator"};
    std::vector<std::string> off;
    if (auto ok = read_option(line, "off", parse_list, off); !ok) return ok;
    const auto names = expand_all(off);
    if (!names) return names.error();
    move.off = *names;
    ask(move);
  }
  world_.advance_to(world_.now());
  return {};
}

Stage::Done Stage::exit(const Line& line) {
  const auto job = job_named(line.names.front());
  if (!job) return job.error();
  const auto code = line.names.size() > 1 ? parse_exit_code(line.names.back()) : Result<std::int64_t>(0);
  if (!code) return code.error();
  if (!world_.fleet().exit_job(*job, static_cast<std::int32_t>(*code), world_.now()))
    return invalid("no task of " + line.names.front() + " runs");
  world_.advance_to(world_.now());
  return {};
}

Stage::Done Stage::why(const Line& line) {
  const auto job = job_named(line.names.front());
  if (!job) return job.error();
  if (world_.durable().job(*job) == nullptr) return invalid(line.names.front() + " is finished");
  explain::Viewer viewer = explain::Viewer::sees_all();
  if (const std::string* name = line.option("viewer")) {
    const state::QueueState* queue = world_.durable().queue_at(*name);
    if (queue == nullptr) return invalid("there is no queue " + *name);
    viewer = explain::Viewer::sees_below(queue->id);
  }
  const WhyAnswer answer = explain::why(world_.working(), *job, world_.now(), viewer).answer;
  if (line.has("short") || line.has("details")) {
    const std::string text = text_of(answer, line.has("details"));
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t end = text.find('\n', from);
      say(text.substr(from, end - from));
      from = end + 1;
    }
    return {};
  }
  const std::string code = std::string(name_of(answer.code)) + (answer.never ? " (never): " : ": ");
  say((world_.durable().job(*job)->attempt ? "" : code) + answer.headline);
  return {};
}

namespace {

// Why an idle node stays; the job that it stays for follows, where there is one.
std::string kept_text(explain::KeptFor kept_for) {
  switch (kept_for) {
    case explain::KeptFor::kNothing:
      return "could be removed";
    case explain::KeptFor::kRecent:
      return "stays, idle for too short a time";
    case explain::KeptFor::kNominated:
      return "stays, nominated for";
    case explain::KeptFor::kReserved:
      return "stays, in the backfill reservation of";
    case explain::KeptFor::kWanted:
      return "stays, could be used by pending job";
    case explain::KeptFor::kGuaranteed:
      return "stays, backs guarantees";
  }
  return {};
}

}  // namespace

Stage::Done Stage::tell_capacity(const Line& line) {
  std::int64_t idle_for_s = explain::kIdleForMs / 1000;
  if (auto ok = read_option(line, "idle-for", parse_seconds, idle_for_s); !ok) return ok;
  const state::State& state = world_.working();
  const explain::Capacity capacity = explain::capacity_of(world_.working(), world_.now(), idle_for_s * 1000);
  for (const explain::NodeKind& kind : capacity.kinds) {
    say(state.pools()[kind.pool].name + ", " +
        (kind.gpus == 0 ? "no GPUs" : std::to_string(kind.gpus) + " " + kind.model) + ": " +
        std::to_string(kind.releasable()) + " of " + explain::counted(static_cast<std::int64_t>(kind.nodes), "node") +
        " could be removed");
    for (const explain::IdleNode& idle : kind.idle) {
      say("  " + state.node(idle.node).spec.name + " has been idle since " + duration_text(idle.since - kBegin) + ": " +
          kept_text(idle.kept_for) + (idle.job.valid() ? " " + name_of_job(idle.job) : ""));
    }
    if (!kind.wanted) continue;
    std::string jobs;
    for (const JobId job : kind.wanted->jobs) jobs += (jobs.empty() ? "" : ", ") + name_of_job(job);
    say("  " + explain::counted(static_cast<std::int64_t>(kind.wanted->nodes), "more node") + " would start " + jobs +
        " (" + explain::counted(kDimGpu, kind.wanted->gpu_milli) + ")");
  }
  if (!capacity.complete) say("not all pending jobs were tried");
  return {};
}

void Stage::tell_advice() {
  const explain::AdviceReport report = explain::advise(world_.working(), world_.now(), {});
  for (const Advice& one : report.items) {
    say(std::string(name_of(one.severity)) + " " + std::string(name_of(one.code)) + ", " +
        std::string(name_of(one.about)) + (one.name.empty() ? "" : " " + one.name) + ": " + one.text);
    say("  " + one.remedy);
  }
  for (const auto& [code, count] : report.left_out)
    say("and " + std::to_string(count) + " more of " + std::string(name_of(code)));
  if (report.items.empty()) say("no advice");
}

}  // namespace berth::sim
