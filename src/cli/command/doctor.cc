#include <algorithm>

#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"

namespace berth::cli {
namespace {

std::string summary(const Json& answer) {
  return show(answer, "ok") + " ok, " + show(answer, "missing") + " missing, " + show(answer, "broken") + " broken, " +
         show(answer, "cannot_be_seen") + " cannot be seen; " + show(answer, "pass_pct") +
         " % of what can be judged is ok\n";
}

std::string lines(const Json& answer, bool all) {
  std::string text;
  std::string area;
  for (const Json& item : items(answer, "items")) {
    const std::string result = show(item, "result");
    if (result == "ok" && !all) continue;
    if (show(item, "area") != area) {
      area = show(item, "area");
      text += (text.empty() ? "" : "\n") + printable(area) + "\n";
    }
    text += "  " + printable(result) + std::string(result.size() < 15 ? 15 - result.size() : 1, ' ') +
            printable(show(item, "check")) + ": " + printable(show(item, "evidence")) + "\n";
    if (const std::string remedy = show(item, "remedy"); !remedy.empty())
      text += std::string(17, ' ') + "-> " + printable(remedy) + "\n";
  }
  return text + (text.empty() ? "" : "\n") + summary(answer);
}

}  // namespace

Result<int> run(const DoctorOptions& options, Session& session) {
  bool is_broken = false;
  const auto shown = show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto answer = get(session, "/v1/diagnosis");
    if (!answer) return answer.error();
    is_broken = integer(*answer, "broken") > 0;
    return formatted(*answer, options.show.format, [&] { return lines(*answer, options.all); });
  });
  if (!shown) return shown;
  return *shown == kOk && is_broken ? kFailed : *shown;
}

}  // namespace berth::cli
