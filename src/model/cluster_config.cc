#include "model/cluster_config.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "base/checked.h"
#include "model/certificate_name.h"
#include "model/gpu_model.h"
#include "model/group_subject.h"
#include "model/image.h"
#include "model/issued_name.h"
#include "model/mig.h"
#include "model/name.h"
#include "model/nearest.h"
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
constexpr std::size_t kMostHints = 50;
constexpr std::string_view kLastYearOfGrant = "9998";

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

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

// Goes through a configuration and collects the rules that it breaks.
class ConfigCheck {
 public:
  explicit ConfigCheck(const ClusterConfig& config) : config_(config) {}

  std::vector<ConfigMistake> run() {
    if (!well_formed_name(config_.name)) tell(name_rule("cluster", config_.name));
    check_models();
    check_priority_classes();
    check_queues();
    check_pools();
    check_topology();
    check_isolation();
    check_scheduling();
    check_roles();
    check_admission();
    check_mounts("", config_.volumes, config_.secrets, config_.default_image);
    return std::move(mistakes_);
  }

 private:
  void tell(std::string message, ConfigPart against = ConfigPart::kItself) {
    mistakes_.push_back({std::move(message), against});
  }
  // Returns "; did you mean 'H100'?" for a name that is nearly one of `known`, else nothing. The first mistakes alone
  // get a hint, because a long document with nothing but wrong names would keep the server busy.
  template <class Names>
  std::string hint(const std::string& name, const Names& known) const {
    if (mistakes_.size() >= kMostHints) return {};
    std::vector<std::string_view> names;
    for (const auto& one : known) names.push_back(one);
    const auto meant = nearest(name, names);
    return meant ? "; did you mean '" + std::string(*meant) + "'?" : "";
  }

  void check_models();
  void check_model(const std::string& where, const GpuModelConfig& model);
  void check_priority_classes();
  void check_queues();
  bool check_path(const QueueConfig& queue);
  void check_queue(const QueueConfig& queue);
  void check_amounts(const std::string& where, const ResourceAmounts& amounts);
  void check_guarantee(const std::string& where, const QueueConfig& queue);
  void check_attained_service(const std::string& where, const AttainedServiceConfig& order);
  void check_eviction_terms(const std::string& where, const EvictionTermsConfig& terms);
  void check_grant(const std::string& where, const BudgetConfig& grant);
  void check_moves();
  void check_children_sums();
  void check_pools();
  void check_topology();
  void check_isolation();
  void check_scheduling();
  void check_roles();
  void check_admission();
  void check_mounts(const std::string& where, const std::vector<VolumeConfig>& volumes,
                    const std::vector<SecretConfig>& secrets, const std::string& image);
  template <class Config>
  void check_named(const std::string& where, const std::string& what, const std::vector<Config>& list);

  const ClusterConfig& config_;
  std::vector<ConfigMistake> mistakes_;
  std::set<std::string_view> models_;
  std::map<std::string, const QueueConfig*> by_path_;
  std::set<std::string_view> queues_;  // its keys
};

void ConfigCheck::check_amounts(const std::string& where, const ResourceAmounts& amounts) {
  for (const auto& [name, amount] : stated_amounts(amounts)) {
    if (amount < 0) tell(where + "." + name + " is negative; give 0 or more");
    if (amount > kMaxAmount) tell(where + "." + name + " is too large; the most is " + shown(name, kMaxAmount));
  }
  for (const auto& [model, milli] : amounts.model_gpu_milli) {
    if (models_.contains(model)) continue;
    const std::string meant = hint(model, models_);
    tell(where + ".gpus." + model + ": no such GPU model" + (meant.empty() ? "; list it under gpu_models" : meant),
         ConfigPart::kGpuModels);
  }
}

void ConfigCheck::check_model(const std::string& where, const GpuModelConfig& model) {
  if (model.weight_permille < 1 || model.weight_permille > 1'000'000)
    tell(where + ": weight must be between 0.001 and 1000");
  if (model.memory_mib < 0 || model.memory_mib > kMaxAmount) tell(where + ": memory must be 0 or more MiB");
  for (const auto& [key, watts] : {std::pair("watts", model.watts), std::pair("idle_watts", model.idle_watts)}) {
    if (watts < 0 || watts > kMostWatts)
      tell(where + ": " + key + " must be between 0 (not known) and " + std::to_string(kMostWatts));
  }
  if (!model.mig.empty() && mig_geometry(model.mig) == nullptr) {
    tell(where + ": no MIG geometry '" + model.mig.substr(0, 80) + "' is known; give one of " + known_mig_geometries());
  }
  if (model.idle_watts > model.watts) tell(where + ": idle_watts is above its watts; an idle GPU draws no more");
}

