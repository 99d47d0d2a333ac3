#include "backend/local/local_backend.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "backend/local/effect_turns.h"
#include "backend/local/master_port.h"
#include "backend/local/open_volumes.h"
#include "executor/cgroup.h"
#include "executor/executor.h"
#include "executor/task_log.h"
#include "executor/user_directory.h"
#include "model/exit_code.h"
#include "model/volume_directory.h"

namespace berth::backend {

namespace {

// A look at the tasks costs time for each of them, so it is not taken after every effect.
constexpr int kEffectsPerLook = 16;

executor::TaskKey executor_key(const TaskKey& key) { return {key.job.value(), key.attempt, key.task, key.incarnation}; }

ExitReason reason_of(executor::ExitReason reason) {
  switch (reason) {
    case executor::ExitReason::kExited:
      return ExitReason::kExited;
    case executor::ExitReason::kSignalled:
      return ExitReason::kSignalled;
    case executor::ExitReason::kTimeLimit:
      return ExitReason::kTimeLimit;
    case executor::ExitReason::kOutOfMemory:
      return ExitReason::kOutOfMemory;
    case executor::ExitReason::kKilled:
      return ExitReason::kKilled;
    case executor::ExitReason::kStartFailed:
      return ExitReason::kStartFailed;
    case executor::ExitReason::kSupervisorLost:
      return ExitReason::kSupervisorLost;
    case executor::ExitReason::kLeaseExpired:
      return ExitReason::kNodeLost;
  }
  return ExitReason::kExited;
}

TaskExited exit_event(const executor::Exited& exited) {
  TaskExited event;
  event.job = JobId(exited.key.job);
  event.attempt = exited.key.attempt;
  event.task = exited.key.task;
  event.incarnation = exited.key.incarnation;
  event.reason = reason_of(exited.reason);
  event.code = exited.signal != 0 ? 128 + exited.signal : exited.code;
  if (event.code == 0 && event.reason != ExitReason::kExited && event.reason != ExitReason::kKilled &&
      event.reason != ExitReason::kTimeLimit) {
    event.code = 1;
  }
  event.message = exited.message;
  return event;
}

std::string attempt_dir(const std::string& data_dir, std::uint64_t job, std::uint32_t attempt) {
  return job_dir(data_dir, job) + "/attempt-" + std::to_string(attempt);
}

bool saves_in_volume(const StartTask& start) {
  return std::any_of(start.volumes.begin(), start.volumes.end(),
                     [](const TaskVolume& one) { return one.path == kCheckpointMount; });
}

Error shared_uid_error() {
  return {
      ErrorCode::kUnsupported,
      "a secret would be no secret here: this server runs tasks of several users as one account (--task-user), which "
      "reads what all of them have; leave the secret out, or serve without --task-user"};
}

// Says what the task mounts that this machine cannot.
Result<void> check_mounts(const StartTask& start, const TaskUsers& users) {
  if (!start.cannot_start.empty()) return invalid(start.cannot_start);
  for (const TaskVolume& one : start.volumes) {
    if (one.volume.kind != VolumeKind::kHostPath)
      return invalid("volume '" + one.volume.name + "' is of kind " + std::string(name_of(one.volume.kind)) +
                     ", which a machine does not have");
  }
  for (const TaskSecret& one : start.secrets) {
    if (one.secret.files.empty())
      return invalid("secret '" + one.secret.name + "' has no files: for a machine any more");
  }
  if (!start.secrets.empty() && users.shares_uid(start.user)) return shared_uid_error();
  return {};
}

void add_mounts(const StartTask& start, std::string_view log, executor::TaskLaunch& launch) {
  for (const TaskVolume& one : start.volumes)
    launch.mounts.push_back(
        {one.volume.source, directory_in_volume(one, start.key.job, log), one.path, one.read_only, one.volume.name});
  for (const TaskSecret& one : start.secrets) launch.secrets.push_back({one.path, one.secret.files, one.secret.name});
  launch.shm_mib = start.shm_mib;
}

class LocalBackend final : public Backend {
 public:
  explicit LocalBackend(LocalOptions options) : options_(std::move(options)) {}
  ~LocalBackend() override { stop(); }

