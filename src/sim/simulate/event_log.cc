#include "sim/simulate/event_log.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "model/event.h"
#include "sim/simulate/trial_config.h"
#include "store/durable_log.h"
#include "store/event_codec.h"

namespace berth::sim {

namespace {

// Returns the requests of a logged job that a replay does not support, each as the report states it.
std::vector<std::string_view> set_aside(const JobSpec& spec) {
  const auto any_group = [&spec](bool (*wants)(const TaskGroup&)) {
    return std::any_of(spec.groups.begin(), spec.groups.end(), wants);
  };
  std::vector<std::string_view> texts;
  if (spec.estimate_s > 0)
    texts.emplace_back("a job's stated run time is set aside: what policies may know is learned");
  if (!spec.dependencies.empty() || spec.earliest_start || spec.deadline || spec.held) {
    texts.emplace_back("a job's dependencies, hold, earliest start and deadline are set aside");
  }
  if (!spec.topology.required.empty() || !spec.topology.preferred.empty() || spec.exclusive || spec.spread ||
      spec.has_terms() || any_group([](const TaskGroup& group) {
        return !group.pool.empty() || !group.node_selector.empty() || !group.node_rules.empty() ||
               group.topology != TopologyConstraint() || !group.image.empty() || group.numa != NumaPolicy::kBestEffort;
      })) {
    texts.emplace_back(
        "a job's wishes about nodes are set aside: topology, affinity, pool, labels, exclusive, spread, image");
  }
  if (any_group([](const TaskGroup& group) { return group.least() < group.count; })) {
    texts.emplace_back("an elastic job is taken with all its tasks");
  }
  if (spec.checkpoint.on_signal) {
    texts.emplace_back("what saving and starting again cost is not in the log: nothing");
  }
  return texts;
}

// Gathers jobs and nodes from the events.
class Gatherer {
 public:
  void fold(const Event& event, Timestamp time) {
    if (const auto* configured = std::get_if<ClusterConfigured>(&event)) config_ = config_after(*configured);
    if (const auto* changed = std::get_if<QueueChanged>(&event)) put_limits(config_, changed->queue, changed->limits);
    if (const auto* ended = std::get_if<QueueChangeEnded>(&event)) put_limits(config_, ended->queue, ended->limits);
    if (const auto* node = std::get_if<NodeRegistered>(&event)) nodes_[node->node.value()] = node->spec;
    if (const auto* submitted = std::get_if<JobSubmitted>(&event)) on_submitted(*submitted, time);
    if (const auto* started = std::get_if<AttemptStarted>(&event)) {
      if (const auto job = jobs_.find(started->job.value()); job != jobs_.end()) job->second.started = time;
    }
    if (const auto* saved = std::get_if<CheckpointReported>(&event)) {
      if (const auto job = jobs_.find(saved->job.value()); job != jobs_.end()) job->second.saved = time;
    }
    if (const auto* ended = std::get_if<AttemptEnded>(&event)) {
      if (const auto job = jobs_.find(ended->job.value()); job != jobs_.end()) on_ended(job->second, time);
    }
    if (const auto* finished = std::get_if<JobFinished>(&event)) {
      if (const auto job = jobs_.find(finished->job.value()); job != jobs_.end()) {
        job->second.finished = true;
        job->second.job.status = name_of(finished->outcome);
      }
    }
  }

  LoggedCluster cluster() {
    LoggedCluster logged;
    for (auto& [id, spec] : nodes_) logged.trace.nodes.push_back(node_of(spec));
    for (auto& [id, one] : jobs_) {
      if (!one.finished || !one.job.duration_ms) {
        ++logged.trace.rows_left_out[one.finished ? "jobs that never ran" : "jobs that had not ended"];
      } else {
        for (const std::string_view text : one.set_aside) assume(logged.trace, one.job, text);
        logged.trace.jobs.push_back(std::move(one.job));
      }
    }
    note_set_aside_configuration(logged.trace);
    if (start_) {
      logged.trace.start = *start_;
      for (TraceJob& job : logged.trace.jobs) *job.submit_ms -= start_->ms;
    }
    if (services_ > 0)
      logged.trace.rows_left_out["services and arrays (their replicas and elements count)"] = services_;
    if (several_groups_ > 0) {
      logged.trace.defaults_taken["jobs of several task groups: every task taken as one of the first"] =
          several_groups_;
    }
    for (const QueueConfig& queue : config_.queues) logged.queues.push_back(overlay_queue_of(queue));
    logged.policy = product_policy("logged", config_.scheduling);
    return logged;
  }

