#include "cli/command/job_selection.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cli/command/job_words.h"

namespace berth::cli {
namespace {

constexpr std::int64_t kJobsPerRead = 1000;
constexpr std::size_t kMostNamed = 10;

}  // namespace

Result<std::vector<std::string>> chosen_jobs(const JobSelector& selector, Session& session) {
  std::vector<std::pair<std::string, std::string>> found;  // number, parent
  std::set<std::string> numbers;
  std::string cursor;
  do {
    const auto page = get(session, query("/v1/jobs", {{"queue", selector.queue},
                                                      {"user", selector.user},
                                                      {"mine", selector.me ? "true" : ""},
                                                      {"phase", selector.phase},
                                                      {"name", selector.name},
                                                      {"label", selector.label},
                                                      {"limit", std::to_string(kJobsPerRead)},
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
  if (ids.empty()) return not_found("no live job matches");
  return ids;
}

Result<std::vector<std::string>> jobs_of(const std::vector<std::string>& ids, const JobSelector& selector,
                                         Session& session) {
  if (selector.any() == !ids.empty())
    return invalid(ids.empty() ? "name jobs, or choose them by --queue, --user, --me, --phase, --name or --label"
                               : "name jobs or choose them, not both");
  if (!selector.any()) return ids;
  return chosen_jobs(selector, session);
}

std::string jobs_named(const std::vector<std::string>& ids) {
  std::vector<std::string> named(ids.begin(),
                                 ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), kMostNamed)));
  if (ids.size() > kMostNamed) named.push_back("...");
  return counted(std::to_string(ids.size()), "job") + " (" + joined(named, ", ") + ")";
}

}  // namespace berth::cli
