#pragma once
// Image locality: tasks go to nodes that have their image, if that costs nothing that matters more.
//
// First the job is placed without a look at images. That decides whether it fits, with how many tasks, on which GPU
// models and within which guarantees. Then it is placed once more. Of nodes that leave as many GPUs free (and cost the
// fleet as little, if nodes are scored), nodes with the image now go first. The second result is taken if more tasks
// find their image and nothing else is worse: as many tasks, within the same guarantees, and not on more nodes or more
// domains of any level. So images decide where a job runs and never whether. A job without an image is placed once. Why
// images count this late: docs/decisions/0020.

#include <cstdint>
#include <span>

#include "model/job.h"
#include "state/state.h"

namespace berth::sched {

// Returns true if at least one task is on a node without its image, and some node has that image.
bool image_is_missing(const state::State& state, const JobSpec& spec, std::span<const TaskPlacement> places);

// Returns true if more tasks find their image at `others` than at `places`, with no fewer tasks and no more nodes and
// domains. For a job that is to be spread: no fewer nodes and domains.
bool are_nearer_to_images(const state::State& state, const JobSpec& spec, std::span<const TaskPlacement> others,
                          std::span<const TaskPlacement> places);

}  // namespace berth::sched
