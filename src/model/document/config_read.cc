#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "model/document/admission_document.h"
#include "model/document/config_document.h"
#include "model/document/price_document.h"
#include "model/document/reading.h"
#include "model/document/volume_document.h"
#include "model/gpu_model.h"
#include "model/name.h"
#include "model/priority.h"
#include "model/resources.h"

namespace berth::document {
namespace {

constexpr std::int64_t kMax32 = std::numeric_limits<std::int32_t>::max();
constexpr std::string_view kModelPrefix = "gpus.";

// Places: the positions of the objects that mistakes_in() names, by the words at the beginning of its messages; and
// which of them could not be read without a mistake. A rule about those is not told, since it could follow from that.
class Places {
 public:
  void note(const std::string& words, Position at) { places_.emplace(words, at); }
  void doubt(const std::string& words) { doubtful_.push_back(words); }
  void doubt(ConfigPart part) { parts_.insert(part); }

  bool doubtful(const ConfigMistake& mistake) const {
    if (parts_.contains(mistake.against)) return true;
    return std::any_of(doubtful_.begin(), doubtful_.end(),
                       [&](const std::string& words) { return mistake.message.starts_with(words); });
  }

  // Returns the position of the longest words with which the message begins; 1:1 if there are none.
  Position of(std::string_view message) const {
    Position best{1, 1};
    std::size_t length = 0;
    for (const auto& [words, at] : places_) {
      if (words.size() > length && message.starts_with(words)) {
        best = at;
        length = words.size();
      }
    }
    return best;
  }

 private:
  std::map<std::string, Position> places_;
  std::vector<std::string> doubtful_;
  std::set<ConfigPart> parts_;
};

class ConfigReader {
 public:
  ConfigReader(ClusterConfig& config, Places& places) : config_(config), places_(places) {}

  void read(const Value& document) {
    document.map({
        {"cluster", [this](const Value& value) { watch(value, "cluster '", [&] { config_.name = value.name(); }); }},
        {"gpu_models",
         [this](const Value& value) { watch(value, ConfigPart::kGpuModels, [&] { read_gpu_models(value); }); }},
        {"pools", [this](const Value& value) { read_pools(value); }},
        {"topology",
         [this](const Value& value) { watch(value, ConfigPart::kTopology, [&] { read_topology(value); }); }},
        {"priority_classes", [this](const Value& value) { read_priority_classes(value); }},
        {"queues", [this](const Value& value) { watch(value, ConfigPart::kQueues, [&] { read_queues(value, ""); }); }},
        {"scheduling", [this](const Value& value) { read_scheduling(value); }},
        {"roles", [this](const Value& value) { read_roles(value); }},
        {"admission", [this](const Value& value) { config_.admission = read_admission(value, "admission"); }},
        {"volumes",
         [this](const Value& value) { watch(value, "volume '", [&] { config_.volumes = read_volumes(value); }); }},
        {"secrets",
         [this](const Value& value) {
           watch(value, "secret '", [&] { config_.secrets = read_secret_references(value); });
         }},
        {"default_image",
         [this](const Value& value) {
           places_.note("default_image", value.node().at);
           config_.default_image = value.string();
         }},
        {"shell", [this](const Value& value) { config_.no_shell = !value.boolean(); }},
    });
    // A key at the top that is not known may be one of the parts, mistyped.
    const auto& mistakes = document.reading().mistakes();
    if (std::any_of(mistakes.begin(), mistakes.end(), [](const Mistake& one) { return one.path.empty(); })) {
      for (const ConfigPart part : {ConfigPart::kGpuModels, ConfigPart::kQueues, ConfigPart::kTopology})
        places_.doubt(part);
    }
  }

 private:
  // Calls `read`. If it finds mistakes, what `doubtful` names is not judged by further rules.
  template <class Doubtful, class Read>
  void watch(const Value& value, const Doubtful& doubtful, Read&& read) {
    const std::size_t before = value.reading().mistakes().size();
    read();
    if (value.reading().mistakes().size() > before) places_.doubt(doubtful);
  }

