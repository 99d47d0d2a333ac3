// The lines of a scenario that make the cluster and change its nodes.

#include <algorithm>
#include <utility>

#include "control/handle.h"
#include "model/document/quantity.h"
#include "model/gpu_model.h"
#include "model/image.h"
#include "model/name.h"
#include "sim/scenario/stage.h"
#include "state/image_index.h"

namespace berth::sim {

namespace {

Result<void> read_attained_service(const Line& line, QueueConfig& queue) {
  const std::string* thresholds = line.option("thresholds");
  if (thresholds == nullptr) {
    if (line.option("promote-after") != nullptr) return invalid("promote-after is of use only with thresholds");
    return {};
  }
  AttainedServiceConfig& order = queue.attained_service.emplace();
  for (const std::string& one : split(*thresholds, ',')) {
    const auto gpu_s = document::parse_duration_s(one);  // many GPUs can use more than a year in a day
    if (!gpu_s) return invalid("thresholds: " + gpu_s.error().message);
    order.thresholds_gpu_s.push_back(*gpu_s);
  }
  return read_option(line, "promote-after", parse_seconds, order.promote_after_s);
}

Result<void> read_eviction_terms(const Line& line, EvictionTermsConfig& terms) {
  const std::pair<const char*, std::optional<std::int64_t>*> times[] = {
      {"min-runtime", &terms.min_runtime_s}, {"cooldown", &terms.cooldown_s}, {"grace", &terms.grace_s}};
  for (const auto& [key, seconds] : times) {
    if (line.option(key) == nullptr) continue;
    if (auto ok = read_option(line, key, parse_seconds, seconds->emplace()); !ok) return ok;
  }
  return read_option(line, "evictions-per-hour", parse_count, terms.evictions_per_hour);
}

// "gpu-hours:20,when-used-up:stop-starting", of a grant with "from:1h,until:5h" in scenario time.
Result<void> read_budget(const Line& line, const char* key, std::optional<BudgetConfig>& budget) {
  const std::string* text = line.option(key);
  if (text == nullptr) return {};
  BudgetConfig& read = budget.emplace();
  const auto take = [&](const auto& parsed, auto& into) -> Result<void> {
    if (!parsed) return invalid(std::string(key) + ": " + parsed.error().message);
    into = *parsed;
    return {};
  };
  for (const std::string& part : split(*text, ',')) {
    const std::size_t colon = std::min(part.find(':'), part.size());
    const std::string word = part.substr(0, colon);
    const std::string value = colon < part.size() ? part.substr(colon + 1) : std::string();
    Result<void> ok;
    if (word == "gpu-hours") {
      ok = take(parse_milli(value), read.gpu_milli_hours);
    } else if (word == "money") {
      ok = take(parse_milli(value), read.money_micro);
      const auto micro = try_multiply(read.money_micro, 1000);
      if (!micro) return invalid(std::string(key) + ": " + shown(part) + " is too much");
      read.money_micro = *micro;
    } else if (word == "from") {
      ok = take(parse_instant(value), read.from);
    } else if (word == "until") {
      ok = take(parse_instant(value), read.until);
    } else if (word == "when-used-up" && enum_from_name<BudgetAction>(value)) {
      read.when_used_up = *enum_from_name<BudgetAction>(value);
    } else {
      return invalid(std::string(key) + ": " + shown(part) +
                     " is none of gpu-hours:8, money:50, from:1h, until:5h, when-used-up:stop-starting");
    }
    if (!ok) return ok;
  }
  if ((read.money_micro == 0) == (read.gpu_milli_hours == 0))
    return invalid(std::string(key) + ": give gpu-hours or money, such as gpu-hours:8");
  return {};
}

Result<void> read_queue(const Line& line, ClusterConfig& config) {
  QueueConfig queue;
  queue.path = line.names.front();
  for (const auto& [key, amounts] : {std::pair("guaranteed", &queue.guaranteed), std::pair("max", &queue.max),
                                     std::pair("lending", &queue.lending_limit)}) {
    if (auto ok = read_option(line, key, parse_amounts, *amounts); !ok) return ok;
  }
  if (auto ok = read_option(line, "weight", parse_count, queue.weight); !ok) return ok;
  if (auto ok = read_option(line, "guarantee-decay", parse_some_seconds, queue.guarantee_decay_s); !ok) return ok;
  const std::pair<const char*, std::optional<std::int64_t>*> counts[] = {
      {"jobs-per-user", &queue.max_jobs_per_user}, {"submitted-per-user", &queue.max_submitted_per_user}};
  for (const auto& [key, limit] : counts) {
    if (line.option(key) == nullptr) continue;
    if (auto ok = read_option(line, key, parse_count, limit->emplace()); !ok) return ok;
  }
  if (line.option("gpus-per-user") != nullptr) {
    if (auto ok = read_option(line, "gpus-per-user", parse_milli, queue.max_gpu_milli_per_user.emplace()); !ok)
      return ok;
  }
  if (auto ok = read_attained_service(line, queue); !ok) return ok;
  if (auto ok = read_eviction_terms(line, queue.eviction); !ok) return ok;
  if (auto ok = read_budget(line, "budget", queue.budget); !ok) return ok;
  if (auto ok = read_budget(line, "grant", queue.grant); !ok) return ok;
  if (const std::string* old = line.option("moved-from")) queue.moved_from = *old;
  if (const std::string* returns = line.option("returns")) queue.returns = *returns == "yes";
  if (const std::string* domain = line.option("domain")) queue.trust_domain = *domain;
  if (auto ok = read_enum(line, "policy", queue.policy); !ok) return ok;
  config.queues.push_back(std::move(queue));
  return {};
}

Result<void> read_pool(const Line& line, ClusterConfig& config) {
  PoolConfig pool;
  pool.name = line.names.front();
  if (pool.name == config.pools.front().name)
    return invalid("pool '" + pool.name + "' is there by itself, for all queues; leave the line out");
  if (auto ok = read_option(line, "queues", parse_list, pool.queues); !ok) return ok;
  if (const std::string* level = line.option("trust-domain-isolation")) pool.trust_domain_isolation = *level;
  if (const std::string* classes = line.option("classes")) {
    for (const std::string& name : split(*classes, ',')) {
      const auto known = enum_from_name<JobClass>(name);
      if (!known) return invalid("classes: " + none_of(name, EnumNames<JobClass>::kNames));
      pool.classes.push_back(*known);
    }
  }
  if (const std::string* levels = line.option("gpu-levels")) {
    for (const std::string& name : split(*levels, ',')) {
      const auto known = enum_from_name<GpuLevel>(name);
      if (!known) return invalid("gpu-levels: " + none_of(name, EnumNames<GpuLevel>::kNames));
      pool.gpu_levels.push_back(*known);
    }
  }
  pool.burst = line.has("burst");
  config.pools.push_back(pool);
  return {};
}

Result<void> read_scheduling(const Line& line, SchedulingConfig& rules) {
  if (line.options.empty())
    return invalid("the line says nothing; give a rule, such as backfill-after=1d, or leave it out");
  const std::pair<const char*, std::int64_t*> times[] = {
      {"min-runtime", &rules.min_runtime_s},           {"grace", &rules.default_grace_s},
      {"half-life", &rules.usage_half_life_s},         {"backfill-after", &rules.backfill_after_s},
      {"deadline-slack", &rules.deadline_slack_s},     {"flap-window", &rules.flap_window_s},
      {"suspect-window", &rules.suspect_window_s},     {"cooldown", &rules.cooldown_s},
      {"preempt-max-loss", &rules.preempt_max_loss_s}, {"resize-interval", &rules.resize_interval_s},
  };
  for (const auto& [key, field] : times) {
    if (auto ok = read_option(line, key, parse_seconds, *field); !ok) return ok;
  }
  const std::pair<const char*, std::int64_t*> numbers[] = {
      {"fragmentation-alert", &rules.fragmentation_alert_percent},
      {"flap-losses", &rules.flap_losses},
      {"suspect-users", &rules.suspect_users},
      {"evictions-per-hour", &rules.evictions_per_hour},
      {"consolidations-per-hour", &rules.consolidations_per_hour},
      {"victims-per-cycle", &rules.victims_per_cycle},
      {"backfill-reservations", &rules.backfill_reservations},
      {"max-unreachable-percent", &rules.max_unreachable_percent},
  };
  for (const auto& [key, field] : numbers) {
    if (auto ok = read_option(line, key, parse_count, *field); !ok) return ok;
  }
  if (auto ok = read_enum(line, "score", rules.score); !ok) return ok;
  if (auto ok = read_option(line, "energy", parse_on_off, rules.energy); !ok) return ok;
  if (auto ok = read_option(line, "reclaim", parse_on_off, rules.reclaim); !ok) return ok;
  return read_option(line, "preempt", parse_on_off, rules.preempt);
}

// Reads a list of words that name values of an enumeration.
template <class Enum>
Result<void> read_enums(const Line& line, const char* key, std::vector<Enum>& into) {
  const std::string* words = line.option(key);
  if (words == nullptr) return {};
  for (const std::string& word : split(*words, ',')) {
    const auto known = enum_from_name<Enum>(word);
    if (!known) return invalid(std::string(key) + ": " + none_of(word, EnumNames<Enum>::kNames));
    into.push_back(*known);
  }
  return {};
}

Result<void> read_rule(const Line& line, ClusterConfig& config) {
  AdmissionRule rule;
  rule.name = line.names.front();
  if (auto ok = read_enum(line, "mode", rule.mode); !ok) return ok;
  if (auto ok = read_enums(line, "classes", rule.classes); !ok) return ok;
  if (auto ok = read_enums(line, "forbid", rule.forbid); !ok) return ok;
  if (line.option("use") != nullptr) {
    if (auto ok = read_enum(line, "use", rule.use.emplace()); !ok) return ok;
  }
  if (auto ok = read_option(line, "host-paths", parse_list, rule.host_paths); !ok) return ok;
  if (auto ok = read_option(line, "images", parse_list, rule.images); !ok) return ok;
  if (line.option("max-gpus") != nullptr) {
    if (auto ok = read_option(line, "max-gpus", parse_milli, rule.max_gpu_milli.emplace()); !ok) return ok;
  }
  const std::string* path = line.option("queue");
  const auto queue = std::find_if(config.queues.begin(), config.queues.end(),
                                  [&](const QueueConfig& one) { return path != nullptr && one.path == *path; });
  if (path != nullptr && queue == config.queues.end())
    return invalid("queue: no line above makes a queue " + shown(*path));
  (path == nullptr ? config.admission : queue->admission).push_back(std::move(rule));
  return {};
}

Result<void> read_config_line(const Line& line, ClusterConfig& config) {
  if (line.verb == "queue") return read_queue(line, config);
  if (line.verb == "pool") return read_pool(line, config);
  if (line.verb == "rule") return read_rule(line, config);
  if (line.verb == "scheduling") return read_scheduling(line, config.scheduling);
  if (line.verb == "topology") {
    config.topology_levels = line.names;
    return {};
  }
  if (line.verb == "model") {
    GpuModelConfig& model = config.gpu_models.emplace_back();
    model.name = line.names.front();
    if (const auto* mig = line.option("mig")) model.mig = *mig;
    if (auto ok = read_option(line, "watts", parse_count, model.watts); !ok) return ok;
    if (auto ok = read_option(line, "idle-watts", parse_count, model.idle_watts); !ok) return ok;
    return read_option(line, "weight", parse_milli, model.weight_permille);
  }
  PriorityClassConfig& priority = config.priority_classes.emplace_back();
  priority.name = line.names.front();
  priority.global_default = line.has("default");
  if (line.option("value") == nullptr) return invalid("a priority class needs a value, such as value=500");
  return read_option(line, "value", parse_priority, priority.value);
}

// Lines may be in any order, and several lines may set scheduling keys, but nothing may be set twice.
Result<void> check_once(const Line& line, std::vector<Line>& before) {
  for (const Line& other : before) {
    if (other.verb != line.verb) continue;
    if (line.verb == "topology") return invalid("topology: the levels stand in one line");
    if (line.names != other.names) continue;
    if (!line.names.empty())
      return invalid(std::string(line.verb) + ": " + shown(line.names.front()) + " is given twice");
    for (const auto& [key, value] : line.options) {
      if (other.option(key) != nullptr) return invalid(std::string(line.verb) + ": '" + key + "=' is given twice");
    }
  }
  before.push_back(line);
  return {};
}

}  // namespace

Stage::Done Stage::configure(const std::vector<std::string>& below) {
  ClusterConfig config = default_cluster_config();
  config.queues.clear();
  std::vector<Line> lines;
  for (const std::string& indented : below) {
    const std::string text = indented.substr(std::min(indented.find_first_not_of(' '), indented.size()));
    if (text == indented) return invalid(shown(text) + " is not indented; an empty line ends a block");
    if (text.empty()) return invalid("a line below has spaces alone; an empty line ends a block");
    auto line = read_line(text, cluster_lines(), "line of a cluster");
    if (!line) return invalid(shown(text) + ": " + line.error().message);
    const bool first =
        std::none_of(lines.begin(), lines.end(), [&](const Line& other) { return other.verb == line->verb; });
    if (first && line->verb == "priority") config.priority_classes.clear();
    if (auto ok = check_once(*line, lines); !ok) return ok;
    if (auto ok = read_config_line(*line, config); !ok) return invalid(shown(text) + ": " + ok.error().message);
  }
  ask(ApplyConfig{config, "operator"});
  return {};
}

namespace {

// Reads a name for each level, outermost first. More names than levels would have no effect and are refused.
Result<void> read_topology(const Line& line, const std::vector<std::string>& levels, NodeSpec& spec) {
  if (auto ok = read_option(line, "at", parse_path, spec.topology); !ok) return ok;
  if (spec.topology.size() <= levels.size()) return {};
  if (levels.empty())
    return invalid("at: the cluster has no topology; a line such as 'topology block rack' gives it one");
  std::string known;
  for (const std::string& level : levels) known += (known.empty() ? "" : "/") + level;
  return invalid("at: " + shown(*line.option("at")) + " has more names than the topology of the cluster has levels; " +
                 "give " + known);
}

// The GPUs as "GPU 0 of it", ...
Result<void> read_gpus(const Line& line, NodeSpec& spec) {
  if (auto ok = read_option(line, "numa", parse_count, spec.numa_nodes); !ok) return ok;
  std::int64_t islands = 1;
  if (auto ok = read_option(line, "nvlink", parse_count, islands); !ok) return ok;
  const std::string* text = line.option("gpus");
  if (text == nullptr) {
    if (line.option("numa") != nullptr) return invalid("numa is of use only with gpus");
    if (line.option("nvlink") != nullptr) return invalid("nvlink is of use only with gpus");
    return {};
  }
  const auto parts = split(*text, 'x');
  const auto count = parse_count(parts.front());
  if (!count || parts.size() != 2 || !well_formed_gpu_model(parts.back()))
    return invalid("gpus: " + shown(*text) + " is not COUNTxMODEL, such as 8xH100");
  if (*count > static_cast<std::int64_t>(kMaxGpusPerNode))
    return invalid("gpus: a node has " + std::to_string(kMaxGpusPerNode) + " GPUs at most");
  if (*count == 0) return invalid("gpus: leave it out where there are none");
  if (spec.numa_nodes < 1 || spec.numa_nodes > *count)
    return invalid("numa: the GPUs can be in 1 to " + std::to_string(*count) + " domains");
  if (islands < 1 || islands > *count)
    return invalid("nvlink: the GPUs can be in 1 to " + std::to_string(*count) + " islands");
  for (std::int64_t g = 0; g < *count; ++g) {
    Gpu& gpu = spec.gpus.emplace_back();
    gpu.model = parts.back();
    gpu.numa = static_cast<std::int32_t>(g * spec.numa_nodes / *count);
    gpu.nvlink_island = static_cast<std::int32_t>(g * islands / *count);
  }
  return {};
}

// All but the name.
Result<NodeSpec> read_node(const Line& line, const std::vector<std::string>& levels) {
  NodeSpec spec;
  spec.cuts_gpus = true;
  spec.cpu_milli = 64'000;
  spec.memory_mib = 512 * 1024;
  if (auto ok = read_option(line, "cpus", parse_milli, spec.cpu_milli); !ok) return ok.error();
  if (auto ok = read_option(line, "memory", parse_mib, spec.memory_mib); !ok) return ok.error();
  if (auto ok = read_option(line, "pool", parse_name, spec.pool); !ok) return ok.error();
  if (auto ok = read_option(line, "taint", parse_taints, spec.taints); !ok) return ok.error();
  if (auto ok = read_option(line, "label", parse_labels, spec.labels); !ok) return ok.error();
  if (auto ok = read_option(line, "images", parse_images, spec.images); !ok) return ok.error();
  if (auto ok = read_option(line, "countables", parse_countables, spec.countables); !ok) return ok.error();
  spec.containers = line.has("containers") || !spec.images.empty();
  if (auto ok = read_topology(line, levels, spec); !ok) return ok.error();
  if (auto ok = read_gpus(line, spec); !ok) return ok.error();
  return spec;
}

}  // namespace

Stage::Done Stage::add_nodes(const Line& line) {
  if (line.names.empty()) {
    if (!line.options.empty() || !line.flags.empty())
      return invalid("nodes: name the nodes that are so, such as n[1-4]");
    list_nodes();
    return {};
  }
  auto spec = read_node(line, world_.working().config().topology_levels);
  if (!spec) return spec.error();
  const auto fresh = expand_all(line.names);
  if (!fresh) return fresh.error();
  for (const std::string& name : *fresh) {
    if (world_.fleet().has_node(name)) return invalid("there is a node '" + name + "' already");
    spec->name = name;
    if (auto ok = control::check_node(world_.working(), *spec); !ok) return ok;
  }
  for (const std::string& name : *fresh) {
    spec->name = name;
    for (std::size_t g = 0; g < spec->gpus.size(); ++g) spec->gpus[g].uuid = "GPU-" + name + "-" + std::to_string(g);
    world_.fleet().add_node(*spec, world_.now());
  }
  world_.advance_to(world_.now());
  return {};
}

// Acts on one node. Returns false if nothing changes. For commands it returns true, because the control plane decides.
bool Stage::act_on_node(const Line& line, const std::string& name) {
  const std::string_view verb = line.verb;
  backend::FakeBackend& fleet = world_.fleet();
  const Timestamp now = world_.now();
  const bool alive = fleet.node_alive(name);
  const bool heard = fleet.node_in_contact(name);
  if (verb == "lose") return fleet.lose_contact(name, now), heard;
  if (verb == "return") return fleet.regain_contact(name, now), alive && !heard;
  if (verb == "kill-node") return fleet.kill_node(name, now), alive;
  if (verb == "remove-node") return fleet.remove_node(name, now), true;
  if (verb == "boot") return fleet.boot_node(name, now), !alive;
  if (verb == "fence") {
    if (!heard) fleet.fence_node(name, now);
    world_.send(FenceNode{name, "operator"});
    return true;
  }
  CordonNode cordon{name, verb != "uncordon", verb == "drain", "operator", 0};
  if (const std::string* in = line.option("gone-in")) cordon.gone_in_s = parse_seconds(*in).value();
  if (const std::string* in = line.option("deadline")) cordon.deadline_s = parse_seconds(*in).value();
  cordon.lose_work = line.has("lose-work");
  cordon.when_idle = line.has("when-idle");
  world_.send(cordon);
  return true;
}

Stage::Done Stage::on_nodes(const Line& line) {
  const auto names = expand_names(line.names.front());
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!world_.fleet().has_node(name)) return invalid("no node " + shown(name));
    if (line.verb == "return" && !world_.fleet().node_alive(name))
      return invalid("node '" + name + "' is dead; boot it");
  }
  std::int64_t gone_in_s = 1;
  if (auto ok = read_option(line, "gone-in", parse_some_seconds, gone_in_s); !ok) return ok;
  std::int64_t deadline_s = 1;
  if (auto ok = read_option(line, "deadline", parse_some_seconds, deadline_s); !ok) return ok;
  bool changed = false;
  for (const std::string& name : *names) changed |= act_on_node(line, name);
  if (!changed) say("nothing changes");
  world_.reconcile();
  world_.advance_to(world_.now());
  return {};
}

