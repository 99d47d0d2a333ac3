#include <algorithm>
#include <set>
#include <utility>

#include "cli/command/commands.h"
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

constexpr std::int64_t kPage = 1000;
constexpr std::size_t kMostNamed = 10;

// Returns the numbers of all live jobs that the selector chooses. A replica or an element is left out if its service or
// array is chosen, which stands for it.
Result<std::vector<std::string>> chosen(const JobSelector& selector, const std::string& phase, Session& session) {
  std::vector<std::pair<std::string, std::string>> found;  // number, parent
  std::set<std::string> numbers;
  std::string cursor;
  do {
    const auto page = get(session, query("/v1/jobs", {{"queue", selector.queue},
                                                      {"user", selector.user},
                                                      {"mine", selector.me ? "true" : ""},
                                                      {"phase", phase},
                                                      {"name", selector.name},
                                                      {"label", selector.label},
                                                      {"limit", std::to_string(kPage)},
                                                      {"cursor", cursor}}));
    if (!page) return page.error();
    for (const Json& job : items(*page, "items")) {
      found.emplace_back(show(job, "id"), show(job, "parent"));
      numbers.insert(found.back().first);
    }
    cursor = show(*page, "next_cursor");
  } while (!cursor.empty());
  std::vector<std::string> ids;
  for (const auto& [id, parent] : found) {
    if (!numbers.contains(parent)) ids.push_back(id);
  }
  return ids;
}

// "3 jobs (7, 8, 9)"
std::string jobs_named(const std::vector<std::string>& ids) {
  std::vector<std::string> named(ids.begin(),
                                 ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), kMostNamed)));
  if (ids.size() > kMostNamed) named.push_back("...");
  return counted(std::to_string(ids.size()), "job") + " (" + joined(named, ", ") + ")";
}

// Returns the jobs that are named, or those that are chosen, once the user has agreed; none if the user has not.
Result<std::vector<std::string>> jobs_for(const std::string& verb, const std::vector<std::string>& ids,
                                          const JobSelector& selector, const std::string& phase, Session& session) {
  if (selector.any() == !ids.empty())
    return invalid(ids.empty() ? "name jobs, or choose them by --queue, --user, --me, --phase, --name or --label"
                               : "name jobs or choose them, not both");
  if (!selector.any()) return ids;
  auto found = chosen(selector, phase, session);
  if (!found) return found.error();
  if (found->empty()) return not_found("no live job matches");
  if (selector.confirmed) return found;
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

// Acts on each job. Every one is tried; the first failure decides the exit code.
template <class Act>
Result<int> for_each(const std::vector<std::string>& ids, bool chosen, Session& session, Act&& act) {
  int code = kOk;
  std::size_t done = 0;
  for (const std::string& id : ids) {
    const Result<std::string> words = act(id);
    if (words) {
      session.out << "job " << id << " " << *words << "\n";
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
  const JobSelector& selector = options.selector;
  // Only pending jobs can be held or released.
  const std::string phase = selector.phase.empty() && options.action != JobAction::kCancel ? "pending" : selector.phase;
  const auto ids = jobs_for(verb_of(options.action), options.ids, selector, phase, session);
  if (!ids) return ids.error();
  return for_each(*ids, selector.any(), session, [&](const std::string& id) -> Result<std::string> {
    const auto answer = ask(options.action, id, session);
    if (!answer) return answer.error();
    return done_words(options.action, is_true(*answer, "unchanged"));
  });
}

Result<int> run(const PrioritizeOptions& options, Session& session) {
  if (!options.priority)
    return invalid("which priority? give it behind the job's number, or as --to where jobs are chosen");
  const std::vector<std::string> named = options.id.empty() ? std::vector<std::string>() : std::vector{options.id};
  const std::string priority = std::to_string(*options.priority);
  const auto ids = jobs_for("prioritize", named, options.selector, options.selector.phase, session);
  if (!ids) return ids.error();
  return for_each(*ids, options.selector.any(), session, [&](const std::string& id) -> Result<std::string> {
    const auto path = job_path(id, "/priority");
    if (!path) return path.error();
    const auto answer = answer_of(session.server.put(*path, "{\"priority\": " + priority + "}"));
    if (!answer) return answer.error();
    return "has priority " + priority;
  });
}

}  // namespace berth::cli
