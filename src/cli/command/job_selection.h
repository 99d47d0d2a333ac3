#pragma once
// The jobs that a command is for: named by number, or chosen by what they are (--queue, --user, --label, ...).

#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/session.h"

namespace berth::cli {

// Returns the numbers of all live jobs that the selector chooses. A replica or an element is left out if its service or
// array is chosen, which stands for it. An Error if there are none.
Result<std::vector<std::string>> chosen_jobs(const JobSelector& selector, Session& session);

// Returns the named jobs, or the chosen ones if none are named. An Error if both are given, or neither.
Result<std::vector<std::string>> jobs_of(const std::vector<std::string>& ids, const JobSelector& selector,
                                         Session& session);

// "3 jobs (7, 8, 9)"
std::string jobs_named(const std::vector<std::string>& ids);

}  // namespace berth::cli