  Result<void> start(ReportSink sink) override {
    sink_ = std::move(sink);
    executor::ExecutorOptions options;
    options.run_dir = options_.data_dir + "/run";
    options.server = options_.server;
    if (!options_.supervisor.empty()) options.supervisor = options_.supervisor;
    auto opened = executor::Executor::open(options);
    if (!opened) return opened.error();
    executor_ = std::move(*opened);
    for (const executor::TaskKey& key : executor_->known()) unknown_.insert(key);
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) return Error{ErrorCode::kIo, "cannot make an event descriptor for the local backend"};
    if (options_.look_at_gpu) make_gpu_check();
    announce_nodes();
    thread_ = std::thread([this] { run(); });
    return {};
  }

  Result<void> check(const JobSpec& job) const override {
    if (!job.secrets.empty() && options_.users.shares_uid(job.user)) return shared_uid_error();
    if (!job.has_mounts() || ::geteuid() == 0) return {};
    return Error{ErrorCode::kUnsupported,
                 "mounts, secrets, shm, outputs and checkpoint.volume need a server that is root, as it makes a mount "
                 "namespace for each task; this one is not; leave them out"};
  }

  // The first call has all that is in force, so a task that it does not start is one that the log does not know.
  void perform(std::span<const Effect> effects) override {
    if (effects.empty() && has_effects_) return;
    {
      const std::lock_guard lock(mutex_);
      if (!has_effects_) {
        for (const Effect& effect : effects) {
          if (const auto* start = std::get_if<StartTask>(&effect)) in_force_.insert(executor_key(start->key));
        }
      }
      queue_.insert(queue_.end(), effects.begin(), effects.end());
      has_effects_ = true;
    }
    ring();
  }

  void read_log(const LogQuery& query, LogAnswer answer) override {
    answer(read_local_log(options_.data_dir, options_.output_kept, query));
  }

  void open_shell(const ShellQuery& query, ShellAnswer answer) override {
    auto opened = executor_->open_shell(executor_key(query.task), query.begin);
    if (!opened) return answer(opened.error());
    struct Kept {
      executor::Descriptor descriptor;
      int number;
    };
    const int number = opened->get();
    const auto kept = std::make_shared<Kept>(Kept{std::move(*opened), number});
    answer(ShellStream(kept, &kept->number));
  }

  void stop() override {
    if (!thread_.joinable()) return;
    stopping_ = true;
    ring();
    thread_.join();
    gpu_check_.reset();  // before the descriptor that its threads would ring
    ::close(wake_);
    executor_.reset();
  }

  // A server that is not root mounts nothing.
  std::vector<std::string> warnings_of(const ClusterConfig& config) const override {
    return ::geteuid() == 0 ? warnings_of_open_volumes(config) : std::vector<std::string>();
  }

  std::vector<std::string> warnings() const override {
    if (!executor_) return {};
    auto warnings = executor_->capabilities().warnings;
    for (std::string& warning : executor_->warnings()) warnings.push_back(std::move(warning));
    if (const std::size_t count = unknown_ended_; count > 0) {
      warnings.push_back(std::to_string(count) + (count == 1 ? " task" : " tasks") +
                         " that the event log does not know ran here at the start and was ended: an older copy of the "
                         "log may be served");
    }
    return warnings;
  }

 private:
  // A start whose GPUs are being checked. Signals that come meanwhile are sent once it runs.
  struct PendingStart {
    StartTask start;
    std::vector<std::int32_t> signals = {};
  };

