#pragma once
// Says what is short if a job does not fit for lack of room. Either there are too few GPUs, CPUs or too little memory
// for all or some of its groups. Or there is enough of each, and the sentence says why it cannot be used together:
//
// - too few idle nodes, for an exclusive job;
// - too little memory or CPU beside the free GPUs;
// - shares of another trust domain on the GPUs;
// - else, free resources in pieces that are too small.
//
// The cycle counts only GPUs when it refuses a job, so this is computed only for an answer.

#include <string>
#include <vector>

#include "explain/words.h"
#include "model/reason.h"

namespace berth::explain {

// Returns the predicate for a reason about room: "waits for 3 free GPUs; none is free now", with the notes in
// parentheses at its end. Requires: the code of the reason is insufficient-resources or fragmented.
std::string text_with_what_is_short(const Words& words, const state::JobState& job, const Reason& reason,
                                    std::vector<std::string> notes = {});

// counted returns an amount with its noun: "4 GPUs", "1 CPU", "64 GiB of memory". is_one returns true if a verb after
// it is singular ("is").
std::string counted(std::size_t dim, std::int64_t amount);
bool is_one(std::size_t dim, std::int64_t amount);

}  // namespace berth::explain
