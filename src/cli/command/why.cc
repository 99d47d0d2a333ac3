#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/printable.h"

namespace berth::cli {

Result<int> run(const WhyOptions& options, Session& session) {
  const auto path = job_path(options.id, "/why");
  if (!path) return path.error();
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto why = get(session, *path);
    if (!why) return why.error();
    return formatted(*why, options.show.format, [&] {
      const std::string phase = show(*why, "phase");
      std::string text = "job " + show(*why, "id") + (phase == "pending" ? " is pending" : "") + ": " +
                         printable(show(*why, "summary")) + "\n";
      for (const Json& detail : items(*why, "details")) text += "  " + printable(show(detail)) + "\n";
      for (const Json& change : items(*why, "changes")) text += "  " + printable(show(change, "text")) + "\n";
      if (is_true(*why, "never")) text += "Waiting cannot help: the job or the cluster has to be changed.\n";
      return text;
    });
  });
}

}  // namespace berth::cli
