#pragma once
// The cluster as its operators write it: one versioned document with GPU models, pools, the queue tree, priority
// classes and the knobs of scheduling. Names only; the state resolves them to ids. Validated as a whole before it is
// applied.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/result.h"
#include "model/job.h"

namespace berth {

struct GpuModelConfig {
  std::string name;
  std::int64_t weight_permille = 1000;  // GPU-equivalents per GPU, in thousandths
  std::int64_t memory_mib = 0;
  std::int64_t watts = 0;       // of one GPU that somebody has; 0: not known
  std::int64_t idle_watts = 0;  // of one that nobody has
  std::string mig = {};  // its geometry (model/mig.h): it is cut into instances, and nobody has it whole; empty: not
  bool operator==(const GpuModelConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &GpuModelConfig::name), field("weight_permille", &GpuModelConfig::weight_permille),
                      field("memory_mib", &GpuModelConfig::memory_mib), field("watts", &GpuModelConfig::watts),
                      field("idle_watts", &GpuModelConfig::idle_watts), field("mig", &GpuModelConfig::mig));
  }
};

struct PoolConfig {
  std::string name;
  std::vector<std::string> queues = {};  // only these subtrees may use it; empty: all
  std::vector<JobClass> classes = {};    // only jobs of these classes may use it; empty: all
  bool burst = false;                    // it backs no guarantee: whatever runs there is borrowed
  // Within one domain of this topology level, or `node`, runs one trust domain; empty: any.
  std::string trust_domain_isolation = {};
  bool operator==(const PoolConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &PoolConfig::name), field("queues", &PoolConfig::queues),
                      field("classes", &PoolConfig::classes), field("burst", &PoolConfig::burst),
                      field("trust_domain_isolation", &PoolConfig::trust_domain_isolation));
  }
};

// Amounts by name, before GPU models have ids. Absent: not stated.
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

// strict: the head of the queue blocks those behind it. best_effort: those behind it may go first when it cannot start.
enum class QueuePolicy { kBestEffort, kStrict };
BERTH_ENUM_NAMES(QueuePolicy, "best-effort", "strict");

// The jobs of a leaf queue by what they have had, for queues whose run times nobody knows: least attained service. A
// job's service is its GPUs times the time it has held them. At each threshold it falls a level; lower levels go first,
// and stop those of higher ones that can save their work. Who has waited promote_after_s goes before all levels from
// then on and is stopped by none.
struct AttainedServiceConfig {
  std::vector<std::int64_t> thresholds_gpu_s;  // they rise
  std::int64_t promote_after_s = 0;            // 0: never
  bool operator==(const AttainedServiceConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("thresholds_gpu_s", &AttainedServiceConfig::thresholds_gpu_s),
                      field("promote_after_s", &AttainedServiceConfig::promote_after_s));
  }
};

// What is agreed with those below a queue about being stopped for others (docs/terms.md). Absent: what the parent's
// says; the root has the cluster's, of SchedulingConfig.
struct EvictionTermsConfig {
  std::optional<std::int64_t> min_runtime_s;
  std::optional<std::int64_t> cooldown_s;
  std::optional<std::int64_t> grace_s;  // of jobs that name none
  // Gangs below it that reclaim and preemption stop, at most; 0: no limit of its own.
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
  std::string path;  // "research/nlp"; the root is "" and is not listed
  ResourceAmounts guaranteed;
  ResourceAmounts max;
  ResourceAmounts lending_limit;
  std::int64_t weight = 1;   // share of the surplus; 0 borrows only what nobody else wants
  std::string trust_domain;  // empty: the parent's
  QueuePolicy policy = QueuePolicy::kBestEffort;
  // For each user, of what is below the queue. Absent: no limit.
  std::optional<std::int64_t> max_jobs_per_user;          // that run
  std::optional<std::int64_t> max_gpu_milli_per_user;     // of those
  std::optional<std::int64_t> max_submitted_per_user;     // that run or wait
  std::optional<AttainedServiceConfig> attained_service;  // leaves: instead of the order of arrival
  std::int64_t guarantee_decay_s = 0;  // so long without use halves the idle part of its guarantee; 0: never
  EvictionTermsConfig eviction;
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
        field("guarantee_decay_s", &QueueConfig::guarantee_decay_s), field("eviction", &QueueConfig::eviction));
  }
};

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

