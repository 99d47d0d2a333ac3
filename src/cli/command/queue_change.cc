#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"

namespace berth::cli {
namespace {

std::string changes_path(const QueueChangeOptions& options) {
  return "/v1/queues/" + client::encode_segment(options.queue) + "/changes";
}

std::string limit_line(const Json& limit) {
  return printable(show(limit, "key")) + " " + show(limit, "before") + " -> " + show(limit, "value");
}

std::string limit_lines(const Json& answer) {
  std::string text;
  for (const Json& limit : items(answer, "limits"))
    text += printable(show(answer, "queue")) + ": " + limit_line(limit) + "\n";
  return text;
}

// "jobs 3, 7 and 2 that you may not see", or nothing.
std::string some_jobs(const Json& answer, std::string_view name) {
  constexpr std::size_t kMostShown = 10;
  const auto& jobs = items(at(answer, name), "jobs");
  const std::int64_t hidden = integer(at(answer, name), "not_shown");
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(jobs.size(), kMostShown); ++i) parts.push_back(show(jobs[i]));
  std::string text = joined(parts, ", ");
  if (jobs.size() > kMostShown) text += " and " + std::to_string(jobs.size() - kMostShown) + " more";
  if (!text.empty()) text = (jobs.size() == 1 ? "job " : "jobs ") + text;
  if (hidden == 0) return text;
  return text + (text.empty() ? "" : ", and ") + std::to_string(hidden) + (hidden == 1 ? " job" : " jobs") +
         " that you may not see";
}

std::string preview_text(const QueueChangeOptions& options, const Json& answer) {
  if (is_true(answer, "unchanged")) return "nothing would change: it is so already\n";
  std::string text = limit_lines(answer);
  const auto add = [&](std::string_view name, const std::string& words) {
    if (const std::string jobs = some_jobs(answer, name); !jobs.empty()) text += "  " + words + ": " + jobs + "\n";
  };
  add("become_borrowed", "no longer guaranteed, so other queues may reclaim what they borrow then");
  add("become_guaranteed", "guaranteed then");
  if (is_true(answer, "above_max"))
    text += "  more runs than the new max; no job is stopped, and none starts until enough have ended\n";
  add("start", "would start now, or get their places");
  add("wait", "would wait longer");
  add("stop", "would be asked to stop now");
  return text + "nothing is changed; to do it, leave --dry-run out" +
         (options.if_revision.empty() ? " and add --if-revision " + show(answer, "revision") +
                                            ", so that you are told if another changes it in between"
                                      : "") +
         "\n";
}

Result<boost::json::object> body_of(const QueueChangeOptions& options) {
  boost::json::object body;
  if (options.action == "undo") {
    if (!options.settings.empty() || !options.until.empty())
      return invalid("undo takes the queue alone; it undoes the last change of it");
    if (options.dry_run) body["undo"] = true;
    return body;
  }
  if (options.settings.empty()) return invalid("nothing to set; give KEY=VALUE, such as guaranteed.gpus=+8");
  body["set"] = boost::json::array(options.settings.begin(), options.settings.end());
  const auto until = iso_when(options.until, clock_now());
  if (!until) return invalid("--until: " + until.error().message);
  if (!until->empty()) body["until"] = *until;
  return body;
}

Result<int> show_changes(const QueueChangeOptions& options, Session& session) {
  const auto answer = get(session, "/v1/queues/" + client::encode_segment(options.queue));
  if (!answer) return answer.error();
  session.out << formatted(at(*answer, "changes"), options.format, [&] {
    if (items(*answer, "changes").empty()) return std::string("no changes by command: the configuration file holds\n");
    Table table({{"AT"}, {"BY", Align::kLeft, true}, {"UNTIL"}, {"CHANGE", Align::kLeft, true}});
    for (const Json& edit : items(*answer, "changes")) {
      for (const Json& limit : items(edit, "limits"))
        table.add({clock_text(show(edit, "at")), show(edit, "by"), clock_text(show(edit, "until")), limit_line(limit)});
    }
    return table.text(table_width(session, options.format));
  });
  return kOk;
}

}  // namespace

Result<int> run(const QueueChangeOptions& options, Session& session) {
  if (options.action == "changes") return show_changes(options, session);
  const auto body = body_of(options);
  if (!body) return body.error();
  const std::string tag = options.if_revision.empty() ? "" : "\"" + options.if_revision + "\"";
  const bool undo = options.action == "undo";
  const std::string path = changes_path(options) + (options.dry_run ? "/preview" : undo ? "/undo" : "");
  const std::string text = undo && !options.dry_run ? "" : boost::json::serialize(*body);
  const auto answer = answer_of(session.server.post_matching(path, text, tag));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] {
    if (options.dry_run) return preview_text(options, *answer);
    if (is_true(*answer, "unchanged")) return std::string("nothing changes: it is so already\n");
    return limit_lines(*answer) +
           (body->contains("until") ? "  until " + clock_text(show(body->at("until"))) + "\n" : "");
  });
  return kOk;
}

}  // namespace berth::cli