  void read_gpu_models(const Value& value) {
    places_.note("gpu_models", value.node().at);
    config_.gpu_models.clear();
    value.each_entry([this](const Entry& entry, const Value& body) {
      GpuModelConfig model;
      model.name = read_key_as_name(entry, body, well_formed_gpu_model);
      places_.note("gpu model '" + model.name + "'", entry.at);
      watch(body, "gpu model '" + model.name + "'", [&] {
        body.map({
            {"weight", [&](const Value& v) { model.weight_permille = v.milli(); }},
            {"memory", [&](const Value& v) { read_model_memory(v, model); }},
            {"watts", [&](const Value& v) { model.watts = v.integer(1, kMostWatts); }},
            {"idle_watts", [&](const Value& v) { model.idle_watts = v.integer(0, kMostWatts); }},
            {"mig", [&](const Value& v) { model.mig = v.string(); }},
        });
      });
      for (const Entry& key : body.node().entries)
        places_.note("gpu model '" + model.name + "': " + key.key + " ", key.at);
      config_.gpu_models.push_back(std::move(model));
    });
  }

  static void read_model_memory(const Value& value, GpuModelConfig& model) {
    model.memory_mib = value.memory_mib();
    if (model.memory_mib == 0) value.refuse("no GPU has 0 GiB; give what it has, or leave it out");
  }

  void read_pools(const Value& value) {
    config_.pools.clear();
    value.each_item([this](const Value& body) {
      PoolConfig pool;
      const std::size_t before = body.reading().mistakes().size();
      body.map({
          {"name", [&](const Value& v) { pool.name = v.name(); }},
          {"queues", [&](const Value& v) { read_open_to(v, pool); }},
          {"trust_domain_isolation", [&](const Value& v) { pool.trust_domain_isolation = v.name(); }},
          {"classes", [&](const Value& v) { read_classes(v, pool); }},
          {"gpu_levels", [&](const Value& v) { read_gpu_levels(v, pool); }},
          {"burst", [&](const Value& v) { pool.burst = v.boolean(); }},
      });
      if (body.node().find("name") == nullptr) body.refuse("a pool needs a name");
      if (body.reading().mistakes().size() > before) places_.doubt("pool '" + pool.name + "'");
      note_pool(pool.name, body.node());
      const auto same = [&](const PoolConfig& one) { return one.name == pool.name; };
      if (std::any_of(config_.pools.begin(), config_.pools.end(), same)) {
        body.refuse("pool '" + pool.name + "' is listed twice; keep one");
        places_.doubt("pool '" + pool.name + "' is listed twice");
      }
      config_.pools.push_back(std::move(pool));
    });
  }

  void note_pool(const std::string& name, const Node& body) {
    const std::string words = "pool '" + name + "'";
    places_.note(words, body.at);
    const Node* queues = body.find("queues");
    if (queues == nullptr) return;
    for (const Node& item : queues->items) places_.note(words + ": no such queue '" + item.text + "'", item.at);
  }

  static void read_open_to(const Value& value, PoolConfig& pool) {
    pool.queues = value.strings();
    if (pool.queues.empty()) value.refuse("queues is empty, so that nobody could use the pool; leave it out for all");
  }

  static void read_classes(const Value& value, PoolConfig& pool) {
    value.each_item([&](const Value& item) { pool.classes.push_back(item.word<JobClass>()); });
    if (pool.classes.empty()) value.refuse("classes is empty, so that nobody could use the pool; leave it out for all");
  }

  static void read_gpu_levels(const Value& value, PoolConfig& pool) {
    value.each_item([&](const Value& item) { pool.gpu_levels.push_back(item.word<GpuLevel>()); });
    if (pool.gpu_levels.empty())
      value.refuse("gpu_levels is empty, so that no GPU of the pool could be used; leave it out for all");
  }