Stage::Done Stage::gpu_health(const Line& line) {
  const std::string& node = line.names[0];
  const std::string& how = line.names[2];
  const bool fence = how == "fenced" || how == "lifted";
  if (how != "fails" && how != "heals" && !fence) return invalid("gpu: write 'gpu NODE GPU fails|heals|fenced|lifted'");
  backend::FakeBackend& fleet = world_.fleet();
  if (!fleet.has_node(node)) return invalid("no node " + shown(node));
  const auto gpu = parse_count(line.names[1]);
  if (!gpu || static_cast<std::size_t>(*gpu) >= fleet.gpus_of(node).size())
    return invalid("node '" + node + "' has no GPU " + line.names[1]);
  if (fence) {
    const auto index = static_cast<std::uint8_t>(*gpu);
    if (how == "fenced")
      ask(ReportGpuHealth{node, index, false, "process 4711 of job 1 is left on it", true});
    else
      ask(LiftGpuFence{node, index, "op"});
  } else if (!fleet.set_gpu_health(node, static_cast<std::uint8_t>(*gpu), how == "heals", world_.now()))
    say("nothing changes");
  else if (!fleet.node_in_contact(node))
    say(node + " is out of contact; it will report this when it is back");
  world_.advance_to(world_.now());
  return {};
}

