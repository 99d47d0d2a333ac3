#pragma once
// What the API asks of the daemon. Two ways only: a command goes to the inbox and is answered once it is durable; a
// read is a function over the reader's state, which folds only durable events. Nothing here can stop the loop.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/job_identities.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "billing/budget_marks.h"
#include "billing/invoice.h"
#include "control/batch.h"
#include "control/handle.h"
#include "model/advice.h"
#include "model/command.h"
#include "model/diagnosis.h"
#include "model/event.h"
#include "model/gpu_utilization.h"
#include "model/reason.h"
#include "model/shell_message.h"
#include "model/why_answer.h"
#include "policy/authorize.h"
#include "state/state.h"

namespace berth::billing {
struct OpenedLine;
}  // namespace berth::billing

namespace berth::api {

struct UsageRow {
  std::string queue;
  std::string user;
  std::string gpu_model;
  bool borrowed = false;
  std::int64_t gpu_milli_ms = 0;  // thousandths of a GPU times milliseconds
  bool simulated = false;         // GPUs of the model are simulated on some node, so that these may have been
};

struct UsageReport {
  Timestamp from;
  Timestamp to;
  std::vector<UsageRow> rows;
  std::int64_t idle_gpu_milli_ms = 0;
  std::int64_t down_gpu_milli_ms = 0;
  std::int64_t capacity_gpu_milli_ms = 0;
  std::int64_t foreign_gpu_milli_ms = 0;  // used by others than berth
};

struct BillQuestion {
  std::string queue;                     // empty: the root
  std::string month;                     // such as 2026-11; empty: the present one
  std::optional<PriceBook> prices = {};  // absent: those in force
};

struct LineQuestion {
  std::string month;       // empty: the present one
  std::string line;        // as billing::line_id
  std::string after = {};  // OpenedLine::next of the answer before; empty: from the first stretch on
};

// What a command about a job would do now. It was tried on a copy of the state; nothing of it is stored.
struct Forecast {
  struct Place {
    std::string node;
    std::int64_t tasks = 0;
    std::int64_t gpu_milli = 0;
  };
  // A job that would be asked to leave for this one.
  struct Victim {
    JobId job;
    std::string user;
    std::string queue;
    StopCause cause = StopCause::kPreempt;
    std::uint32_t keep = 0;  // tasks that stay, of an elastic gang; 0: the whole job leaves
    std::int64_t gpu_milli = 0;
    std::int64_t unsaved_s = 0;  // work that it would lose; 0: none
  };
  JobId job;              // the job; of a submission the number that it would get
  bool repeated = false;  // its key was used before: `job` is the earlier one
  JobPhase phase = JobPhase::kPending;
  std::int32_t started = 0;  // 1 if it would start at once; of a service or an array how many parts would
  std::optional<bool> within;
  std::vector<Place> places;    // where it starts, at once or when the victims have left
  std::vector<Victim> victims;  // the jobs that leave for it and that the viewer may see
  std::size_t victims_not_shown = 0;
  std::optional<Timestamp> start;  // of its backfill reservation, if it has to wait and gets one
  std::vector<std::string> warnings;
  std::optional<WhyAnswer> explained;  // why it would wait
};

// What a change of a queue would do, without doing it.
struct QueuePreview {
  struct Jobs {
    std::vector<JobId> seen;
    std::size_t not_shown = 0;  // jobs that the viewer may not see
  };
  control::Reply reply;
  Jobs become_borrowed;    // running jobs that the guarantee would no longer cover
  Jobs become_guaranteed;  // and that it then would
  bool above_max = false;  // more runs than the new ceiling
  Jobs start;              // would start now, or be nominated, with the change and not without it
  Jobs wait;               // the opposite
  Jobs stop;               // would be asked to stop now with the change and not without it
};

// Which idle nodes could go, and which further nodes would start jobs that wait, by kind of node.
struct CapacityReport {
  struct Idle {
    std::string node;
    Timestamp since;
    std::string kept_for;  // nothing, or why it stays
    JobId job;             // for which; none() where it is none
    bool cordoned = false;
  };
  struct Wanted {
    std::int32_t nodes = 0;
    std::vector<JobId> jobs;  // that would start with so many more
    std::int64_t gpu_milli = 0;
  };
  struct Kind {
    std::string pool;
    std::string gpu_model;
    std::int64_t gpus = 0;
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
    std::vector<Taint> taints;
    bool containers = false;
    std::size_t nodes = 0;
    std::size_t releasable = 0;
    std::vector<Idle> idle;
    std::optional<Wanted> wanted;
  };
  std::vector<Kind> kinds;
  bool complete = true;  // all that wait were asked
  Timestamp time;
  Seq seq = 0;
};

// Which of the usual pitfalls the cluster is in.
struct AdviceReport {
  std::vector<Advice> items;
  std::vector<std::pair<AdviceCode, std::size_t>> left_out;  // so many more of the code
  bool complete = true;                                      // all jobs were looked at
  Timestamp time;
  Seq seq = 0;
};

// A job that has left the state.
struct PastJob {
  state::JobState job;
  Outcome outcome = Outcome::kSucceeded;
  std::int32_t code = 0;
  std::string message;
  Timestamp finished;
  std::uint64_t cursor = 0;
};

// A durable event as watchers get it, with its texts as streams send them. A text is made by the first watcher that
// needs it and shared by the others. One thread at a time.
struct LiveEvent {
  const EventRecord& record;
  mutable std::array<std::shared_ptr<const std::string>, 2> encoded = {};  // by http::StreamFormat
};

// A past moment: after the event `seq`, when it happened; or where seq is 0 at `time`, after all events until then.
struct Moment {
  Seq seq = 0;
  Timestamp time{};
  std::string client = {};  // whose turn it is, where several wait
};

// Everything a read may look at; valid only during the call.
struct View {
  state::State& state;  // durable; explain uses it as scratch paper
  Timestamp now;
  // What refuses a job that waits, for the rows of one list; nothing: nothing does, or the work would be too much.
  std::function<std::optional<ReasonCode>(const state::JobState&)> blocking = {};
  std::function<GpuUtilization()> gpu_utilization = {};  // what was measured of GPUs; nothing: nobody measures

