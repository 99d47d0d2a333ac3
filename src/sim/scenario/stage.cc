#include "sim/scenario/stage.h"

#include <algorithm>
#include <utility>

#include "sched/explain.h"
#include "sched/explain_queue.h"

namespace berth::sim {

namespace {

// Scenario time begins at zero, the core's a day later: zero means "not set" there.
constexpr Timestamp kBegin{86'400'000};

// Reads `key` from the line into `into`, in thousandths of what `unit` says.
template <class Parse, class Into>
Result<void> read_option(const Line& line, std::string_view key, Parse&& parse, Into& into) {
  const std::string* text = line.option(key);
  if (text == nullptr) return {};
  const auto value = parse(*text);
  if (!value) return Error{ErrorCode::kInvalid, std::string(key) + ": " + value.error().message};
  into = static_cast<Into>(*value);
  return {};
}

Result<std::int64_t> parse_seconds(std::string_view text) {
  const auto ms = parse_duration(text);
  if (!ms) return ms;
  return *ms / 1000;
}

Result<bool> parse_on_off(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return invalid("'" + std::string(text) + "' is neither on nor off");
}

bool has_name(const Line& line, std::string_view name) {
  return std::find(line.names.begin(), line.names.end(), name) != line.names.end();
}

Result<void> read_amounts(const Line& line, std::string_view key, ResourceAmounts& into) {
  const std::string* text = line.option(key);
  if (text == nullptr) return {};
  auto amounts = parse_amounts(*text);
  if (!amounts) return amounts.error();
  into = std::move(*amounts);
  return {};
}

Result<void> read_queue(const Line& line, ClusterConfig& config) {
  QueueConfig queue;
  queue.path = line.names.at(1);
  if (auto ok = read_amounts(line, "guaranteed", queue.guaranteed); !ok) return ok;
  if (auto ok = read_amounts(line, "max", queue.max); !ok) return ok;
  if (auto ok = read_amounts(line, "lending", queue.lending_limit); !ok) return ok;
  if (auto ok = read_option(line, "weight", parse_integer, queue.weight); !ok) return ok;
  if (auto ok = read_option(line, "use-or-lose", parse_seconds, queue.use_or_lose_s); !ok) return ok;
  const std::pair<const char*, std::optional<std::int64_t>*> counts[] = {
      {"jobs-per-user", &queue.max_jobs_per_user}, {"submitted-per-user", &queue.max_submitted_per_user}};
  for (const auto& [key, limit] : counts) {
    if (line.option(key) == nullptr) continue;
    if (auto ok = read_option(line, key, parse_integer, limit->emplace()); !ok) return ok;
  }
  if (line.option("gpus-per-user") != nullptr) {
    if (auto ok = read_option(line, "gpus-per-user", parse_milli, queue.max_gpu_milli_per_user.emplace()); !ok)
      return ok;
  }
  if (const std::string* thresholds = line.option("thresholds")) {
    AttainedServiceConfig& order = queue.attained_service.emplace();
    for (const std::string& one : split(*thresholds, ',')) {
      const auto gpu_s = parse_seconds(one);
      if (!gpu_s) return gpu_s.error();
      order.thresholds_gpu_s.push_back(*gpu_s);
    }
    if (auto ok = read_option(line, "promote-after", parse_seconds, order.promote_after_s); !ok) return ok;
  }
  if (const std::string* domain = line.option("domain")) queue.trust_domain = *domain;
  if (const std::string* policy = line.option("policy")) {
    const auto known = enum_from_name<QueuePolicy>(*policy);
    if (!known) return invalid("no policy '" + *policy + "'");
    queue.policy = *known;
  }
  config.queues.push_back(std::move(queue));
  return {};
}

Result<void> read_config_line(const Line& line, ClusterConfig& config) {
  const std::string& what = line.names.at(0);
  if (what == "queue") return read_queue(line, config);
  if (what == "model") {
    GpuModelConfig model;
    model.name = line.names.at(1);
    if (auto ok = read_option(line, "weight", parse_milli, model.weight_permille); !ok) return ok;
    config.gpu_models.push_back(model);
    return {};
  }
  if (what == "pool") {
    PoolConfig pool;
    pool.name = line.names.at(1);
    if (const std::string* queues = line.option("queues")) pool.queues = split(*queues, ',');
    if (const std::string* level = line.option("apart")) pool.apart = *level;
    if (const std::string* classes = line.option("classes")) {
      for (const std::string& name : split(*classes, ',')) {
        const auto known = enum_from_name<JobClass>(name);
        if (!known) return invalid("no job class '" + name + "'");
        pool.classes.push_back(*known);
      }
    }
    pool.burst = has_name(line, "burst");
    config.pools.push_back(pool);
    return {};
  }
  if (what == "topology") {
    config.topology_levels.assign(line.names.begin() + 1, line.names.end());
    return {};
  }
  if (what == "priority") {
    PriorityClassConfig one;
    one.name = line.names.at(1);
    one.global_default = has_name(line, "default");
    if (auto ok = read_option(line, "value", parse_integer, one.value); !ok) return ok;
    config.priority_classes.push_back(one);
    return {};
  }
  if (what == "scheduling") {
    SchedulingConfig& rules = config.scheduling;
    if (auto ok = read_option(line, "min-runtime", parse_seconds, rules.min_runtime_s); !ok) return ok;
    if (auto ok = read_option(line, "grace", parse_seconds, rules.default_grace_s); !ok) return ok;
    if (auto ok = read_option(line, "reclaim", parse_on_off, rules.reclaim); !ok) return ok;
    if (auto ok = read_option(line, "half-life", parse_seconds, rules.usage_half_life_s); !ok) return ok;
    if (const std::string* score = line.option("score")) {
      const auto known = enum_from_name<NodeScore>(*score);
      if (!known) return invalid("no such score: '" + *score + "'");
      rules.score = *known;
    }
    if (auto ok = read_option(line, "fragmentation-alert", parse_integer, rules.fragmentation_alert_percent); !ok)
      return ok;
    if (auto ok = read_option(line, "hold-after", parse_seconds, rules.hold_after_s); !ok) return ok;
    if (auto ok = read_option(line, "deadline-slack", parse_seconds, rules.deadline_slack_s); !ok) return ok;
    if (auto ok = read_option(line, "flap-losses", parse_integer, rules.flap_losses); !ok) return ok;
    if (auto ok = read_option(line, "flap-window", parse_seconds, rules.flap_window_s); !ok) return ok;
    if (auto ok = read_option(line, "cooldown", parse_seconds, rules.cooldown_s); !ok) return ok;
    if (auto ok = read_option(line, "evictions-per-hour", parse_integer, rules.evictions_per_hour); !ok) return ok;
    if (auto ok = read_option(line, "preempt-max-loss", parse_seconds, rules.preempt_max_loss_s); !ok) return ok;
    if (auto ok = read_option(line, "mass-loss", parse_integer, rules.mass_loss_percent); !ok) return ok;
    if (auto ok = read_option(line, "resize-interval", parse_seconds, rules.resize_interval_s); !ok) return ok;
    return read_option(line, "preempt", parse_on_off, rules.preempt);
  }
  return invalid("no such line in a cluster: '" + what + "'");
}

}  // namespace

Stage::Stage() : world_(1, [this](const StartTask& start) { return script_of(start); }) {
  world_.set_witness(this);
  world_.advance_to(kBegin);
}

backend::TaskScript Stage::script_of(const StartTask& start) const {
  auto found = behaviours_.find(start.job_name);
  if (found == behaviours_.end()) found = behaviours_.find(start.job_name.substr(0, start.job_name.rfind('-')));
  if (found == behaviours_.end()) return {};
  backend::TaskScript script = found->second.script;
  if (found->second.failing_attempts > 0)
    script.exit_code = start.key.attempt <= found->second.failing_attempts ? 1 : 0;
  return script;
}

std::vector<std::string> Stage::play(std::string_view directive, const std::vector<std::string>& below) {
  said_.clear();
  const Line line = parse_line(directive);
  if (line.names.empty()) return {"error: a block begins with a directive"};
  if (auto done = act(line.names.front(), line, below); !done) said_.push_back("error: " + done.error().message);
  check();
  return std::exchange(said_, {});
}

void Stage::check() {
  world_.compare_states();
  if (world_.violation()) say("BROKEN " + *world_.violation());
  if (world_.fleet().violation()) say("BROKEN " + *world_.fleet().violation());
  if (const auto wrong = world_.working().audit()) say("BROKEN " + *wrong);
}

Stage::Done Stage::act(const std::string& verb, const Line& line, const std::vector<std::string>& below) {
  if (verb == "cluster") return configure(below);
  if (verb == "jobs") return list_jobs(), Done();
  if (verb == "queues") return list_queues(), Done();
  if (verb == "nodes" && line.names.size() == 1) return list_nodes(), Done();
  if (verb == "restart") return die(line);
  if (line.names.size() < 2) return invalid(verb + " needs a name after it, or is no directive");
  if (verb == "nodes") return add_nodes(line);
  if (verb == "submit") return submit(line);
  if (verb == "run") return run(line);
  if (verb == "why") return why(line);
  if (verb == "share") return explain_share(line);
  if (verb == "exit") return exit(line);
  if (verb == "gpu") return gpu_health(line);
  if (verb == "maintenance") return maintenance(line);
  for (const char* fault : {"lose", "return", "kill-node", "boot", "fence", "cordon", "uncordon", "drain"}) {
    if (verb == fault) return node_fault(verb, line);
  }
  return on_job(verb, line);
}

void Stage::ask(Command command) {
  world_.send(std::move(command));
  world_.settle();
}

// The answer is told before what followed from the command.
void Stage::on_answer(const Answer& answer) {
  const auto say_first = [this](std::string line) { said_.insert(said_.begin(), std::move(line)); };
  if (!answer.reply) {
    say_first("refused: " + answer.reply.error().message);
    return;
  }
  const control::Reply& reply = answer.reply.value();
  if (reply.unchanged) say_first("nothing changes");
  if (reply.version > 0 && !reply.unchanged)
    say_first("configuration " + std::to_string(reply.version) + " is in force");
  if (!submitting_.empty()) {
    jobs_.emplace(submitting_, reply.job);
    names_.emplace(reply.job, submitting_);
    say_first(submitting_ + " is job " + std::to_string(reply.job.value()) +
              (reply.repeated  ? ", as before"
               : reply.updated ? ", updated"
                               : ""));
  }
}

// --- the cluster ---

Stage::Done Stage::configure(const std::vector<std::string>& below) {
  ClusterConfig config = default_cluster_config();
  config.queues.clear();
  for (const std::string& text : below) {
    const Line line = parse_line(text);
    if (line.names.empty()) continue;
    if (line.names.size() < 2 && line.names.front() != "scheduling") return invalid("'" + text + "' lacks a name");
    if (line.names.front() == "priority" && config.priority_classes == default_cluster_config().priority_classes) {
      config.priority_classes.clear();
    }
    if (auto ok = read_config_line(line, config); !ok) return ok;
  }
  ask(ApplyConfig{config, "operator"});
  return {};
}

Stage::Done Stage::add_nodes(const Line& line) {
  NodeSpec spec;
  std::int64_t gpus = 0;
  std::string model;
  if (const std::string* text = line.option("gpus")) {
    const std::size_t times = text->find('x');
    const auto count = parse_integer(text->substr(0, times));
    if (!count || times == std::string::npos) return invalid("gpus is COUNTxMODEL, such as 8xH100");
    gpus = *count;
    model = text->substr(times + 1);
  }
  spec.cpu_milli = 64'000;
  spec.memory_mib = 512 * 1024;
  if (auto ok = read_option(line, "cpus", parse_milli, spec.cpu_milli); !ok) return ok;
  if (auto ok = read_option(line, "memory", parse_mib, spec.memory_mib); !ok) return ok;
  if (const std::string* pool = line.option("pool")) spec.pool = *pool;
  if (const std::string* taint = line.option("taint")) spec.taints.push_back({*taint, ""});
  if (const std::string* path = line.option("at")) spec.topology = split(*path, '/');
  if (const std::string* label = line.option("label")) {
    const auto parts = split(*label, ':');
    spec.labels.emplace_back(parts.front(), parts.back());
  }
  for (std::size_t i = 1; i < line.names.size(); ++i) {
    for (const std::string& name : expand_names(line.names[i])) {
      spec.name = name;
      spec.gpus.clear();
      for (std::int64_t g = 0; g < gpus; ++g) {
        Gpu gpu;
        gpu.uuid = "GPU-" + name + "-" + std::to_string(g);
        gpu.model = model;
        spec.gpus.push_back(gpu);
      }
      world_.fleet().add_node(spec, world_.now());
    }
  }
  world_.advance_to(world_.now());
  return {};
}

Stage::Done Stage::node_fault(const std::string& verb, const Line& line) {
  for (const std::string& name : expand_names(line.names[1])) {
    if (world_.durable().node_named(name) == nullptr) return invalid("no node '" + name + "'");
    backend::FakeBackend& fleet = world_.fleet();
    if (verb == "lose") fleet.lose_contact(name, world_.now());
    if (verb == "return") fleet.regain_contact(name, world_.now());
    if (verb == "kill-node") fleet.kill_node(name, world_.now());
    if (verb == "boot") fleet.boot_node(name, world_.now());
    if (verb == "fence") {
      if (!fleet.node_in_contact(name)) fleet.kill_node(name, world_.now());
      world_.send(FenceNode{name, "operator"});
    }
    if (verb == "cordon") world_.send(CordonNode{name, true, false, "operator", 0});
    if (verb == "uncordon") world_.send(CordonNode{name, false, false, "operator", 0});
    if (verb == "drain") {
      CordonNode drain{name, true, true, "operator", 0};
      if (auto ok = read_option(line, "gone-in", parse_seconds, drain.gone_in_s); !ok) return ok;
      if (drain.gone_in_s == 0 && line.option("gone-in") != nullptr) return invalid("gone-in is 1 s at least");
      world_.send(drain);
    }
  }
  world_.settle();
  world_.advance_to(world_.now());
  return {};
}

Stage::Done Stage::gpu_health(const Line& line) {
  if (line.names.size() != 4) return invalid("gpu NODE INDEX fails|heals");
  const auto index = parse_integer(line.names[2]);
  if (!index) return index.error();
  ask(ReportGpuHealth{line.names[1], static_cast<std::uint8_t>(*index), line.names[3] == "heals", "reported"});
  return {};
}

// --- jobs ---

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
    const auto tasks = parse_integer(one.substr(colon + 1, times - colon - 1));
    const auto gpus = parse_integer(one.substr(times + 1, at - times - 1));
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
  std::int64_t gpu_milli = 0;
  if (auto ok = read_option(line, "gpus", parse_milli, gpu_milli); !ok) return ok;
  group.request.gpus = static_cast<std::int32_t>((gpu_milli + kMilli - 1) / kMilli);
  if (gpu_milli > 0 && gpu_milli < kMilli) group.request.gpu_milli = static_cast<std::int32_t>(gpu_milli);
  if (auto ok = read_option(line, "cpus", parse_milli, group.request.cpu_milli); !ok) return ok;
  if (auto ok = read_option(line, "memory", parse_mib, group.request.memory_mib); !ok) return ok;
  if (auto ok = read_option(line, "tasks", parse_integer, group.count); !ok) return ok;
  if (auto ok = read_option(line, "min-tasks", parse_integer, group.min_count); !ok) return ok;
  if (auto ok = read_option(line, "time-limit", parse_seconds, spec.time_limit_s); !ok) return ok;
  if (auto ok = read_option(line, "retries", parse_integer, spec.retries); !ok) return ok;
  if (auto ok = read_option(line, "grace", parse_seconds, spec.checkpoint.grace_s); !ok) return ok;
  if (auto ok = read_option(line, "at-once", parse_integer, spec.array_running); !ok) return ok;
  if (line.option("elements") != nullptr) {
    spec.kind = JobKind::kArray;
    if (auto ok = read_option(line, "elements", parse_integer, spec.array_size); !ok) return ok;
  }
  if (has_name(line, "service")) spec.kind = JobKind::kService;
  if (auto ok = read_option(line, "max-unavailable", parse_integer, spec.max_unavailable); !ok) return ok;
  spec.held = has_name(line, "held");
  spec.exclusive = has_name(line, "exclusive");
  spec.spread = has_name(line, "spread");
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
  if (has_name(line, "ignores-signal")) script.leave_after_ms = -1;
  if (has_name(line, "cannot-start")) script.starts = false;
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
  const auto code = line.names.size() > 2 ? parse_integer(line.names[2]) : Result<std::int64_t>(0);
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

// --- time and faults ---

Stage::Done Stage::run(const Line& line) {
  const auto duration = parse_duration(line.names[1]);
  if (!duration) return duration.error();
  world_.advance_to(world_.now() + *duration);
  return {};
}

Stage::Done Stage::die(const Line& line) {
  if (has_name(line, "from-checkpoint")) world_.save_checkpoint();
  world_.restart();
  world_.settle();
  world_.advance_to(world_.now());
  say("the control plane is back");
  return {};
}

Stage::Done Stage::maintenance(const Line& line) {
  const std::string& what = line.names[1];
  if (what == "list") {
    for (const auto& [name, window] : world_.durable().maintenance()) {
      std::string nodes;
      for (const NodeId node : window.nodes) nodes += " " + world_.durable().node(node).spec.name;
      say(name + ":" + nodes + " from " + duration_text(window.from - kBegin) + " to " +
          duration_text(window.to - kBegin) + (window.begun ? ", has begun" : ""));
    }
    return {};
  }
  if (what == "cancel" && line.names.size() == 3) {
    ask(CancelMaintenance{line.names[2], "operator"});
    world_.advance_to(world_.now());
    return {};
  }
  if (what != "add") return invalid("maintenance add NODES for=TIME, list, or cancel NAME");
  PlanMaintenance plan;
  plan.user = "operator";
  for (std::size_t i = 2; i < line.names.size(); ++i) {
    for (const std::string& name : expand_names(line.names[i])) plan.nodes.push_back(name);
  }
  if (const std::string* name = line.option("name")) plan.name = *name;
  if (const std::string* pool = line.option("pool")) plan.pool = *pool;
  if (const std::string* label = line.option("label")) {
    const auto parts = split(*label, ':');
    plan.labels.emplace_back(parts.front(), parts.back());
  }
  if (const std::string* from = line.option("from")) {
    const auto at = parse_duration(*from);
    if (!at) return at.error();
    plan.from = kBegin + *at;
  }
  if (auto ok = read_option(line, "for", parse_seconds, plan.for_s); !ok) return ok;
  ask(plan);
  world_.advance_to(world_.now());
  return {};
}

// --- what is shown ---

void Stage::list_jobs() {
  world_.durable().jobs().for_each([&](const state::JobState& job) {
    std::string line = name_of_job(job.id) + ": " + std::string(name_of(job.phase));
    if (job.held) line += ", held";
    if (job.attempt) {
      std::vector<TaskPlacement> placements;
      for (const state::TaskState& task : job.attempt->tasks) placements.push_back(task.placement);
      line += " on " + places_text(placements);
    }
    if (job.nomination) line += ", promised " + places_text(job.nomination->placements);
    say(line);
  });
}

void Stage::list_queues() {
  for (const state::QueueState& queue : world_.durable().queues()) {
    if (queue.removed || queue.id == world_.durable().root()) continue;
    std::string line = queue.path + ": " + sched::amount_text(kDimGpu, queue.usage[kDimGpu]) + " GPUs used, " +
                       sched::amount_text(kDimGpu, queue.within_usage[kDimGpu]) + " within";
    if (queue.guaranteed.states(kDimGpu)) {
      line += ", guaranteed " + sched::amount_text(kDimGpu, queue.guaranteed.amounts[kDimGpu]);
      if (!(queue.configured == queue.guaranteed))
        line += " of " + sched::amount_text(kDimGpu, queue.configured.amounts[kDimGpu]);
    }
    if (queue.max[kDimGpu] != kUnlimited) line += ", max " + sched::amount_text(kDimGpu, queue.max[kDimGpu]);
    say(line + "; " + std::to_string(queue.pending_below) + " waiting");
  }
}

Stage::Done Stage::explain_share(const Line& line) {
  const state::QueueState* queue = world_.durable().queue_at(line.names[1]);
  if (queue == nullptr) return invalid("no queue '" + line.names[1] + "'");
  for (const std::string& one : sched::explain_share(world_.durable(), *queue, world_.now())) say(one);
  return {};
}

void Stage::list_nodes() {
  for (const state::NodeState& node : world_.durable().nodes()) {
    std::string line = node.spec.name + ": " + std::string(name_of(node.status)) +
                       (node.draining   ? ", draining"
                        : node.cordoned ? ", cordoned"
                                        : "") +
                       (node.maintained > 0 ? ", under maintenance" : "");
    std::vector<std::uint8_t> free;
    for (std::uint8_t g = 0; g < node.gpus.size(); ++g) {
      if (node.gpus[g].healthy && node.gpus[g].free_milli == kMilli) free.push_back(g);
    }
    say(line + "; free GPUs " + (free.empty() ? "none" : ranges_text(free)));
  }
}

}  // namespace berth::sim
