#include <chrono>
#include <thread>

#include "cli/command/commands.h"
#include "cli/command/log_reader.h"
#include "cli/exit_code.h"

namespace berth::cli {
namespace {

constexpr std::chrono::milliseconds kPause{300};

// Whether another attempt than `attempt` may still write; waits until that is known or has begun.
Result<bool> next_attempt(const std::string& id, std::int64_t attempt, Session& session) {
  const auto path = job_path(id);
  while (true) {
    const auto job = get(session, *path);
    if (!job) return job.error();
    if (show(*job, "phase") == "finished") return integer(*job, "attempt") > attempt;
    if (integer(*job, "attempt") > attempt && show(*job, "phase") != "pending") return true;
    std::this_thread::sleep_for(kPause);
  }
}

// A job that has not started has no output yet.
Result<LogPart> read_when_started(const LogSource& source, std::int64_t from, bool follow, Session& session) {
  auto part = read_log(source, from, session);
  if (part || !follow || part.error().code != ErrorCode::kNotFound) return part;
  const auto job = get(session, "/v1/jobs/" + source.job);
  if (!job) return job.error();
  if (show(*job, "phase") != "pending") return part;
  return LogPart{};
}

}  // namespace

Result<int> run(const LogsOptions& options, Session& session) {
  LogSource source{options.id, options.attempt, options.task, options.error_stream};
  std::int64_t from = 0;
  if (options.tail >= 0) {
    const auto begin = find_tail(source, options.tail, session);
    if (!begin) return begin.error();
    from = *begin;
  }
  while (session.out) {
    const auto part = read_when_started(source, from, options.follow, session);
    if (!part) return part.error();
    session.out << part->bytes << std::flush;
    from = part->next;
    if (!part->bytes.empty()) continue;
    if (!options.follow) return kOk;
    if (part->attempt != 0) source.attempt = part->attempt;  // stay with it until it is over
    if (part->complete) {
      if (options.attempt != 0) return kOk;
      const auto goes_on = next_attempt(options.id, part->attempt, session);
      if (!goes_on) return goes_on.error();
      if (!*goes_on) return kOk;
      source.attempt = part->attempt + 1;
      from = 0;
      session.err << "berth: attempt " << source.attempt << "\n";
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
  return kFailed;
}

}  // namespace berth::cli
