// Jobs as the API shows them.

#include <algorithm>
#include <boost/json/array.hpp>
#include <set>

#include "api/routes/documents.h"
#include "api/routes/json_text.h"
#include "api/routes/views.h"
#include "model/sharing.h"
#include "state/attained_service.h"
#include "state/within.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using state::AttemptRecord;
using state::JobState;
using state::State;

json::string text(std::string_view value) { return json::string(value); }

std::int64_t tasks_of(const JobSpec& spec) {
  std::int64_t tasks = 0;
  for (const TaskGroup& group : spec.groups) tasks += group.count;
  return tasks;
}

bool has_started_child(const State& state, JobId parent) {
  const auto found = state.children().find(parent);
  if (found == state.children().end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](JobId child) {
    const JobState* job = state.job(child);
    return job != nullptr && job->attempt.has_value();
  });
}

std::optional<bool> within_of(const State& state, const JobState& job) {
  if (!job.attempt) return std::nullopt;
  const auto& charges = job.attempt->charges;
  return std::all_of(charges.begin(), charges.end(), [&](const state::Charge& charge) {
    return state::is_within_all(state, job.queue, charge.within);
  });
}

void add_names(const State& state, NodeId id, Names& names) {
  if (names.contains(id)) return;
  const NodeSpec& spec = state.node(id).spec;
  NodeNames& added = names[id];
  added.node = spec.name;
  for (const Gpu& gpu : spec.gpus) {
    added.gpus.push_back(gpu.uuid);
    if (gpu.simulated) added.simulated_gpus = true;
  }
}

Names names_for(const State& state, const JobState& job) {
  Names names;
  if (job.attempt) {
    for (const state::TaskState& task : job.attempt->tasks) add_names(state, task.placement.node, names);
    if (job.attempt->stop) {
      for (const TaskPlacement& placement : job.attempt->stop->to) add_names(state, placement.node, names);
    }
  }
  if (job.nomination) {
    for (const TaskPlacement& placement : job.nomination->placements) add_names(state, placement.node, names);
  }
  for (const AttemptRecord& record : job.past) {
    for (const auto& [node, gpus] : record.gpus_on) add_names(state, node, names);
  }
  return names;
}

Children children_of(const State& state, const JobState& parent) {
  Children children;
  children.total = parent.spec.kind == JobKind::kArray ? parent.spec.array_size : parent.spec.groups.front().count;
  children.ended = parent.children_spawned - parent.children_alive;
  children.failed = parent.children_failed;
  const auto found = state.children().find(parent.id);
  if (found == state.children().end()) return children;
  for (const JobId id : found->second) {
    const JobState* child = state.job(id);
    if (child == nullptr) continue;
    ++(child->attempt ? children.running : children.waiting);
    if (child->generation == parent.generation) ++children.current;
  }
  return children;
}

// What the job's own facts say.
std::optional<ReasonCode> own_reason(const View& view, const JobState& job) {
  if (job.phase != JobPhase::kPending || job.attempt) return std::nullopt;
  if (job.held) return ReasonCode::kHeld;
  if (job.open_dependencies > 0) {
    return view.state.broken_dependency(job) ? ReasonCode::kDependencyNever : ReasonCode::kDependency;
  }
  if (job.not_before > view.now) return ReasonCode::kEarliestStart;
  if (job.nomination) return ReasonCode::kWaitsForVictims;
  return std::nullopt;
}

// Where it runs, in the order of its tasks; of a finished job where it ran last.
json::array nodes_view(const ShownJob& shown) {
  json::array nodes;
  std::set<NodeId> seen;
  if (!shown.job.attempt) {
    if (!shown.finished || shown.job.past.empty()) return nodes;
    for (const auto& [node, gpus] : shown.job.past.back().gpus_on) nodes.emplace_back(shown.names.at(node).node);
    return nodes;
  }
  for (const state::TaskState& task : shown.job.attempt->tasks) {
    const NodeId id = task.placement.node;
    if (seen.insert(id).second) nodes.emplace_back(shown.names.at(id).node);
  }
  return nodes;
}

std::optional<Timestamp> started_of(const JobState& job) {
  if (job.attempt) return job.attempt->started;
  if (!job.past.empty()) return job.past.back().started;
  return std::nullopt;
}

std::uint32_t current_attempt(const JobState& job) {
  if (job.attempt) return job.attempt->number;
  return job.past.empty() ? 0 : job.past.back().number;
}

json::object children_view(const Children& children, JobKind kind) {
  json::object view{{"total", children.total},
                    {"running", children.running},
                    {"waiting", children.waiting},
                    {"ended", children.ended},
                    {"failed", children.failed}};
  if (kind == JobKind::kService) view["current"] = children.current;
  return view;
}

