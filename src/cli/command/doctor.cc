#include <algorithm>

#include "base/html.h"
#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"

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

constexpr const char* kStyle =
    "body{font:11pt/1.4 sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#111;background:#fff}"
    "table{border-collapse:collapse;width:100%;margin:1em 0}thead{display:table-header-group}"
    "tr{break-inside:avoid}th,td{text-align:left;vertical-align:top;padding:.3em .6em;border-bottom:1px solid #bbb}"
    "td:nth-child(-n+2){white-space:nowrap}td:nth-child(2){font-weight:bold}.ok{color:#0a5c2b}.missing{color:#7a4b00}"
    ".broken{color:#a3001b}.cannot-be-seen{color:#555}h2{margin:1.5em 0 0}@page{size:A4 landscape;margin:15mm}"
    "@media print{body{margin:0;max-width:none}}";

// The whole checklist as a document, what is ok included, since it is kept as evidence.
std::string document(const Json& answer, const std::string& asked) {
  std::string text = std::string("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n") +
                     "<title>Production checklist</title>\n<style>" + kStyle +
                     "</style>\n</head>\n<body>\n<h1>Production checklist</h1>\n<p>Tried at " + escaped_html(asked) +
                     ". " + escaped_html(summary(answer)) + "</p>\n";
  std::string area;
  for (const Json& item : items(answer, "items")) {
    if (show(item, "area") != area) {
      text += area.empty() ? "" : "</tbody>\n</table>\n";
      area = show(item, "area");
      text += "<h2>" + escaped_html(area) +
              "</h2>\n<table>\n<thead><tr><th>check</th><th>result</th><th>what was seen</th><th>what mends it</th>"
              "</tr></thead>\n<tbody>\n";
    }
    const std::string result = escaped_html(show(item, "result"));
    text += "<tr><td>" + escaped_html(show(item, "check")) + "</td><td class=\"" + result + "\">" + result +
            "</td><td>" + escaped_html(show(item, "evidence")) + "</td><td>" + escaped_html(show(item, "remedy")) +
            "</td></tr>\n";
  }
  return text + (area.empty() ? "" : "</tbody>\n</table>\n") + "</body>\n</html>\n";
}

}  // namespace

Result<int> run(const DoctorOptions& options, Session& session) {
  bool is_broken = false;
  const auto shown = show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto answer = get(session, "/v1/diagnosis");
    if (!answer) return answer.error();
    is_broken = integer(*answer, "broken") > 0;
    if (options.show.format == Format::kHtml) return document(*answer, to_iso8601(clock_now()));
    return formatted(*answer, options.show.format, [&] { return lines(*answer, options.all); });
  });
  if (!shown) return shown;
  return *shown == kOk && is_broken ? kFailed : *shown;
}

}  // namespace berth::cli
