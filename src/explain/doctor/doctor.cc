#include "explain/doctor/doctor.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "model/document/quantity.h"
#include "model/secret_name.h"
#include "model/sharing.h"

namespace berth::explain {

namespace {

using state::NodeState;
using state::QueueState;
using state::State;

constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kTokenMostDays = 365;
constexpr std::int64_t kTokenUnusedDays = 90;
constexpr std::size_t kMostNamed = 5;

std::string number(std::size_t count) { return std::to_string(count); }

std::string counted(std::size_t count, const std::string& one, const std::string& many = {}) {
  return number(count) + " " + (count == 1 ? one : many.empty() ? one + "s" : many);
}

// "a, b, c and 4 more"
std::string named(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMostNamed ? text + " and " + number(names.size() - kMostNamed) + " more" : text;
}

class Doctor {
 public:
  Doctor(const State& state, const DoctorFacts& facts, Timestamp now) : state_(state), facts_(facts), now_(now) {}

  std::vector<Finding> examine() {
    infrastructure();
    resources();
    security();
    cost();
    recovery();
    return std::move(findings_);
  }

 private:
  void say(CheckArea area, const char* check, CheckResult result, std::string evidence, std::string remedy = {}) {
    findings_.push_back({area, check, result, std::move(evidence), std::move(remedy)});
  }
  // Tells one of two: all is well, or what is not.
  void judge(CheckArea area, const char* check, bool ok, CheckResult otherwise, std::string good, std::string bad,
             std::string remedy) {
    if (ok)
      say(area, check, CheckResult::kOk, std::move(good));
    else
      say(area, check, otherwise, std::move(bad), std::move(remedy));
  }

  template <class Visit>
  void each_node(Visit&& visit) const {
    for (const NodeState& node : state_.nodes()) {
      if (!node.removed) visit(node);
    }
  }
  template <class Visit>
  void each_leaf(Visit&& visit) const {
    for (const QueueState& queue : state_.queues()) {
      if (!queue.removed && queue.is_leaf()) visit(queue);
    }
  }

  void infrastructure() {
    constexpr CheckArea kArea = CheckArea::kInfrastructure;
    std::vector<std::string> away;
    std::vector<std::string> unhealthy;
    std::vector<std::string> placeless;
    std::size_t nodes = 0;
    std::size_t gpus = 0;
    each_node([&](const NodeState& node) {
      ++nodes;
      gpus += node.gpus.size();
      if (node.status != NodeStatus::kReady) away.push_back(node.spec.name);
      if (node.spec.topology.empty()) placeless.push_back(node.spec.name);
      for (std::size_t g = 0; g < node.gpus.size(); ++g) {
        if (!node.gpus[g].healthy) unhealthy.push_back(node.spec.name + " " + number(g));
      }
    });
    if (nodes == 0)
      say(kArea, "nodes", CheckResult::kMissing, "There is no node.",
          "start berth serve on a machine, or --backend kubernetes");
    else
      judge(kArea, "nodes", away.empty(), CheckResult::kBroken,
            "berth is in contact with " + counted(nodes, "node") + ".",
            counted(away.size(), "node is", "nodes are") + " out of contact: " + named(away) + ".", "berth nodes");
    judge(kArea, "gpus-healthy", unhealthy.empty(), CheckResult::kBroken,
          counted(gpus, "GPU is", "GPUs are") + " healthy.",
          counted(unhealthy.size(), "GPU is", "GPUs are") + " unhealthy or fenced: " + named(unhealthy) + ".",
          "berth nodes NODE says why; berth uncordon NODE --gpu N lifts a fence");
    if (facts_.runs_tasks)
      judge(kArea, "gpus-checked", facts_.gpus_checked, CheckResult::kMissing,
            "No task starts on a GPU on which a process is left.",
            "Nothing looks whether a process is left on a GPU before a task starts.",
            "serve without --unchecked-gpus, on a machine with NVIDIA's driver");
    else
      say(kArea, "gpus-checked", CheckResult::kUnseen, "Whether a process is left on a GPU is the node's to know.",
          "let the device plugin and dcgm-exporter report unhealthy devices");
    if (facts_.runs_tasks)
      judge(kArea, "gpu-use-measured", facts_.measures_gpus, CheckResult::kMissing, "The use of the GPUs is measured.",
            "The use of the GPUs is not measured.", "install NVIDIA's driver with NVML (docs/metrics.md)");
    else
      say(kArea, "gpu-use-measured", CheckResult::kUnseen, "The use of the nodes' GPUs is not measured by this server.",
          "let Prometheus read dcgm-exporter");
    metrics_read();
    judge(kArea, "clock", facts_.follows_wall, CheckResult::kBroken,
          "The server's clock follows the wall clock, " + std::to_string(facts_.wall_offset_ms) + " ms off.",
          "The wall clock is " + std::to_string(facts_.wall_offset_ms / 1000) + " s off and is not followed.",
          "set the wall clock by NTP, or berth clock confirm");
    if (nodes > 1)
      judge(
          kArea, "topology", placeless.empty(), CheckResult::kMissing,
          "All " + number(nodes) + " nodes have a place in the topology.",
          counted(placeless.size(), "node has", "nodes have") + " no place in the topology: " + named(placeless) + ".",
          "topology: [rack] in the configuration, and a label on each node (docs/configuration.md)");
  }