  void read_roles(const Value& value) {
    config_.roles.clear();
    value.each_item([this](const Value& body) {
      RoleBinding binding;
      const std::size_t unset = EnumNames<Role>::kNames.size();
      std::size_t role = unset;
      body.map({
          {"subject", [&](const Value& v) { binding.subject = v.string(); }},
          {"role", [&](const Value& v) { role = static_cast<std::size_t>(v.word<Role>()); }},
          {"queue", [&](const Value& v) { binding.queue = v.string() == "/" ? "" : v.string(); }},  // /: the root
      });
      if (binding.subject.empty())
        body.refuse("a role needs a subject: user:NAME, group:ISSUER:NAME, token:NAME or cert:NAME");
      if (role == unset) body.refuse("a role needs its name, such as role: member");
      binding.role = static_cast<Role>(role == unset ? 0 : role);
      if (const std::string flaw = flaw_of_place(binding.role, binding.queue); !flaw.empty()) body.refuse(flaw);
      if (binding.subject.empty()) return;
      places_.note("role of '" + binding.subject + "'", body.node().at);
      config_.roles.push_back(std::move(binding));
    });
    std::sort(config_.roles.begin(), config_.roles.end());
  }

  void read_topology(const Value& value) {
    config_.topology_levels.clear();
    value.each_item([this](const Value& level) {
      auto& levels = config_.topology_levels;
      const std::string name = level.name();
      if (std::find(levels.begin(), levels.end(), name) != levels.end()) {
        level.refuse("level '" + name + "' is listed twice; keep one");
        places_.doubt("topology level '" + name + "' is listed twice");
      }
      places_.note("topology level '" + name + "'", level.node().at);
      levels.push_back(name);
    });
  }

  void read_priority_classes(const Value& value) {
    config_.priority_classes.clear();
    places_.note("more than one priority class", value.node().at);
    value.each_entry([this](const Entry& entry, const Value& body) {
      PriorityClassConfig one;
      one.name = read_key_as_name(entry, body);
      places_.note("priority class '" + one.name + "'", entry.at);
      if (body.node().kind == NodeKind::kMap) {
        body.map({
            {"value", [&](const Value& v) { one.value = read_priority(v); }},
            {"default", [&](const Value& v) { one.global_default = v.boolean(); }},
        });
        if (body.node().find("value") == nullptr) body.refuse("a priority class needs a value, such as 500");
      } else {
        one.value = read_priority(body);
      }
      config_.priority_classes.push_back(std::move(one));
    });
  }
  static std::int32_t read_priority(const Value& value) {
    return static_cast<std::int32_t>(value.integer(kLeastPriority, kMostPriority));
  }

  void read_queues(const Value& value, const std::string& parent) {
    if (parent.empty()) {
      config_.queues.clear();
      places_.note("queues is empty", value.node().at);
      places_.note("more than", value.node().at);
    }
    const std::string above = parent.empty() ? "queues." : "queues." + parent + "/";
    value.each_entry([&](const Entry& entry, const Value& body) {
      read_queue(entry, Value(body.reading(), body.node(), above + entry.key.substr(0, 80)), parent);
    });
  }

