#include "control/effects.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/planted.h"
#include "control/admission.h"
#include "model/queue_volumes.h"

namespace berth::control {

namespace {

using state::AttemptState;
using state::JobState;
using state::State;

constexpr std::int64_t kLeaveMs = 5000;  // how long a job may take to exit after its checkpoint is acknowledged

// The numbering of the ranks of a gang: by task, and within a task by GPU.
struct RankMap {
  std::vector<std::int32_t> first_rank;  // of each task
  std::vector<std::int32_t> ranks;       // of each task
  std::int32_t world = 0;
};

RankMap ranks_of(const JobSpec& spec, const AttemptState& attempt) {
  RankMap map;
  for (const state::TaskState& task : attempt.tasks) {
    const bool per_gpu = spec.groups[task.placement.group].launch != Launch::kPerTask;
    const auto ranks = per_gpu ? std::max<std::int32_t>(1, static_cast<std::int32_t>(task.placement.gpus.size())) : 1;
    map.first_rank.push_back(map.world);
    map.ranks.push_back(ranks);
    map.world += ranks;
  }
  return map;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ",") + word;
  return all;
}

Environment rank_environment(const RankMap& map, std::uint32_t task, std::int32_t local) {
  return {{"RANK", std::to_string(map.first_rank[task] + local)},
          {"LOCAL_RANK", std::to_string(local)},
          {"GROUP_RANK", std::to_string(task)},
          {"WORLD_SIZE", std::to_string(map.world)},
          {"LOCAL_WORLD_SIZE", std::to_string(map.ranks[task])}};
}

// torchrun counts every change to fewer tasks as a failure of those that stay, and by default it forgives none.
constexpr const char* kElasticRestarts = "100";

// Returns true for `python3 train.py` and the like. torchrun takes its first argument for a script and prepends an
// interpreter itself, unless it is told not to.
bool names_interpreter(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string name = command.front().substr(command.front().rfind('/') + 1);
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

// Returns the torchrun command of a task. An elastic gang uses a rendezvous, because tasks join and leave while it
// runs. Task 0 hosts its store, because it never leaves: a store that ends with its task ends the gang. Launchers look
// at their workers every five seconds, so that one whose workers leave is told to end before it declares the whole
// program finished. A fixed gang gets its node ranks at the start.
std::vector<std::string> torchrun_of(const JobState& job, std::uint32_t index, std::int32_t ranks,
                                     const std::string& master) {
  const AttemptState& attempt = *job.attempt;
  const std::string port = std::to_string(attempt.master_port);
  if (!job.is_elastic()) {
    return {"torchrun",
            "--nnodes",
            std::to_string(attempt.tasks.size()),
            "--node_rank",
            std::to_string(index),
            "--nproc_per_node",
            std::to_string(ranks),
            "--master_addr",
            master,
            "--master_port",
            port};
  }
  std::int32_t least = 0;
  std::int32_t most = 0;
  for (const TaskGroup& group : job.spec.groups) {
    least += group.least();
    most += group.count;
  }
  const std::string meeting = "berth-" + std::to_string(job.id.value()) + "-" + std::to_string(attempt.number);
  return {"torchrun",
          "--nnodes",
          std::to_string(least) + ":" + std::to_string(most),
          "--nproc_per_node",
          std::to_string(ranks),
          "--rdzv_backend",
          "c10d",
          "--rdzv_endpoint",
          master + ":" + port,
          "--rdzv_id",
          meeting,
          "--rdzv_conf",
          index == 0 ? "is_host=true" : "is_host=false",
          "--max_restarts",
          kElasticRestarts,
          "--monitor_interval",
          "5"};
}

// Without a stated path it lies in the directory that the job has in the volume: `checkpoint` or `outputs`. A stated
// one is shared by nothing but the elements of an array and the replicas of a service, which get a directory each.
std::string directory_of(const JobState& job, const VolumePlace& place, std::string_view at) {
  if (place.path.empty()) return std::string(at.substr(at.rfind('/') + 1));
  return place.path + (job.parent.valid() ? "/" + std::to_string(job.index) : "");
}

void add_place(const State& state, const JobState& job, const VolumePlace& place, std::string_view at,
               const char* variable, StartTask& start) {
  if (place.volume.empty()) return;
  const VolumeConfig* volume = volume_of(state.config(), state.queue(job.queue).path, place.volume);
  if (volume == nullptr || volume->read_only) {
    start.cannot_start = "volume '" + place.volume + "' is no longer one that its queue may write";
    return;
  }
  start.volumes.push_back({*volume, directory_of(job, place, at), std::string(at), false, place.path.empty()});
  start.env.emplace_back(variable, at);
}

// What the tasks find mounted is as the configuration says now: at the submission it was checked.
void add_mounts(const State& state, const JobState& job, StartTask& start) {
  const ClusterConfig& config = state.config();
  const std::string& queue = state.queue(job.queue).path;
  for (const Mount& mount : job.spec.mounts) {
    if (const VolumeConfig* volume = volume_of(config, queue, mount.name))
      start.volumes.push_back({*volume, "", mount.path, mount.read_only || volume->read_only});
    else
      start.cannot_start = "its queue no longer has volume '" + mount.name + "'";
  }
  for (const SecretMount& mount : job.spec.secrets) {
    if (const SecretConfig* secret = secret_of(config, queue, mount.name))
      start.secrets.push_back({*secret, mount.place()});
    else
      start.cannot_start = "its queue no longer has secret '" + mount.name + "'";
  }
  add_place(state, job, job.spec.checkpoint.place, kCheckpointMount, "BERTH_CHECKPOINT_DIR", start);
  add_place(state, job, job.spec.outputs, kOutputsMount, "BERTH_OUTPUT_DIR", start);
  start.shm_mib = job.spec.shm_mib;
}

void prepend(std::vector<std::string>& command, std::vector<std::string> words) {
  words.insert(words.end(), std::make_move_iterator(command.begin()), std::make_move_iterator(command.end()));
  command = std::move(words);
}

// Of the risks that were judged only those go along that a rule forbids: nothing is compared with the others.
void add_what_is_forbidden(const State& state, const JobState& job, StartTask& start) {
  if (!job.pod_risks) return;
  start.forbidden = forbidden_to_pods(state, job.spec);
  const auto& [options, host_paths] = start.forbidden;
  if (options.empty() && host_paths.empty()) return;
  start.pod_risks.emplace();
  for (const PodRisk& one : *job.pod_risks) {
    const bool is_of_path = one.option == ForbiddenOption::kHostPaths && !host_paths.empty();
    if (is_of_path || std::find(options.begin(), options.end(), one.option) != options.end())
      start.pod_risks->push_back(one);
  }
}

StartTask start_of(const State& state, const JobState& job, std::uint32_t index) {
  const AttemptState& attempt = *job.attempt;
  const TaskPlacement& placement = attempt.tasks[index].placement;
  const state::NodeState& node = state.node(placement.node);
  const TaskGroup& group = job.spec.groups[placement.group];
  const RankMap map = ranks_of(job.spec, attempt);
  StartTask start;
  start.key = {job.id, attempt.number, index, attempt.tasks[index].incarnation};
  start.node = node.spec.name;
  start.job_name = job.spec.name;
  start.user = job.spec.user;
  start.image = group.image;
  start.command = group.command;
  start.workdir = group.workdir;
  for (const std::uint8_t gpu : placement.gpus) start.gpu_uuids.push_back(node.spec.gpus[gpu].uuid);
  start.env = group.env;
  start.env.emplace_back("CUDA_VISIBLE_DEVICES", joined(start.gpu_uuids));
  start.env.emplace_back("BERTH_JOB", std::to_string(job.id.value()));
  start.env.emplace_back("BERTH_JOB_NAME", job.spec.name);
  start.env.emplace_back("BERTH_ATTEMPT", std::to_string(attempt.number));
  start.env.emplace_back("BERTH_TASK", std::to_string(index));
  start.env.emplace_back("BERTH_TASKS", std::to_string(attempt.tasks.size()));
  start.env.emplace_back("BERTH_GROUP", group.name);
  start.env.emplace_back("BERTH_NODE", node.spec.name);
  start.env.emplace_back("BERTH_QUEUE", state.queue(job.queue).path);
  if (job.parent.valid()) start.env.emplace_back("BERTH_PARENT", std::to_string(job.parent.value()));
  const JobState* parent = state.job(job.parent);
  if (parent != nullptr && parent->spec.kind == JobKind::kArray) {
    start.env.emplace_back("BERTH_ARRAY_INDEX", std::to_string(job.index));
    start.env.emplace_back("BERTH_ARRAY_SIZE", std::to_string(parent->spec.array_size));
  }
  if (placement.slices != 0) {
    start.env.emplace_back("BERTH_MIG_PROFILE", group.request.mig_profile);
    start.env.emplace_back("BERTH_MIG_SLICES", slices_text(placement.slices));
  }
  if (placement.gpu_milli < kMilli) start.env.emplace_back("BERTH_GPU_MILLI", std::to_string(placement.gpu_milli));
  const std::string& master = state.node(attempt.tasks.front().placement.node).spec.address;
  if (attempt.master_port != 0) {
    start.env.emplace_back("MASTER_ADDR", master);
    start.env.emplace_back("MASTER_PORT", std::to_string(attempt.master_port));
  }
  switch (group.launch) {
    case Launch::kPerTask:
      start.ranks.push_back(rank_environment(map, index, 0));
      break;
    case Launch::kPerGpu:
      for (std::int32_t local = 0; local < map.ranks[index]; ++local)
        start.ranks.push_back(rank_environment(map, index, local));
      break;
    case Launch::kTorchrun:
      start.ranks.emplace_back();
      if (names_interpreter(start.command)) prepend(start.command, {"--no_python"});
      prepend(start.command, torchrun_of(job, index, map.ranks[index], master));
      start.signal_workers = true;
      break;
  }
  add_mounts(state, job, start);
  start.cpu_milli = placement.cpu_milli;
  start.memory_mib = placement.memory_mib;
  start.countables = placement.countables;
  start.source = job.spec.source;
  add_what_is_forbidden(state, job, start);
  start.family = job.parent;
  start.time_limit_ms = checked_multiply(job.spec.time_limit_s, 1000);
  start.grace_ms = state.grace_ms(job);
  start.stop_signal = job.spec.checkpoint.signal;
  start.terminal = job.spec.kind == JobKind::kInteractive;
  start.speaks = index == 0;
  start.was_running = attempt.tasks[index].phase == TaskPhase::kRunning;
  return start;
}

Effect stop_of(const State& state, const JobState& job, std::uint32_t index) {
  const state::TaskState& task = job.attempt->tasks[index];
  const state::Stop& stop = *job.attempt->stop;
  const TaskKey key{job.id, job.attempt->number, index, task.incarnation};
  const std::string& node = state.node(task.placement.node).spec.name;
  const StopCause cause = job.cancel_requested ? StopCause::kUser : stop.cause;
  if (stop.forced && !planted(Bug::kHungSupervisor))
    return KillTask{key, node, stop.acknowledged ? kLeaveMs : 0, cause};
  return SignalTask{key, node, job.spec.checkpoint.signal, cause};
}

void add_stops(const State& state, const JobState& job, std::uint32_t first, std::uint32_t end,
               std::vector<Effect>& effects) {
  if (!job.attempt->stop) return;
  for (std::uint32_t i = std::max(first, job.attempt->stop->keep); i < end; ++i) {
    if (job.attempt->tasks[i].phase != TaskPhase::kExited) effects.push_back(stop_of(state, job, i));
  }
}

void add_stops(const State& state, const JobState& job, std::vector<Effect>& effects) {
  add_stops(state, job, 0, static_cast<std::uint32_t>(job.attempt->tasks.size()), effects);
}

// Returns the live job, or null if it has ended or the event is of an earlier attempt.
const JobState* current(const State& state, JobId id, std::uint32_t attempt) {
  const JobState* job = state.job(id);
  return job != nullptr && job->attempt && job->attempt->number == attempt ? job : nullptr;
}

void add_starts(const State& state, const JobState& job, std::uint32_t first, std::uint32_t end,
                std::vector<Effect>& effects) {
  for (std::uint32_t i = first; i < end; ++i) {
    if (job.attempt->tasks[i].phase != TaskPhase::kExited) effects.emplace_back(start_of(state, job, i));
  }
}

// Adds a start for each live task that the event with sequence number `by` has bound.
void add_bound(const State& state, const JobState& job, Seq by, std::vector<Effect>& effects) {
  for (const state::Charge& charge : job.attempt->charges) {
    if (charge.order == by) add_starts(state, job, charge.first_task, charge.first_task + charge.tasks, effects);
  }
}

// Not in force: it is told once, and not again after a restart.
void add_signals(const State& state, const JobState& job, std::int32_t signal, std::vector<Effect>& effects) {
  if (!job.attempt) return;
  for (std::uint32_t i = 0; i < job.attempt->tasks.size(); ++i) {
    const state::TaskState& task = job.attempt->tasks[i];
    if (task.phase == TaskPhase::kExited) continue;
    const TaskKey key{job.id, job.attempt->number, i, task.incarnation};
    effects.emplace_back(SignalTask{key, state.node(task.placement.node).spec.name, signal});
  }
}

// Adds all effects that are in force for the node. A node that registers again may have missed effects while it was
// silent.
void add_all_on(const State& state, NodeId node, std::vector<Effect>& effects) {
  for (const auto& [id, task] : state.node(node).tasks) {
    const JobState& job = *state.job(id);
    add_starts(state, job, task, task + 1, effects);
    add_stops(state, job, task, task + 1, effects);
  }
}

}  // namespace

std::vector<Effect> effects_of(const State& state, std::span<const EventRecord> records) {
  std::vector<Effect> effects;
  for (const EventRecord& record : records) {
    if (const auto* started = std::get_if<AttemptStarted>(&record.event)) {
      if (const JobState* job = current(state, started->job, started->attempt))
        add_bound(state, *job, record.seq, effects);
    } else if (const auto* grown = std::get_if<AttemptGrown>(&record.event)) {
      if (const JobState* job = current(state, grown->job, grown->attempt)) {
        add_bound(state, *job, record.seq, effects);
      }
    } else if (const auto* began = std::get_if<StopBegan>(&record.event)) {
      const JobState* job = current(state, began->job, began->attempt);
      if (job != nullptr) add_stops(state, *job, effects);
    } else if (const auto* cancelled = std::get_if<StopCancelled>(&record.event)) {
      // A start of a known task changes nothing but that it is not to be stopped any more, if it still can.
      if (const JobState* job = current(state, cancelled->job, cancelled->attempt))
        add_starts(state, *job, 0, static_cast<std::uint32_t>(job->attempt->tasks.size()), effects);
    } else if (const auto* asked = std::get_if<JobCancelRequested>(&record.event)) {
      // What a disruption budget keeps goes now.
      const JobState* job = state.job(asked->job);
      if (job != nullptr && job->attempt && job->attempt->stop && job->attempt->stop->forced)
        add_stops(state, *job, effects);
    } else if (const auto* sent = std::get_if<JobSignalled>(&record.event)) {
      if (const JobState* job = state.job(sent->job)) add_signals(state, *job, sent->signal, effects);
    } else if (const auto* forced = std::get_if<StopForced>(&record.event)) {
      const JobState* job = current(state, forced->job, forced->attempt);
      if (job != nullptr) add_stops(state, *job, effects);
    } else if (const auto* back = std::get_if<NodeRegistered>(&record.event)) {
      add_all_on(state, back->node, effects);
    } else if (const auto* exited = std::get_if<TaskExited>(&record.event)) {
      // The node is left out: the job may have finished, and the backend finds the task by its key.
      effects.emplace_back(ForgetTask{{exited->job, exited->attempt, exited->task, exited->incarnation}, {}});
    }
  }
  return effects;
}

std::vector<Effect> all_effects(const State& state) {
  std::vector<Effect> effects;
  for (const JobId id : state.running()) {
    const JobState& job = *state.job(id);
    add_starts(state, job, 0, static_cast<std::uint32_t>(job.attempt->tasks.size()), effects);
    if (planted(Bug::kDoubleStart) && !effects.empty()) {
      if (auto* start = std::get_if<StartTask>(&effects.back())) ++start->key.incarnation;
    }
    add_stops(state, job, effects);
  }
  return effects;
}

}  // namespace berth::control