  void metrics_read() {
    std::optional<Timestamp> last;
    bool is_there = false;
    for (const auto& [name, token] : state_.tokens()) {
      if (token.role != Role::kMetrics || token.expires <= now_) continue;
      is_there = true;
      const auto used = facts_.token_use.find(token.digest);
      const Timestamp seen = used == facts_.token_use.end() ? token.created : std::max(used->second, token.created);
      last = std::max(last.value_or(seen), seen);
    }
    const char* const remedy =
        "berth token create prometheus --role metrics, and examples/prometheus (docs/metrics.md)";
    if (!is_there)
      say(CheckArea::kInfrastructure, "metrics-read", CheckResult::kMissing, "No token is for a Prometheus.", remedy);
    else
      judge(CheckArea::kInfrastructure, "metrics-read", last && now_ - *last < kDayMs, CheckResult::kBroken,
            "A token for a Prometheus was made or used within a day.", "No Prometheus has read the metrics for a day.",
            remedy);
  }

  void resources() {
    constexpr CheckArea kArea = CheckArea::kResources;
    std::vector<std::string> unlimited;
    std::vector<std::string> unbounded_users;
    std::size_t leaves = 0;
    each_leaf([&](const QueueState& leaf) {
      ++leaves;
      bool has_quota = false;
      bool limits_users = false;
      for (QueueId id = leaf.id; id.valid(); id = state_.queue(id).parent) {
        const QueueState& queue = state_.queue(id);
        limits_users = limits_users || queue.limits_users();
        if (id == state_.root()) continue;
        has_quota = has_quota || std::any_of(gpu_dims_.begin(), gpu_dims_.end(), [&](std::size_t dim) {
                      return queue.max[dim] != kUnlimited || queue.configured.amounts[dim] > 0;
                    });
      }
      if (!has_quota) unlimited.push_back(leaf.path.empty() ? "/" : leaf.path);
      if (!limits_users) unbounded_users.push_back(leaf.path.empty() ? "/" : leaf.path);
    });
    judge(kArea, "quotas", unlimited.empty(), CheckResult::kMissing,
          "Each of " + counted(leaves, "queue") + " has a quota of GPUs.",
          counted(unlimited.size(), "queue has", "queues have") +
              " neither a guarantee nor a ceiling of GPUs: " + named(unlimited) + ".",
          "berth queue set QUEUE guaranteed.gpus=N max.gpus=N");
    judge(kArea, "user-limits", unbounded_users.empty(), CheckResult::kMissing,
          "Each queue limits what one user may have.",
          counted(unbounded_users.size(), "queue does", "queues do") +
              " not limit what one user may have: " + named(unbounded_users) + ".",
          "max_gpus_per_user or max_jobs_per_user of the queue");
    guarantees();
    judge(kArea, "priority-classes", state_.config().priority_classes.size() > 1, CheckResult::kMissing,
          "There are " + counted(state_.config().priority_classes.size(), "priority class", "priority classes") + ".",
          "All jobs have the same priority class.", "priority_classes in the configuration");
    const SchedulingConfig& rules = state_.config().scheduling;
    judge(kArea, "reclaim", rules.reclaim, CheckResult::kMissing, "Idle guarantees are lent and taken back.",
          "What was lent of a guarantee is not taken back.", "scheduling: {reclaim: true}");
    judge(kArea, "consolidation", rules.consolidations_per_hour > 0, CheckResult::kMissing,
          "Jobs are moved so that others fit, " + std::to_string(rules.consolidations_per_hour) + " an hour at most.",
          "Nothing is moved so that others fit.",
          "scheduling: {consolidations_per_hour: 10}, where jobs save their work");
    judge(kArea, "fragmentation-alert", rules.fragmentation_alert_percent > 0, CheckResult::kMissing,
          "Fragmentation of more than " + std::to_string(rules.fragmentation_alert_percent) + " % raises an alarm.",
          "Fragmentation raises no alarm.", "scheduling: {fragmentation_alert: 10}");
  }