  void read_queue(const Entry& entry, const Value& body, const std::string& parent) {
    const std::string name = read_key_as_name(entry, body);
    QueueConfig queue;
    queue.path = parent.empty() ? name : parent + "/" + name;
    places_.note("queue '" + queue.path + "'", entry.at);
    const Node* below = nullptr;
    const std::size_t before = body.reading().mistakes().size();
    if (body.node().kind != NodeKind::kNull) {
      body.map({
          {"guaranteed", [&](const Value& v) { read_amounts(v, queue.guaranteed, queue.path, "guaranteed"); }},
          {"max", [&](const Value& v) { read_amounts(v, queue.max, queue.path, "max"); }},
          {"lending_limit", [&](const Value& v) { read_amounts(v, queue.lending_limit, queue.path, "lending_limit"); }},
          {"moved_from", [&](const Value& v) { queue.moved_from = v.string(); }},
          {"returns", [&](const Value& v) { queue.returns = v.boolean(); }},
          {"weight", [&](const Value& v) { queue.weight = v.integer(0, 1'000'000); }},
          {"trust_domain", [&](const Value& v) { queue.trust_domain = v.name(); }},
          {"policy", [&](const Value& v) { queue.policy = v.word<QueuePolicy>(); }},
          {"max_jobs_per_user", [&](const Value& v) { queue.max_jobs_per_user = v.integer(0, kMax32); }},
          {"max_gpus_per_user", [&](const Value& v) { queue.max_gpu_milli_per_user = v.milli(); }},
          {"max_submitted_per_user", [&](const Value& v) { queue.max_submitted_per_user = v.integer(0, kMax32); }},
          {"attained_service", [&](const Value& v) { read_attained_service(v, queue); }},
          {"guarantee_decay", [&](const Value& v) { read_guarantee_decay(v, queue); }},
          {"eviction", [&](const Value& v) { read_eviction(v, queue); }},
          {"budget", [&](const Value& v) { read_budget(v, queue.budget.emplace()); }},
          {"grant", [&](const Value& v) { read_grant(v, queue); }},
          {"admission",
           [&](const Value& v) { queue.admission = read_admission(v, "queue '" + queue.path + "'.admission"); }},
          {"volumes", [&](const Value& v) { queue.volumes = read_volumes(v); }},
          {"secrets", [&](const Value& v) { queue.secrets = read_secret_references(v); }},
          {"default_image",
           [&](const Value& v) {
             places_.note("queue '" + queue.path + "'.default_image", v.node().at);
             queue.default_image = v.string();
           }},
          {"shell", [&](const Value& v) { queue.no_shell = !v.boolean(); }},
          {"queues", [&](const Value& v) { below = &v.node(); }},
      });
    }
    const std::string path = queue.path;
    if (body.reading().mistakes().size() > before) places_.doubt("queue '" + path + "'");
    config_.queues.push_back(std::move(queue));
    if (below != nullptr) read_queues(Value(body.reading(), *below, body.path()), path);
  }

  void read_guarantee_decay(const Value& value, QueueConfig& queue) {
    queue.guarantee_decay_s = value.duration_s();
    if (queue.guarantee_decay_s == 0) value.refuse("0 is no time; give one such as 7d, or leave it out for never");
    places_.note("queue '" + queue.path + "'.guarantee_decay", value.node().at);
  }

  void read_eviction(const Value& value, QueueConfig& queue) {
    EvictionTermsConfig& terms = queue.eviction;
    value.map({
        {"min_runtime", [&](const Value& v) { terms.min_runtime_s = v.duration_s(); }},
        {"cooldown", [&](const Value& v) { terms.cooldown_s = v.duration_s(); }},
        {"grace", [&](const Value& v) { terms.grace_s = v.duration_s(); }},
        {"evictions_per_hour", [&](const Value& v) { terms.evictions_per_hour = v.integer(0, kMostEvictionsPerHour); }},
    });
    for (const Entry& entry : value.node().entries)
      places_.note("queue '" + queue.path + "'.eviction." + entry.key + " ", entry.at);
  }

  static std::vector<Key> budget_keys(BudgetConfig& budget) {
    return {
        {"money", [&](const Value& v) { budget.money_micro = read_money(v, kMostBudgetMicro); }},
        {"gpu_hours",
         [&](const Value& v) {
           budget.gpu_milli_hours = v.milli();
           if (budget.gpu_milli_hours == 0) v.refuse("it is more than 0; to let nothing run, set max to 0");
         }},
        {"when_used_up", [&](const Value& v) { budget.when_used_up = v.word<BudgetAction>(); }},
    };
  }

