#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/printable.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

struct Words {
  const char* route;
  const char* done;
  const char* unchanged;
};

Words words_of(NodeAction action) {
  switch (action) {
    case NodeAction::kCordon:
      return {"cordon", "cordoned: no new tasks start there", "was cordoned already"};
    case NodeAction::kUncordon:
      return {"uncordon", "takes tasks again", "was not cordoned"};
    case NodeAction::kDrain:
      return {"drain", "is draining: what runs there moves, nothing new starts", "was draining already"};
    case NodeAction::kFence:
      return {"fence", "is fenced: its tasks count as dead and start elsewhere", "was fenced already"};
  }
  return {};
}

}  // namespace

Result<int> run(const NodeActionOptions& options, Session& session) {
  if (options.action == NodeAction::kFence && !options.confirmed) {
    return invalid(
        "fencing says that the node is dead; if it is not, its tasks run twice. Power it off, then add --yes");
  }
  std::string gone_in_s;
  if (!options.gone_in.empty()) {
    const auto seconds = document::parse_duration_s(options.gone_in);
    if (!seconds) return invalid("--gone-in: " + seconds.error().message);
    if (*seconds == 0) return invalid("--gone-in: it has 1 second at least; to say that the node is gone, fence it");
    gone_in_s = std::to_string(*seconds);
  }
  const Words words = words_of(options.action);
  for (const std::string& name : options.names) {
    const std::string path =
        query("/v1/nodes/" + client::encode_segment(name) + "/" + words.route, {{"gone_in_s", gone_in_s}});
    const auto answer = answer_of(session.server.post(path, ""));
    if (!answer) return answer.error();
    session.out << "node " << printable(name) << " " << (is_true(*answer, "unchanged") ? words.unchanged : words.done)
                << "\n";
  }
  return kOk;
}

}  // namespace berth::cli
