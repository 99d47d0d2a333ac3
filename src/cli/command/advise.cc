#include <algorithm>

#include "cli/command/commands.h"
#include "cli/output.h"
#include "cli/printable.h"

namespace berth::cli {
namespace {

// Each line begins with the indent and is no wider than `width`, if a word lets it; width 0: one line.
std::string wrapped(const std::string& text, const std::string& indent, std::size_t width) {
  std::string lines;
  std::size_t column = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, to - from);
    if (column > 0 && width > 0 && column + 1 + word.size() > width) {
      lines += "\n";
      column = 0;
    }
    lines += (column == 0 ? indent : " ") + word;
    column += (column == 0 ? indent.size() : 1) + word.size();
    from = to + 1;
  }
  return lines + "\n";
}

// "warning  user-without-limit  queue research/nlp", and below it what is so and what would mend it.
std::string piece(const Json& item, std::size_t width) {
  const std::string name = show(item, "name");
  return show(item, "severity") + (show(item, "severity") == "note" ? "     " : "  ") + printable(show(item, "code")) +
         "  " + printable(show(item, "about")) + (name.empty() ? "" : " " + printable(name)) + "\n" +
         wrapped(printable(show(item, "text")), "  ", width) + wrapped(printable(show(item, "remedy")), "  ", width);
}

std::string pieces(const Json& answer, std::size_t width) {
  std::string text;
  for (const Json& item : items(answer, "items")) text += (text.empty() ? "" : "\n") + piece(item, width);
  if (text.empty()) text = "No advice: of the pitfalls that berth knows none is seen.\n";
  if (!items(answer, "left_out").empty()) text += "\n";
  for (const Json& one : items(answer, "left_out"))
    text += "And " + show(one, "count") + " more of " + printable(show(one, "code")) + ".\n";
  return text + (is_true(answer, "complete") ? "" : "There are more jobs than were looked at.\n");
}

}  // namespace

Result<int> run(const AdviseOptions& options, Session& session) {
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto answer = get(session, "/v1/advice");
    if (!answer) return answer.error();
    const Format format = options.show.format;
    return formatted(*answer, format, [&] { return pieces(*answer, table_width(session, format)); });
  });
}

}  // namespace berth::cli