  // Burst pools are within no guarantee.
  void guarantees() {
    std::vector<std::string> lacking;
    std::string backed;
    for (const std::size_t dim : gpu_dims_) {
      std::int64_t promised = 0;
      for (const QueueId child : state_.queue(state_.root()).children)
        promised = checked_add(promised, state_.queue(child).configured.amounts[dim]);
      const std::int64_t there = state_.capacity()[dim] - state_.burst_capacity()[dim];
      const auto gpus = [&](std::int64_t milli) {
        const std::string model = dim == kDimGpu ? "" : " " + state_.gpu_models()[dim - kDimFirstModel].name;
        return std::to_string(milli / kMilli) + model + " GPUs";
      };
      if (dim == kDimGpu) backed = "Guarantees of " + gpus(promised) + " are backed by " + gpus(there) + ".";
      if (promised > there) lacking.push_back(gpus(promised) + " of " + gpus(there));
    }
    judge(CheckArea::kResources, "guarantees-backed", lacking.empty(), CheckResult::kBroken, backed,
          "Guarantees are more than the healthy GPUs outside of burst pools: " + named(lacking) + ".",
          "add nodes, heal GPUs, or lower guarantees: berth queue set QUEUE guaranteed.gpus=N");
  }

  void security() {
    constexpr CheckArea kArea = CheckArea::kSecurity;
    judge(kArea, "tls", facts_.has_tls || !facts_.on_network, CheckResult::kBroken,
          facts_.has_tls ? "The server speaks TLS." : "The server is reached from its own machine alone.",
          "Tokens cross the network without TLS.", "berth serve --tls-cert FILE --tls-key FILE");
    const auto is_tenants = [](const auto& one) { return one.second.role != Role::kAdmin; };
    const bool has_tokens = std::any_of(state_.tokens().begin(), state_.tokens().end(), is_tenants);
    judge(kArea, "roles", has_tokens || !state_.bindings().empty(), CheckResult::kMissing,
          counted(state_.bindings().size(), "role is", "roles are") + " granted to subjects, and " +
              counted(state_.tokens().size(), "token has", "tokens have") + " a role.",
          "No role is granted, and no token but the admin's is there.",
          "berth grant SUBJECT member QUEUE (docs/roles.md)");
    tokens();
    if (facts_.runs_tasks)
      judge(kArea, "tasks-kept-apart", facts_.tasks_kept_apart, CheckResult::kMissing,
            "The tasks of different users run as different users of the machine.",
            "All tasks run as the server's own user, and can read each other's files.",
            "run the server as root with --task-uid-range, or trust_domain_isolation: node of the pool");
    trust_domains();
    admission_rules();
    secrets_in_env();
    say(kArea, "network-policies", CheckResult::kUnseen,
        "berth neither writes nor sees what keeps the tenants' networks apart.",
        facts_.kubernetes ? "a NetworkPolicy for each tenant's namespace that denies by default"
                          : "nftables on the machine");
    if (facts_.kubernetes)
      say(kArea, "pod-security", CheckResult::kUnseen, "berth does not see what the namespaces enforce.",
          "kubectl label namespace NAME pod-security.kubernetes.io/enforce=restricted");
  }

