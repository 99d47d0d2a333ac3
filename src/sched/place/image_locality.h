#pragma once
// Image locality: tasks go to nodes that have their image, as far as that costs nothing that counts more.
//
// Whether a job fits, with how many tasks, on which GPU models and within which guarantees is found out first, without
// a look at images. Then it is placed once more, where of nodes that leave as many GPUs free (and, where nodes are
// scored, cost the fleet as little) those with the image go before those without. These places are taken if more tasks
// find their image there and nothing else is worse: as many tasks, no lower standing, no more nodes, no more domains of
// any level. So what nodes have decides where a job runs and never whether, and a job without an image is placed once.
// docs/decisions/0020 says why it stands there.

#include <cstdint>
#include <span>

#include "model/job.h"
#include "state/state.h"

namespace berth::sched {

// Whether some task stands where its image is not, though some node has it.
bool image_is_missing(const state::State& state, const JobSpec& spec, std::span<const TaskPlacement> places);

// Whether more tasks find their image on the others, and they are as many, as near to each other, and on as few nodes;
// or, of a job that is to be spread, on as many.
bool are_nearer_to_images(const state::State& state, const JobSpec& spec, std::span<const TaskPlacement> others,
                          std::span<const TaskPlacement> places);

}  // namespace berth::sched