// Of a gang that may have fewer tasks than it asks for: what it has, and since when.
json::object size_view(const state::AttemptState& attempt) {
  std::int64_t gpu_milli = 0;
  for (const state::TaskState& task : attempt.tasks) {
    gpu_milli += static_cast<std::int64_t>(task.placement.gpus.size()) * task.placement.gpu_milli;
  }
  return {
      {"tasks", attempt.tasks.size()}, {"gpus", from_thousandths(gpu_milli)}, {"since", to_iso8601(attempt.resized)}};
}

// The pool that all its task groups name; empty if they do not.
std::string pool_of(const JobSpec& spec) {
  const std::string& pool = spec.groups.front().pool;
  const bool same =
      std::all_of(spec.groups.begin(), spec.groups.end(), [&](const auto& one) { return one.pool == pool; });
  return same ? pool : std::string();
}

std::int64_t cpu_milli_of(const JobSpec& spec) {
  std::int64_t milli = 0;
  for (const TaskGroup& group : spec.groups) milli += group.request.cpu_milli * group.count;
  return milli;
}

// The first line of a job's view: what does not depend on where it is in its life.
json::object identity(const ShownJob& shown) {
  const JobState& job = shown.job;
  json::object view{{"id", job.id.value()},
                    {"name", job.spec.name},
                    {"queue", job.spec.queue},
                    {"user", job.spec.user},
                    {"kind", text(name_of(job.spec.kind))},
                    {"class", text(name_of(job.spec.job_class))},
                    {"priority", job.priority},
                    {"priority_class", job.spec.priority_class},
                    {"phase", text(name_of(shown.phase))},
                    {"held", job.held},
                    {"submitted", to_iso8601(job.submitted)},
                    {"waiting_since", to_iso8601(job.waiting_since)},
                    {"gpus", from_thousandths(gpu_milli_of(job.spec))},
                    {"tasks_total", tasks_of(job.spec)},
                    {"attempt", current_attempt(job)},
                    {"attempts", job.is_parent() ? 0 : job.attempts},
                    {"failures", job.failures}};
  view["cpus"] = from_thousandths(cpu_milli_of(job.spec));
  if (const std::string pool = pool_of(job.spec); !pool.empty()) view["pool"] = pool;
  if (job.spec.time_limit_s > 0) view["time_limit_s"] = job.spec.time_limit_s;
  if (shown.outcome) view["outcome"] = text(name_of(*shown.outcome));
  if (shown.finished) {
    view["finished"] = to_iso8601(*shown.finished);
    view["code"] = shown.code;
  }
  view["gpu_seconds"] = from_millionths(shown.gpu_milli_ms);
  if (!job.past.empty() && !job.attempt)
    view["elapsed_s"] = std::max<std::int64_t>(0, job.past.back().ended - job.past.back().started) / 1000;
  if (!job.spec.labels.empty()) {
    json::object labels;
    for (const auto& [key, value] : job.spec.labels) labels[key] = value;
    view["labels"] = std::move(labels);
  }
  if (const auto started = started_of(job)) view["started"] = to_iso8601(*started);
  if (shown.waits_for) view["reason"] = text(name_of(*shown.waits_for));
  if (job.attempt && job.is_elastic()) view["size"] = size_view(*job.attempt);
  if (shown.children) view["children"] = children_view(*shown.children, job.spec.kind);
  if (job.parent.valid()) {
    view["parent"] = job.parent.value();
    view["index"] = job.index;
  }
  return view;
}

void add_checkpoint(const JobState& job, json::object& view) {
  if (job.attempt && job.attempt->checkpoint_at) {
    view["checkpoint"] =
        json::object{{"step", job.attempt->checkpoint_step}, {"at", to_iso8601(*job.attempt->checkpoint_at)}};
    return;
  }
  const auto last = std::find_if(job.past.rbegin(), job.past.rend(),
                                 [](const AttemptRecord& record) { return record.checkpoint_step > 0; });
  if (last != job.past.rend()) view["checkpoint"] = json::object{{"step", last->checkpoint_step}};
}

json::object placement_view(const JobSpec& spec, std::size_t number, const TaskPlacement& placement,
                            const Names& names) {
  const NodeNames& place = names.at(placement.node);
  json::array gpus;
  for (const std::uint8_t index : placement.gpus) gpus.emplace_back(place.gpus[index]);
  json::object view{
      {"task", number}, {"group", spec.groups[placement.group].name}, {"node", place.node}, {"gpus", std::move(gpus)}};
  if (placement.slices != 0) view["slices"] = slices_text(placement.slices);
  return view;
}

