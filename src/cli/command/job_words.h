#pragma once
// How a job's state is said, the same in every command.

#include <string>

#include "base/timestamp.h"
#include "cli/answer.h"

namespace berth::cli {

// A few words: "pending", "pending (dependency-never)", "held", "running", "running, borrowed", "stopping", or how it
// finished.
std::string state_words(const Json& job);

// How long it has been in its phase: waiting, running, stopping or over.
std::string in_state_for(const Json& job, Timestamp now);

// "2 tasks", "1 task", "0.5 GPUs", "1 GPU".
std::string counted(const std::string& amount, const std::string& noun);

// The GPU-hours that the job has used, with two decimals.
std::string gpu_hours_text(const Json& job);

// Why an attempt was stopped, and for whom: "reclaim, for job 9".
std::string stop_words(const Json& stopped);

}  // namespace berth::cli
