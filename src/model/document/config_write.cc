#include <map>

#include "model/document/admission_document.h"
#include "model/document/config_document.h"
#include "model/document/quantity.h"
#include "model/document/volume_document.h"
#include "model/price_book.h"

namespace berth::document {
namespace {

enum class Defaults { kOmitted, kShown };

Node boolean_node(bool value) { return plain_node(value ? "true" : "false"); }
Node strings_node(const std::vector<std::string>& items) {
  Node list = list_node();
  for (const std::string& item : items) list.items.push_back(string_node(item));
  return list;
}

Node amounts_node(const ResourceAmounts& amounts) {
  Node map = map_node();
  if (amounts.gpu_milli) map.set("gpus", plain_node(milli_text(*amounts.gpu_milli)));
  if (amounts.cpu_milli) map.set("cpus", plain_node(milli_text(*amounts.cpu_milli)));
  if (amounts.memory_mib) map.set("memory", plain_node(memory_text(*amounts.memory_mib)));
  for (const auto& [model, milli] : amounts.model_gpu_milli) map.set("gpus." + model, plain_node(milli_text(milli)));
  return map;
}

Node attained_service_node(const AttainedServiceConfig& order) {
  Node map = map_node();
  Node thresholds = list_node();
  for (const std::int64_t seconds : order.thresholds_gpu_s)
    thresholds.items.push_back(plain_node(duration_text(seconds)));
  map.set("thresholds", std::move(thresholds));
  map.set("promote_after", plain_node(duration_text(order.promote_after_s)));
  return map;
}

Node eviction_node(const EvictionTermsConfig& terms) {
  Node map = map_node();
  if (terms.min_runtime_s) map.set("min_runtime", plain_node(duration_text(*terms.min_runtime_s)));
  if (terms.cooldown_s) map.set("cooldown", plain_node(duration_text(*terms.cooldown_s)));
  if (terms.grace_s) map.set("grace", plain_node(duration_text(*terms.grace_s)));
  if (terms.evictions_per_hour > 0) map.set("evictions_per_hour", integer_node(terms.evictions_per_hour));
  return map;
}

// The day alone where it begins then.
std::string instant_text(Timestamp time) {
  const std::string text = to_iso8601(time);
  constexpr std::string_view kMidnight = "T00:00:00.000Z";
  return text.ends_with(kMidnight) ? text.substr(0, text.size() - kMidnight.size()) : text;
}

Node budget_node(const BudgetConfig& budget) {
  Node map = map_node();
  if (budget.money_micro != 0) map.set("money", plain_node(money_text(budget.money_micro)));
  if (budget.gpu_milli_hours != 0) map.set("gpu_hours", plain_node(milli_text(budget.gpu_milli_hours)));
  if (budget.kind() == BudgetKind::kGrant) {
    map.set("from", plain_node(instant_text(budget.from)));
    map.set("until", plain_node(instant_text(budget.until)));
  }
  map.set("when_used_up", string_node(name_of(budget.when_used_up)));
  return map;
}

// Returns the node of one queue without the queues below it.
Node queue_node(const QueueConfig& queue, Defaults defaults) {
  const bool all = defaults == Defaults::kShown;
  const QueueConfig plain;
  Node map = map_node();
  if (!queue.moved_from.empty()) map.set("moved_from", string_node(queue.moved_from));
  if (queue.returns) map.set("returns", plain_node("true"));
  if (queue.guaranteed != plain.guaranteed) map.set("guaranteed", amounts_node(queue.guaranteed));
  if (queue.max != plain.max) map.set("max", amounts_node(queue.max));
  if (queue.lending_limit != plain.lending_limit) map.set("lending_limit", amounts_node(queue.lending_limit));
  if (all || queue.weight != plain.weight) map.set("weight", integer_node(queue.weight));
  if (!queue.trust_domain.empty()) map.set("trust_domain", string_node(queue.trust_domain));
  if (all || queue.policy != plain.policy) map.set("policy", string_node(name_of(queue.policy)));
  if (queue.max_jobs_per_user) map.set("max_jobs_per_user", integer_node(*queue.max_jobs_per_user));
  if (queue.max_gpu_milli_per_user) map.set("max_gpus_per_user", plain_node(milli_text(*queue.max_gpu_milli_per_user)));
  if (queue.max_submitted_per_user) map.set("max_submitted_per_user", integer_node(*queue.max_submitted_per_user));
  if (queue.guarantee_decay_s > 0) map.set("guarantee_decay", plain_node(duration_text(queue.guarantee_decay_s)));
  if (queue.attained_service) map.set("attained_service", attained_service_node(*queue.attained_service));
  if (queue.eviction != plain.eviction) map.set("eviction", eviction_node(queue.eviction));
  if (queue.budget) map.set("budget", budget_node(*queue.budget));
  if (queue.grant) map.set("grant", budget_node(*queue.grant));
  if (!queue.admission.empty()) map.set("admission", admission_node(queue.admission));
  if (!queue.volumes.empty()) map.set("volumes", volumes_node(queue.volumes));
  if (!queue.secrets.empty()) map.set("secrets", secret_references_node(queue.secrets));
  if (!queue.default_image.empty()) map.set("default_image", string_node(queue.default_image));
  if (queue.no_shell) map.set("shell", plain_node("false"));
  return map;
}

Node gpu_models_node(const ClusterConfig& config) {
  Node map = map_node();
  for (const GpuModelConfig& model : config.gpu_models) {
    Node body = map_node();
    body.set("weight", plain_node(milli_text(model.weight_permille)));
    if (model.memory_mib != 0) body.set("memory", plain_node(memory_text(model.memory_mib)));
    if (model.watts != 0) body.set("watts", integer_node(model.watts));
    if (model.idle_watts != 0) body.set("idle_watts", integer_node(model.idle_watts));
    if (!model.mig.empty()) body.set("mig", string_node(model.mig));
    map.set(model.name, std::move(body));
  }
  return map;
}

Node classes_node(const PoolConfig& pool) {
  Node list = list_node();
  for (const JobClass one : pool.classes) list.items.push_back(string_node(name_of(one)));
  return list;
}

Node gpu_levels_node(const PoolConfig& pool) {
  Node list = list_node();
  for (const GpuLevel one : pool.gpu_levels) list.items.push_back(string_node(name_of(one)));
  return list;
}

Node pools_node(const ClusterConfig& config) {
  Node list = list_node();
  for (const PoolConfig& pool : config.pools) {
    Node body = map_node();
    body.set("name", string_node(pool.name));
    if (!pool.queues.empty()) body.set("queues", strings_node(pool.queues));
    if (!pool.trust_domain_isolation.empty())
      body.set("trust_domain_isolation", string_node(pool.trust_domain_isolation));
    if (!pool.classes.empty()) body.set("classes", classes_node(pool));
    if (!pool.gpu_levels.empty()) body.set("gpu_levels", gpu_levels_node(pool));
    if (pool.burst) body.set("burst", boolean_node(true));
    list.items.push_back(std::move(body));
  }
  return list;
}

Node roles_node(const ClusterConfig& config) {
  Node list = list_node();
  for (const RoleBinding& binding : config.roles) {
    Node body = map_node();
    body.set("subject", string_node(binding.subject));
    body.set("role", string_node(name_of(binding.role)));
    if (!binding.queue.empty()) body.set("queue", string_node(binding.queue));
    list.items.push_back(std::move(body));
  }
  return list;
}

Node priority_classes_node(const ClusterConfig& config) {
  Node map = map_node();
  for (const PriorityClassConfig& one : config.priority_classes) {
    Node value = integer_node(one.value);
    if (one.global_default) value = map_node().set("value", std::move(value)).set("default", boolean_node(true));
    map.entries.push_back({one.name, {}, std::move(value)});
  }
  return map;
}

Node scheduling_node(const SchedulingConfig& scheduling, Defaults defaults) {
  const bool all = defaults == Defaults::kShown;
  const SchedulingConfig plain;
  Node map = map_node();
  if (all || scheduling.min_runtime_s != plain.min_runtime_s) {
    map.set("min_runtime", plain_node(duration_text(scheduling.min_runtime_s)));
  }
  if (all || scheduling.default_grace_s != plain.default_grace_s) {
    map.set("grace", plain_node(duration_text(scheduling.default_grace_s)));
  }
  if (all || scheduling.backfill_reservations != plain.backfill_reservations) {
    map.set("backfill_reservations", integer_node(scheduling.backfill_reservations));
  }
  if (all || scheduling.backfill_after_s != plain.backfill_after_s) {
    map.set("backfill_after", plain_node(duration_text(scheduling.backfill_after_s)));
  }
  if (all || scheduling.victims_per_cycle != plain.victims_per_cycle) {
    map.set("victims_per_cycle", integer_node(scheduling.victims_per_cycle));
  }
  if (all || scheduling.reclaim != plain.reclaim) map.set("reclaim", boolean_node(scheduling.reclaim));
  if (all || scheduling.preempt != plain.preempt) map.set("preempt", boolean_node(scheduling.preempt));
  if (all || scheduling.usage_half_life_s != plain.usage_half_life_s) {
    map.set("usage_half_life", plain_node(duration_text(scheduling.usage_half_life_s)));
  }
  if (all || scheduling.deadline_slack_s != plain.deadline_slack_s) {
    map.set("deadline_slack", plain_node(duration_text(scheduling.deadline_slack_s)));
  }
  if (all || scheduling.score != plain.score) map.set("score", plain_node(std::string(name_of(scheduling.score))));
  if (all || scheduling.energy != plain.energy) map.set("energy", boolean_node(scheduling.energy));
  if (all || scheduling.fragmentation_alert_percent != plain.fragmentation_alert_percent) {
    map.set("fragmentation_alert", integer_node(scheduling.fragmentation_alert_percent));
  }
  if (all || scheduling.resize_interval_s != plain.resize_interval_s) {
    map.set("resize_interval", plain_node(duration_text(scheduling.resize_interval_s)));
  }
  if (all || scheduling.flap_losses != plain.flap_losses) {
    map.set("flap_losses", integer_node(scheduling.flap_losses));
  }
  if (all || scheduling.flap_window_s != plain.flap_window_s) {
    map.set("flap_window", plain_node(duration_text(scheduling.flap_window_s)));
  }
  if (all || scheduling.suspect_users != plain.suspect_users) {
    map.set("suspect_users", integer_node(scheduling.suspect_users));
  }
  if (all || scheduling.suspect_window_s != plain.suspect_window_s) {
    map.set("suspect_window", plain_node(duration_text(scheduling.suspect_window_s)));
  }
  if (all || scheduling.cooldown_s != plain.cooldown_s) {
    map.set("cooldown", plain_node(duration_text(scheduling.cooldown_s)));
  }
  if (all || scheduling.evictions_per_hour != plain.evictions_per_hour) {
    map.set("evictions_per_hour", integer_node(scheduling.evictions_per_hour));
  }
  if (all || scheduling.consolidations_per_hour != plain.consolidations_per_hour) {
    map.set("consolidations_per_hour", integer_node(scheduling.consolidations_per_hour));
  }
  if (all || scheduling.preempt_max_loss_s != plain.preempt_max_loss_s) {
    map.set("preempt_max_loss", plain_node(duration_text(scheduling.preempt_max_loss_s)));
  }
  if (all || scheduling.max_unreachable_percent != plain.max_unreachable_percent) {
    map.set("max_unreachable_percent", integer_node(scheduling.max_unreachable_percent));
  }
  return map;
}

// Returns the map of the queues below `parent`, each with the queues below it. `children` lists queues by the path of
// their parent, so that a wide tree costs no more than a deep one.
using Children = std::map<std::string, std::vector<const QueueConfig*>>;

Node queues_node(const Children& children, const std::string& parent) {
  Node map = map_node();
  const auto below = children.find(parent);
  if (below == children.end()) return map;
  for (const QueueConfig* queue : below->second) {
    Node body = queue_node(*queue, Defaults::kOmitted);
    if (children.contains(queue->path)) body.set("queues", queues_node(children, queue->path));
    const std::size_t slash = queue->path.rfind('/');
    map.entries.push_back({queue->path.substr(slash == std::string::npos ? 0 : slash + 1), {}, std::move(body)});
  }
  return map;
}

Children children_of(const ClusterConfig& config) {
  Children children;
  for (const QueueConfig& queue : config.queues) {
    const std::size_t slash = queue.path.rfind('/');
    children[slash == std::string::npos ? "" : queue.path.substr(0, slash)].push_back(&queue);
  }
  return children;
}

using Lines = std::map<std::string, std::string>;  // path -> value

std::string leaf_text(const Node& node) {
  std::string text = to_yaml(node);
  text.pop_back();
  return text;
}

void flatten(const Node& node, const std::string& path, Lines& lines) {
  if (node.kind != NodeKind::kMap || node.entries.empty()) {
    lines[path] = leaf_text(node);
    return;
  }
  for (const Entry& entry : node.entries) flatten(entry.value, path + "." + entry.key, lines);
}

Lines lines_of(const ClusterConfig& config) {
  Lines lines;
  lines["cluster"] = leaf_text(string_node(config.name));
  lines["topology"] = leaf_text(strings_node(config.topology_levels));
  if (!config.gpu_models.empty()) flatten(gpu_models_node(config), "gpu_models", lines);
  for (const PoolConfig& pool : config.pools) {
    lines["pools." + pool.name + ".queues"] = leaf_text(strings_node(pool.queues));
    if (!pool.trust_domain_isolation.empty()) {
      lines["pools." + pool.name + ".trust_domain_isolation"] = leaf_text(string_node(pool.trust_domain_isolation));
    }
    if (!pool.classes.empty()) lines["pools." + pool.name + ".classes"] = leaf_text(classes_node(pool));
    if (!pool.gpu_levels.empty()) lines["pools." + pool.name + ".gpu_levels"] = leaf_text(gpu_levels_node(pool));
    if (pool.burst) lines["pools." + pool.name + ".burst"] = "true";
  }
  if (!config.priority_classes.empty()) flatten(priority_classes_node(config), "priority_classes", lines);
  for (const QueueConfig& queue : config.queues)
    flatten(queue_node(queue, Defaults::kShown), "queues." + queue.path, lines);
  flatten(scheduling_node(config.scheduling, Defaults::kShown), "scheduling", lines);
  if (!config.admission.empty()) flatten(admission_node(config.admission), "admission", lines);
  if (!config.volumes.empty()) flatten(volumes_node(config.volumes), "volumes", lines);
  if (!config.secrets.empty()) flatten(secret_references_node(config.secrets), "secrets", lines);
  if (!config.default_image.empty()) lines["default_image"] = leaf_text(string_node(config.default_image));
  if (config.no_shell) lines["shell"] = "false";
  for (const RoleBinding& binding : config.roles) {
    lines["roles." + binding.subject + "." + std::string(name_of(binding.role)) + " at " +
          (binding.queue.empty() ? "the root" : binding.queue)] = "true";
  }
  return lines;
}

}  // namespace

Node config_node(const ClusterConfig& config) {
  Node document = map_node();
  document.set("cluster", string_node(config.name));
  if (!config.gpu_models.empty()) document.set("gpu_models", gpu_models_node(config));
  document.set("pools", pools_node(config));
  if (!config.topology_levels.empty()) document.set("topology", strings_node(config.topology_levels));
  document.set("priority_classes", priority_classes_node(config));
  document.set("queues", queues_node(children_of(config), ""));
  Node scheduling = scheduling_node(config.scheduling, Defaults::kOmitted);
  if (!scheduling.entries.empty()) document.set("scheduling", std::move(scheduling));
  if (!config.admission.empty()) document.set("admission", admission_node(config.admission));
  if (!config.volumes.empty()) document.set("volumes", volumes_node(config.volumes));
  if (!config.secrets.empty()) document.set("secrets", secret_references_node(config.secrets));
  if (!config.default_image.empty()) document.set("default_image", string_node(config.default_image));
  if (config.no_shell) document.set("shell", plain_node("false"));
  if (!config.roles.empty()) document.set("roles", roles_node(config));
  return document;
}

std::string config_to_yaml(const ClusterConfig& config) { return to_yaml(config_node(config)); }

std::vector<std::string> diff_configs(const ClusterConfig& from, const ClusterConfig& to) {
  const Lines before = lines_of(from);
  const Lines after = lines_of(to);
  Lines changes;  // path -> line, so that lines are sorted by path
  for (const auto& [path, value] : before) {
    const auto now = after.find(path);
    if (now == after.end())
      changes[path] = "- " + path + ": " + value;
    else if (now->second != value)
      changes[path] = "~ " + path + ": " + value + " -> " + now->second;
  }
  for (const auto& [path, value] : after) {
    if (!before.contains(path)) changes[path] = "+ " + path + ": " + value;
  }
  std::vector<std::string> lines;
  for (auto& [path, line] : changes) lines.push_back(std::move(line));
  return lines;
}

}  // namespace berth::document