void ConfigCheck::check_models() {
  if (config_.gpu_models.size() > kMaxGpuModels) {
    tell("gpu_models lists " + std::to_string(config_.gpu_models.size()) + " models; the most is " +
         std::to_string(kMaxGpuModels));
  }
  for (const auto& model : config_.gpu_models) {
    const std::string where = "gpu model '" + model.name + "'";
    if (!well_formed_gpu_model(model.name)) tell(name_rule("gpu model", model.name));
    if (!models_.insert(model.name).second) tell(where + " is listed twice");
    check_model(where, model);
  }
}

void ConfigCheck::check_priority_classes() {
  std::set<std::string> names;
  int defaults = 0;
  for (const auto& one : config_.priority_classes) {
    if (!well_formed_name(one.name)) tell(name_rule("priority class", one.name));
    if (!names.insert(one.name).second) tell("priority class '" + one.name + "' is listed twice");
    if (one.value < kLeastPriority || one.value > kMostPriority) {
      tell("priority class '" + one.name + "': value must be between " + std::to_string(kLeastPriority) + " and " +
           std::to_string(kMostPriority));
    }
    if (one.global_default && ++defaults == 2) tell("more than one priority class is the global default; keep one");
  }
}

void ConfigCheck::check_attained_service(const std::string& where, const AttainedServiceConfig& order) {
  const std::string path = where + ".attained_service.";
  const auto& thresholds = order.thresholds_gpu_s;
  if (thresholds.empty() || thresholds.size() > kMaxServiceThresholds) {
    tell(path + "thresholds must be 1 to " + std::to_string(kMaxServiceThresholds) + " GPU times");
  } else if (thresholds.front() <= 0 || thresholds.back() > kMaxServiceThresholdS ||
             std::adjacent_find(thresholds.begin(), thresholds.end(), std::greater_equal<>()) != thresholds.end()) {
    tell(path + "thresholds must rise, from more than 0 to 1000 GPU-years");
  }
  if (order.promote_after_s < 0 || order.promote_after_s > kYearS)
    tell(path + "promote_after must be between 0 and one year");
}

void ConfigCheck::check_eviction_terms(const std::string& where, const EvictionTermsConfig& terms) {
  for (const auto& [key, seconds] : {std::pair("min_runtime", terms.min_runtime_s),
                                     std::pair("cooldown", terms.cooldown_s), std::pair("grace", terms.grace_s)}) {
    if (seconds && (*seconds < 0 || *seconds > kYearS))
      tell(where + ".eviction." + key + " must be between 0s and 365d");
  }
  if (terms.evictions_per_hour < 0 || terms.evictions_per_hour > kMostEvictionsPerHour) {
    tell(where + ".eviction.evictions_per_hour must be between 0 (no limit) and " +
         std::to_string(kMostEvictionsPerHour));
  }
}

void ConfigCheck::check_grant(const std::string& where, const BudgetConfig& grant) {
  const std::string year = to_iso8601(grant.until).substr(0, 4);
  if (grant.from.ms < 0 || year < "1970" || year > kLastYearOfGrant) {
    tell(where + ".until: give days from 1970-01-01 to " + std::string(kLastYearOfGrant) + "-12-31");
  } else if (grant.until <= grant.from) {
    tell(where + ".until: " + to_iso8601(grant.until) + " lies not after from; a grant ends after it begins");
  }
}

// Returns false if the path is no path of names; the queue is then not looked at further.
bool ConfigCheck::check_path(const QueueConfig& queue) {
  std::size_t depth = 0;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = queue.path.find('/', begin);
    const std::string_view part =
        std::string_view(queue.path).substr(begin, end == std::string::npos ? end : end - begin);
    if (!well_formed_name(part)) {
      tell(name_rule("queue", queue.path.empty() ? "" : part), ConfigPart::kQueues);
      return false;
    }
    if (++depth > kMaxQueueDepth) {
      tell(("queue '" + queue.path + "'").substr(0, 100) + " is more than " + std::to_string(kMaxQueueDepth) +
           " levels deep");
      return false;
    }
    if (end == std::string::npos) return true;
    begin = end + 1;
  }
}