 private:
  struct One {
    TraceJob job;
    std::vector<std::string_view> set_aside;
    std::optional<Timestamp> started;  // start of the running attempt
    std::optional<Timestamp> saved;    // its last checkpoint
    std::int64_t kept_ms = 0;          // what earlier attempts had saved when they ended
    bool finished = false;
  };

  // The useful run is what earlier attempts had saved, and the last attempt.
  static void on_ended(One& one, Timestamp time) {
    if (!one.started) return;
    one.job.duration_ms = one.kept_ms + (time - *one.started);
    if (one.saved) one.kept_ms += *one.saved - *one.started;
    one.started.reset();
    one.saved.reset();
  }

  void note_set_aside_configuration(Trace& trace) const {
    const auto queues = std::count_if(config_.queues.begin(), config_.queues.end(), states_more_than_gpu_quota);
    if (queues > 0) {
      trace.notes.push_back(
          "queues of the log that state more than weight, guaranteed and max GPUs: " + std::to_string(queues) +
          "; the rest (lending, CPU, memory, GPU models, strict order, " + "limits of users, trust) is set aside");
    }
  }

  static TraceNode node_of(const NodeSpec& spec) {
    TraceNode node;
    node.name = spec.name;
    node.gpu_model = spec.gpus.empty() ? std::string() : spec.gpus.front().model;
    node.gpus = static_cast<std::int64_t>(spec.gpus.size());
    node.cpu_milli = spec.cpu_milli;
    node.mem_mib = spec.memory_mib;
    return node;
  }

  void on_submitted(const JobSubmitted& event, Timestamp time) {
    if (!start_) start_ = time;
    if (event.spec.kind == JobKind::kService || event.spec.kind == JobKind::kArray) {
      ++services_;
      return;
    }
    One one;
    TraceJob& job = one.job;
    const TaskGroup& group = event.spec.groups.front();
    one.set_aside = set_aside(event.spec);
    job.id = std::to_string(event.job.value());
    job.tenant = event.spec.queue;
    job.user = event.spec.user;
    job.submit_ms = time.ms;
    job.workers = 0;
    for (const TaskGroup& each : event.spec.groups) *job.workers += each.count;
    if (event.spec.groups.size() > 1) ++several_groups_;
    job.gpus_per_worker = group.request.gpus;
    job.gpu_milli = group.request.gpu_milli;
    job.gpu_models = group.request.gpu_models;
    job.cpu_milli = group.request.cpu_milli;
    job.mem_mib = group.request.memory_mib;
    job.job_class = name_of(event.spec.job_class);
    job.priority_class = event.spec.priority_class;
    job.priority = event.priority;
    if (event.spec.time_limit_s > 0) job.time_limit_ms = event.spec.time_limit_s * 1000;
    if (event.spec.checkpoint.on_signal)
      job.checkpoint = TraceCheckpoint{event.spec.checkpoint.interval_s * 1000, 0, 0};
    jobs_.emplace(event.job.value(), std::move(one));
  }

  ClusterConfig config_;
  std::map<std::uint32_t, NodeSpec> nodes_;
  std::map<std::uint64_t, One> jobs_;
  std::optional<Timestamp> start_;
  std::int64_t services_ = 0;
  std::int64_t several_groups_ = 0;
};

}  // namespace

Result<LoggedCluster> read_event_log(const std::string& directory) {
  auto log = store::open_log_read_only(directory);
  if (!log) return log.error();
  if ((*log)->first_seq() > 1) {
    return Error{ErrorCode::kUnsupported, directory + ": the log's beginning was cut off; its jobs are not all known"};
  }
  Gatherer gatherer;
  std::uint64_t events = 0;
  const auto read = (*log)->read(1, [&](const store::Record& record) -> Result<bool> {
    const auto event = store::to_event(record);
    if (!event) return event.error();
    gatherer.fold(event->event, event->time);
    ++events;
    return true;
  });
  if (!read) return read.error();
  LoggedCluster logged = gatherer.cluster();
  logged.trace.sources.push_back(directory + " (berth's event log, " + std::to_string(events) + " events)");
  return logged;
}

}  // namespace berth::sim
