#include "api/routes/views.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <set>

#include "api/routes/json_text.h"
#include "api/routes/queue_edit_view.h"
#include "control/queue_change.h"
#include "state/within.h"

namespace berth::api {

boost::json::object taint_view(const Taint& taint) {
  return {{"key", taint.key}, {"value", taint.value}, {"effect", name_of(taint.effect)}};
}

namespace {

namespace json = boost::json;
using state::NodeState;
using state::QueueState;
using state::State;

json::string text(std::string_view value) { return json::string(value); }

json::value amount(std::size_t dim, std::int64_t value) {
  if (dim == kDimMemory) return value;
  if (dim == kDimGpuEquivalent) return from_millionths(value);
  return from_thousandths(value);
}

// The dimensions for which `shows` says so, under their names.
template <class Shows>
json::object amounts_view(const State& state, const Amounts& amounts, Shows&& shows) {
  json::object view;
  const std::pair<std::size_t, const char*> named[] = {
      {kDimGpu, "gpus"}, {kDimGpuEquivalent, "gpu_equivalents"}, {kDimCpu, "cpus"}, {kDimMemory, "memory_mib"}};
  for (const auto& [dim, name] : named) {
    if (shows(dim)) view[name] = amount(dim, amounts[dim]);
  }
  json::object models;
  for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
    const std::size_t dim = kDimFirstModel + m;
    if (shows(dim)) models[state.gpu_models()[m].name] = amount(dim, amounts[dim]);
  }
  view["models"] = std::move(models);
  return view;
}

json::object limits_view(const State& state, const Amounts& limits) {
  return amounts_view(state, limits, [&](std::size_t dim) { return limits[dim] != kUnlimited; });
}

json::object usage_amounts_view(const State& state, const Amounts& used) {
  return amounts_view(state, used, [&](std::size_t dim) { return dim < kDimFirstModel || used[dim] != 0; });
}

std::string dominant_share_text(const State& state, const QueueState& queue) {
  const std::int64_t share = dominant_share(state, queue);
  const std::string fraction = std::to_string(10'000 + share % 10'000).substr(1);
  return std::to_string(share / 10'000) + "." + fraction;
}

json::object gpu_view(const ShownNode& shown, std::size_t index) {
  const Gpu& gpu = shown.node.spec.gpus[index];
  const state::GpuSlot& slot = shown.node.gpus[index];
  json::array jobs;
  for (const JobId job : shown.jobs_on_gpu[index]) jobs.emplace_back(job.value());
  json::object view{{"index", index},
                    {"uuid", gpu.uuid},
                    {"model", gpu.model},
                    {"memory_mib", gpu.memory_mib},
                    {"numa", gpu.numa},
                    {"nvlink_island", gpu.nvlink_island},
                    {"healthy", slot.healthy},
                    {"foreign", slot.foreign},
                    {"simulated", gpu.simulated},
                    {"free", from_thousandths(slot.free_milli)},
                    {"nominated", from_thousandths(slot.nominated_milli)},
                    {"jobs", std::move(jobs)}};
  if (gpu.fenced) {
    view["fenced"] = true;
    view["fault"] = gpu.fault;
  }
  if (slot.slices != 0) view["slices"] = slices_text(slot.slices);
  if (const GpuUtilizationSum& gpu_utilization = shown.gpu_utilization[index]; gpu_utilization.measured())
    view["driven_pct"] = from_thousandths(gpu_utilization.milli_percent());
  return view;
}

json::object labels_view(const Labels& labels) {
  json::object view;
  for (const auto& [key, value] : labels) view[key] = value;
  return view;
}

json::array taints_view(const std::vector<Taint>& taints) {
  json::array view;
  for (const Taint& taint : taints) view.push_back(taint_view(taint));
  return view;
}

json::array spans_view(const NodeState& node) {
  json::array view;
  for (const state::ClosedSpan& span : node.maintenance) {
    view.push_back(json::object{{"from", to_iso8601(span.from)}, {"to", to_iso8601(span.to)}});
  }
  return view;
}

std::int64_t usable_free_milli(const NodeState& node) {
  std::int64_t milli = 0;
  for (const state::GpuSlot& slot : node.gpus) milli += slot.usable() ? slot.free_milli : 0;
  return milli;
}

json::array countables_view(const NodeState& node) {
  json::array view;
  for (std::size_t c = 0; c < node.countables.size(); ++c) {
    const auto& [name, amount] = node.spec.countables[c];
    const state::CountableUse& use = node.countables[c];
    const std::int64_t free = std::max<std::int64_t>(0, amount - use.bound - use.foreign);
    view.push_back(json::object{{"name", name}, {"amount", amount}, {"free", free}, {"foreign", use.foreign}});
  }
  return view;
}

json::object foreign_view(const NodeState& node) {
  return {{"gpus", node.foreign.gpus.size()},
          {"cpus", from_thousandths(node.foreign.cpu_milli)},
          {"memory_mib", node.foreign.memory_mib}};
}

// What neither berth's tasks nor others use.
std::int64_t free_cpu_milli(const NodeState& node) {
  return std::max<std::int64_t>(0, node.free_cpu_milli - node.foreign.cpu_milli);
}
std::int64_t free_memory_mib(const NodeState& node) {
  return std::max<std::int64_t>(0, node.free_memory_mib - node.foreign.memory_mib);
}

struct FleetSums {
  std::int64_t gpus = 0;
  std::int64_t free_milli = 0;
  std::int64_t allocated_milli = 0;
  std::int64_t unhealthy = 0;
  std::int64_t foreign = 0;
};

FleetSums sum_fleet(const State& state) {
  FleetSums sums;
  for (const NodeState& node : state.nodes()) {
    if (node.status == NodeStatus::kLost) continue;
    for (const state::GpuSlot& slot : node.gpus) {
      ++sums.gpus;
      sums.unhealthy += slot.healthy ? 0 : 1;
      sums.foreign += slot.foreign ? 1 : 0;
      sums.allocated_milli += kMilli - slot.free_milli;
    }
    sums.free_milli += usable_free_milli(node);
  }
  return sums;
}

std::int64_t count_stopping(const State& state) {
  return std::count_if(state.running().begin(), state.running().end(),
                       [&](JobId id) { return state.job(id)->attempt->stop.has_value(); });
}

json::object usage_row_view(const UsageRow& row) {
  return {{"queue", row.queue},
          {"user", row.user},
          {"gpu_model", row.gpu_model},
          {"kind", row.borrowed ? "borrowed" : "within"},
          {"gpu_seconds", from_millionths(row.gpu_milli_ms)},
          {"gpu_milli_ms", row.gpu_milli_ms},
          {"simulated", row.simulated}};
}

}  // namespace

std::int64_t dominant_share(const State& state, const QueueState& queue) {
  std::int64_t largest = 0;
  for (const std::size_t dim : {kDimGpuEquivalent, kDimCpu, kDimMemory}) {
    const std::int64_t capacity = state.capacity()[dim];
    if (capacity == 0) continue;
    largest = std::max(largest, static_cast<std::int64_t>(Int128{queue.usage[dim]} * 10'000 / capacity));
  }
  return largest;
}

ShownNode show_node(const State& state, const NodeState& node, const GpuUtilization& gpu_utilization) {
  ShownNode shown{.node = node, .domains = {}, .jobs_on_gpu = {}, .gpu_utilization = {}};
  for (const Gpu& gpu : node.spec.gpus) {
    const auto measured = gpu_utilization.gpus.find(gpu.uuid);
    shown.gpu_utilization.push_back(measured == gpu_utilization.gpus.end() ? GpuUtilizationSum()
                                                                           : measured->second.all);
  }
  for (const DomainId id : state.topology().of_node(node.id)) {
    const std::string& path = state.topology().domain(id).path;
    shown.domains.push_back(path.substr(path.rfind('/') + 1));
  }
  shown.jobs_on_gpu.resize(node.gpus.size());
  for (const auto& [job, task] : node.tasks) {
    for (const std::uint8_t gpu : state.job(job)->attempt->tasks[task].placement.gpus) {
      auto& jobs = shown.jobs_on_gpu[gpu];
      if (jobs.empty() || jobs.back() != job) jobs.push_back(job);
    }
  }
  return shown;
}

json::object node_view(const ShownNode& shown) {
  const NodeState& node = shown.node;
  json::array gpus;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) gpus.push_back(gpu_view(shown, i));
  json::array tasks;
  for (const auto& [job, task] : node.tasks) tasks.push_back(json::object{{"job", job.value()}, {"task", task}});
  const std::string_view kept = "not declared lost: many nodes are out of contact at once";
  const std::string_view why = node.loss_deferred ? kept : std::string_view(node.cordon_why);
  return {{"name", node.spec.name},
          {"pool", node.spec.pool},
          {"cell", node.spec.cell},
          {"status", text(name_of(node.status))},
          {"cordoned", node.cordoned},
          {"draining", node.draining},
          {"why", text(why)},
          {"maintenance", spans_view(node)},
          {"labels", labels_view(node.spec.labels)},
          {"taints", taints_view(node.spec.taints)},
          {"topology", json::array(shown.domains.begin(), shown.domains.end())},
          {"cpus", from_thousandths(node.spec.cpu_milli)},
          {"cpus_free", from_thousandths(free_cpu_milli(node))},
          {"memory_mib", node.spec.memory_mib},
          {"memory_free_mib", free_memory_mib(node)},
          {"gpus", std::move(gpus)},
          {"gpus_total", node.gpus.size()},
          {"gpus_free", from_thousandths(usable_free_milli(node))},
          {"foreign", foreign_view(node)},
          {"countables", countables_view(node)},
          {"tasks", std::move(tasks)},
          {"containers", node.spec.containers},
          {"image_count", node.spec.images.size()},
          {"lease", node.lease}};
}

json::object node_view_with_images(const ShownNode& shown) {
  json::object view = node_view(shown);
  if (shown.node.spec.containers)
    view["images"] = json::array(shown.node.spec.images.begin(), shown.node.spec.images.end());
  return view;
}

json::object window_view(const State& state, const state::Maintenance& window) {
  json::array nodes;
  std::set<JobId> jobs;
  for (const NodeId id : window.nodes) {
    nodes.emplace_back(state.node(id).spec.name);
    for (const auto& [job, task] : state.node(id).tasks) jobs.insert(job);
  }
  return {{"name", window.name},         {"nodes", std::move(nodes)}, {"from", to_iso8601(window.from)},
          {"to", to_iso8601(window.to)}, {"reason", window.reason},   {"user", window.user},
          {"begun", window.begun},       {"jobs_there", jobs.size()}};
}

namespace {

json::object per_user_view(const QueueState& queue) {
  json::object view;
  if (queue.max_jobs_per_user != kUnlimited) view["jobs"] = queue.max_jobs_per_user;
  if (queue.max_gpu_milli_per_user != kUnlimited) view["gpus"] = from_thousandths(queue.max_gpu_milli_per_user);
  if (queue.max_submitted_per_user != kUnlimited) view["submitted"] = queue.max_submitted_per_user;
  return view;
}

json::object attained_service_view(const QueueState& queue) {
  json::array thresholds;
  for (const std::int64_t service : queue.service_thresholds) thresholds.emplace_back(service / (kMilli * 1000));
  return {{"thresholds_gpu_s", std::move(thresholds)}, {"promote_after_s", queue.promote_after_ms / 1000}};
}

}  // namespace

json::object queue_view(const State& state, const QueueState& queue) {
  const Amounts within = state::usage_within_all(state, queue);
  const auto& guaranteed = queue.configured;
  const auto& effective = queue.guaranteed;
  json::object view{
      {"path", queue.path},
      {"parent", queue.parent.valid() ? state.queue(queue.parent).path : std::string()},
      {"depth", queue.depth},
      {"leaf", queue.is_leaf()},
      {"weight", queue.weight},
      {"policy", text(name_of(queue.policy))},
      {"trust_domain", queue.trust_domain.valid() ? state.trust_domains()[queue.trust_domain.index()] : std::string()},
      {"guaranteed", amounts_view(state, guaranteed.amounts, [&](std::size_t dim) { return guaranteed.states(dim); })},
      {"effective", amounts_view(state, effective.amounts, [&](std::size_t dim) { return effective.states(dim); })},
      {"max", limits_view(state, queue.max)},
      {"lending_limit", limits_view(state, queue.lending_limit)},
      {"max_per_user", per_user_view(queue)},
      {"usage", usage_amounts_view(state, queue.usage)},
      {"within", usage_amounts_view(state, within)},
      {"borrowed_gpus", from_thousandths((queue.usage - within)[kDimGpu])},
      {"burst_gpus", from_thousandths(queue.burst_usage[kDimGpu])},
      {"nominated_gpus", from_thousandths(queue.nominated[kDimGpu])},
      {"pending", queue.pending_below},
      {"running", queue.running_below},
      {"dominant_share", dominant_share_text(state, queue)}};
  if (!queue.service_thresholds.empty()) view["attained_service"] = attained_service_view(queue);
  return view;
}

namespace {

// What is in force for the queue's jobs, whose word that is (empty: the cluster's), and what is used of the rates of
// all queues on the way to the root.
json::object eviction_view(const State& state, const QueueState& queue, Timestamp now) {
  const state::EvictionTerms& terms = queue.eviction;
  json::array limits;
  for (QueueId q = state.limits_evictions(queue.id); q.valid(); q = state.next_limit(q)) {
    const QueueState& limiting = state.queue(q);
    const std::int64_t limit = limiting.eviction.evictions_per_hour;
    limits.push_back(json::object{{"queue", limiting.path},
                                  {"evictions_per_hour", limit},
                                  {"used", limit - limiting.evictions.left(limit, now)}});
  }
  return {{"min_runtime_s", terms.min_runtime_s},
          {"min_runtime_of", state.queue(terms.min_runtime_of).path},
          {"cooldown_s", terms.cooldown_s},
          {"cooldown_of", state.queue(terms.cooldown_of).path},
          {"grace_s", terms.grace_s},
          {"grace_of", state.queue(terms.grace_of).path},
          {"limits", std::move(limits)}};
}

}  // namespace

json::object queue_view_by_itself(const View& of, const QueueState& queue) {
  json::object view = queue_view(of.state, queue);
  view["eviction"] = eviction_view(of.state, queue, of.now);
  view["revision"] = control::revision_in(of.state, queue.path);
  view["changes"] = edit_views(of.state, queue.path);
  if (!queue.limits_users()) return view;
  json::array users;
  for (const auto& [user, used] : queue.users) {
    users.push_back(json::object{{"user", user},
                                 {"jobs", used.jobs},
                                 {"gpus", from_thousandths(used.gpu_milli)},
                                 {"submitted", used.submitted}});
  }
  view["users"] = std::move(users);
  return view;
}

json::array queue_views(const State& state, const std::function<bool(std::string_view)>& visible) {
  std::vector<const QueueState*> shown;
  for (const QueueState& queue : state.queues()) {
    if (!queue.removed && queue.id != state.root() && visible(queue.path)) shown.push_back(&queue);
  }
  std::sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) { return a->path < b->path; });
  json::array views;
  for (const QueueState* queue : shown) views.push_back(queue_view(state, *queue));
  return views;
}