json::object stop_view(const JobSpec& spec, const state::Stop& stop, const Names& names) {
  json::object view{{"cause", text(name_of(stop.cause))},
                    {"began", to_iso8601(stop.began)},
                    {"deadline", to_iso8601(stop.deadline)},
                    {"acknowledged", stop.acknowledged},
                    {"forced", stop.forced}};
  if (stop.preemptor.valid()) view["preemptor"] = stop.preemptor.value();
  if (stop.keep > 0) view["keep"] = stop.keep;
  json::array to;
  for (std::size_t i = 0; i < stop.to.size(); ++i) to.push_back(placement_view(spec, i, stop.to[i], names));
  if (!to.empty()) view["moves_to"] = std::move(to);
  return view;
}

json::object nomination_view(const JobState& job, const Names& names) {
  json::array victims;
  for (const JobId victim : job.nomination->victims) victims.emplace_back(victim.value());
  json::array placements;
  for (std::size_t i = 0; i < job.nomination->placements.size(); ++i) {
    placements.push_back(placement_view(job.spec, i, job.nomination->placements[i], names));
  }
  return {{"cause", text(name_of(job.nomination->cause))},
          {"victims", std::move(victims)},
          {"placements", std::move(placements)}};
}

json::object estimate_view(const state::Estimate& estimate) {
  json::object view{{"seconds", estimate.seconds},
                    {"source", text(name_of(estimate.source))},
                    {"text", state::estimate_text(estimate)}};
  if (estimate.source == EstimateSource::kLearned) {
    view["runs"] = estimate.learned.runs;
    view["alike_in"] = text(name_of(estimate.learned.likeness));
  }
  return view;
}

json::object gpu_utilization_view(const JobGpuUtilization& gpu_utilization) {
  return {{"pct", from_thousandths(gpu_utilization.sum.milli_percent())},
          {"gpus", gpu_utilization.gpus},
          {"minutes", gpu_utilization.sum.minutes}};
}

json::array tasks_view(const JobState& job, const Names& names) {
  json::array tasks;
  if (!job.attempt) return tasks;
  for (std::size_t i = 0; i < job.attempt->tasks.size(); ++i) {
    const state::TaskState& task = job.attempt->tasks[i];
    json::object view = placement_view(job.spec, i, task.placement, names);
    view["phase"] = text(name_of(task.phase));
    if (task.phase == TaskPhase::kExited) {
      view["code"] = task.code;
      view["reason"] = text(name_of(task.reason));
    }
    tasks.push_back(std::move(view));
  }
  return tasks;
}

// How much later than first held it started, in whole seconds.
std::int64_t slip_s(Timestamp started, Timestamp held) {
  return std::max<std::int64_t>(0, (started - held + 999) / 1000);
}

json::object reservation_view(const state::BackfillReservation& hold) {
  return {{"start", to_iso8601(hold.start)}, {"first_start", to_iso8601(hold.first_start)}};
}

json::object attempt_view(const AttemptRecord& record, const Names& names) {
  json::array gpus_on;
  for (const auto& [node, gpus] : record.gpus_on) {
    gpus_on.push_back(json::object{{"node", names.at(node).node}, {"gpus", gpus}});
  }
  json::object view{{"attempt", record.number},
                    {"waited_from", to_iso8601(record.waited_from)},
                    {"started", to_iso8601(record.started)},
                    {"ended", to_iso8601(record.ended)},
                    {"outcome", text(name_of(record.outcome))},
                    {"code", record.code},
                    {"message", record.message},
                    {"checkpoint_step", record.checkpoint_step},
                    {"gpus_on", std::move(gpus_on)}};
  if (record.reserved_start) {
    view["reserved_start"] = to_iso8601(*record.reserved_start);
    view["slip_s"] = slip_s(record.started, *record.reserved_start);
  }
  if (record.cause) view["cause"] = text(name_of(*record.cause));
  if (record.preemptor.valid()) view["preemptor"] = record.preemptor.value();
  return view;
}

std::vector<state::BrokenGlass> broken_glass_of(const State& state, JobId id) {
  std::vector<state::BrokenGlass> found;
  for (const state::BrokenGlass& one : state.broken_glass()) {
    if (one.job == id) found.push_back(one);
  }
  return found;
}

json::array broken_glass_view(const std::vector<state::BrokenGlass>& broken_glass) {
  json::array view;
  for (const state::BrokenGlass& one : broken_glass)
    view.push_back(json::object{{"subject", one.subject}, {"reason", one.reason}, {"time", to_iso8601(one.time)}});
  return view;
}

}  // namespace