  GpuUtilization measured() const { return gpu_utilization ? gpu_utilization() : GpuUtilization(); }
};

// The server's clock and where the wall clock is, seen from it (base/clock_discipline.h).
struct ClockFacts {
  Timestamp time;
  std::int64_t wall_offset_ms = 0;  // how much the wall clock is ahead
  bool followed = true;             // false: the wall clock is too far off to be followed unconfirmed
};

struct ServerFacts {
  std::string version;
  std::string data_dir;
  bool simulated_gpus = false;
  bool tasks_kept_apart = true;  // false: all tasks run as the server's own user
  std::vector<std::string> warnings;
  std::uint64_t pending_commands = 0;
  std::uint64_t log_appends = 0;  // since the start, as are the next two
  std::uint64_t log_records = 0;
  std::uint64_t log_fsyncs = 0;
  std::string log_check = "running";  // of all hashes since the start: running, sound, unfinished
  std::uint64_t log_checked = 0;      // events that it has been through
  bool on_network = false;            // it listens on more than loopback addresses
  bool has_tls = false;
  bool runs_tasks = false;  // on this machine
  bool kubernetes = false;
  bool gpus_checked = false;  // no task starts on a dirty GPU
  std::string backups_to;     // the directory; empty: none are made
  std::int64_t backups_every_s = 0;
  bool log_end_known = true;  // false: nothing shows that the log has all that was acknowledged before the start
  ClockFacts clock;
};

class Service {
 public:
  virtual ~Service() = default;

  // Answered from another thread, once durable; at once with kUnavailable when the inbox is full or the server stops.
  // `by` is the request that asks for it.
  virtual void submit(const Origin& by, Command command, std::function<void(Result<control::Reply>)> answer) = 0;

  // Counts a request that was denied. Of `denied` the count and the times are set by the counter. Must not block.
  virtual void note_denial(const AccessDenied& denied) = 0;

  // Runs the function on the caller's thread with the reader's state locked. Reads, and all below that look at the
  // state, wait for each other, so they are for the threads of reads (http::Threads); nothing else waits for them.
  virtual void read(const std::function<void(const View&)>& look) = 0;

  // Calls `use` on a thread of its own with a service whose reads see the state as it was at a past moment, or with
  // why there is none. It is good during the call alone, and takes no commands. One past state at a time: a call waits
  // for those before it, and nothing else waits for it.
  virtual void at(const Moment& /*moment*/, std::function<void(Result<Service*>)> use) {
    use(Error{ErrorCode::kUnsupported, "no past state is kept here"});
  }

