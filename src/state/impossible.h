#pragma once
// A limit that rules a job out for ever: the job asks for more than a queue on its path allows even to a job that runs
// alone. Such a job is accepted with a warning, because limits change, and waits until the limit is raised.

#include <cstdint>
#include <optional>
#include <string>

#include "model/job.h"
#include "state/state.h"

namespace berth::state {

struct ImpossibleLimit {
  QueueId queue;
  bool of_user = false;       // a limit per user; else the queue's max
  std::size_t dim = kDimGpu;  // kDims: the number of a user's jobs
  std::int64_t asked = 0;     // at least, with min_count tasks of each group
  std::int64_t limit = 0;
  bool on_each_model = false;  // it accepts several GPU models, and on no other the limit is nearer to what it asks for
};

// Returns the lowest such limit on the path of the queue, or nothing. Of a service it is the limit of one replica.
// Limits of GPU models, and of GPU-equivalents, rule a job out where they do so on each model that a group accepts.
std::optional<ImpossibleLimit> impossible_limit(const State& state, QueueId queue, const JobSpec& spec);

// Returns it in words: "queue 'a' has max 16 GPUs, and the job asks for 24".
std::string text_of(const State& state, const ImpossibleLimit& limit);

}  // namespace berth::state
