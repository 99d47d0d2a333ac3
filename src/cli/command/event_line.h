#pragma once
// One event of the log as one line of words.

#include <string>

#include "cli/answer.h"

namespace berth::cli {

// "job 17 starts attempt 2, 8 tasks, borrowed": what happened, without its number and time. An event of a kind that is
// not known here is told by its fields.
std::string event_words(const Json& event);

}  // namespace berth::cli
