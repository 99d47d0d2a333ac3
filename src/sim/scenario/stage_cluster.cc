// The lines of a scenario that make the cluster and what befalls it.

#include <utility>

#include "sim/scenario/stage.h"

namespace berth::sim {

namespace {

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
    pool.burst = line.has("burst");
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
    one.global_default = line.has("default");
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
    const auto count = parse_count(text->substr(0, times));
    if (!count || times == std::string::npos) return invalid("gpus is COUNTxMODEL, such as 8xH100");
    if (*count > static_cast<std::int64_t>(kMaxGpusPerNode))
      return invalid("gpus: a node has " + std::to_string(kMaxGpusPerNode) + " GPUs at most");
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
  if (auto ok = read_option(line, "numa", parse_integer, spec.numa_nodes); !ok) return ok;
  if (spec.numa_nodes < 1) return invalid("numa is 1 at least");
  for (std::size_t i = 1; i < line.names.size(); ++i) {
    const auto names = expand_names(line.names[i]);
    if (!names) return names.error();
    for (const std::string& name : *names) {
      if (world_.durable().node_named(name) != nullptr) return invalid("there is a node '" + name + "' already");
      spec.name = name;
      spec.gpus.clear();
      for (std::int64_t g = 0; g < gpus; ++g) {
        Gpu gpu;
        gpu.uuid = "GPU-" + name + "-" + std::to_string(g);
        gpu.model = model;
        gpu.numa = static_cast<std::int32_t>(g * spec.numa_nodes / gpus);
        spec.gpus.push_back(gpu);
      }
      world_.fleet().add_node(spec, world_.now());
    }
  }
  world_.advance_to(world_.now());
  return {};
}

Stage::Done Stage::node_fault(const std::string& verb, const Line& line) {
  const auto names = expand_names(line.names[1]);
  if (!names) return names.error();
  for (const std::string& name : *names) {
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
  const bool told = line.names.size() == 4 && (line.names[3] == "fails" || line.names[3] == "heals");
  if (!told) return invalid("gpu NODE INDEX fails|heals");
  const auto index = parse_count(line.names[2]);
  if (!index) return index.error();
  if (!std::in_range<std::uint8_t>(*index)) return invalid("node '" + line.names[1] + "' has no GPU " + line.names[2]);
  ask(ReportGpuHealth{line.names[1], static_cast<std::uint8_t>(*index), line.names[3] == "heals", "reported"});
  return {};
}

}  // namespace berth::sim