  // `what` is "budget" or "grant".
  static void check_amount_of(const Value& value, const std::string& what) {
    const bool money = value.node().find("money") != nullptr;
    const bool hours = value.node().find("gpu_hours") != nullptr;
    if (money && hours) value.refuse("a " + what + " is money or gpu_hours, not both; leave one out");
    if (!money && !hours) value.refuse("a " + what + " needs money or gpu_hours, such as gpu_hours: 20000");
  }

  static void read_budget(const Value& value, BudgetConfig& budget) {
    value.map(budget_keys(budget));
    check_amount_of(value, "budget");
  }

  void read_grant(const Value& value, QueueConfig& queue) {
    BudgetConfig& grant = queue.grant.emplace();
    std::vector<Key> keys = budget_keys(grant);
    keys.push_back({"from", [&](const Value& v) { grant.from = v.time().value_or(Timestamp{}); }});
    keys.push_back({"until", [&](const Value& v) { grant.until = v.time().value_or(Timestamp{}); }});
    value.map(keys);
    check_amount_of(value, "grant");
    for (const char* key : {"from", "until"}) {
      if (value.node().find(key) == nullptr)
        value.refuse(std::string(key) + " is missing; a grant has an end: {from: 2026-11-01, until: 2027-03-01}");
      else
        places_.note("queue '" + queue.path + "'.grant." + key, value.node().find(key)->at);
    }
  }

  std::vector<AdmissionRule> read_admission(const Value& value, const std::string& words) {
    places_.note(words, value.node().at);
    for (const Entry& entry : value.node().entries) places_.note(words + ": rule '" + entry.key + "'", entry.at);
    return read_admission_rules(value);
  }

  void read_attained_service(const Value& value, QueueConfig& queue) {
    AttainedServiceConfig& order = queue.attained_service.emplace();
    value.map({
        {"thresholds",
         [&](const Value& v) {
           v.each_item([&](const Value& item) { order.thresholds_gpu_s.push_back(item.duration_s()); });
         }},
        {"promote_after", [&](const Value& v) { order.promote_after_s = v.duration_s(); }},
    });
    places_.note("queue '" + queue.path + "'.attained_service", value.node().at);
  }

  void read_amounts(const Value& value, ResourceAmounts& amounts, const std::string& queue, const std::string& what) {
    value.map(
        {
            {"gpus", [&](const Value& v) { amounts.gpu_milli = v.milli(); }},
            {"cpus", [&](const Value& v) { amounts.cpu_milli = v.milli(); }},
            {"memory", [&](const Value& v) { amounts.memory_mib = v.memory_mib(); }},
        },
        [&](const Entry& entry, const Value& v) {
          if (!entry.key.starts_with(kModelPrefix)) return false;
          amounts.model_gpu_milli.emplace_back(entry.key.substr(kModelPrefix.size()), v.milli());
          return true;
        });
    std::sort(amounts.model_gpu_milli.begin(), amounts.model_gpu_milli.end());
    note_amounts(value, queue, what);
  }
  // Notes the position of an amount under three names, because three rules of mistakes_in() name it differently.
  void note_amounts(const Value& value, const std::string& queue, const std::string& what) {
    const std::string of_queue = "queue '" + queue + "'";
    for (const Entry& entry : value.node().entries) {
      places_.note(of_queue + "." + what + "." + entry.key, entry.at);
      if (what != "guaranteed") continue;
      places_.note(of_queue + ": guaranteed " + entry.key + " ", entry.at);
      places_.note(of_queue + ": guarantees of its children sum to " + entry.key + " ", entry.at);
    }
  }

