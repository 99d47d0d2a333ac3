#include <chrono>
#include <thread>

#include "cli/command/commands.h"
#include "cli/command/log_reader.h"
#include "cli/exit_code.h"

namespace berth::cli {
namespace {

constexpr std::chrono::milliseconds kPause{300};

// Waits until an attempt after `attempt` has begun, or it is known that none will.
Result<bool> next_attempt(const std::string& id, std::int64_t attempt, Session& session) {
  while (true) {
    const auto job = get(session, "/v1/jobs/" + id);
    if (!job) return job.error();
    if (integer(*job, "attempt") > attempt) return true;
    if (show(*job, "phase") == "finished") return false;
    std::this_thread::sleep_for(kPause);
  }
}

class Following {
 public:
  Following(const LogsOptions& options, std::int64_t from, Session& session)
      : options_(options),
        source_{options.id, options.attempt, options.task, options.error_stream},
        from_(from),
        session_(session) {}

  // One part further; false when there is no more.
  Result<bool> step() {
    const auto part = read_log(source_, from_, session_);
    const bool not_yet = !part && part.error().code == ErrorCode::kNotFound && options_.follow;
    if (not_yet) return wait_for_log(part.error());
    if (!part) return part.error();
    session_.out << part->bytes << std::flush;
    from_ = part->next;
    if (!part->bytes.empty()) return true;
    if (!options_.follow) return false;
    if (part->attempt == 0 || part->complete) return go_on_after(part->attempt);
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

  Result<bool> go_on_after(std::int64_t attempt) {
    if (options_.attempt != 0) return false;
    const auto goes_on = next_attempt(options_.id, attempt, session_);
    if (!goes_on || !*goes_on) return goes_on;
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

}  // namespace

Result<int> run(const LogsOptions& options, Session& session) {
  std::int64_t from = 0;
  if (options.tail >= 0) {
    const auto begin =
        find_tail({options.id, options.attempt, options.task, options.error_stream}, options.tail, session);
    if (!begin) return begin.error();
    from = *begin;
  }
  Following following(options, from, session);
  while (session.out) {
    const auto goes_on = following.step();
    if (!goes_on) return goes_on.error();
    if (!*goes_on) return kOk;
  }
  return kFailed;
}

}  // namespace berth::cli