// The last GPUs of the node stand for those that others use.
Stage::Done Stage::change_foreign_use(const Line& line) {
  const std::string& node = line.names[0];
  backend::FakeBackend& fleet = world_.fleet();
  if (!fleet.has_node(node)) return invalid("no node " + shown(node));
  ForeignReport use;
  std::int64_t gpus = 0;
  if (auto ok = read_option(line, "gpus", parse_count, gpus); !ok) return ok;
  if (auto ok = read_option(line, "cpus", parse_milli, use.cpu_milli); !ok) return ok;
  if (auto ok = read_option(line, "memory", parse_mib, use.memory_mib); !ok) return ok;
  if (auto ok = read_option(line, "countables", parse_countables, use.countables); !ok) return ok;
  const std::vector<Gpu>& all = fleet.gpus_of(node);
  if (gpus > static_cast<std::int64_t>(all.size()))
    return invalid("node '" + node + "' has " + std::to_string(all.size()) + " GPUs");
  for (std::size_t g = all.size() - static_cast<std::size_t>(gpus); g < all.size(); ++g) use.gpus.insert(all[g].uuid);
  if (!fleet.set_foreign(node, std::move(use), world_.now()))
    say("nothing changes");
  else if (!fleet.node_in_contact(node))
    say(node + " is out of contact; it will report this when it is back");
  world_.advance_to(world_.now());
  return {};
}

