#pragma once
// The configuration of a cluster, as its operators write it: one versioned document with GPU models, pools, the queue
// tree, priority classes and scheduling keys. It contains names only; the state resolves them to ids. It is validated
// as a whole before it is applied.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/result.h"
#include "model/admission.h"
#include "model/budget.h"
#include "model/job.h"
#include "model/role.h"
#include "model/sharing.h"
#include "model/volume.h"

namespace berth {

struct GpuModelConfig {
  std::string name;
  std::int64_t weight_permille = 1000;  // GPU-equivalents per GPU, in thousandths
  std::int64_t memory_mib = 0;
  std::int64_t watts = 0;       // power of one GPU in use; 0: not known
  std::int64_t idle_watts = 0;  // power of one idle GPU
  // MIG geometry (model/mig.h): its GPUs are cut into MIG instances and not allocated whole. Empty: they are not cut.
  std::string mig = {};
  bool operator==(const GpuModelConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &GpuModelConfig::name), field("weight_permille", &GpuModelConfig::weight_permille),
                      field("memory_mib", &GpuModelConfig::memory_mib), field("watts", &GpuModelConfig::watts),
                      field("idle_watts", &GpuModelConfig::idle_watts), field("mig", &GpuModelConfig::mig));
  }
};

struct PoolConfig {
  std::string name;
  std::vector<std::string> queues = {};  // queues that may use it, with all below them; empty: all
  std::vector<JobClass> classes = {};    // classes of the jobs that may use it; empty: all
  bool burst = false;                    // it backs no guarantee: all usage there is borrowed
  // Trust domain isolation: only one trust domain may run in each domain of this topology level (or `node`). Empty: no
  // isolation.
  std::string trust_domain_isolation = {};
  std::vector<GpuLevel> gpu_levels = {};  // levels at which its GPUs may be used; empty: all
  bool operator==(const PoolConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &PoolConfig::name), field("queues", &PoolConfig::queues),
                      field("classes", &PoolConfig::classes), field("burst", &PoolConfig::burst),
                      field("trust_domain_isolation", &PoolConfig::trust_domain_isolation),
                      field_if_set("gpu_levels", &PoolConfig::gpu_levels));
  }
};

// Amounts by resource name, before GPU models have ids. An absent amount is not stated.
struct ResourceAmounts {
  std::optional<std::int64_t> gpu_milli;
  std::optional<std::int64_t> cpu_milli;
  std::optional<std::int64_t> memory_mib;
  std::vector<std::pair<std::string, std::int64_t>> model_gpu_milli;  // sorted by model name
  bool operator==(const ResourceAmounts&) const = default;
  static constexpr auto fields() {
    return field_list(field("gpu_milli", &ResourceAmounts::gpu_milli), field("cpu_milli", &ResourceAmounts::cpu_milli),
                      field("memory_mib", &ResourceAmounts::memory_mib),
                      field("model_gpu_milli", &ResourceAmounts::model_gpu_milli));
  }
};

// How a leaf queue treats a first job that cannot start. strict: it blocks the jobs behind it. best-effort: they may
// pass it.
enum class QueuePolicy { kBestEffort, kStrict };
BERTH_ENUM_NAMES(QueuePolicy, "best-effort", "strict");

// Least attained service: the order of the jobs in a leaf queue whose run times are not known. The service of a job is
// its GPUs times the time that it has held them. At each threshold the job falls to the next level. Jobs of lower
// levels go first, and preempt jobs of higher levels that can save their work. A job that has waited promote_after_s
// goes before all levels from then on, and is no longer preempted because of its level.
struct AttainedServiceConfig {
  std::vector<std::int64_t> thresholds_gpu_s;  // ascending
  std::int64_t promote_after_s = 0;            // 0: never
  bool operator==(const AttainedServiceConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("thresholds_gpu_s", &AttainedServiceConfig::thresholds_gpu_s),
                      field("promote_after_s", &AttainedServiceConfig::promote_after_s));
  }
};