  void tokens() {
    std::vector<std::string> endless;
    std::vector<std::string> unused;
    for (const auto& [name, token] : state_.tokens()) {
      if (token.expires <= now_) continue;
      if (token.expires.is_never() || token.expires - now_ > kTokenMostDays * kDayMs) endless.push_back(name);
      const auto used = facts_.token_use.find(token.digest);
      const Timestamp last = used == facts_.token_use.end() ? token.created : std::max(used->second, token.created);
      if (now_ - last > kTokenUnusedDays * kDayMs) unused.push_back(name);
    }
    judge(CheckArea::kSecurity, "tokens-expire", endless.empty(), CheckResult::kBroken,
          "Every token ends within a year.",
          counted(endless.size(), "token does", "tokens do") + " not end within a year: " + named(endless) + ".",
          "berth token create NAME --expires 90d, then berth token revoke the old one");
    judge(CheckArea::kSecurity, "tokens-used", unused.empty(), CheckResult::kBroken,
          "Every token was used within 90 days.",
          counted(unused.size(), "token was", "tokens were") + " not used for 90 days: " + named(unused) + ".",
          "berth token revoke NAME");
  }

  // Whether trust domains share a node is the pool's to say. They share no GPU, but for one whose seats a device plugin
  // gives away.
  void trust_domains() {
    std::set<TrustDomainId> domains;
    each_leaf([&](const QueueState& leaf) { domains.insert(leaf.trust_domain); });
    if (domains.size() < 2) return;
    std::set<std::string> open;
    std::set<std::string> with_seats;
    for (const NodeState& node : state_.nodes()) {
      const state::PoolState& pool = state_.pools()[node.pool];
      if (node.removed || pool.trust_domain_isolation) continue;
      open.insert(pool.name);
      const bool has_seats = std::any_of(node.spec.gpus.begin(), node.spec.gpus.end(), [](const Gpu& gpu) {
        return level_of_model(gpu.model) == GpuLevel::kTimeSlice;
      });
      if (has_seats) with_seats.insert(pool.name);
    }
    if (!with_seats.empty()) {
      say(CheckArea::kSecurity, "trust-domains", CheckResult::kBroken,
          counted(domains.size(), "trust domain") + " share GPUs by the seats of a device plugin in " +
              counted(with_seats.size(), "pool") + ": " + named({with_seats.begin(), with_seats.end()}) + ".",
          "trust_domain_isolation: node of the pool");
      return;
    }
    judge(CheckArea::kSecurity, "trust-domains", open.empty(), CheckResult::kMissing,
          counted(domains.size(), "trust domain") + " share no node.",
          counted(domains.size(), "trust domain") + " share nodes, though no GPU, in " + counted(open.size(), "pool") +
              ": " + named({open.begin(), open.end()}) + ".",
          "trust_domain_isolation: node of the pool, if they must not");
  }

  // A rule that warns or is tried keeps nothing out.
  void admission_rules() {
    std::size_t rules = 0;
    std::size_t enforced = 0;
    for (const QueueState& queue : state_.queues()) {
      if (queue.removed) continue;
      for (const auto* list : {&queue.admission, &queue.own_admission}) {
        rules += list->size();
        enforced += static_cast<std::size_t>(std::count_if(list->begin(), list->end(), [](const AdmissionRule& rule) {
          return rule.mode == AdmissionMode::kEnforce;
        }));
      }
    }
    judge(CheckArea::kSecurity, "admission-rules", enforced > 0, CheckResult::kMissing,
          "Rules refuse jobs that are not as they should be.",
          rules == 0 ? "No admission rule is set."
                     : "No admission rule is enforced: " +
                           counted(rules, "rule warns or is tried", "rules warn or are tried") + ".",
          rules == 0 ? "berth policy apply FILE, or admission: in the configuration (docs/admission.md)"
                     : "berth policy test FILE, then mode: enforce (docs/admission.md)");
  }

  void secrets_in_env() {
    std::vector<std::string> jobs;
    state_.jobs().for_each([&](const state::JobState& job) {
      const bool has = std::any_of(job.spec.groups.begin(), job.spec.groups.end(), [](const TaskGroup& group) {
        return std::any_of(group.env.begin(), group.env.end(),
                           [](const auto& variable) { return looks_like_a_secret(variable.first); });
      });
      if (has) jobs.push_back(std::to_string(job.id.value()));
    });
    judge(CheckArea::kSecurity, "secrets-by-reference", jobs.empty(), CheckResult::kBroken,
          "No live job has a variable that is named as a secret is.",
          counted(jobs.size(), "live job has", "live jobs have") +
              " a variable that is named as a secret is, and whose value is "
              "in the log: " +
              named(jobs) + ".",
          "secrets: of the queue, and secrets: in the job (docs/data.md)");
  }

