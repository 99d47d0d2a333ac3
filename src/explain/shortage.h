#pragma once
// What is short where a job does not fit for lack of room: GPUs, CPUs or memory in all, of all its groups or of some;
// or, where there is enough of each, what is in the way of using it together: too few idle nodes, too little memory or
// CPU beside free GPUs, a trust domain, or that the rest is in pieces. A refusal counts GPUs only, so that this is
// worked out for the answer.

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "model/reason.h"
#include "state/state.h"

namespace berth::explain {

// The sentence of a reason (explain/why.h) with that, and at its end the notes in parentheses. `state` is as before
// afterwards.
std::string sentence_with_what_is_short(const state::State& state, const state::JobState& job, Reason reason,
                                        std::vector<std::string> notes = {});

// "4 GPUs", "1 CPU", "64 GiB of memory"; and whether that is one.
std::string counted(std::size_t dim, std::int64_t amount);
bool is_one(std::size_t dim, std::int64_t amount);

}  // namespace berth::explain