// The eviction terms of a queue: when and how often jobs below it may be evicted for other jobs (docs/terms.md). An
// absent term is the parent queue's. The root has the terms of SchedulingConfig.
struct EvictionTermsConfig {
  std::optional<std::int64_t> min_runtime_s;
  std::optional<std::int64_t> cooldown_s;
  std::optional<std::int64_t> grace_s;  // grace period of jobs that state none
  // At most this many gangs below the queue are evicted by reclaim and preemption within an hour; 0: no limit of its
  // own.
  std::int64_t evictions_per_hour = 0;
  bool operator==(const EvictionTermsConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("min_runtime_s", &EvictionTermsConfig::min_runtime_s),
                      field("cooldown_s", &EvictionTermsConfig::cooldown_s),
                      field("grace_s", &EvictionTermsConfig::grace_s),
                      field("evictions_per_hour", &EvictionTermsConfig::evictions_per_hour));
  }
};

struct QueueConfig {
  std::string path;  // such as "research/nlp"; the root is "" and is not listed
  ResourceAmounts guaranteed;
  ResourceAmounts max;
  ResourceAmounts lending_limit;
  std::int64_t weight = 1;   // share of the surplus; 0 borrows only what no other queue wants
  std::string trust_domain;  // empty: that of the parent
  QueuePolicy policy = QueuePolicy::kBestEffort;
  // Limits for each user below the queue. Absent: no limit.
  std::optional<std::int64_t> max_jobs_per_user;          // running jobs
  std::optional<std::int64_t> max_gpu_milli_per_user;     // milli-GPUs of the running jobs
  std::optional<std::int64_t> max_submitted_per_user;     // pending and running jobs
  std::optional<AttainedServiceConfig> attained_service;  // leaf queues: instead of the order of submission
  // Guarantee decay: being idle for this time halves the idle part of the guarantee. 0: no decay.
  std::int64_t guarantee_decay_s = 0;
  EvictionTermsConfig eviction;
  // The path that the queue had before; it and all below it keep their jobs. Empty: it is not renamed.
  std::string moved_from = {};
  std::optional<BudgetConfig> budget = {};  // absent: none of its own
  std::vector<AdmissionRule> admission = {};
  std::optional<BudgetConfig> grant = {};  // likewise
  bool returns = false;                    // it may have the name of a queue that was removed: it is that one
  // For the jobs of the queue and of all below it (model/queue_volumes.h).
  std::vector<VolumeConfig> volumes = {};
  std::vector<SecretConfig> secrets = {};
  std::string default_image = {};  // on Kubernetes, of tasks that name none; empty: that of the parent
  bool no_shell = false;           // no shell is opened in the jobs of the queue and of all below it
  bool operator==(const QueueConfig&) const = default;
  static constexpr auto fields() {
    return field_list(
        field("path", &QueueConfig::path), field("guaranteed", &QueueConfig::guaranteed),
        field("max", &QueueConfig::max), field("lending_limit", &QueueConfig::lending_limit),
        field("weight", &QueueConfig::weight), field("trust_domain", &QueueConfig::trust_domain),
        field("policy", &QueueConfig::policy), field("max_jobs_per_user", &QueueConfig::max_jobs_per_user),
        field("max_gpu_milli_per_user", &QueueConfig::max_gpu_milli_per_user),
        field("max_submitted_per_user", &QueueConfig::max_submitted_per_user),
        field("attained_service", &QueueConfig::attained_service),
        field("guarantee_decay_s", &QueueConfig::guarantee_decay_s), field("eviction", &QueueConfig::eviction),
        field_if_set("moved_from", &QueueConfig::moved_from), field_if_set("budget", &QueueConfig::budget),
        field_if_set("admission", &QueueConfig::admission), field_if_set("grant", &QueueConfig::grant),
        field_if_set("returns", &QueueConfig::returns), field_if_set("volumes", &QueueConfig::volumes),
        field_if_set("secrets", &QueueConfig::secrets), field_if_set("default_image", &QueueConfig::default_image),
        field_if_set("no_shell", &QueueConfig::no_shell));
  }
};

