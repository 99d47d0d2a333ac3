#include "cli/command/commands.h"
#include "cli/command/job_words.h"
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
      return {"drain", "is draining: nothing new starts there", "was draining already"};
    case NodeAction::kFence:
      return {"fence", "is fenced: its tasks count as dead and start elsewhere", "was fenced already"};
  }
  return {};
}

// "job 9 of bob: 2h05m of work on 4 GPUs"
std::string loss_words(const Json& job) {
  const std::string gpus = show(job, "gpus");
  return "    job " + show(job, "id") + " of " + printable(show(job, "user")) + ": " +
         document::duration_text(integer(job, "unsaved_s")) + " of work" +
         (gpus.empty() || gpus == "0" ? "" : " on " + counted(gpus, "GPU")) + "\n";
}

// Says which jobs of a node that drains leave, which stay, and which of them lose work.
std::string drained_words(const Json& answer, const std::string& name, bool when_idle) {
  std::vector<std::string> saving;
  std::string losing;
  std::string staying;
  std::size_t stay = 0;
  std::size_t lose = 0;
  for (const Json& job : items(answer, "jobs")) {
    const bool leaves = is_true(job, "leaves");
    if (leaves && !is_true(job, "loses_work")) saving.push_back(show(job, "id"));
    if (leaves && is_true(job, "loses_work")) ++lose, losing += loss_words(job);
    if (!leaves)
      ++stay, staying +=
              when_idle ? "    job " + show(job, "id") + " of " + printable(show(job, "user")) + "\n" : loss_words(job);
  }
  std::string text;
  if (!saving.empty()) {
    text += "  " + counted(std::to_string(saving.size()), "job") +
            " asked to save and to start elsewhere: " + joined(saving, ", ") + "\n";
  }
  if (lose > 0)
    text += "  " + counted(std::to_string(lose), "job") + " asked to leave without saving; lost is\n" + losing;
  if (stay == 0) return text;
  if (when_idle) return text + "  " + counted(std::to_string(stay), "job") + " may finish first:\n" + staying;
  return text + "  " + counted(std::to_string(stay), "job") +
         " may finish first, not saving when asked to leave (checkpoint.on_signal); stopped now, lost would be\n" +
         staying + "  to stop what is left: berth drain --lose-work " + printable(name) + "\n";
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
  std::string deadline_s;
  if (!options.deadline.empty()) {
    const auto seconds = document::parse_duration_s(options.deadline);
    if (!seconds) return invalid("--deadline: " + seconds.error().message);
    if (*seconds == 0) return invalid("--deadline: it has 1 second at least; to stop what runs now, give --lose-work");
    deadline_s = std::to_string(*seconds);
  }
  Words words = words_of(options.action);
  if (!options.gpu.empty()) {
    if (options.names.size() != 1) return invalid("--gpu: it is one of a node; name one node");
    words.done = "takes tasks on that GPU again";
    words.unchanged = "has no fence on that GPU";
  }
  for (const std::string& name : options.names) {
    const std::string path = query("/v1/nodes/" + client::encode_segment(name) + "/" + words.route,
                                   {{"gone_in_s", gone_in_s},
                                    {"lose_work", options.lose_work ? "true" : ""},
                                    {"deadline_s", deadline_s},
                                    {"gpu", options.gpu},
                                    {"when_idle", options.when_idle ? "true" : ""}});
    const auto answer = answer_of(session.server.post(path, ""));
    if (!answer) return answer.error();
    session.out << "node " << printable(name) << " " << (is_true(*answer, "unchanged") ? words.unchanged : words.done)
                << "\n"
                << drained_words(*answer, name, options.when_idle);
  }
  return kOk;
}

}  // namespace berth::cli
