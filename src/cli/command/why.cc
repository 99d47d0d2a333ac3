#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/why_answer.h"

namespace berth::cli {

namespace {

std::string printable_text(const Json& of, std::string_view key) { return printable(show(of, key)); }

// The fields of the answer that its text is made of.
WhyAnswer answer_of(const Json& why) {
  WhyAnswer answer;
  answer.code = enum_from_name<ReasonCode>(show(why, "code")).value_or(ReasonCode::kNone);
  answer.headline = printable_text(why, "headline");
  answer.quota = printable_text(why, "quota");
  answer.preemption = printable_text(why, "preemption");
  if (const Json& line = at(why, "line"); line.is_object()) {
    answer.line = WhyAnswer::Line{integer(line, "number"), is_true(line, "exact"), integer(line, "can_start_before"),
                                  printable_text(line, "text")};
  }
  if (const Json& start = at(why, "start"); start.is_object())
    answer.start = WhyAnswer::Start{StartBound::kUnknown, std::nullopt, printable_text(start, "text")};
  for (const Json& remedy : items(why, "remedies")) {
    answer.remedies.push_back({show(remedy, "kind"),
                               show(remedy, "by") == name_of(RemedyBy::kOwner) ? RemedyBy::kOwner : RemedyBy::kOperator,
                               is_true(remedy, "taken"), printable_text(remedy, "text")});
  }
  for (const Json& detail : items(why, "details")) answer.details.push_back(printable(show(detail)));
  return answer;
}

}  // namespace

Result<int> run(const WhyOptions& options, Session& session) {
  const auto path = job_path(options.id, "/why");
  if (!path) return path.error();
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto moment = moment_when(options.at, clock_now());
    if (!moment) return moment.error();
    const auto why = get(session, query(*path, {{"at", *moment}}));
    if (!why) return why.error();
    return formatted(*why, options.show.format, [&] {
      const WhyAnswer answer = answer_of(*why);
      const bool all = options.verbose || options.show.format == Format::kWide;
      std::string text = text_of(answer, all);
      if (!all && !answer.details.empty()) text += "  (details: berth why " + printable_text(*why, "id") + " -v)\n";
      return text;
    });
  });
}

}  // namespace berth::cli
