#pragma once
// A backend runs tasks somewhere. Its contract:
//
// 1. `perform` takes effects in order and returns at once. They happen later, on the backend's own thread or machines.
// 2. Each effect is idempotent by its TaskKey. A start of a known task changes nothing, nor does a signal or kill of a
//    task that is over.
// 3. What happens is reported to the sink as Commands. A report may be repeated, but never invented. It is repeated
//    until its effect comes back (for an exit: ForgetTask).
// 4. A start with was_running of a task that the backend does not know is answered by an exit (supervisor-lost). The
//    task is never started again.
// 5. After start() the backend reports its nodes first.
// 6. A registration gives the health of each GPU, and the control plane believes it. A failed GPU is registered as
//    failed until it is healthy again, through restarts and losses of contact.
// 7. A backend may find jobs, and not only tasks, where it runs them (Kubernetes). It submits each by a SubmitJob
//    report with a key, and is told by `learn` what becomes of it; a thing may be told again. The key is also the job's
//    comment, by which its live jobs are told to the backend anew before it starts.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/command.h"
#include "model/effect.h"
#include "model/queue_summary.h"
#include "model/shell_message.h"

namespace berth::backend {

// Takes reports from any thread; never blocks for long.
using ReportSink = std::function<void(Command)>;

// The job of this key was accepted, now or earlier.
struct JobAccepted {
  std::string key;
  JobId job;
};
struct JobRefused {
  std::string key;
  std::string why;
};
// Any job has finished: its tasks have exited, or it never started.
struct JobOver {
  JobId job;
  bool cancelled = false;
};
// Why a pending job does not start. It is told some seconds after the submission, and then when the answer changes.
struct JobWaits {
  JobId job;
  std::string why;
};
using JobNews = std::variant<JobAccepted, JobRefused, JobOver, JobWaits>;

// A part of what a task wrote, from a byte offset on; a negative one counts from the end.
struct LogQuery {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t task = 0;
  bool error_stream = false;
  std::int64_t from = 0;
  std::int64_t max_bytes = 0;
  bool is_live = false;  // its job has not finished
};
struct LogPart {
  std::int64_t from = 0;  // offset of the bytes; another than was asked for if those are gone
  std::int64_t next = 0;  // the offset to ask for next
  std::string bytes;      // empty if there is nothing yet
};
using LogAnswer = std::function<void(Result<LogPart>)>;

// A shell in a task, or its terminal.
struct ShellQuery {
  TaskKey task;
  std::string node;
  ShellBegin begin;
};
// The descriptor of a stream with the messages of model/shell_message.h, framed; it is closed with its last holder,
// which ends the shell. The begin is sent already.
using ShellStream = std::shared_ptr<const int>;
using ShellAnswer = std::function<void(Result<ShellStream>)>;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Result<void> start(ReportSink sink) = 0;
  virtual void perform(std::span<const Effect> effects) = 0;
  // Tells what became of jobs; returns at once. Any thread may call it. Most backends submit none, and need not know.
  virtual void learn(JobNews /*news*/) {}
  // Says what of a job that a user submits cannot run here. Any thread may call it.
  virtual Result<void> check(const JobSpec& /*job*/) const { return {}; }
  // Reads output. Any thread may call it; the answer comes on this thread or on one of the backend.
  virtual void read_log(const LogQuery& /*query*/, LogAnswer answer) {
    answer(not_found("no output of tasks is kept here"));
  }
  // Opens a shell in a running task. Any thread may call it; the answer comes on this thread or on one of the backend.
  virtual void open_shell(const ShellQuery& /*query*/, ShellAnswer answer) {
    answer(Error{ErrorCode::kUnsupported, "no shells are opened in tasks here"});
  }
  // Shows all queues but the root where people of the cluster look for them; returns at once. It is told every few
  // seconds. Most backends have no such place.
  virtual void show_queues(std::vector<QueueSummary> /*queues*/) {}
  virtual void stop() = 0;  // stops the reports; tasks run on
  virtual std::vector<std::string> warnings() const = 0;
  // Says what of a configuration does less here than it seems to. Any thread may call it.
  virtual std::vector<std::string> warnings_of(const ClusterConfig& /*config*/) const { return {}; }
};

}  // namespace berth::backend