Stage::Done Stage::change_images(const Line& line) {
  const bool pulls = line.names[1] == "pulls";
  if (!pulls && line.names[1] != "drops") return invalid("image: write 'image NODES pulls|drops IMAGES'");
  const auto nodes = expand_names(line.names[0]);
  if (!nodes) return nodes.error();
  const auto images = parse_images(line.names[2]);
  if (!images) return images.error();
  backend::FakeBackend& fleet = world_.fleet();
  std::vector<std::vector<std::string>> all;
  for (const std::string& node : *nodes) {
    if (!fleet.has_node(node)) return invalid("no node " + shown(node));
    const NodeSpec& spec = fleet.spec_of(node);
    if (!spec.containers) return invalid("node '" + node + "' runs no containers");
    const std::vector<std::string> none;
    all.push_back(state::with_change(spec.images, pulls ? *images : none, pulls ? none : *images));
    if (auto ok = check_images(all.back()); !ok) return invalid("node '" + node + "': " + ok.error().message);
  }
  bool changed = false;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const std::string& node = (*nodes)[i];
    if (!fleet.set_images(node, all[i], world_.now())) continue;
    changed = true;
    if (!fleet.node_in_contact(node)) say(node + " is out of contact; it will report this when it is back");
  }
  if (!changed) say("nothing changes");
  world_.advance_to(world_.now());
  return {};
}

}  // namespace berth::sim
