#include <algorithm>

#include "cli/command/commands.h"
#include "cli/command/document_body.h"
#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/config_document.h"

namespace berth::cli {
namespace {

Result<std::string> config_body(const std::string& file) { return document_body(file, document::read_config); }

// "jobs 3, 7 and 2 more", or nothing.
std::string jobs_text(const Json& one, std::string_view name) {
  constexpr std::size_t kMostShown = 10;
  const auto& jobs = items(one, name);
  std::string text;
  for (std::size_t i = 0; i < std::min(jobs.size(), kMostShown); ++i) text += (i == 0 ? "" : ", ") + show(jobs[i]);
  if (jobs.size() > kMostShown) text += " and " + std::to_string(jobs.size() - kMostShown) + " more";
  return text.empty() ? text : (jobs.size() == 1 ? "job " : "jobs ") + text;
}

std::string consequence_line(const Json& one) {
  const std::string queue = "queue " + printable(show(one, "queue")) + ": ";
  std::string text;
  if (const std::string jobs = jobs_text(one, "become_borrowed"); !jobs.empty())
    text += queue + jobs + " would no longer be guaranteed; other queues may reclaim what they borrow then\n";
  if (const std::string jobs = jobs_text(one, "become_guaranteed"); !jobs.empty())
    text += queue + jobs + " would become guaranteed\n";
  if (is_true(one, "above_max"))
    text += queue + "more runs than the new max; no job is stopped, and none starts until enough have ended\n";
  return text;
}

// "research/nlp.guaranteed.gpus 300 by user:ada until ..."
std::string by_command(const Json& one) {
  std::string text = printable(show(one, "queue")) + "." + printable(show(one, "key")) + " " + show(one, "value") +
                     " by " + printable(show(one, "by"));
  if (has(one, "until")) text += " until " + clock_text(show(one, "until"));
  return text;
}

std::string by_command_text(const Json& difference) {
  std::string text;
  for (const Json& one : items(difference, "replaced"))
    text += "the file takes over what was set by command: " + by_command(one) + "; then " + show(one, "file") + "\n";
  for (const Json& one : items(difference, "kept"))
    text += "set by command, and stays in force over the file: " + by_command(one) + "; the file says " +
            show(one, "file") + "\n";
  return text;
}

// What the server says of a difference: what changes, whom it meets, and whether it would be refused.
std::string difference_text(const Json& difference) {
  std::string text;
  for (const Json& change : items(difference, "changes")) text += printable(show(change)) + "\n";
  text += by_command_text(difference);
  for (const Json& one : items(difference, "consequences")) text += consequence_line(one);
  if (has(difference, "refusal")) text += "apply would refuse it: " + printable(show(difference, "refusal")) + "\n";
  return text;
}

// The entity tag that the configuration in force must have; empty: any.
Result<std::string> tag_to_match(const ApplyOptions& options, const std::string& body, Session& session) {
  if (!options.diff) return options.if_version < 0 ? "" : "\"" + std::to_string(options.if_version) + "\"";
  const auto difference = answer_of(session.server.post("/v1/config/diff", body));
  if (!difference) return difference.error();
  // Where standard output is for a program, it gets one document.
  (options.format == Format::kTable ? session.out : session.err) << difference_text(*difference);
  return "\"" + show(*difference, "version") + "\"";
}

}  // namespace

Result<int> run(const ApplyOptions& options, Session& session) {
  const auto body = config_body(options.file);
  if (!body) return body.error();
  const auto tag = tag_to_match(options, *body, session);
  if (!tag) return tag.error();
  const auto answer = answer_of(session.server.put("/v1/config", *body, *tag));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] {
    const std::string version = show(*answer, "version");
    return is_true(*answer, "unchanged") ? "nothing changes: version " + version + " is applied already\n"
                                         : "applied: version " + version + "\n";
  });
  return kOk;
}

// As diff(1): 0 for no change, 1 for changes, 2 for trouble that has no code of its own.
Result<int> run(const DiffOptions& options, Session& session) {
  const auto body = config_body(options.file);
  if (!body) return body.error();
  const auto answer = answer_of(session.server.post("/v1/config/diff", *body));
  if (!answer && exit_code_of(answer.error().code) == kFailed) {
    session.err << "berth: " << printable(answer.error().message) << "\n";
    return kUsage;
  }
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] {
    std::string text = difference_text(*answer);
    if (!text.empty() && has(*answer, "version"))
      text += "version " + show(*answer, "version") + " is in force; berth apply --if-version " +
              show(*answer, "version") + " changes no other\n";
    return text;
  });
  return items(*answer, "changes").empty() ? kOk : kFailed;
}

Result<int> run(const ConfigOptions& options, Session& session) {
  const auto answer = get(session, "/v1/config");
  if (!answer) return answer.error();
  if (options.format == Format::kJson) {
    session.out << json_text(at(*answer, "config"));
  } else {
    session.out << "# version " << show(*answer, "version") << "\n";
    for (const Json& one : items(*answer, "changes"))
      session.out << "# in force over this, by command: " << by_command(one) << "\n";
    session.out << show(*answer, "yaml");
  }
  return kOk;
}

}  // namespace berth::cli
