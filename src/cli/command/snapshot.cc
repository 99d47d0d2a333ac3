#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"

namespace berth::cli {

Result<int> run(const SnapshotOptions& options, Session& session) {
  const auto answer = get(session, "/v1/snapshot");
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] { return json_text(*answer); });
  return kOk;
}

}  // namespace berth::cli