void ConfigCheck::check_guarantee(const std::string& where, const QueueConfig& queue) {
  if (queue.guarantee_decay_s < 0 || queue.guarantee_decay_s > kYearS)
    tell(where + ".guarantee_decay must be between 1 second and one year");
  if (queue.guarantee_decay_s > 0 && stated_amounts(queue.guaranteed).empty())
    tell(where + ".guarantee_decay: the queue states no guarantee that it could lose");
  for (const auto& [dim, amount] : stated_amounts(queue.guaranteed)) {
    const auto ceiling = amount_named(queue.max, dim);
    if (ceiling && amount > *ceiling) {
      tell(where + ": guaranteed " + dim + " " + shown(dim, amount) + " is above its max " + shown(dim, *ceiling));
    }
  }
}

void ConfigCheck::check_queue(const QueueConfig& queue) {
  const std::string where = "queue '" + queue.path + "'";
  if (queue.weight < 0 || queue.weight > 1'000'000) tell(where + ": weight must be between 0 and 1000000");
  if (!queue.trust_domain.empty() && !well_formed_name(queue.trust_domain))
    tell(name_rule("trust domain", queue.trust_domain), ConfigPart::kQueues);
  check_amounts(where + ".guaranteed", queue.guaranteed);
  check_amounts(where + ".max", queue.max);
  check_amounts(where + ".lending_limit", queue.lending_limit);
  for (const auto& [key, limit] : {std::pair("max_jobs_per_user", queue.max_jobs_per_user),
                                   std::pair("max_gpus_per_user", queue.max_gpu_milli_per_user),
                                   std::pair("max_submitted_per_user", queue.max_submitted_per_user)}) {
    if (limit && (*limit < 0 || *limit > kMaxAmount)) tell(where + "." + key + " must be 0 or more");
  }
  if (queue.attained_service) check_attained_service(where, *queue.attained_service);
  check_eviction_terms(where, queue.eviction);
  if (queue.grant) check_grant(where + ".grant", *queue.grant);
  check_guarantee(where, queue);
  check_mounts(where, queue.volumes, queue.secrets, queue.default_image);
}

template <class Config>
void ConfigCheck::check_named(const std::string& where, const std::string& what, const std::vector<Config>& list) {
  if (list.size() > kMaxVolumesOfAQueue)
    tell(where + (where.empty() ? "" : ".") + what + "s lists more than " + std::to_string(kMaxVolumesOfAQueue));
  std::set<std::string_view> names;
  for (const Config& one : list) {
    const std::string here = where + (where.empty() ? "" : ": ") + what + " '" + one.name.substr(0, 80) + "'";
    if (!well_formed_name(one.name)) tell(here + " is not a name: " + std::string(kNameRule));
    if (!names.insert(one.name).second) tell(here + " is listed twice");
    if (const std::string problem = problem_of(one); !problem.empty()) tell(here + ": " + problem);
  }
}

// `where` is the queue, or empty for the top.
void ConfigCheck::check_mounts(const std::string& where, const std::vector<VolumeConfig>& volumes,
                               const std::vector<SecretConfig>& secrets, const std::string& image) {
  check_named(where, "volume", volumes);
  check_named(where, "secret", secrets);
  if (!image.empty() && !well_formed_image(image))
    tell(where + (where.empty() ? "" : ".") + "default_image is not the name of an image: " + std::string(kImageRule));
}

void ConfigCheck::check_children_sums() {
  std::map<std::string, std::map<std::string, std::int64_t>> sums;
  for (const auto& [path, queue] : by_path_) {
    for (const auto& [dim, amount] : stated_amounts(queue->guaranteed)) {
      auto& sum = sums[parent_of(path)][dim];
      sum = checked_add(sum, std::clamp<std::int64_t>(amount, 0, kMaxAmount));
    }
  }
  for (const auto& [parent, dims] : sums) {
    const auto above = by_path_.find(parent);
    if (above == by_path_.end()) continue;  // the guarantee of the root is the fleet itself
    for (const auto& [dim, sum] : dims) {
      const auto own = amount_named(above->second->guaranteed, dim);
      if (!own && !stated_amounts(above->second->guaranteed).empty()) {
        tell("queue '" + parent + "': its children guarantee " + dim + " " + shown(dim, sum) +
                 " but it states no guarantee for " + dim + " itself; state at least that much",
             ConfigPart::kQueues);
      } else if (sum > own.value_or(0)) {
        tell("queue '" + parent + "': guarantees of its children sum to " + dim + " " + shown(dim, sum) +
                 ", above its own " + shown(dim, own.value_or(0)) + "; raise it or lower theirs",
             ConfigPart::kQueues);
      }
    }
  }
}

