#pragma once
// What a command would do, in words: the answer of POST /v1/forecast.

#include <string>

#include "cli/answer.h"

namespace berth::cli {

// Returns the lines of --dry-run: whether the job would start, where, who would leave for it, or why it would wait.
std::string forecast_text(const Json& forecast);

// Returns the end of the line that says that the command was carried out, from its forecast: "; it starts on n1", or
// the jobs that leave for it with the work that each loses.
std::string consequence_text(const Json& forecast);

}  // namespace berth::cli
