#pragma once
// What must hold of a job whatever the cluster is: texts, amounts, the keys of its kind. The server refuses by it at
// submission, beside what needs its state (control/validate.h), and `berth check` tells the same without a server.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/job.h"

namespace berth {

inline constexpr std::int64_t kMaxSeconds = 366LL * 86'400;
inline constexpr std::size_t kMaxTaskGroups = 64;
// Gangs get their MASTER_PORT from this range, and jobs may not ask for a port of it.
inline constexpr std::int32_t kFirstMasterPort = 20'000;
inline constexpr std::int32_t kLastMasterPort = 29'999;

// Returns what is wrong with the job, of each task group the first mistake. Each message begins with the path of the
// key, such as "groups[1].workdir". The user is not looked at: the server knows it, not the document.
std::vector<Error> check_job_alone(const JobSpec& spec);

// Returns the path of a task group before its keys: "groups[1].", or "" for a single group.
std::string path_of_group(const JobSpec& spec, std::size_t index);

// Error: `text` is not one line of UTF-8 without control characters, or is longer than 4096 bytes.
Result<void> check_line(const std::string& field, const std::string& text);

}  // namespace berth
