#pragma once
// How much a job asks for as a whole.

#include <cstdint>

#include "model/job.h"

namespace berth {

// Returns the milli-GPUs of all tasks of the job, at its full size; of an array those of one element.
std::int64_t gpu_milli_of(const JobSpec& spec);

}  // namespace berth