  // Why the job does not run, in the words for this viewer.
  virtual WhyAnswer explain(JobId job, const policy::Subject& viewer) = 0;
  // Returns what the command would do now, without doing it, or the error that would refuse it. Jobs that the viewer
  // may not see are counted, not named.
  virtual Result<Forecast> forecast(const Command& command, const policy::Subject& viewer) = 0;
  // Returns what a change of a queue would do now, or the error that would refuse it. The command is a SetQueue or an
  // UndoQueueChange.
  virtual Result<QueuePreview> preview(const Command& command, const policy::Subject& viewer) = 0;
  // A node that is idle for less than that stays.
  virtual CapacityReport capacity(std::int64_t idle_for_s) = 0;
  virtual AdviceReport advice() = 0;
  // The production checklist, line by line.
  virtual std::vector<Finding> diagnosis() = 0;
  // The arithmetic of a queue's share, one sentence for each step.
  virtual Result<std::vector<std::string>> explain_share(const std::string& queue) = 0;

  virtual Result<UsageReport> usage(Timestamp from, Timestamp to) = 0;
  // The bill of a queue and all below it for a month, job by job: until now, if it is not over. A closed month is
  // billed as it was closed, unless the question brings prices of its own.
  virtual Result<billing::Invoice> bill(const BillQuestion& question) = 0;
  // What the queues have used in each of the periods until now, each without those below it.
  virtual Result<std::vector<billing::PeriodUse>> used_in(const std::vector<Month>& periods) = 0;
  // The stretches of time and the events that a line of that bill is made of.
  virtual Result<billing::OpenedLine> open_line(const LineQuestion& question) = 0;
  // The time zone of that name, for off-peak windows; nothing if there is none.
  virtual std::optional<TimeZone> time_zone(const std::string&) { return std::nullopt; }
  // What keeps the book from being put in force, beyond the rules of its document.
  virtual Result<std::vector<PriceMistake>> price_mistakes(const PriceBook& book) = 0;
  // What closing the month would store.
  virtual Result<MonthClosed> closing(const std::string& month) = 0;
  // Finished jobs with a cursor below `before`, newest first; or the one job.
  virtual Result<std::vector<PastJob>> history(std::uint64_t before, std::size_t limit) = 0;
  virtual Result<PastJob> past_job(JobId job) = 0;

  // Durable events from `from` on, at most `limit`; and a call for each event that becomes durable later, in order,
  // without gap. The callback must not block.
  virtual Result<std::vector<EventRecord>> events(Seq from, std::size_t limit) = 0;
  using Watcher = std::function<void(const LiveEvent&)>;
  virtual std::uint64_t watch(Watcher watcher) = 0;
  virtual void unwatch(std::uint64_t id) = 0;

  // Captured output of a task, from a byte offset (negative: from the end).
  struct LogPart {
    std::int64_t from = 0;
    std::int64_t next = 0;
    std::string bytes;
    bool complete = false;  // the task is over and there is no more
  };
  struct LogQuery {
    JobId job;
    std::uint32_t attempt = 0;
    std::uint32_t task = 0;
    bool error_stream = false;
    std::int64_t from = 0;
    std::int64_t max_bytes = 0;
  };
  // The answer may come later, on another thread.
  virtual void task_log(const LogQuery& query, std::function<void(Result<LogPart>)> answer) = 0;

  // Opens a shell in a task of a running job. The answer may come later, on another thread: the descriptor of a stream
  // with the messages of model/shell_message.h, framed, which ends the shell when its last holder closes it.
  struct ShellQuery {
    JobId job;
    std::uint32_t task = 0;
    ShellBegin begin;
  };
  virtual void open_shell(const ShellQuery& /*query*/, std::function<void(Result<std::shared_ptr<const int>>)> answer) {
    answer(Error{ErrorCode::kUnsupported, "no shells are opened here"});
  }

  // Everything that can be measured, as Prometheus reads it (docs/metrics.md).
  virtual std::string metrics() = 0;

  virtual ServerFacts facts() = 0;

  // When each of the server's own tokens was last used, by its digest.
  virtual std::map<std::string, Timestamp> token_uses() = 0;

  // What running jobs show to others.
  virtual JobIdentities& identities() = 0;
};

}  // namespace berth::api