  void make_gpu_check() {
    GpuCheckOptions check;
    check.look = options_.look_at_gpu;
    check.owner_of = [this](std::int64_t pid, const std::string& gpu) {
      return executor_->owner_of(static_cast<pid_t>(pid), gpu);
    };
    check.has_holder = [this](const std::string& gpu) { return executor_->has_holder(gpu); };
    check.kill = [](const executor::ProcessSeen& orphan) { executor::signal_process(orphan, SIGKILL); };
    check.wake = [this] { ring(); };
    check.patience_ms = options_.gpu_patience_ms;
    gpu_check_ = std::make_unique<GpuCheck>(std::move(check));
  }

  // Reports the node of this machine, or first cordons the former nodes, so that nothing starts there any more.
  void announce_nodes() {
    for (const FormerNode& node : options_.former) {
      sink_(CordonNode{node.name, true, false, "berth", 0});
      for (const TaskKey& key : node.tasks) former_tasks_.insert(executor_key(key));
    }
    if (options_.former.empty()) sink_(RegisterNode{options_.node});
  }

  // Reports each former node lost as soon as none of its tasks runs here. After the last one the node registers.
  void give_up_former_nodes() {
    if (options_.former.empty()) return;
    std::erase_if(options_.former, [this](const FormerNode& node) {
      bool runs = false;
      for (const TaskKey& key : node.tasks) {
        if (!knows(executor_key(key))) continue;
        runs = true;
        [[maybe_unused]] const auto sent = executor_->kill(executor_key(key), 0);
      }
      if (!runs) sink_(ReportNodeStatus{node.name, NodeStatus::kLost, "this machine is node " + options_.node.name});
      return !runs;
    });
    if (options_.former.empty()) sink_(RegisterNode{options_.node});
  }

  void ring() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
  }

  void run() {
    while (!stopping_) {
      for (int done = 0; done < kEffectsPerLook && !stopping_; ++done) {
        take_in();
        const std::optional<Effect> effect = turns_.pop();
        if (!effect) break;
        std::visit([this](const auto& one) { on(one); }, *effect);
      }
      if (settled_) report();
      finish_gpu_checks();
      give_up_former_nodes();
      if (turns_.empty()) wait();
    }
  }

