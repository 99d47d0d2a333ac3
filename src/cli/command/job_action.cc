#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/printable.h"

namespace berth::cli {
namespace {

Result<Json> ask(JobAction action, const std::string& id, Session& session) {
  const auto path = job_path(id);
  if (!path) return path.error();
  switch (action) {
    case JobAction::kCancel:
      return answer_of(session.server.del(*path));
    case JobAction::kHold:
      return answer_of(session.server.post(*path + "/hold", ""));
    case JobAction::kRelease:
      return answer_of(session.server.post(*path + "/release", ""));
  }
  return invalid("no such action");
}

std::string done_words(JobAction action, bool unchanged) {
  switch (action) {
    case JobAction::kCancel:
      return unchanged ? "was being cancelled already" : "is being cancelled";
    case JobAction::kHold:
      return unchanged ? "was held already" : "held";
    case JobAction::kRelease:
      return unchanged ? "was not held" : "released";
  }
  return "";
}

}  // namespace

// Every job is tried; the first failure decides the exit code.
Result<int> run(const JobActionOptions& options, Session& session) {
  int code = kOk;
  for (const std::string& id : options.ids) {
    const auto answer = ask(options.action, id, session);
    if (answer) {
      session.out << "job " << id << " " << done_words(options.action, is_true(*answer, "unchanged")) << "\n";
      continue;
    }
    if (options.ids.size() == 1 || answer.error().code == ErrorCode::kUnavailable) return answer.error();
    session.err << "berth: " << printable(answer.error().message) << "\n";
    if (code == kOk) code = exit_code_of(answer.error().code);
  }
  return code;
}

Result<int> run(const PrioritizeOptions& options, Session& session) {
  const auto path = job_path(options.id, "/priority");
  if (!path) return path.error();
  const auto answer = answer_of(session.server.put(*path, "{\"priority\": " + std::to_string(options.priority) + "}"));
  if (!answer) return answer.error();
  session.out << "job " << options.id << " has priority " << options.priority << "\n";
  return kOk;
}

}  // namespace berth::cli
