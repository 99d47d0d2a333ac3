#include <boost/json/object.hpp>
#include <string_view>

#include "cli/command/commands.h"
#include "cli/command/forecast_words.h"
#include "cli/command/job_selection.h"
#include "cli/command/job_words.h"
#include "cli/exit_code.h"
#include "cli/printable.h"

namespace berth::cli {
namespace {

Result<Json> ask(JobAction action, const std::string& id, Session& session) {
  const auto path = job_path(id);
  if (!path) return path.error();
  switch (action) {
    case JobAction::kCancel:
      return answer_of(session.server.del(*path));
    case JobAction::kHold:
      return answer_of(session.server.post(*path + "/hold", ""));
    case JobAction::kRelease:
      return answer_of(session.server.post(*path + "/release", ""));
  }
  return invalid("no such action");
}

std::string done_words(JobAction action, bool unchanged) {
  switch (action) {
    case JobAction::kCancel:
      return unchanged ? "was being cancelled already" : "is being cancelled";
    case JobAction::kHold:
      return unchanged ? "was held already" : "held";
    case JobAction::kRelease:
      return unchanged ? "was not held" : "released";
  }
  return "";
}

// Returns the jobs that are named, or those that are chosen, once the user has agreed; none if the user has not.
Result<std::vector<std::string>> jobs_agreed(const std::string& verb, const std::vector<std::string>& ids,
                                             const JobSelector& selector, Session& session) {
  auto found = jobs_of(ids, selector, session);
  if (!found || !selector.any() || selector.confirmed) return found;
  if (!session.confirm) return invalid("this would " + verb + " " + jobs_named(*found) + "; add --yes");
  if (!session.confirm(verb + " " + jobs_named(*found) + "?")) found->clear();
  return found;
}

const char* verb_of(JobAction action) {
  switch (action) {
    case JobAction::kCancel:
      return "cancel";
    case JobAction::kHold:
      return "hold";
    case JobAction::kRelease:
      return "release";
  }
  return "";
}

// Returns the number that was given (the command line has checked it), or that of the priority class that was named.
Result<std::string> priority_of(const std::string& word, Session& session) {
  if (std::string_view("+-0123456789").find(word.front()) != std::string_view::npos) return word;
  const auto config = get(session, "/v1/config");
  if (!config) return config.error();
  std::string known;
  if (const auto* classes = at(at(*config, "config"), "priority_classes").if_object()) {
    for (const auto& [name, value] : *classes) {
      if (name == word) return show(value.is_object() ? at(value, "value") : value);
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
  }
  return invalid("no priority class '" + word.substr(0, 80) + "'; give a number" +
                 (known.empty() ? "" : " or one of: " + known));
}

// Acts on each job, and shows the words of it, which end with a line break. Every one is tried; the first failure
// decides the exit code.
template <class Act>
Result<int> for_each(const std::vector<std::string>& ids, bool chosen, Session& session, Act&& act) {
  int code = kOk;
  std::size_t done = 0;
  for (const std::string& id : ids) {
    const Result<std::string> words = act(id);
    if (words) {
      session.out << "job " << id << " " << *words;
      ++done;
      continue;
    }
    if ((ids.size() == 1 && !chosen) || words.error().code == ErrorCode::kUnavailable) return words.error();
    session.err << "berth: " << printable(words.error().message) << "\n";
    if (code == kOk) code = exit_code_of(words.error().code);
  }
  if (chosen) session.out << done << " of " << counted(std::to_string(ids.size()), "job") << "\n";
  return code;
}

}  // namespace

Result<int> run(const JobActionOptions& options, Session& session) {
  JobSelector selector = options.selector;
  const bool any = selector.any();
  // Only pending jobs can be held or released.
  if (any && selector.phase.empty() && options.action != JobAction::kCancel) selector.phase = "pending";
  const auto ids = jobs_agreed(verb_of(options.action), options.ids, selector, session);
  if (!ids) return ids.error();
  return for_each(*ids, any, session, [&](const std::string& id) -> Result<std::string> {
    const auto answer = ask(options.action, id, session);
    if (!answer) return answer.error();
    return done_words(options.action, is_true(*answer, "unchanged")) + "\n";
  });
}

Result<int> run(const PrioritizeOptions& options, Session& session) {
  if (options.priority.empty())
    return invalid("which priority? give it behind the job's number, or as --to where jobs are chosen");
  const auto priority = priority_of(options.priority, session);
  if (!priority) return priority.error();
  const std::string body = "{\"priority\": " + *priority + "}";
  const std::vector<std::string> named = options.id.empty() ? std::vector<std::string>() : std::vector{options.id};
  const bool chosen = options.selector.any();
  const auto ids = options.dry_run ? jobs_of(named, options.selector, session)
                                   : jobs_agreed("prioritize", named, options.selector, session);
  if (!ids) return ids.error();
  return for_each(*ids, chosen, session, [&](const std::string& id) -> Result<std::string> {
    const auto path = job_path(id);
    if (!path) return path.error();
    Result<Json> forecast = Json();
    if (options.dry_run || !chosen) forecast = answer_of(session.server.post(*path + "/forecast", body));
    if (options.dry_run) {
      if (!forecast) return forecast.error();
      return "with priority " + *priority + ": " + forecast_text(*forecast);
    }
    const auto answer = answer_of(session.server.put(*path + "/priority", body));
    if (!answer) return answer.error();
    return "has priority " + *priority + (forecast ? consequence_text(*forecast) : "\n");
  });
}

}  // namespace berth::cli
