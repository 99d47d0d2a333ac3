#pragma once
// Finds remedies: the smallest changes with which a pending job would start now.
//
// 1. "Would start" means that the job gets its places if the cycle tries it next. Only the victims that the remedy
//    names are evicted.
// 2. Each remedy is tried before it is returned, with the functions that decide in the cycle
//    (explain/pending_reason.h).
// 3. Each remedy is minimal: with one victim, node or limit fewer, or with one unit of quota less, the job would not
//    start. The same holds with one task, GPU, core or MiB more in its request. Another, smaller set of victims may
//    exist.
// 4. The search is limited by counted work, never by time. It leaves out what it cannot finish, so equal states give
//    equal answers.

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
  std::size_t changes = 8;  // the most remedies that are returned
};

// Returns remedies, each of which changes one thing. Exception: one remedy may combine victims with raised limits. The
// result is empty if the job is not pending, or if no change helps. `state` is changed during the search and restored.
std::vector<Remedy> smallest_remedies(state::State& state, JobId job, Timestamp now, const Effort& effort = {});

// Returns true if the job would start with the remedy `change`.
bool starts_with(state::State& state, JobId job, Timestamp now, const Remedy& change);

}  // namespace berth::explain