  void take_in() {
    std::deque<Effect> came;
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      came.swap(queue_);
      first = has_effects_ && !settled_;
    }
    if (first) settle();
    for (Effect& effect : came) turns_.push(std::move(effect));
  }

  // Ends the tasks that the executor has adopted and the first effects do not start. One whose exit the log has already
  // is among them: it is only forgotten.
  void settle() {
    settled_ = true;
    for (const executor::TaskKey& key : in_force_) unknown_.erase(key);
    for (const executor::TaskKey& key : former_tasks_) unknown_.erase(key);
    for (const executor::TaskKey& key : unknown_) {
      if (executor_->kill(key, 0)) ++unknown_ended_;
    }
  }

  void wait() {
    constexpr std::int64_t kIdleMs = 1000;
    const std::int64_t most_ms = gpu_check_ ? gpu_check_->next_look_ms(executor::boot_clock_ms(), kIdleMs) : kIdleMs;
    pollfd fds[2] = {{wake_, POLLIN, 0}, {executor_->wait_fd(), POLLIN, 0}};
    ::poll(fds, 2, static_cast<int>(most_ms));
    std::uint64_t drained = 0;
    [[maybe_unused]] const auto got = ::read(wake_, &drained, sizeof drained);
  }

  void report() {
    for (const executor::Observation& observation : executor_->observe()) {
      std::visit([this](const auto& one) { tell(one); }, observation);
    }
  }

  void tell(const executor::Started& started) {
    if (unknown_.contains(started.key)) return;
    sink_(ReportTaskStarted{JobId(started.key.job), started.key.attempt, started.key.task, started.key.incarnation});
  }
  // What a task has left on its GPUs is known before its exit is, so nothing is placed on a dirty one meanwhile.
  void tell(const executor::Exited& exited) {
    if (unknown_.erase(exited.key) > 0) {
      [[maybe_unused]] const auto gone = executor_->forget(exited.key);
      if (const auto start = held_.extract(exited.key)) on(start.mapped());
      return;
    }
    std::vector<std::string> gpus = gpu_check_ ? executor_->gpus_of(exited.key) : std::vector<std::string>();
    if (gpus.empty()) return tell_end(exited);
    gpu_check_->begin(++tickets_, std::move(gpus), executor::boot_clock_ms());
    pending_ends_.emplace(tickets_, exited);
  }
  void tell_end(const executor::Exited& exited) {
    TaskExited event = exit_event(exited);
    if (former_tasks_.contains(exited.key)) {
      event.reason = ExitReason::kNodeLost;
      event.message = "its node is gone: this machine is node " + options_.node.name;
    }
    sink_(ReportTaskExited{std::move(event)});
  }
  void tell(const executor::CheckpointReported& saved) {
    if (unknown_.contains(saved.key)) return;
    sink_(ReportCheckpoint{JobId(saved.key.job), saved.attempt == 0 ? saved.key.attempt : saved.attempt, saved.step});
  }

  void refuse(const TaskKey& key, ExitReason reason, const std::string& message, std::int32_t code = 1) {
    sink_(ReportTaskExited{{key.job, key.attempt, key.task, key.incarnation, reason, code, message}});
  }

  // Reports the GPUs that are to be fenced, and goes on with the starts and the ends that waited for the check.
  void finish_gpu_checks() {
    if (!gpu_check_) return;
    for (const GpuCheck::Checked& checked : gpu_check_->poll(executor::boot_clock_ms())) {
      for (const GpuFault& fault : checked.faults)
        sink_(ReportGpuHealth{options_.node.name, 0, false, fault.why, true, fault.gpu});
      if (const auto end = pending_ends_.find(checked.ticket); end != pending_ends_.end()) {
        tell_end(end->second);
        pending_ends_.erase(end);
      }
      const auto pending = pending_starts_.find(checked.ticket);
      if (pending == pending_starts_.end()) continue;
      const PendingStart one = std::move(pending->second);
      pending_starts_.erase(pending);
      if (checked.faults.empty()) {
        begin(one.start);
        for (const std::int32_t signal : one.signals) on(SignalTask{one.start.key, one.start.node, signal});
      } else {
        // Why it is fenced is for operators: it may name a process of another tenant.
        refuse(
            one.start.key, ExitReason::kStartFailed,
            "GPU " + checked.faults.front().gpu + " was not clean, and takes no tasks until an operator has seen to it",
            kNodeShortCode);
      }
    }
  }

  PendingStart* pending_start_of(const TaskKey& key) {
    for (auto& [ticket, pending] : pending_starts_) {
      if (pending.start.key == key) return &pending;
    }
    return nullptr;
  }

  bool knows(const executor::TaskKey& key) const { return executor_->knows(key); }

  // Makes the directories of the job, and says which user the task runs as. Only the checkpoints and the home are the
  // user's. The log belongs to the server.
  Result<void> prepare(const std::string& submitter, executor::TaskLaunch& launch) {
    auto user = options_.users.user_of(submitter);
    if (!user) return user.error();
    const std::string checkpoints = checkpoint_dir(options_.data_dir, launch.key.job);
    if (!*user) {
      std::error_code ignored;
      if (launch.checkpoint_dir.empty()) std::filesystem::create_directories(checkpoints, ignored);
      return {};
    }
    launch.user = std::move(**user);
    for (const std::string& way : {jobs_dir(options_.data_dir), job_dir(options_.data_dir, launch.key.job)}) {
      if (auto made = executor::make_passage(way); !made) return made;
    }
    if (auto given = executor::give_directory(checkpoints, *launch.user); !given) return given;
    if (!launch.user->home.empty()) return {};
    launch.user->home = home_dir(options_.data_dir, launch.key.job);
    return executor::give_directory(launch.user->home, *launch.user);
  }

  void on(const StartTask& start) {
    const executor::TaskKey key = executor_key(start.key);
    if (unknown_.contains(key)) {  // an older log numbers its jobs as the one did that had started this task
      held_.insert_or_assign(key, start);
      return;
    }
    if (former_tasks_.contains(key) && !knows(key)) {
      refuse(start.key, ExitReason::kNodeLost, "its node is gone: this machine is node " + options_.node.name);
      return;
    }
    if (start.was_running && !knows(key)) {
      refuse(start.key, ExitReason::kSupervisorLost, "the machine no longer knows this task");
      return;
    }
    if (!start.image.empty()) {  // an image is never replaced by a plain process
      refuse(start.key, ExitReason::kStartFailed, "this machine runs no containers, and the task has an image");
      return;
    }
    if (auto possible = knows(key) ? Result<void>() : check_mounts(start, options_.users); !possible) {
      refuse(start.key, ExitReason::kStartFailed, possible.error().message);
      return;
    }
    if (!gpu_check_ || start.gpu_uuids.empty() || knows(key)) return begin(start);
    if (pending_start_of(start.key) != nullptr) return;
    gpu_check_->begin(++tickets_, start.gpu_uuids, executor::boot_clock_ms());
    pending_starts_.emplace(tickets_, PendingStart{start});
  }

  void begin(const StartTask& wanted) {
    StartTask start = wanted;
    const executor::TaskKey key = executor_key(start.key);
    const std::string port_file = attempt_dir(options_.data_dir, key.job, key.attempt) + "/master-port";
    if (auto taken = knows(key) ? Result<void>() : take_master_port(start, port_file); !taken) {
      refuse(start.key, ExitReason::kStartFailed, taken.error().message, kNodeShortCode);
      return;
    }
    const std::string checkpoints = checkpoint_dir(options_.data_dir, key.job);
    executor::TaskLaunch launch;
    launch.key = key;
    launch.argv = start.command;
    if (options_.job_variables) launch.env = options_.job_variables(start.key);
    launch.env.insert(launch.env.end(), start.env.begin(), start.env.end());
    add_mounts(start, options_.log, launch);
    if (!saves_in_volume(start)) launch.env.emplace_back("BERTH_CHECKPOINT_DIR", checkpoints);
    launch.rank_env.assign(start.ranks.begin(), start.ranks.end());
    launch.workdir = start.workdir;
    launch.gpus = start.gpu_uuids;
    launch.memory_limit_mib = start.memory_mib;
    launch.cpu_milli = start.cpu_milli;
    launch.pids_limit = pids_limit_;
    launch.time_limit_ms = start.time_limit_ms;
    launch.grace_ms = start.grace_ms;
    launch.stop_signal = start.stop_signal;
    launch.signal_workers = start.signal_workers;
    launch.terminal = start.terminal;
    launch.detached_ms = options_.detached_ms;
    launch.log_dir = log_dir(options_.data_dir, key.job, key.attempt, key.task);
    launch.max_log_bytes = options_.max_log_bytes;
    if (start.speaks && saves_in_volume(start))
      launch.checkpoint_mount = kCheckpointMount;
    else if (start.speaks)
      launch.checkpoint_dir = checkpoints;
    if (auto prepared = prepare(start.user, launch); !prepared) {
      const bool refused = prepared.error().code == ErrorCode::kIo;
      refuse(start.key, ExitReason::kStartFailed, prepared.error().message, refused ? kNodeShortCode : 1);
      return;
    }
    if (auto started = executor_->start(launch); !started) {
      const bool refused = started.error().code == ErrorCode::kIo;  // the machine, not the launch
      refuse(start.key, ExitReason::kStartFailed, started.error().message, refused ? kNodeShortCode : 1);
    }
  }
  // Returns true, and tells of its end, if the task is stopped and has not begun (EffectTurns).
  bool ends_before_its_start(const TaskKey& key) {
    const executor::TaskKey known = executor_key(key);
    const auto is_its = [&](const auto& entry) { return entry.second.start.key == key; };
    const bool waits = held_.erase(known) + std::erase_if(pending_starts_, is_its) > 0;
    if (!waits && knows(known)) return false;
    refuse(key, ExitReason::kKilled, "it was stopped before it began", 137);
    return true;
  }

  void on(const SignalTask& signal) {
    if (signal.cause && ends_before_its_start(signal.key)) return;
    if (PendingStart* pending = pending_start_of(signal.key)) return pending->signals.push_back(signal.signal);
    [[maybe_unused]] const auto sent = executor_->signal(executor_key(signal.key), signal.signal);
  }
  void on(const KillTask& kill) {
    if (ends_before_its_start(kill.key)) return;
    [[maybe_unused]] const auto sent = executor_->kill(executor_key(kill.key), kill.grace_ms);
  }
  void on(const ForgetTask& forget) { [[maybe_unused]] const auto gone = executor_->forget(executor_key(forget.key)); }

  LocalOptions options_;
  ReportSink sink_;
  std::set<executor::TaskKey> former_tasks_;
  // Tasks that the executor knew at the start and the log does not; until settled_: all that it knew. Nothing is told
  // of them, and nothing at all before settled_.
  std::set<executor::TaskKey> unknown_;
  std::map<executor::TaskKey, StartTask> held_;  // they wait for the end of an unknown task of the same key
  std::set<executor::TaskKey> in_force_;         // the tasks that the first effects start
  bool settled_ = false;
  std::atomic<std::size_t> unknown_ended_{0};
  std::atomic<bool> has_effects_{false};
  std::unique_ptr<executor::Executor> executor_;
  std::unique_ptr<GpuCheck> gpu_check_;
  std::uint64_t tickets_ = 0;
  std::map<std::uint64_t, PendingStart> pending_starts_;    // by ticket of the check
  std::map<std::uint64_t, executor::Exited> pending_ends_;  // likewise
  const std::int64_t pids_limit_ = executor::default_pids_limit();
  std::mutex mutex_;
  std::deque<Effect> queue_;
  EffectTurns turns_;  // of the thread alone
  std::atomic<bool> stopping_{false};
  int wake_ = -1;
  std::thread thread_;
};

}  // namespace