// A queue that is there got another name. All paths below it change with it.
struct QueueMove {
  std::string from;
  std::string to;
  bool operator==(const QueueMove&) const = default;
  static constexpr auto fields() { return field_list(field("from", &QueueMove::from), field("to", &QueueMove::to)); }
};

// Returns the path that the queue has after the moves. At most one of them applies to a path.
std::string moved_path(const std::string& path, const std::vector<QueueMove>& moves);

struct PriorityClassConfig {
  std::string name;
  std::int32_t value = 0;
  bool global_default = false;
  bool operator==(const PriorityClassConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &PriorityClassConfig::name), field("value", &PriorityClassConfig::value),
                      field("global_default", &PriorityClassConfig::global_default));
  }
};

// How placement chooses among the nodes that fit. best-fit: the node with the least left over. fragmentation: the node
// where the requests that are expected lose the least usable resources (docs/lab/fragmentation.md).
enum class NodeScore { kBestFit, kFragmentation };
BERTH_ENUM_NAMES(NodeScore, "best-fit", "fragmentation");

inline constexpr std::int64_t kMostEvictionsPerHour = 100'000;
inline constexpr std::int64_t kMostWatts = 100'000;  // of one GPU

struct SchedulingConfig {
  std::int64_t min_runtime_s = 0;          // a gang is not reclaimed or preempted earlier than this after its start
  std::int64_t default_grace_s = 30;       // R82
  std::int64_t backfill_reservations = 1;  // backfill reservations per pool
  std::int64_t victims_per_cycle = 4096;   // limit on the gangs that one cycle evicts
  bool reclaim = true;
  bool preempt = true;
  // Past usage counts in the order of jobs, and its weight halves in this time; 0: it does not count.
  std::int64_t usage_half_life_s = 0;
  // A job becomes urgent this long before the latest start that meets its deadline.
  std::int64_t deadline_slack_s = 600;
  NodeScore score = NodeScore::kFragmentation;
  // Alert if more than this percentage of the fleet's GPUs is idle and expected to be unusable; 0: no alert.
  std::int64_t fragmentation_alert_percent = 0;
  // An elastic gang scales up no earlier than this after its last change of size.
  std::int64_t resize_interval_s = 60;
  // After this wait, a job may get a backfill reservation that is based on estimated run times, and not only on time
  // limits.
  std::int64_t backfill_after_s = 172'800;
  // A node that lost contact this often within flap_window_s is cordoned; 0: never.
  std::int64_t flap_losses = 3;
  std::int64_t flap_window_s = 3600;
  // A node that so many jobs blame within suspect_window_s is cordoned (control/suspect.h); 0: never.
  std::int64_t suspect_users = 2;
  std::int64_t suspect_window_s = 86'400;
  // While at least this percentage of the nodes (and at least three nodes) is silent, no silent node is declared lost.
  // 0: each node is judged by itself.
  std::int64_t max_unreachable_percent = 50;
  // Minimum run time of a gang that was evicted last time, if it is longer than min_runtime_s.
  std::int64_t cooldown_s = 0;
  std::int64_t evictions_per_hour = 0;       // limit on gangs evicted by reclaim and preemption; 0: none
  std::int64_t consolidations_per_hour = 0;  // limit on jobs moved so that others fit; 0: no moves
  // Limit on the unsaved GPU time that is lost per GPU that a preemption gains; 0: no limit.
  std::int64_t preempt_max_loss_s = 0;
  // Prefer the GPU models that need the least watts for the same work.
  bool energy = false;
  bool operator==(const SchedulingConfig&) const = default;
  static constexpr auto fields() {
    return field_list(
        field("min_runtime_s", &SchedulingConfig::min_runtime_s),
        field("default_grace_s", &SchedulingConfig::default_grace_s),
        field("backfill_reservations", &SchedulingConfig::backfill_reservations),
        field("victims_per_cycle", &SchedulingConfig::victims_per_cycle), field("reclaim", &SchedulingConfig::reclaim),
        field("preempt", &SchedulingConfig::preempt), field("usage_half_life_s", &SchedulingConfig::usage_half_life_s),
        field("deadline_slack_s", &SchedulingConfig::deadline_slack_s), field("score", &SchedulingConfig::score),
        field("fragmentation_alert_percent", &SchedulingConfig::fragmentation_alert_percent),
        field("resize_interval_s", &SchedulingConfig::resize_interval_s),
        field("backfill_after_s", &SchedulingConfig::backfill_after_s),
        field("flap_losses", &SchedulingConfig::flap_losses), field("flap_window_s", &SchedulingConfig::flap_window_s),
        field("max_unreachable_percent", &SchedulingConfig::max_unreachable_percent),
        field("cooldown_s", &SchedulingConfig::cooldown_s),
        field("evictions_per_hour", &SchedulingConfig::evictions_per_hour),
        field("preempt_max_loss_s", &SchedulingConfig::preempt_max_loss_s),
        field("consolidations_per_hour", &SchedulingConfig::consolidations_per_hour),
        field("energy", &SchedulingConfig::energy), field_if_set("suspect_users", &SchedulingConfig::suspect_users),
        field_if_set("suspect_window_s", &SchedulingConfig::suspect_window_s));
  }
};

