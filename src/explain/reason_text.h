#pragma once
// Says a typed reason (model/reason.h) in words: the predicate of a sentence whose subject is the job, such as "waits
// for quota: it asks for 1 GPU, and queue b uses 4 of at most 4 (max)".

#include <string>
#include <vector>

#include "explain/words.h"
#include "model/reason.h"

namespace berth::explain {

// Returns the predicate with the numbers that the reason has. A sentence about room is completed by
// text_with_what_is_short (explain/shortage.h).
std::string reason_text(const Words& words, const state::JobState& job, const Reason& reason);

// Returns the predicate for a limit that rules the job out however long it waits (state/impossible.h), and what to do.
std::string impossible_text(const Words& words, const state::JobState& job);

}  // namespace berth::explain