JobPhase phase_of(const State& state, const JobState& job) {
  if (job.is_parent() && has_started_child(state, job.id)) return JobPhase::kRunning;
  return job.phase;
}

ShownJob show_job(const View& view, const JobState& job) {
  const State& state = view.state;
  return {.job = job,
          .phase = phase_of(state, job),
          .within = within_of(state, job),
          .waits_for = own_reason(view, job),
          .children = job.is_parent() ? std::optional(children_of(state, job)) : std::nullopt,
          .outcome = {},
          .finished = {},
          .code = 0,
          .gpu_milli_ms = state::service_of(job, view.now),
          .estimate = state::estimate(state, job),
          .names = names_for(state, job)};
}

std::optional<ReasonCode> waits_for(const View& view, const JobState& job) {
  if (const auto reason = own_reason(view, job)) return reason;
  const bool waits = job.phase == JobPhase::kPending && !job.attempt && !job.is_parent();
  return waits && view.blocking ? view.blocking(job) : std::nullopt;
}

ShownJob show_row(const View& view, const JobState& job) {
  ShownJob shown = show_job(view, job);
  shown.waits_for = waits_for(view, job);
  return shown;
}

ShownJob show_by_itself(const View& view, const JobState& job) {
  ShownJob shown = show_row(view, job);
  shown.broken_glass = broken_glass_of(view.state, job.id);
  if (!job.attempt) return shown;
  const GpuUtilization gpu_utilization = view.measured();
  if (const JobGpuUtilization* measured = gpu_utilization.of(job.id, job.attempt->number))
    shown.gpu_utilization = *measured;
  return shown;
}

ShownJob show_past_job(const State& state, PastJob past) {
  Names names = names_for(state, past.job);
  const std::optional<Children> children =
      past.job.is_parent() ? std::optional(children_of(state, past.job)) : std::nullopt;
  const std::int64_t gpu_milli_ms = past.job.past_service;
  auto broken_glass = broken_glass_of(state, past.job.id);
  return {.job = std::move(past.job),
          .phase = JobPhase::kFinished,
          .within = {},
          .waits_for = {},
          .children = children,
          .outcome = past.outcome,
          .finished = past.finished,
          .code = past.code,
          .gpu_milli_ms = gpu_milli_ms,
          .estimate = {},
          .names = std::move(names),
          .gpu_utilization = {},
          .broken_glass = std::move(broken_glass)};
}

json::object job_summary(const ShownJob& shown) {
  json::object view = identity(shown);
  if (shown.within) view["within"] = *shown.within;
  add_checkpoint(shown.job, view);
  if (shown.job.attempt && shown.job.attempt->stop)
    view["stop"] = stop_view(shown.job.spec, *shown.job.attempt->stop, shown.names);
  if (shown.job.reservation) view["reservation"] = reservation_view(*shown.job.reservation);
  view["nodes"] = nodes_view(shown);
  return view;
}

json::object job_in_full(const ShownJob& shown) {
  json::object view = job_summary(shown);
  const JobState& job = shown.job;
  if (shown.estimate.known()) view["estimate"] = estimate_view(shown.estimate);
  if (job.attempt && job.attempt->reserved_start)
    view["slip_s"] = slip_s(job.attempt->started, *job.attempt->reserved_start);
  if (job.nomination) view["nomination"] = nomination_view(job, shown.names);
  const bool asks_gpus = std::any_of(job.spec.groups.begin(), job.spec.groups.end(),
                                     [](const TaskGroup& group) { return group.request.gpus > 0; });
  if (asks_gpus && std::any_of(shown.names.begin(), shown.names.end(),
                               [](const auto& node) { return node.second.simulated_gpus; })) {
    view["simulated_gpus"] = true;
  }
  if (const auto level = weakest_level(job.spec)) {
    view["gpu_level"] = json::string(name_of(*level));
    view["isolation"] = json::string(isolation_text(*level));
  }
  if (shown.gpu_utilization) view["driven"] = gpu_utilization_view(*shown.gpu_utilization);
  view["tasks"] = tasks_view(job, shown.names);
  json::array past;
  for (const AttemptRecord& record : job.past) past.push_back(attempt_view(record, shown.names));
  view["past"] = std::move(past);
  if (!shown.broken_glass.empty()) view["break_glass"] = broken_glass_view(shown.broken_glass);
  view["spec"] = job_document(job.spec);
  return view;
}

}  // namespace berth::api
