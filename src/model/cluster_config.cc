#include "model/cluster_config.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "base/checked.h"
#include "model/mig.h"
#include "model/name.h"
#include "model/priority.h"
#include "model/resources.h"

namespace berth {
namespace {

constexpr std::size_t kMaxQueueDepth = 32;
constexpr std::size_t kMaxServiceThresholds = 8;
constexpr std::int64_t kMaxServiceThresholdS = 31'536'000'000;  // 1000 GPU-years
constexpr std::size_t kMaxQueues = 20'000;
constexpr std::int64_t kMaxAmount = std::int64_t{1} << 50;
constexpr std::int64_t kYearS = 31'536'000;

std::string name_rule(std::string_view what, std::string_view name) {
  return std::string(what) + " '" + std::string(name.substr(0, 80)) + "' is not a name: " + std::string(kNameRule);
}

using NamedAmount = std::pair<std::string, std::int64_t>;

std::vector<NamedAmount> stated_amounts(const ResourceAmounts& amounts) {
  std::vector<NamedAmount> stated;
  if (amounts.gpu_milli) stated.emplace_back("gpus", *amounts.gpu_milli);
  if (amounts.cpu_milli) stated.emplace_back("cpus", *amounts.cpu_milli);
  if (amounts.memory_mib) stated.emplace_back("memory", *amounts.memory_mib);
  for (const auto& [model, milli] : amounts.model_gpu_milli) stated.emplace_back("gpus." + model, milli);
  return stated;
}

std::optional<std::int64_t> amount_named(const ResourceAmounts& amounts, std::string_view name) {
  for (const auto& [stated, amount] : stated_amounts(amounts)) {
    if (stated == name) return amount;
  }
  return std::nullopt;
}

std::string shown(std::string_view dim, std::int64_t amount) {
  if (dim == "memory") return std::to_string(amount) + " MiB";
  std::string text = std::to_string(amount / 1000);
  if (amount % 1000 != 0) {
    std::string rest = std::to_string(1000 + amount % 1000).substr(1);
    while (rest.back() == '0') rest.pop_back();
    text += "." + rest;
  }
  return text;
}

Result<void> check_amounts(const std::string& where, const ResourceAmounts& amounts,
                           const std::set<std::string>& models) {
  for (const auto& [name, amount] : stated_amounts(amounts)) {
    if (amount < 0) return invalid(where + "." + name + " is negative; give 0 or more");
    if (amount > kMaxAmount)
      return invalid(where + "." + name + " is too large; the most is " + shown(name, kMaxAmount));
  }
  for (const auto& [model, milli] : amounts.model_gpu_milli) {
    if (!models.contains(model))
      return invalid(where + ".gpus." + model + ": no such GPU model; list it under gpu_models");
  }
  return {};
}

Result<std::set<std::string>> check_models(const ClusterConfig& config) {
  std::set<std::string> models;
  if (config.gpu_models.size() > kMaxGpuModels) {
    return invalid("gpu_models lists " + std::to_string(config.gpu_models.size()) + " models; the most is " +
                   std::to_string(kMaxGpuModels));
  }
  for (const auto& model : config.gpu_models) {
    if (!well_formed_name(model.name)) return invalid(name_rule("gpu model", model.name));
    if (!models.insert(model.name).second) return invalid("gpu model '" + model.name + "' is listed twice");
    if (model.weight_permille < 1 || model.weight_permille > 1'000'000) {
      return invalid("gpu model '" + model.name + "': weight must be between 0.001 and 1000");
    }
    if (model.memory_mib < 0 || model.memory_mib > kMaxAmount) {
      return invalid("gpu model '" + model.name + "': memory must be 0 or more MiB");
    }
    for (const auto& [key, watts] : {std::pair("watts", model.watts), std::pair("idle_watts", model.idle_watts)}) {
      if (watts < 0 || watts > kMostWatts) {
        return invalid("gpu model '" + model.name + "': " + key + " must be between 0 (not known) and " +
                       std::to_string(kMostWatts));
      }
    }
    if (!model.mig.empty() && mig_geometry(model.mig) == nullptr) {
      return invalid("gpu model '" + model.name + "': no MIG geometry '" + model.mig.substr(0, 80) +
                     "' is known; give one of " + known_mig_geometries());
    }
    if (model.idle_watts > model.watts) {
      return invalid("gpu model '" + model.name + "': idle_watts is above its watts; an idle GPU draws no more");
    }
  }
  return models;
}

Result<void> check_priority_classes(const ClusterConfig& config) {
  std::set<std::string> names;
  int defaults = 0;
  for (const auto& one : config.priority_classes) {
    if (!well_formed_name(one.name)) return invalid(name_rule("priority class", one.name));
    if (!names.insert(one.name).second) return invalid("priority class '" + one.name + "' is listed twice");
    if (one.value < kLeastPriority || one.value > kMostPriority) {
      return invalid("priority class '" + one.name + "': value must be between " + std::to_string(kLeastPriority) +
                     " and " + std::to_string(kMostPriority));
    }
    if (one.global_default && ++defaults > 1)
      return invalid("more than one priority class is the global default; keep one");
  }
  return {};
}

Result<void> check_attained_service(const std::string& where, const AttainedServiceConfig& order) {
  const std::string path = where + ".attained_service.";
  const auto& thresholds = order.thresholds_gpu_s;
  if (thresholds.empty() || thresholds.size() > kMaxServiceThresholds) {
    return invalid(path + "thresholds must be 1 to " + std::to_string(kMaxServiceThresholds) + " GPU times");
  }
  if (thresholds.front() <= 0 || thresholds.back() > kMaxServiceThresholdS ||
      std::adjacent_find(thresholds.begin(), thresholds.end(), std::greater_equal<>()) != thresholds.end()) {
    return invalid(path + "thresholds must rise, from more than 0 to 1000 GPU-years");
  }
  if (order.promote_after_s < 0 || order.promote_after_s > kYearS) {
    return invalid(path + "promote_after must be between 0 and one year");
  }
  return {};
}

Result<void> check_eviction_terms(const std::string& where, const EvictionTermsConfig& terms) {
  for (const auto& [key, seconds] : {std::pair("min_runtime", terms.min_runtime_s),
                                     std::pair("cooldown", terms.cooldown_s), std::pair("grace", terms.grace_s)}) {
    if (seconds && (*seconds < 0 || *seconds > kYearS))
      return invalid(where + ".eviction." + key + " must be between 0s and 365d");
  }
  if (terms.evictions_per_hour < 0 || terms.evictions_per_hour > kMostEvictionsPerHour) {
    return invalid(where + ".eviction.evictions_per_hour must be between 0 (no limit) and " +
                   std::to_string(kMostEvictionsPerHour));
  }
  return {};
}

Result<void> check_queue(const QueueConfig& queue, const std::set<std::string>& models) {
  const std::string where = "queue '" + queue.path + "'";
  std::size_t depth = 0;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = queue.path.find('/', begin);
    const std::string_view part =
        std::string_view(queue.path).substr(begin, end == std::string::npos ? end : end - begin);
    if (!well_formed_name(part)) return invalid(name_rule("queue", queue.path.empty() ? "" : part));
    if (++depth > kMaxQueueDepth) {
      return invalid(where.substr(0, 100) + " is more than " + std::to_string(kMaxQueueDepth) + " levels deep");
    }
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  if (queue.weight < 0 || queue.weight > 1'000'000) return invalid(where + ": weight must be between 0 and 1000000");
  if (!queue.trust_domain.empty() && !well_formed_name(queue.trust_domain)) {
    return invalid(name_rule("trust domain", queue.trust_domain));
  }
  if (auto ok = check_amounts(where + ".guaranteed", queue.guaranteed, models); !ok) return ok;
  if (auto ok = check_amounts(where + ".max", queue.max, models); !ok) return ok;
  if (auto ok = check_amounts(where + ".lending_limit", queue.lending_limit, models); !ok) return ok;
  for (const auto& [key, limit] : {std::pair("max_jobs_per_user", queue.max_jobs_per_user),
                                   std::pair("max_gpus_per_user", queue.max_gpu_milli_per_user),
                                   std::pair("max_submitted_per_user", queue.max_submitted_per_user)}) {
    if (limit && (*limit < 0 || *limit > kMaxAmount)) return invalid(where + "." + key + " must be 0 or more");
  }
  if (queue.attained_service) {
    if (auto ok = check_attained_service(where, *queue.attained_service); !ok) return ok;
  }
  if (auto ok = check_eviction_terms(where, queue.eviction); !ok) return ok;
  if (queue.guarantee_decay_s < 0 || queue.guarantee_decay_s > kYearS) {
    return invalid(where + ".guarantee_decay must be between 1 second and one year");
  }
  if (queue.guarantee_decay_s > 0 && stated_amounts(queue.guaranteed).empty()) {
    return invalid(where + ".guarantee_decay: the queue states no guarantee that it could lose");
  }
  for (const auto& [dim, amount] : stated_amounts(queue.guaranteed)) {
    const auto ceiling = amount_named(queue.max, dim);
    if (ceiling && amount > *ceiling) {
      return invalid(where + ": guaranteed " + dim + " " + shown(dim, amount) + " is above its max " +
                     shown(dim, *ceiling));
    }
  }
  return {};
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

Result<void> check_children_sums(const ClusterConfig& config,
                                 const std::map<std::string, const QueueConfig*>& by_path) {
  std::map<std::string, std::map<std::string, std::int64_t>> sums;
  for (const auto& queue : config.queues) {
    for (const auto& [dim, amount] : stated_amounts(queue.guaranteed)) {
      auto& sum = sums[parent_of(queue.path)][dim];
      sum = checked_add(sum, amount);
    }
  }
  for (const auto& [parent, dims] : sums) {
    if (parent.empty()) continue;  // the guarantee of the root is the fleet itself
    for (const auto& [dim, sum] : dims) {
      const auto own = amount_named(by_path.at(parent)->guaranteed, dim);
      if (!own && !stated_amounts(by_path.at(parent)->guaranteed).empty()) {
        return invalid("queue '" + parent + "': its children guarantee " + dim + " " + shown(dim, sum) +
                       " but it states no guarantee for " + dim + " itself; state at least that much");
      }
      if (sum > own.value_or(0)) {
        return invalid("queue '" + parent + "': guarantees of its children sum to " + dim + " " + shown(dim, sum) +
                       ", above its own " + shown(dim, own.value_or(0)) + "; raise it or lower theirs");
      }
    }
  }
  return {};
}

Result<void> check_queues(const ClusterConfig& config, const std::set<std::string>& models) {
  if (config.queues.empty()) return invalid("queues is empty; at least one queue is needed to submit to");
  if (config.queues.size() > kMaxQueues) return invalid("more than " + std::to_string(kMaxQueues) + " queues");
  std::map<std::string, const QueueConfig*> by_path;
  for (const auto& queue : config.queues) {
    if (auto ok = check_queue(queue, models); !ok) return ok;
    if (!by_path.emplace(queue.path, &queue).second) return invalid("queue '" + queue.path + "' is listed twice");
    const std::string parent = parent_of(queue.path);
    if (!parent.empty() && !by_path.contains(parent)) {
      return invalid("queue '" + queue.path + "': its parent '" + parent + "' is not listed before it");
    }
    if (!parent.empty() && by_path.at(parent)->attained_service) {
      return invalid("queue '" + parent +
                     "'.attained_service orders the jobs of one queue; this one has queues below it");
    }
  }
  return check_children_sums(config, by_path);
}

Result<void> check_pools(const ClusterConfig& config) {
  std::set<std::string> names;
  std::set<std::string> queues;
  for (const auto& queue : config.queues) queues.insert(queue.path);
  for (const auto& pool : config.pools) {
    if (!well_formed_name(pool.name)) return invalid(name_rule("pool", pool.name));
    if (!names.insert(pool.name).second) return invalid("pool '" + pool.name + "' is listed twice");
    std::set<std::string> open_to;
    for (const auto& queue : pool.queues) {
      if (!queues.contains(queue))
        return invalid("pool '" + pool.name + "': no such queue '" + queue.substr(0, 200) + "'");
      if (!open_to.insert(queue).second)
        return invalid("pool '" + pool.name + "': queue '" + queue + "' is listed twice; keep one");
    }
    if (std::set<JobClass>(pool.classes.begin(), pool.classes.end()).size() != pool.classes.size())
      return invalid("pool '" + pool.name + "': a class is listed twice; keep one");
  }
  std::set<std::string> levels;
  for (const auto& level : config.topology_levels) {
    if (!well_formed_name(level)) return invalid(name_rule("topology level", level));
    if (level == "node") return invalid("topology level 'node' is always there; leave it out");
    if (!levels.insert(level).second) return invalid("topology level '" + level + "' is listed twice");
  }
  for (const auto& pool : config.pools) {
    if (pool.trust_domain_isolation.empty() || pool.trust_domain_isolation == "node" ||
        levels.contains(pool.trust_domain_isolation))
      continue;
    std::string known;
    for (const auto& level : config.topology_levels) known += level + ", ";
    return invalid("pool '" + pool.name + "': trust_domain_isolation: there is no topology level '" +
                   pool.trust_domain_isolation.substr(0, 80) + "'; known are " + known + "node");
  }
  return {};
}

// Checks the scheduling keys. The messages use the names of the keys in the document.
Result<void> check_scheduling(const SchedulingConfig& scheduling) {
  const std::pair<const char*, std::int64_t> times[] = {{"min_runtime", scheduling.min_runtime_s},
                                                        {"grace", scheduling.default_grace_s},
                                                        {"usage_half_life", scheduling.usage_half_life_s},
                                                        {"deadline_slack", scheduling.deadline_slack_s},
                                                        {"flap_window", scheduling.flap_window_s},
                                                        {"resize_interval", scheduling.resize_interval_s},
                                                        {"cooldown", scheduling.cooldown_s},
                                                        {"preempt_max_loss", scheduling.preempt_max_loss_s},
                                                        {"backfill_after", scheduling.backfill_after_s}};
  for (const auto& [key, seconds] : times) {
    if (seconds < 0 || seconds > kYearS)
      return invalid("scheduling." + std::string(key) + " must be between 0s and 365d");
  }
  struct Number {
    const char* key;
    std::int64_t number;
    std::int64_t most;
    const char* zero;
  };
  const Number numbers[] = {
      {"backfill_reservations", scheduling.backfill_reservations, 1000, ""},
      {"fragmentation_alert", scheduling.fragmentation_alert_percent, 100, " (no alert)"},
      {"flap_losses", scheduling.flap_losses, 1000, " (never)"},
      {"max_unreachable_percent", scheduling.max_unreachable_percent, 100, " (never)"},
      {"evictions_per_hour", scheduling.evictions_per_hour, kMostEvictionsPerHour, " (no limit)"},
      {"consolidations_per_hour", scheduling.consolidations_per_hour, kMostEvictionsPerHour, " (nobody is moved)"},
      {"victims_per_cycle", scheduling.victims_per_cycle, 1'000'000, ""}};
  for (const Number& one : numbers) {
    if (one.number < 0 || one.number > one.most) {
      return invalid("scheduling." + std::string(one.key) + " must be between 0" + one.zero + " and " +
                     std::to_string(one.most));
    }
  }
  return {};
}

}  // namespace

ClusterConfig default_cluster_config() {
  ClusterConfig config;
  QueueConfig queue;
  queue.path = "default";
  config.queues.push_back(queue);
  config.pools.push_back({"default", {}});
  config.priority_classes = {{"production", 1000, false}, {"training", 500, true}, {"dev", 100, false}};
  return config;
}

Result<void> validate(const ClusterConfig& config) {
  if (!well_formed_name(config.name)) return invalid(name_rule("cluster", config.name));
  auto models = check_models(config);
  if (!models) return models.error();
  if (auto ok = check_priority_classes(config); !ok) return ok;
  if (auto ok = check_queues(config, *models); !ok) return ok;
  if (auto ok = check_pools(config); !ok) return ok;
  return check_scheduling(config.scheduling);
}

}  // namespace berth
