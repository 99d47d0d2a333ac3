#include "daemon/state_gauges.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/routes/views.h"
#include "explain/capacity/capacity.h"
#include "state/impossible.h"
#include "state/within.h"

namespace berth::daemon {

namespace {

using state::JobState;
using state::NodeState;
using state::QueueState;
using state::State;
using telemetry::Decimal;
using telemetry::Exposition;
using telemetry::MetricType;

constexpr int kGpuMilli = 3;  // decimal places of a GPU
constexpr int kMsPlaces = 3;  // decimal places of a second

template <class Number>
Decimal whole(Number number) {
  return {static_cast<std::int64_t>(number), 0};
}

struct ModelSums {
  std::int64_t allocated_milli = 0;
  std::int64_t idle_milli = 0;
  std::int64_t unavailable_milli = 0;
  std::int64_t foreign_milli = 0;
  std::int64_t unhealthy = 0;
  std::int64_t simulated = 0;
};

std::map<std::string, ModelSums> sums_by_model(const State& state) {
  std::map<std::string, ModelSums> models;
  for (const NodeState& node : state.nodes()) {
    if (node.status == NodeStatus::kLost) continue;
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
      const state::GpuSlot& slot = node.gpus[i];
      ModelSums& sums = models[node.spec.gpus[i].model];
      sums.allocated_milli += kMilli - slot.free_milli;
      (!slot.healthy || !node.takes_tasks() ? sums.unavailable_milli
       : slot.foreign                       ? sums.foreign_milli
                                            : sums.idle_milli) += slot.free_milli;
      sums.unhealthy += slot.healthy ? 0 : 1;
      sums.simulated += node.spec.gpus[i].simulated ? 1 : 0;
    }
  }
  return models;
}

void add_gpus(const State& state, Exposition& out) {
  const std::map<std::string, ModelSums> models = sums_by_model(state);
  out.begin("berth_gpus", MetricType::kGauge,
            "GPUs: allocated to jobs; idle; foreign: others than berth use them; or unavailable: free, and no job may "
            "have them now (failed, or their node is cordoned, under maintenance or out of contact).");
  for (const auto& [model, sums] : models) {
    out.add({{"model", model}, {"state", "allocated"}}, {sums.allocated_milli, kGpuMilli});
    out.add({{"model", model}, {"state", "idle"}}, {sums.idle_milli, kGpuMilli});
    out.add({{"model", model}, {"state", "foreign"}}, {sums.foreign_milli, kGpuMilli});
    out.add({{"model", model}, {"state", "unavailable"}}, {sums.unavailable_milli, kGpuMilli});
  }
  out.begin("berth_unhealthy_gpus", MetricType::kGauge, "GPUs that have failed, also those that a job still holds.");
  for (const auto& [model, sums] : models) out.add({{"model", model}}, whole(sums.unhealthy));
  out.begin("berth_simulated_gpus", MetricType::kGauge, "GPUs that are declared and not there.");
  for (const auto& [model, sums] : models) out.add({{"model", model}}, whole(sums.simulated));
}

// A ratio with five places.
Decimal ratio_of(const GpuUtilizationSum& sum) { return {sum.milli_percent(), 5}; }

// Adds the utilization of each measured GPU, and of all allocated GPUs together.
void add_gpu_utilization(const api::View& view, Exposition& out) {
  const GpuUtilization gpu_utilization = view.measured();
  std::map<std::pair<std::string_view, std::string_view>, GpuUtilizationSum> allocated;
  out.begin("berth_gpu_driven_ratio", MetricType::kGauge,
            "The part of the last hour in which the driver saw the GPU at work; only GPUs that are measured.");
  for (const NodeState& node : view.state.nodes()) {
    if (node.status == NodeStatus::kLost || gpu_utilization.gpus.empty()) continue;
    const std::string& pool = view.state.pools()[node.pool].name;
    for (const Gpu& gpu : node.spec.gpus) {
      const auto found = gpu_utilization.gpus.find(gpu.uuid);
      if (found == gpu_utilization.gpus.end()) continue;
      out.add({{"pool", pool}, {"model", gpu.model}, {"node", node.spec.name}, {"gpu", gpu.uuid}},
              ratio_of(found->second.all));
      allocated[{pool, gpu.model}] += found->second.allocated;
    }
  }
  out.begin("berth_driven_ratio", MetricType::kGauge,
            "The mean of that over the time in which GPUs, or parts of them, were allocated.");
  for (const auto& [of, sum] : allocated) {
    if (sum.measured()) out.add({{"pool", of.first}, {"model", of.second}}, ratio_of(sum));
  }
}

// A node counts in the first of these states that applies.
constexpr std::string_view kNodeStates[] = {"lost", "unknown", "maintenance", "draining", "cordoned", "ready"};

std::size_t state_of(const NodeState& node) {
  if (node.status == NodeStatus::kLost) return 0;
  if (node.status == NodeStatus::kUnknown) return 1;
  if (node.maintained > 0) return 2;
  if (node.draining) return 3;
  return node.cordoned ? 4 : 5;
}

void add_nodes(const State& state, Exposition& out) {
  std::int64_t counts[std::size(kNodeStates)] = {};
  for (const NodeState& node : state.nodes()) counts[state_of(node)] += node.removed ? 0 : 1;
  out.begin("berth_nodes", MetricType::kGauge, "Nodes, each in the first that applies of these states.");
  for (std::size_t i = 0; i < std::size(kNodeStates); ++i) {
    out.add({{"state", kNodeStates[i]}}, whole(counts[i]));
  }
}

struct Scaling {
  std::int64_t releasable = 0;
  std::int64_t wanted = 0;
  std::size_t helped = 0;
};

// Nodes of several sizes may have the same pool and model. Their scale-ups are alternatives: the one that starts the
// most jobs counts, and of these the one with the fewest nodes.
void add_capacity(const api::View& view, Exposition& out) {
  const explain::ScaleUpEffort effort{.asks = 50, .nodes_scored = 100'000};
  const explain::Capacity capacity = explain::capacity_of(view.state, view.now, explain::kIdleForMs, effort);
  std::map<std::pair<std::string_view, std::string_view>, Scaling> sums;
  for (const explain::NodeKind& kind : capacity.kinds) {
    Scaling& sum = sums[{view.state.pools()[kind.pool].name, kind.model}];
    sum.releasable += static_cast<std::int64_t>(kind.releasable());
    if (!kind.wanted) continue;
    const std::size_t helped = kind.wanted->jobs.size();
    if (helped < sum.helped || (helped == sum.helped && kind.wanted->nodes > sum.wanted)) continue;
    sum.helped = helped;
    sum.wanted = kind.wanted->nodes;
  }
  out.begin("berth_nodes_releasable", MetricType::kGauge,
            "Nodes idle for ten minutes that could go together: no job is nominated there or could use them, and no "
            "guarantee counts on them.");
  for (const auto& [of, sum] : sums) out.add({{"pool", of.first}, {"model", of.second}}, whole(sum.releasable));
  out.begin("berth_nodes_wanted", MetricType::kGauge,
            "Further nodes that would start jobs which wait for places, tried for each pool and model by itself.");
  for (const auto& [of, sum] : sums) out.add({{"pool", of.first}, {"model", of.second}}, whole(sum.wanted));
}

void add_fragmentation(const State& state, Exposition& out) {
  const std::int64_t stranded = state.fragmentation().unusable_milli();
  const std::int64_t capacity = state.capacity()[kDimGpu];
  constexpr int kPlaces = 6;
  const std::int64_t millionths =
      capacity == 0 ? 0 : static_cast<std::int64_t>(Int128{stranded} * 1'000'000 / capacity);
  out.add_single("berth_stranded_gpus", MetricType::kGauge,
                 "Idle GPUs that a request drawn from the mix is expected to be unable to use.", {stranded, kGpuMilli});
  out.add_single("berth_fragmentation_ratio", MetricType::kGauge, "Stranded GPUs over all GPUs of the fleet.",
                 {millionths, kPlaces});
  out.add_single("berth_fragmentation_alarm", MetricType::kGauge,
                 "1 while fragmentation is above scheduling.fragmentation_alert.",
                 whole(state.fragmentation_alarm() ? 1 : 0));
}

// Returns the GPUs that quota and the fleet leave for the queue beside used and nominated ones, without any eviction.
std::int64_t headroom_milli(const State& state, const QueueState& queue) {
  std::int64_t room = state.fragmentation().idle_milli();
  for (QueueId id = queue.id; id.valid(); id = state.queue(id).parent) {
    const QueueState& at = state.queue(id);
    if (at.max[kDimGpu] == kUnlimited) continue;
    room = std::min(room, at.max[kDimGpu] - at.usage[kDimGpu] - at.nominated[kDimGpu]);
  }
  return std::max<std::int64_t>(0, room);
}

struct QueueGauge {
  std::string_view name;
  std::string_view help;
  std::optional<Decimal> (*value)(const State&, const QueueState&);  // nothing if the queue has none
};

constexpr QueueGauge kQueueGauges[] = {
    {"berth_queue_guaranteed_gpus", "What the configuration guarantees, where it does.",
     [](const State&, const QueueState& queue) -> std::optional<Decimal> {
       if (!queue.configured.states(kDimGpu)) return std::nullopt;
       return Decimal{queue.configured.amounts[kDimGpu], kGpuMilli};
     }},
    {"berth_queue_effective_guaranteed_gpus",
     "What of that counts: less than configured where it has decayed (guarantee_decay).",
     [](const State&, const QueueState& queue) -> std::optional<Decimal> {
       if (!queue.guaranteed.states(kDimGpu)) return std::nullopt;
       return Decimal{queue.guaranteed.amounts[kDimGpu], kGpuMilli};
     }},
    {"berth_queue_max_gpus", "The ceiling, where there is one.",
     [](const State&, const QueueState& queue) -> std::optional<Decimal> {
       if (queue.max[kDimGpu] == kUnlimited) return std::nullopt;
       return Decimal{queue.max[kDimGpu], kGpuMilli};
     }},
    {"berth_queue_allocated_gpus", "GPUs that jobs of the queue hold, those that are leaving included.",
     [](const State&, const QueueState& queue) -> std::optional<Decimal> {
       return Decimal{queue.usage[kDimGpu], kGpuMilli};
     }},
    {"berth_queue_borrowed_gpus",
     "The part of the allocated GPUs that lies outside the guarantee of the queue or of a queue above it.",
     [](const State& state, const QueueState& queue) -> std::optional<Decimal> {
       return Decimal{queue.usage[kDimGpu] - state::usage_within_all(state, queue)[kDimGpu], kGpuMilli};
     }},
    {"berth_queue_nominated_gpus", "GPUs nominated to jobs for which victims are leaving.",
     [](const State&, const QueueState& queue) -> std::optional<Decimal> {
       return Decimal{queue.nominated[kDimGpu], kGpuMilli};
     }},
    {"berth_queue_headroom_gpus",
     "How many more GPUs the ceilings on the way to the root and what is idle let the queue have, nobody leaving.",
     [](const State& state, const QueueState& queue) -> std::optional<Decimal> {
       return Decimal{headroom_milli(state, queue), kGpuMilli};
     }},
    {"berth_queue_dominant_share_ratio",
     "The largest part of the cluster's GPU-equivalents, cores or memory that the queue uses.",
     [](const State& state, const QueueState& queue) -> std::optional<Decimal> {
       return Decimal{api::dominant_share(state, queue), 4};
     }},
};

// Returns all queues except the root, by path.
std::vector<const QueueState*> queues_by_path(const State& state) {
  std::vector<const QueueState*> queues;
  for (const QueueState& queue : state.queues()) {
    if (!queue.removed && queue.id != state.root()) queues.push_back(&queue);
  }
  std::sort(queues.begin(), queues.end(), [](const auto* a, const auto* b) { return a->path < b->path; });
  return queues;
}

void add_queues(const State& state, const std::vector<const QueueState*>& queues, Exposition& out) {
  out.begin("berth_queue_info", MetricType::kGauge, "1 for each queue of the tree, with where it stands.");
  for (const QueueState* queue : queues) {
    out.add({{"queue", queue->path},
             {"parent", state.queue(queue->parent).path},
             {"leaf", queue->is_leaf() ? "true" : "false"},
             {"policy", name_of(queue->policy)}},
            whole(1));
  }
  for (const QueueGauge& gauge : kQueueGauges) {
    out.begin(gauge.name, MetricType::kGauge, gauge.help);
    for (const QueueState* queue : queues) {
      if (const auto value = gauge.value(state, *queue)) out.add({{"queue", queue->path}}, *value);
    }
  }
}

void add_budgets(const std::vector<const QueueState*>& queues, Exposition& out) {
  out.begin("berth_queue_budget_mark_ratio", MetricType::kGauge,
            "The last mark that the use of the queue's budget has passed this month, or that of its grant: 0, 0.5, 0.8 "
            "or 1; 1 also once a grant has ended. Where it has one.");
  for (const QueueState* queue : queues) {
    for (const auto& budget : queue->budgets) {
      if (!budget) continue;
      out.add({{"queue", queue->path}, {"kind", name_of(budget->config.kind())}},
              {budget->mark.ended ? 100 : budget->mark.percent, 2});
    }
  }
}

// The counts of one leaf queue. Services and arrays are left out: their replicas and elements are the jobs.
struct Line {
  std::map<JobPhase, std::int64_t> phases = {
      {JobPhase::kPending, 0}, {JobPhase::kRunning, 0}, {JobPhase::kStopping, 0}};
  std::map<ReasonCode, std::int64_t> reasons;
  std::map<ReasonCode, std::int64_t> never;  // pending jobs for which waiting cannot help
  std::int64_t oldest_wait_ms = 0;
};

// Returns the reason for which the pending job can never start as it is, or nothing.
std::optional<ReasonCode> never_starts_for(const State& state, const JobState& job, ReasonCode reason) {
  if (is_never(reason)) return reason;
  const auto limit = state::impossible_limit(state, job.queue, job.spec);
  if (!limit) return std::nullopt;
  return limit->of_user ? ReasonCode::kUserLimit : ReasonCode::kQuotaMax;
}

void count(const api::View& view, const JobState& job, Line& line) {
  ++line.phases[job.phase];
  if (job.phase != JobPhase::kPending) return;
  const ReasonCode reason = api::waits_for(view, job).value_or(ReasonCode::kNone);
  ++line.reasons[reason];
  if (const auto never = never_starts_for(view.state, job, reason)) ++line.never[*never];
  if (!job.in_pending) return;
  line.oldest_wait_ms = std::max(line.oldest_wait_ms, view.now - std::max(job.in_line_since, job.not_before));
}

std::map<std::string_view, Line> lines_of(const api::View& view, const std::vector<const QueueState*>& queues) {
  std::map<std::string_view, Line> lines;
  for (const QueueState* queue : queues) {
    if (queue->is_leaf()) lines[queue->path];
  }
  view.state.jobs().for_each([&](const JobState& job) {
    if (!job.is_parent()) count(view, job, lines[view.state.queue(job.queue).path]);
  });
  return lines;
}

void add_jobs(const api::View& view, const std::vector<const QueueState*>& queues, Exposition& out) {
  const std::map<std::string_view, Line> lines = lines_of(view, queues);
  out.begin("berth_jobs", MetricType::kGauge, "Live jobs of each leaf queue, by phase.");
  for (const auto& [queue, line] : lines) {
    for (const auto& [phase, jobs] : line.phases) out.add({{"queue", queue}, {"phase", name_of(phase)}}, whole(jobs));
  }
  out.begin(
      "berth_pending_jobs", MetricType::kGauge,
      "Of the pending jobs those that wait for the same reason; none: nothing refuses them, or too many different "
      "ones wait to ask for each.");
  for (const auto& [queue, line] : lines) {
    for (const auto& [reason, jobs] : line.reasons) {
      out.add({{"queue", queue}, {"reason", name_of(reason)}}, whole(jobs));
    }
  }
  out.begin("berth_never_starting_jobs", MetricType::kGauge,
            "Of the pending jobs those for which waiting cannot help, with what rules them out.");
  for (const auto& [queue, line] : lines) {
    for (const auto& [reason, jobs] : line.never) {
      out.add({{"queue", queue}, {"reason", name_of(reason)}}, whole(jobs));
    }
  }
  out.begin("berth_oldest_wait_seconds", MetricType::kGauge,
            "How long the job has waited that has waited longest, free to start; 0 where none waits so.");
  for (const auto& [queue, line] : lines) out.add({{"queue", queue}}, {line.oldest_wait_ms, kMsPlaces});
}

}  // namespace

void add_gauges(const api::View& view, Exposition& out) {
  const State& state = view.state;
  const std::vector<const QueueState*> queues = queues_by_path(state);
  add_gpus(state, out);
  add_gpu_utilization(view, out);
  add_nodes(state, out);
  add_capacity(view, out);
  add_fragmentation(state, out);
  add_queues(state, queues, out);
  add_budgets(queues, out);
  add_jobs(view, queues, out);
  out.add_single("berth_nominated_jobs", MetricType::kGauge,
                 "Jobs that are nominated to places which victims are leaving.", whole(state.nominated().size()));
  out.add_single("berth_backfill_reservations", MetricType::kGauge, "Blocked jobs that have a backfill reservation.",
                 whole(state.reservations().size()));
  out.add_single("berth_last_event_seq", MetricType::kGauge, "The last event that these gauges reflect.",
                 whole(state.last_seq()));
}

}  // namespace berth::daemon