// A queue is renamed where it is: its parent, and with it its guarantees, stay as they are.
void ConfigCheck::check_moves() {
  std::set<std::string> from;
  for (const auto& queue : config_.queues) {
    const std::string& old = queue.moved_from;
    if (old.empty()) continue;
    const std::string where = "queue '" + queue.path + "'.moved_from: ";
    if (parent_of(old) != parent_of(queue.path)) {
      tell(where + "'" + old.substr(0, 100) + "' has another parent; a queue is renamed, and stays where it is");
    } else if (queues_.contains(old)) {
      tell(where + "'" + old + "' is configured too; list the queue under its new name alone");
    } else if (!from.insert(old).second) {
      tell(where + "another queue was '" + old + "', too");
    }
  }
}

void ConfigCheck::check_queues() {
  if (config_.queues.empty()) tell("queues is empty; at least one queue is needed to submit to", ConfigPart::kQueues);
  if (config_.queues.size() > kMaxQueues) return tell("more than " + std::to_string(kMaxQueues) + " queues");
  for (const auto& queue : config_.queues) {
    if (!check_path(queue)) continue;
    check_queue(queue);
    queues_.insert(queue.path);
    if (!by_path_.emplace(queue.path, &queue).second) tell("queue '" + queue.path + "' is listed twice");
    const std::string parent = parent_of(queue.path);
    if (parent.empty()) continue;
    const auto above = by_path_.find(parent);
    if (above == by_path_.end()) {
      tell("queue '" + queue.path + "': its parent '" + parent + "' is not listed before it", ConfigPart::kQueues);
    } else if (above->second->attained_service) {
      tell("queue '" + parent + "'.attained_service orders the jobs of one queue; this one has queues below it");
    }
  }
  check_moves();
  check_children_sums();
}

void ConfigCheck::check_admission() {
  for (const std::string& mistake : mistakes_in(config_.admission)) tell("admission: " + mistake);
  for (const QueueConfig& queue : config_.queues) {
    for (const std::string& mistake : mistakes_in(queue.admission))
      tell("queue '" + queue.path + "'.admission: " + mistake);
  }
}

void ConfigCheck::check_pools() {
  std::set<std::string> names;
  for (const auto& pool : config_.pools) {
    if (!well_formed_name(pool.name)) tell(name_rule("pool", pool.name));
    const std::string where = "pool '" + pool.name + "'";
    if (!names.insert(pool.name).second) tell(where + " is listed twice");
    std::set<std::string> open_to;
    for (const auto& queue : pool.queues) {
      if (!queues_.contains(queue))
        tell(where + ": no such queue '" + queue.substr(0, 200) + "'" + hint(queue, queues_), ConfigPart::kQueues);
      if (!open_to.insert(queue).second) tell(where + ": queue '" + queue + "' is listed twice; keep one");
    }
    if (std::set<JobClass>(pool.classes.begin(), pool.classes.end()).size() != pool.classes.size())
      tell(where + ": a class is listed twice; keep one");
    if (std::set<GpuLevel>(pool.gpu_levels.begin(), pool.gpu_levels.end()).size() != pool.gpu_levels.size())
      tell(where + ": a level is listed twice in gpu_levels; keep one");
    if (pool.gpu_levels == std::vector{GpuLevel::kMps})
      tell(where + ": gpu_levels has mps alone, and no job gets a GPU so yet; add whole, mig or time-slice");
  }
}

void ConfigCheck::check_topology() {
  std::set<std::string> levels;
  for (const auto& level : config_.topology_levels) {
    if (!well_formed_name(level)) tell(name_rule("topology level", level));
    if (level == "node") tell("topology level 'node' is always there; leave it out");
    if (!levels.insert(level).second) tell("topology level '" + level + "' is listed twice");
  }
}

// The level of a pool's trust domain isolation must be one of the topology, or `node`.
void ConfigCheck::check_isolation() {
  const auto& levels = config_.topology_levels;
  for (const auto& pool : config_.pools) {
    const std::string& level = pool.trust_domain_isolation;
    if (level.empty() || level == "node" || std::find(levels.begin(), levels.end(), level) != levels.end()) continue;
    std::string known;
    for (const auto& one : levels) known += one + ", ";
    tell("pool '" + pool.name + "': trust_domain_isolation: there is no topology level '" + level.substr(0, 80) +
             "'; known are " + known + "node",
         ConfigPart::kTopology);
  }
}