  void read_scheduling(const Value& value) {
    SchedulingConfig& scheduling = config_.scheduling;
    value.map({
        {"min_runtime", [&](const Value& v) { scheduling.min_runtime_s = v.duration_s(); }},
        {"grace", [&](const Value& v) { scheduling.default_grace_s = v.duration_s(); }},
        {"backfill_reservations", [&](const Value& v) { scheduling.backfill_reservations = v.integer(0, 1000); }},
        {"backfill_after", [&](const Value& v) { scheduling.backfill_after_s = v.duration_s(); }},
        {"victims_per_cycle", [&](const Value& v) { scheduling.victims_per_cycle = v.integer(0, 1'000'000); }},
        {"reclaim", [&](const Value& v) { scheduling.reclaim = v.boolean(); }},
        {"preempt", [&](const Value& v) { scheduling.preempt = v.boolean(); }},
        {"usage_half_life", [&](const Value& v) { scheduling.usage_half_life_s = v.duration_s(); }},
        {"deadline_slack", [&](const Value& v) { scheduling.deadline_slack_s = v.duration_s(); }},
        {"score", [&](const Value& v) { scheduling.score = v.word<NodeScore>(); }},
        {"energy", [&](const Value& v) { scheduling.energy = v.boolean(); }},
        {"fragmentation_alert", [&](const Value& v) { scheduling.fragmentation_alert_percent = v.integer(0, 100); }},
        {"resize_interval", [&](const Value& v) { scheduling.resize_interval_s = v.duration_s(); }},
        {"flap_losses", [&](const Value& v) { scheduling.flap_losses = v.integer(0, 1000); }},
        {"flap_window", [&](const Value& v) { scheduling.flap_window_s = v.duration_s(); }},
        {"suspect_users", [&](const Value& v) { scheduling.suspect_users = v.integer(0, 100); }},
        {"suspect_window", [&](const Value& v) { scheduling.suspect_window_s = v.duration_s(); }},
        {"cooldown", [&](const Value& v) { scheduling.cooldown_s = v.duration_s(); }},
        {"evictions_per_hour",
         [&](const Value& v) { scheduling.evictions_per_hour = v.integer(0, kMostEvictionsPerHour); }},
        {"consolidations_per_hour",
         [&](const Value& v) { scheduling.consolidations_per_hour = v.integer(0, kMostEvictionsPerHour); }},
        {"preempt_max_loss", [&](const Value& v) { scheduling.preempt_max_loss_s = v.duration_s(); }},
        {"max_unreachable_percent", [&](const Value& v) { scheduling.max_unreachable_percent = v.integer(0, 100); }},
    });
    for (const Entry& entry : value.node().entries) places_.note("scheduling." + entry.key + " ", entry.at);
  }

  static std::string read_key_as_name(const Entry& entry, const Value& body,
                                      bool (*well_formed)(std::string_view) = well_formed_name) {
    if (!well_formed(entry.key)) {
      body.reading().refuse(entry.at, body.path(),
                            "'" + entry.key.substr(0, 80) + "' is not a name; " + std::string(kNameRule));
    }
    return entry.key;
  }

  ClusterConfig& config_;
  Places& places_;
};

}  // namespace

Checked<ClusterConfig> check_config(const Node& document) {
  // Keys that the document leaves out are as in the default configuration; queues have no default.
  ClusterConfig config = default_cluster_config();
  config.queues.clear();
  Reading reading;
  Places places;
  ConfigReader(config, places).read(Value(reading, document, ""));
  for (const ConfigMistake& mistake : mistakes_in(config)) {
    if (!places.doubtful(mistake)) reading.tell(places.of(mistake.message), "", mistake.message);
  }
  if (!reading.mistakes().empty()) return {std::nullopt, reading.take_mistakes()};
  return {std::move(config)};
}

Result<ClusterConfig> read_config(std::string_view text, std::string_view file) {
  const auto tree = parse(text, file);
  if (!tree) return tree.error();
  return result_of(file, check_config(*tree));
}

}  // namespace berth::document