json::object cluster_view(const View& view, const ServerFacts& facts) {
  const State& state = view.state;
  const FleetSums fleet = sum_fleet(state);
  const auto nodes = std::count_if(state.nodes().begin(), state.nodes().end(),
                                   [](const NodeState& node) { return node.status != NodeStatus::kLost; });
  const std::size_t running = state.running().size();
  const std::int64_t stopping = count_stopping(state);
  const std::int64_t permille = fleet.gpus == 0 ? 0 : fleet.allocated_milli / fleet.gpus;
  return {{"name", state.config().name},
          {"version", facts.version},
          {"config_version", state.config_version()},
          {"seq", state.last_seq()},
          {"time", to_iso8601(view.now)},
          {"simulated_gpus", facts.simulated_gpus},
          {"backfill_after_s", state.config().scheduling.backfill_after_s},
          {"warnings", json::array(facts.warnings.begin(), facts.warnings.end())},
          {"log", json::object{{"appends", facts.log_appends},
                               {"records", facts.log_records},
                               {"fsyncs", facts.log_fsyncs},
                               {"check", facts.log_check},
                               {"checked", facts.log_checked}}},
          {"nodes", nodes},
          {"gpus", fleet.gpus},
          {"gpus_free", from_thousandths(fleet.free_milli)},
          {"gpus_allocated", from_thousandths(fleet.allocated_milli)},
          {"gpus_unhealthy", fleet.unhealthy},
          {"gpus_foreign", fleet.foreign},
          {"jobs_pending", state.jobs().size() - running - state.children().size()},
          {"jobs_running", static_cast<std::int64_t>(running) - stopping},
          {"jobs_stopping", stopping},
          {"allocated_pct", from_thousandths(permille * 100)},
          {"gpus_stranded", from_thousandths(state.fragmentation().unusable_milli())},
          {"fragmentation_alarm", state.fragmentation_alarm()}};
}

json::object usage_view(const UsageReport& report, bool simulated_gpus) {
  json::array items;
  for (const UsageRow& row : report.rows) items.push_back(usage_row_view(row));
  return {{"from", to_iso8601(report.from)},
          {"to", to_iso8601(report.to)},
          {"items", std::move(items)},
          {"idle_gpu_seconds", from_millionths(report.idle_gpu_milli_ms)},
          {"down_gpu_seconds", from_millionths(report.down_gpu_milli_ms)},
          {"foreign_gpu_seconds", from_millionths(report.foreign_gpu_milli_ms)},
          {"capacity_gpu_seconds", from_millionths(report.capacity_gpu_milli_ms)},
          {"idle_gpu_milli_ms", report.idle_gpu_milli_ms},
          {"down_gpu_milli_ms", report.down_gpu_milli_ms},
          {"foreign_gpu_milli_ms", report.foreign_gpu_milli_ms},
          {"capacity_gpu_milli_ms", report.capacity_gpu_milli_ms},
          {"simulated_gpus", simulated_gpus}};
}

}  // namespace berth::api