struct ClusterConfig {
  std::string name = "berth";
  std::vector<GpuModelConfig> gpu_models;
  std::vector<PoolConfig> pools;
  std::vector<std::string> topology_levels;  // outermost first, such as zone, block, rack
  std::vector<QueueConfig> queues;           // parents before children
  std::vector<PriorityClassConfig> priority_classes;
  SchedulingConfig scheduling;
  std::vector<RoleBinding> roles;             // sorted; beside these, each token has a role of its own (TokenCreated)
  std::vector<AdmissionRule> admission = {};  // of the root, and so for all jobs
  std::vector<VolumeConfig> volumes = {};     // likewise
  std::vector<SecretConfig> secrets = {};     // likewise
  std::string default_image = {};             // likewise; empty: none
  bool no_shell = false;                      // likewise: no shell is opened in any job
  bool operator==(const ClusterConfig&) const = default;
  static constexpr auto fields() {
    return field_list(
        field("name", &ClusterConfig::name), field("gpu_models", &ClusterConfig::gpu_models),
        field("pools", &ClusterConfig::pools), field("topology_levels", &ClusterConfig::topology_levels),
        field("queues", &ClusterConfig::queues), field("priority_classes", &ClusterConfig::priority_classes),
        field("scheduling", &ClusterConfig::scheduling), field_if_set("roles", &ClusterConfig::roles),
        field_if_set("admission", &ClusterConfig::admission), field_if_set("volumes", &ClusterConfig::volumes),
        field_if_set("secrets", &ClusterConfig::secrets), field_if_set("default_image", &ClusterConfig::default_image),
        field_if_set("no_shell", &ClusterConfig::no_shell));
  }
};

// Returns the configuration that `berth dev` starts with: one queue `default` without limits, the three priority
// classes of R55, and no GPU models.
ClusterConfig default_cluster_config();

// What a rule compares an object with, besides itself.
enum class ConfigPart { kItself, kGpuModels, kQueues, kTopology };

// A rule that a configuration breaks.
struct ConfigMistake {
  std::string message;  // names the object first, such as "queue 'a'"; then what is wrong, and what would be right
  ConfigPart against = ConfigPart::kItself;
};

// Checks the configuration as a whole: unique and well-formed names, parents present, the guarantees of children within
// their parent's, guaranteed <= max, amounts in range, at most kMaxGpuModels models. Returns every rule that is broken.
std::vector<ConfigMistake> mistakes_in(const ClusterConfig& config);

// Returns what is wrong with the subject of a role and what would be right, or nothing.
std::string mistake_in_subject(const std::string& subject);

// The error is the first of mistakes_in().
Result<void> validate(const ClusterConfig& config);

}  // namespace berth