std::string jobs_dir(const std::string& data_dir) { return data_dir + "/jobs"; }

std::string job_dir(const std::string& data_dir, std::uint64_t job) {
  return jobs_dir(data_dir) + "/" + std::to_string(job);
}

std::string checkpoint_dir(const std::string& data_dir, std::uint64_t job) {
  return job_dir(data_dir, job) + "/checkpoint";
}

std::string home_dir(const std::string& data_dir, std::uint64_t job) { return job_dir(data_dir, job) + "/home"; }

std::string log_dir(const std::string& data_dir, std::uint64_t job, std::uint32_t attempt, std::uint32_t task) {
  return attempt_dir(data_dir, job, attempt) + "/task-" + std::to_string(task);
}

Result<LogPart> read_local_log(const std::string& data_dir, const std::string& output_kept, const LogQuery& query) {
  if (!query.is_live && !std::filesystem::exists(job_dir(data_dir, query.job.value()))) {
    return not_found("the output of job " + std::to_string(query.job.value()) + " has been removed" +
                     (output_kept.empty() ? "" : "; output is kept for " + output_kept) +
                     " (berth serve --keep-finished)");
  }
  const auto stream = query.error_stream ? executor::LogStream::kStderr : executor::LogStream::kStdout;
  auto read = executor::read_task_log(log_dir(data_dir, query.job.value(), query.attempt, query.task), stream,
                                      query.from, query.max_bytes);
  if (!read) return read.error();
  return LogPart{read->from, read->next, std::move(read->bytes)};
}

std::unique_ptr<Backend> make_local_backend(LocalOptions options) {
  return std::make_unique<LocalBackend>(std::move(options));
}

}  // namespace berth::backend
