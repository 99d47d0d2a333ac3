#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "cli/command/commands.h"
#include "cli/command/interactive.h"
#include "cli/command/job_words.h"
#include "cli/command/log_reader.h"
#include "cli/command/submit_job.h"
#include "cli/exit_code.h"
#include "cli/job_flags.h"
#include "cli/printable.h"

namespace berth::cli {
namespace {

constexpr std::chrono::milliseconds kPollPause{200};
constexpr int kTimedOut = 124;              // as timeout(1)
constexpr int kInterrupted = 130;           // as a shell says of SIGINT
constexpr int kMostSilentPollsOfRun = 150;  // so many polls without a server are waited through

volatile std::sig_atomic_t interrupts = 0;
volatile std::sig_atomic_t last_interrupt = 0;

void count_interrupt(int signal) {
  interrupts = interrupts + 1;
  last_interrupt = signal;
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = &count_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// The output of one stream of one task, as far as it has been shown.
struct Tap {
  LogSource source;
  std::int64_t from = 0;
  std::string partial;  // of a line, where lines carry a prefix
  bool complete = false;
};

class Attached {
 public:
  Attached(std::string id, bool quiet, Session& session) : id_(std::move(id)), quiet_(quiet), session_(session) {}

  // Follows the job to its end; its exit code.
  Result<int> follow();
  // Waits until the job has a terminal and attaches it; the exit code of the job.
  Result<int> attach();

 private:
  Result<std::optional<int>> try_to_attach();  // nothing: not yet
  Result<std::optional<int>> show_unattached();
  Result<std::optional<int>> end_without_code(const Error& why);
  Result<bool> step();  // false when the job is over and all is shown
  void say(const std::string& what) {
    if (!quiet_) session_.err << "berth: " << printable(what) << "\n" << std::flush;
  }
  void say_state(const Json& job);
  void open_taps(const Json& job, std::int64_t attempt);
  Result<void> drain();
  Result<void> read_tap(Tap& tap);
  void write(Tap& tap, const std::string& bytes);
  Result<bool> heed_interrupts();
  bool attempt_is_shown() const;

  std::string id_;
  bool quiet_;
  Session& session_;
  Json job_;
  std::vector<Tap> taps_;
  std::int64_t attempt_ = 0;  // whose output is being shown
  bool prefixed_ = false;
  std::string said_;
  int heeded_ = 0;
  int refused_ = 0;  // times that the terminal was not there yet
  bool signalled_ = false;
  bool cancelled_ = false;
};

std::int64_t last_attempt(const Json& job) {
  std::int64_t last = show(job, "phase") == "pending" ? 0 : integer(job, "attempt");
  for (const Json& attempt : items(job, "past")) last = std::max(last, integer(attempt, "attempt"));
  return last;
}

int exit_code_of_job(const Json& job) {
  const std::string outcome = show(job, "outcome");
  if (outcome == "succeeded") return kOk;
  if (outcome == "time-limit") return kTimedOut;
  const auto& past = items(job, "past");
  const std::int64_t code = past.empty() ? 0 : integer(past[past.size() - 1], "code");
  return code > 0 && code < 256 ? static_cast<int>(code) : kFailed;
}

void Attached::say_state(const Json& job) {
  const std::string phase = show(job, "phase");
  std::string now;
  std::string kind;  // what is said again only when it changes: the numbers in a reason always do
  if (phase == "pending") {
    const auto why = get(session_, "/v1/jobs/" + id_ + "/why");
    now = why ? show(*why, "headline") : "job " + id_ + " waits";
    kind = why ? "waits " + show(*why, "code") : said_;
  } else if (phase == "running") {
    // An array or a service has no attempt and no output of its own.
    now = "job " + id_ + " runs" +
          (has(job, "children") ? "; its parts are jobs with output of their own: berth jobs --all --parent " + id_
                                : " (attempt " + show(job, "attempt") + ")");
  } else if (phase == "stopping") {
    now = "job " + id_ + " is asked to stop: " + stop_words(at(job, "stop"));
  } else {
    now = "job " + id_ + " " + show(job, "outcome");
    if (show(job, "outcome") == "succeeded") return;
    const auto& past = items(job, "past");
    const std::string how = past.empty() ? "" : show(past[past.size() - 1], "message");
    if (!how.empty()) now += ": " + how;
  }
  if (kind.empty()) kind = now;
  if (kind != said_) say(now);
  said_ = kind;
}

void Attached::open_taps(const Json& job, std::int64_t attempt) {
  attempt_ = attempt;
  taps_.clear();
  const std::int64_t tasks = std::max<std::int64_t>(integer(job, "tasks_total"), 1);
  prefixed_ = tasks > 1;
  for (std::int64_t task = 0; task < tasks; ++task) {
    for (const bool error_stream : {false, true}) taps_.push_back({{id_, attempt, task, error_stream}, 0, {}, false});
  }
}

// With several tasks only whole lines are shown, each with its task's number.
void Attached::write(Tap& tap, const std::string& bytes) {
  std::ostream& out = tap.source.error_stream ? session_.err : session_.out;
  if (!prefixed_) {
    out << bytes;
    return;
  }
  tap.partial += bytes;
  const std::string prefix = "[" + std::to_string(tap.source.task) + "] ";
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = tap.partial.find('\n', begin)) != std::string::npos; begin = end + 1) {
    out << prefix << tap.partial.substr(begin, end + 1 - begin);
  }
  tap.partial.erase(0, begin);
  if (tap.complete && !tap.partial.empty()) out << prefix << tap.partial << "\n";
}

// A task that never started has no output: not found, which is complete.
Result<void> Attached::read_tap(Tap& tap) {
  while (!tap.complete) {
    const auto part = read_log(tap.source, tap.from, session_);
    if (!part && part.error().code == ErrorCode::kNotFound) {
      tap.complete =
          show(job_, "phase") == "finished" || last_attempt(job_) > attempt_ || show(job_, "phase") == "pending";
      return {};
    }
    if (!part) return part.error();
    tap.from = part->next;
    tap.complete = part->complete && part->bytes.empty();
    write(tap, part->bytes);
    if (part->bytes.empty()) return {};
  }
  return {};
}

Result<void> Attached::drain() {
  for (Tap& tap : taps_) {
    if (auto read = read_tap(tap); !read) return read;
  }
  session_.out << std::flush;
  session_.err << std::flush;
  return {};
}

bool Attached::attempt_is_shown() const {
  return std::all_of(taps_.begin(), taps_.end(), [](const Tap& tap) { return tap.complete; });
}

// The first interrupt is passed on to the job's processes as it came, the second cancels the job, the third leaves it.
// A job that does not run yet is cancelled at once.
Result<bool> Attached::heed_interrupts() {
  if (interrupts == 0 || heeded_ == interrupts) return true;
  heeded_ = interrupts;
  if (cancelled_) {
    say("left; job " + id_ + " is being cancelled (`berth job " + id_ + "`)");
    return false;
  }
  if (!signalled_) {
    signalled_ = true;
    const int signal = last_interrupt;
    const auto passed_on =
        answer_of(session_.server.post("/v1/jobs/" + id_ + "/signal", R"({"signal":)" + std::to_string(signal) + "}"));
    if (passed_on) {
      say(std::string(signal == SIGINT ? "SIGINT" : "SIGTERM") + " passed on to job " + id_ + "; again to cancel it");
      return true;
    }
    if (passed_on.error().code == ErrorCode::kUnavailable) return passed_on.error();
  }
  cancelled_ = true;
  say("cancelling job " + id_ + "; interrupt again to leave it to itself");
  const auto cancelled = answer_of(session_.server.del("/v1/jobs/" + id_));
  if (!cancelled && cancelled.error().code == ErrorCode::kUnavailable) return cancelled.error();
  return true;
}

Result<bool> Attached::step() {
  const auto job = get(session_, "/v1/jobs/" + id_);
  if (!job) return job.error();
  job_ = *job;
  say_state(job_);
  if (attempt_ == 0 && last_attempt(job_) > 0) open_taps(job_, 1);
  if (auto drained = drain(); !drained) return drained.error();
  if (!attempt_is_shown()) return true;
  if (last_attempt(job_) > attempt_) {
    open_taps(job_, attempt_ + 1);
    return true;
  }
  return show(job_, "phase") != "finished";
}

Result<int> Attached::follow() {
  int silent = 0;
  while (true) {
    const auto heeded = heed_interrupts();
    if (!heeded) return heeded.error();
    if (!*heeded) return kInterrupted;
    const auto goes_on = step();
    if (goes_on) {
      silent = 0;
      if (!*goes_on) return exit_code_of_job(job_);
    } else if (goes_on.error().code != ErrorCode::kUnavailable || ++silent > kMostSilentPollsOfRun) {
      return goes_on.error();
    } else if (silent == 1) {
      say("waiting for the server: " + goes_on.error().message);
    }
    std::this_thread::sleep_for(kPollPause);
  }
}

Result<std::optional<int>> Attached::try_to_attach() {
  const auto job = get(session_, "/v1/jobs/" + id_);
  if (!job) return job.error();
  job_ = *job;
  say_state(job_);
  const std::string phase = show(job_, "phase");
  if (phase == "finished") return show_unattached();
  if (phase == "pending") return std::optional<int>();
  const Attachment attached = attach_terminal(id_, session_);
  if (attached.code) return std::optional(*attached.code);
  const Error& why = attached.code.error();
  if (attached.joined) return end_without_code(why);
  // Its process has not reported itself, or it has just ended: the next look says which.
  if (why.code == ErrorCode::kConflict && phase == "running" && ++refused_ < kMostSilentPollsOfRun)
    return std::optional<int>();
  return why;
}

// The job was over before its terminal could be attached: its log has what it would have shown.
Result<std::optional<int>> Attached::show_unattached() {
  const auto code = follow();
  if (!code) return code.error();
  return std::optional(*code);
}

// The terminal was joined and is not any more: another one has it, unless the job ended in that moment. It is not
// attached again, which would take it back.
Result<std::optional<int>> Attached::end_without_code(const Error& why) {
  const auto job = get(session_, "/v1/jobs/" + id_);
  if (!job || show(*job, "phase") != "finished") return why;
  return std::optional(exit_code_of_job(*job));
}

Result<int> Attached::attach() {
  while (true) {
    if (interrupts > 0) {
      say("cancelling job " + id_);
      const auto cancelled = answer_of(session_.server.del("/v1/jobs/" + id_));
      if (!cancelled && cancelled.error().code == ErrorCode::kUnavailable) return cancelled.error();
      return kInterrupted;
    }
    const auto code = try_to_attach();
    if (!code) return code.error();
    if (*code) return **code;
    std::this_thread::sleep_for(kPollPause);
  }
}

// An interactive job of the flags.
Result<void> make_interactive(JobOptions& job) {
  if (::isatty(STDIN_FILENO) != 1) return invalid("-it needs a terminal as standard input; leave it out");
  const char* term = std::getenv("TERM");
  for (std::size_t i = 0; i < job_flags().size(); ++i) {
    if (job_flags()[i].flag == "--env" && term != nullptr)
      job.values[i].insert(job.values[i].begin(), std::string("TERM=") + term);
    if (job_flags()[i].flag != "--kind") continue;
    if (!job.values[i].empty() && job.values[i].back() != "interactive")
      return invalid("-it makes an interactive job; leave --kind " + job.values[i].back() + " out");
    job.values[i] = {"interactive"};
  }
  return {};
}

Result<int> run_interactive(RunOptions options, Session& session) {
  if (auto ok = make_interactive(options.job); !ok) return ok.error();
  const auto answer = submit_job(options.job, session);
  if (!answer) return answer.error();
  const std::string id = show(*answer, "id");
  if (!options.quiet) session.err << "berth: job " << id << " submitted\n" << std::flush;
  return Attached(id, options.quiet, session).attach();
}

}  // namespace

Result<int> run(const RunOptions& options, Session& session) {
  catch_interrupts();
  if (options.terminal) return run_interactive(options, session);
  const auto answer = submit_job(options.job, session);
  if (!answer) return answer.error();
  const std::string id = show(*answer, "id");
  if (!options.quiet) session.err << "berth: job " << id << " submitted\n" << std::flush;
  return Attached(id, options.quiet, session).follow();
}

}  // namespace berth::cli