// Checks the scheduling keys. The messages use the names of the keys in the document.
void ConfigCheck::check_scheduling() {
  const SchedulingConfig& scheduling = config_.scheduling;
  const std::pair<const char*, std::int64_t> times[] = {
      {"min_runtime", scheduling.min_runtime_s},           {"grace", scheduling.default_grace_s},
      {"usage_half_life", scheduling.usage_half_life_s},   {"deadline_slack", scheduling.deadline_slack_s},
      {"flap_window", scheduling.flap_window_s},           {"suspect_window", scheduling.suspect_window_s},
      {"resize_interval", scheduling.resize_interval_s},   {"cooldown", scheduling.cooldown_s},
      {"preempt_max_loss", scheduling.preempt_max_loss_s}, {"backfill_after", scheduling.backfill_after_s}};
  for (const auto& [key, seconds] : times) {
    if (seconds < 0 || seconds > kYearS) tell("scheduling." + std::string(key) + " must be between 0s and 365d");
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
      {"suspect_users", scheduling.suspect_users, 100, " (never)"},
      {"max_unreachable_percent", scheduling.max_unreachable_percent, 100, " (never)"},
      {"evictions_per_hour", scheduling.evictions_per_hour, kMostEvictionsPerHour, " (no limit)"},
      {"consolidations_per_hour", scheduling.consolidations_per_hour, kMostEvictionsPerHour, " (nobody is moved)"},
      {"victims_per_cycle", scheduling.victims_per_cycle, 1'000'000, ""}};
  for (const Number& one : numbers) {
    if (one.number < 0 || one.number > one.most) {
      tell("scheduling." + std::string(one.key) + " must be between 0" + one.zero + " and " + std::to_string(one.most));
    }
  }
}

void ConfigCheck::check_roles() {
  for (std::size_t i = 0; i < config_.roles.size(); ++i) {
    const RoleBinding& binding = config_.roles[i];
    const std::string words = "role of '" + binding.subject.substr(0, 80) + "'";
    if (const std::string wrong = mistake_in_subject(binding.subject); !wrong.empty())
      tell(words + ": " + wrong);
    else if (is_group_of_nobody(binding.subject))
      tell(words + ": " + std::string(kGroupRule));
    const auto same = [&](const QueueConfig& queue) { return queue.path == binding.queue; };
    if (!binding.queue.empty() && std::none_of(config_.queues.begin(), config_.queues.end(), same))
      tell(words + ": there is no queue '" + binding.queue.substr(0, 200) + "'");
    if (i > 0 && !(config_.roles[i - 1] < binding))
      tell(words + ": the same role at the same queue is listed twice; keep one");
  }
}

}  // namespace

// Users and groups may also be those of an issuer.
std::string mistake_in_subject(const std::string& subject) {
  const std::size_t colon = subject.find(':');
  const std::string kind = colon == std::string::npos ? "" : subject.substr(0, colon);
  const std::string_view name = std::string_view(subject).substr(colon == std::string::npos ? 0 : colon + 1);
  if (kind == "cert") return well_formed_certificate_name(name) ? "" : std::string(kCertificateNameRule);
  if (kind != "user" && kind != "group" && kind != "token")
    return "a subject is user:NAME, group:ISSUER:NAME, token:NAME or cert:NAME";
  if (well_formed_name(name) || (kind != "token" && well_formed_issued_subject(name))) return "";
  return std::string(kNameRule) + (kind == "token" ? "" : "; or ISSUER:NAME, as `berth whoami` shows it");
}

ClusterConfig default_cluster_config() {
  ClusterConfig config;
  QueueConfig queue;
  queue.path = "default";
  config.queues.push_back(queue);
  config.pools.push_back({"default", {}});
  config.priority_classes = {{"production", 1000, false}, {"training", 500, true}, {"dev", 100, false}};
  return config;
}

std::string moved_path(const std::string& path, const std::vector<QueueMove>& moves) {
  for (const QueueMove& move : moves) {
    if (path == move.from) return move.to;
    if (path.starts_with(move.from + "/")) return move.to + path.substr(move.from.size());
  }
  return path;
}

std::vector<ConfigMistake> mistakes_in(const ClusterConfig& config) { return ConfigCheck(config).run(); }

Result<void> validate(const ClusterConfig& config) {
  const auto mistakes = mistakes_in(config);
  if (mistakes.empty()) return {};
  return invalid(mistakes.front().message);
}

}  // namespace berth
