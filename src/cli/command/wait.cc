#include <algorithm>
#include <boost/json/array.hpp>
#include <chrono>
#include <optional>
#include <thread>

#include "cli/command/commands.h"
#include "cli/command/job_selection.h"
#include "cli/exit_code.h"
#include "cli/printable.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

constexpr std::chrono::milliseconds kShortestPause{100};
constexpr std::chrono::milliseconds kLongestPause{2000};
constexpr int kMostSilentLooks = 60;  // so many looks without a server are waited through

// "failed: task 0 exited with code 3"
std::string how_it_ended(const Json& job) {
  const std::string outcome = show(job, "outcome");
  const auto& past = items(job, "past");
  const std::string message = past.empty() ? "" : show(past[past.size() - 1], "message");
  return outcome == "succeeded" || message.empty() ? outcome : outcome + ": " + message;
}

// Waits for a set of jobs. Each is told as soon as it is as far.
class Waiting {
 public:
  Waiting(const WaitOptions& options, std::vector<std::string> ids, Session& session)
      : options_(options), left_(std::move(ids)), session_(session) {}

  // Returns the exit code: kFailed if a job ended otherwise than succeeded.
  Result<int> run(std::optional<std::int64_t> timeout_s);
  const boost::json::array& reached() const { return reached_; }

 private:
  Result<void> look();
  void tell(const std::string& id, const Json& job);

  const WaitOptions& options_;
  std::vector<std::string> left_;
  Session& session_;
  boost::json::array reached_;
  bool failed_ = false;
};

void Waiting::tell(const std::string& id, const Json& job) {
  const bool runs = show(job, "phase") == "running";
  failed_ = failed_ || (!runs && show(job, "outcome") != "succeeded");
  reached_.push_back(job);
  if (options_.format != Format::kTable) return;
  session_.out << "job " << id << " " << (runs ? "runs" : printable(how_it_ended(job))) << "\n" << std::flush;
}

// Looks at each job that is left.
Result<void> Waiting::look() {
  for (std::size_t i = 0; i < left_.size();) {
    const auto path = job_path(left_[i]);
    if (!path) return path.error();
    const auto job = get(session_, *path);
    if (!job) return job.error();
    const std::string phase = show(*job, "phase");
    if (phase != "finished" && (options_.until == "finished" || phase != "running")) {
      ++i;
      continue;
    }
    tell(left_[i], *job);
    left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return {};
}

Result<int> Waiting::run(std::optional<std::int64_t> timeout_s) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(timeout_s.value_or(0));
  std::chrono::milliseconds pause = kShortestPause;
  for (int silent = 0; session_.out;) {
    const auto looked = look();
    silent = looked ? 0 : silent + 1;
    if (!looked && (looked.error().code != ErrorCode::kUnavailable || silent > kMostSilentLooks)) return looked.error();
    if (looked && left_.empty()) return failed_ ? kFailed : kOk;
    if (timeout_s && Clock::now() >= end) {
      return Error{ErrorCode::kUnavailable,
                   jobs_named(left_) + " not " + options_.until + " after " + options_.timeout};
    }
    if (timeout_s) pause = std::min(pause, std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()));
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
  return kFailed;
}

}  // namespace

Result<int> run(const WaitOptions& options, Session& session) {
  std::optional<std::int64_t> timeout_s;
  if (!options.timeout.empty()) {
    const auto span = document::parse_duration_s(options.timeout);
    if (!span)
      return invalid("--timeout: '" + options.timeout.substr(0, 80) +
                     "' is not a span of time; give one such as 90s or 2h");
    timeout_s = *span;
  }
  const auto ids = jobs_of(options.ids, options.selector, session);
  if (!ids) return ids.error();
  Waiting waiting(options, *ids, session);
  const auto code = waiting.run(timeout_s);
  if (options.format != Format::kTable) session.out << formatted(waiting.reached(), options.format, {});
  return code;
}

}  // namespace berth::cli