// Which of the nodes that fit a task goes to. best-fit: the one with the least left. fragmentation: the one that loses
// least of what the requests that arrive could still use (docs/lab/fragmentation.md).
enum class NodeScore { kBestFit, kFragmentation };
BERTH_ENUM_NAMES(NodeScore, "best-fit", "fragmentation");

inline constexpr std::int64_t kMostEvictionsPerHour = 100'000;
inline constexpr std::int64_t kMostWatts = 100'000;  // of one GPU

struct SchedulingConfig {
  std::int64_t min_runtime_s = 0;          // a gang is not reclaimed or preempted earlier than this after its start
  std::int64_t default_grace_s = 30;       // R82
  std::int64_t backfill_reservations = 1;  // blocked jobs per pool that get a hold
  std::int64_t victims_per_cycle = 4096;   // budget of one cycle's evictions, in gangs
  bool reclaim = true;
  bool preempt = true;
  std::int64_t usage_half_life_s = 0;  // past usage counts in the order, half of it after so long; 0: it does not count
  std::int64_t deadline_slack_s = 600;  // a job is urgent so long before the last moment at which it could start
  NodeScore score = NodeScore::kBestFit;
  std::int64_t fragmentation_alert_percent = 0;  // of the fleet's GPUs, idle and expected to be of no use; 0: no alert
  std::int64_t resize_interval_s = 60;      // an elastic gang grows no sooner than this after its size last changed
  std::int64_t backfill_after_s = 172'800;  // so long a job has waited before estimates, too, say when it gets a hold
  std::int64_t flap_losses = 3;             // a node that lost contact so often within the window is cordoned; 0: never
  std::int64_t flap_window_s = 3600;
  std::int64_t max_unreachable_percent = 50;  // with so many nodes silent at once none is given up; 0: each by itself
  std::int64_t cooldown_s = 0;                // min_runtime_s of a gang that was reclaimed or preempted the last time
  std::int64_t evictions_per_hour = 0;        // gangs that reclaim and preemption stop, at most; 0: no limit
  std::int64_t consolidations_per_hour = 0;   // jobs that are moved so that others fit, at most; 0: none
  std::int64_t preempt_max_loss_s = 0;  // unsaved GPU time lost per GPU that a preemption gains, at most; 0: no limit
  bool energy = false;                  // models of which the least watts go into the same work come first
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
        field("energy", &SchedulingConfig::energy));
  }
};

struct ClusterConfig {
  std::string name = "berth";
  std::vector<GpuModelConfig> gpu_models;
  std::vector<PoolConfig> pools;
  std::vector<std::string> topology_levels;  // outermost first, e.g. zone, block, rack
  std::vector<QueueConfig> queues;           // parents before children
  std::vector<PriorityClassConfig> priority_classes;
  SchedulingConfig scheduling;
  bool operator==(const ClusterConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &ClusterConfig::name), field("gpu_models", &ClusterConfig::gpu_models),
                      field("pools", &ClusterConfig::pools), field("topology_levels", &ClusterConfig::topology_levels),
                      field("queues", &ClusterConfig::queues),
                      field("priority_classes", &ClusterConfig::priority_classes),
                      field("scheduling", &ClusterConfig::scheduling));
  }
};

// One queue `default` without limits, the three priority classes of R55, no GPU models named: what `berth dev` starts
// with.
ClusterConfig default_cluster_config();

// Everything that must hold of a configuration as a whole: unique and well-formed names, parents present, children's
// guarantees within their parent's, guaranteed <= max, amounts in range, at most kMaxGpuModels models. The error names
// the object and what would be right.
Result<void> validate(const ClusterConfig& config);

}  // namespace berth
