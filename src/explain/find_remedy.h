#pragma once
// Counterfactuals: the smallest changes that would start a waiting job now.
//
// 1. "Start" means: asked next, the job gets its places without anybody being asked to leave but those the change
// names.
// 2. Nothing is told that was not tried, with the functions that decide in the cycle (explain/pending_reason.h).
// 3. Each change is minimal: one victim, node or limit fewer, one unit of quota less, one task, GPU, core or MiB more,
//    and the job does not start. Minimal is not least: another set of victims may be smaller.
// 4. The search is budgeted in work, never in time; what it cannot finish it leaves out. Equal states get equal
// answers.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/timestamp.h"
#include "explain/remedy.h"
#include "state/state.h"

namespace berth::explain {

struct Effort {
  std::uint64_t tries = 600;
  std::uint64_t nodes_scored = 1'000'000;
  std::size_t changes = 8;  // at most so many are told
};

// Each changes one thing (RemedyKind's order), but for victims that leave while limits are raised. Empty when the job
// does not wait, or when nothing of the kind helps. `state` is used as scratch paper and is as before afterwards.
std::vector<Remedy> smallest_remedies(state::State& state, JobId job, Timestamp now, const Effort& effort = {});

// Whether the job would start with the change made.
bool starts_with(state::State& state, JobId job, Timestamp now, const Remedy& change);

}  // namespace berth::explain