  void cost() {
    constexpr CheckArea kArea = CheckArea::kCost;
    const PricePeriod* prices = state_.prices().at(now_);
    judge(kArea, "prices", prices != nullptr, CheckResult::kMissing,
          "A price book is in force, in " + state_.prices().currency + ".",
          "No prices are in force: bills have no amounts.", "berth prices apply FILE (docs/billing.md)");
    std::size_t budgets = 0;
    bool decays = false;
    for (const QueueState& queue : state_.queues()) {
      if (queue.removed) continue;
      budgets += static_cast<std::size_t>(queue.budgets[0].has_value()) +
                 static_cast<std::size_t>(queue.budgets[1].has_value());
      decays = decays || queue.guarantee_decay_ms > 0;
    }
    judge(kArea, "budgets", budgets > 0, CheckResult::kMissing,
          counted(budgets, "queue has", "queues have") + " a budget or grant.", "No queue has a budget.",
          "budget: of a queue (docs/billing.md)");
    judge(kArea, "idle-reclaimed", decays, CheckResult::kMissing, "Guarantees that stay idle shrink.",
          "A guarantee that is idle for ever stays as it is.", "guarantee_decay: 7d of a queue");
    judge(kArea, "burst", state_.has_burst_pools(), CheckResult::kMissing, "There is a pool of nodes that come and go.",
          "No pool is for spot or burst nodes.", "burst: true of a pool, if nodes are rented by the hour");
  }

  void recovery() {
    constexpr CheckArea kArea = CheckArea::kRecovery;
    const std::string every = document::duration_text(facts_.backups_every_s);
    if (facts_.backups_to.empty()) {
      say(kArea, "backups", CheckResult::kMissing, "The server makes no backups.",
          "berth serve --backup-to DIR --backup-every 24h (docs/run-a-cluster.md)");
    } else if (!facts_.backup_warning.empty()) {
      say(kArea, "backups", CheckResult::kBroken, "The last backup failed: " + facts_.backup_warning + ".",
          "make room or mend " + facts_.backups_to);
    } else if (!facts_.last_backup) {
      say(kArea, "backups", CheckResult::kUnseen, "The first backup is being made.", "ask again in a while");
    } else {
      const bool is_fresh = now_ - *facts_.last_backup < 2000 * facts_.backups_every_s;
      judge(kArea, "backups", is_fresh, CheckResult::kBroken,
            "A backup that was checked is younger than twice " + every + ".",
            "No good backup is younger than twice " + every + ".", "berth backup DATA_DIR DEST, and the server's log");
    }
    say(kArea, "restore-tried", CheckResult::kUnseen, "Whether a restore was tried is not in the log.",
        "berth backup --drill BACKUP");
    if (facts_.log_check == "running")
      say(kArea, "log-sound", CheckResult::kUnseen, "The hashes of the log are being checked.", "ask again in a while");
    else
      judge(kArea, "log-sound", facts_.log_check == "sound", CheckResult::kBroken,
            "Every hash of the log was checked since the start.", "The check of the log did not finish.",
            "berth verify DATA_DIR");
    judge(kArea, "log-end", facts_.log_end_known, CheckResult::kBroken, "The log has all that was acknowledged.",
          "Nothing shows that the log has all that was acknowledged before the start.",
          "docs/store.md, When damage is noticed");
    say(kArea, "second-server", CheckResult::kMissing, "One server decides, and none takes over from it.",
        "backups on another host; tasks and pods run on without a server");
    say(kArea, "alerts", CheckResult::kUnseen, "Berth cannot see whether Alertmanager tells anyone of alerts.",
        "examples/prometheus/berth-rules.yml (docs/metrics.md)");
  }

  // GPUs of any model, and those of each.
  static std::vector<std::size_t> gpu_dims_of(const State& state) {
    std::vector<std::size_t> dims{kDimGpu};
    for (std::size_t model = 0; model < state.gpu_models().size(); ++model)
      dims.push_back(dim_of(GpuModelId(static_cast<std::uint16_t>(model))));
    return dims;
  }

  const State& state_;
  const DoctorFacts& facts_;
  const Timestamp now_;
  const std::vector<std::size_t> gpu_dims_ = gpu_dims_of(state_);
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> examine(const State& state, const DoctorFacts& facts, Timestamp now) {
  return Doctor(state, facts, now).examine();
}

}  // namespace berth::explain
