#include <chrono>
#include <thread>

#include "cli/command/commands.h"
#include "cli/command/log_reader.h"
#include "cli/exit_code.h"
#include "cli/printable.h"

namespace berth::cli {
namespace {

constexpr std::chrono::milliseconds kPause{300};
constexpr int kMostSilentPolls = 100;  // so many polls without a server are waited through

class Following {
 public:
  Following(const LogsOptions& options, bool error_stream, std::int64_t from, Session& session)
      : options_(options),
        source_{options.id, options.attempt, options.task, error_stream, options.break_glass},
        from_(from),
        session_(session) {}

  std::int64_t attempt() const { return source_.attempt; }

  // One part further; false when there is no more.
  Result<bool> step() {
    const auto part = read_log(source_, from_, session_);
    const bool not_yet = !part && part.error().code == ErrorCode::kNotFound && options_.follow;
    if (not_yet) return wait_for_log(part.error());
    if (!part) return part.error();
    session_.out << part->bytes << std::flush;
    from_ = part->next;
    if (!part->bytes.empty()) return true;
    if (!options_.follow) {
      if (part->attempt != 0) source_.attempt = part->attempt;
      return false;
    }
    if (part->attempt == 0 || part->complete) return look_beyond(part->attempt);
    source_.attempt = part->attempt;  // stay with it until it is over
    std::this_thread::sleep_for(kPause);
    return true;
  }

 private:
  // A task that has just been bound has no file yet.
  Result<bool> wait_for_log(const Error& absent) {
    const auto job = get(session_, "/v1/jobs/" + options_.id);
    if (!job) return job.error();
    const bool no_such_task = integer(*job, "tasks_total") <= options_.task;
    if (no_such_task || show(*job, "phase") == "finished") return absent;
    std::this_thread::sleep_for(kPause);
    return true;
  }

  // All of this attempt is shown. The next one is gone on with if it has begun, and waited for if it may come.
  Result<bool> look_beyond(std::int64_t attempt) {
    if (options_.attempt != 0) return false;
    source_.attempt = attempt;  // what is read next must not be of another one
    const auto job = get(session_, "/v1/jobs/" + options_.id);
    if (!job) return job.error();
    if (integer(*job, "attempt") <= attempt) {
      if (show(*job, "phase") == "finished") return false;
      std::this_thread::sleep_for(kPause);
      return true;
    }
    source_.attempt = attempt + 1;
    from_ = 0;
    session_.err << "berth: attempt " << source_.attempt << "\n" << std::flush;
    return true;
  }

  const LogsOptions& options_;
  LogSource source_;
  std::int64_t from_;
  Session& session_;
};

// Shows one stream on the output. `attempt` is set to the attempt that was shown last.
Result<int> show_stream(const LogsOptions& options, bool error_stream, std::int64_t& attempt, Session& session) {
  std::int64_t from = 0;
  if (options.tail >= 0) {
    const auto begin = find_tail({options.id, options.attempt, options.task, error_stream, options.break_glass},
                                 options.tail, session);
    if (!begin) return begin.error();
    from = *begin;
  }
  Following following(options, error_stream, from, session);
  bool was_there = options.tail >= 0;
  int silent = 0;
  while (session.out) {
    const auto goes_on = following.step();
    attempt = following.attempt();
    if (goes_on && !*goes_on) return kOk;
    if (goes_on) {
      was_there = true;
      silent = 0;
      continue;
    }
    const bool may_come_back = options.follow && was_there && goes_on.error().code == ErrorCode::kUnavailable;
    if (!may_come_back || ++silent > kMostSilentPolls) return goes_on.error();
    if (silent == 1) {
      session.err << "berth: waiting for the server: " << printable(goes_on.error().message) << "\n" << std::flush;
    }
    std::this_thread::sleep_for(kPause);
  }
  return kFailed;
}

// Shows standard error of the attempt, below a line that says so, on the error output. What cannot be read is left out:
// the output has been shown.
void show_errors(const LogsOptions& options, std::int64_t attempt, Session& session) {
  const LogSource source{options.id, attempt, options.task, true, options.break_glass};
  std::int64_t from = 0;
  if (options.tail >= 0) {
    const auto begin = find_tail(source, options.tail, session);
    if (!begin) return;
    from = *begin;
  }
  for (bool first = true; session.err; first = false) {
    const auto part = read_log(source, from, session);
    if (!part || part->bytes.empty()) return;
    if (first) session.err << "berth: standard error of task " << options.task << ":\n";
    session.err << part->bytes << std::flush;
    from = part->next;
  }
}

}  // namespace

// Both streams: standard output on the output, then standard error on the error output. While a job is followed, only
// standard output can be shown in order, so standard error comes at its end.
Result<int> run(const LogsOptions& options, Session& session) {
  const bool one = options.error_stream || !options.stream.empty();
  std::int64_t attempt = options.attempt;
  const auto shown = show_stream(options, options.error_stream || options.stream == "stderr", attempt, session);
  if (!shown || *shown != kOk || one) return shown;
  session.out << std::flush;
  show_errors(options, attempt, session);
  return shown;
}

}  // namespace berth::cli
