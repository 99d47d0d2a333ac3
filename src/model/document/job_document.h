#pragma once
// job.yaml or JSON: a JobSpec as its user writes it. The syntax is docs/jobs.md. The fields of a task group may stand
// at the top for a job that has one group. What a job asks of CPUs and memory when it does not say is decided here and
// nowhere else (fill_request). Whether the cluster can take the job is control::validate's business.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/document/document.h"
#include "model/job.h"

namespace berth::document {

inline constexpr std::int64_t kDefaultCpuMilli = 1000;  // without GPUs; with them, this much per GPU
inline constexpr std::int64_t kDefaultMemoryMib = 512;  // without GPUs
inline constexpr std::int64_t kDefaultMemoryMibPerGpu = 1024;

// The job in `text`. An error reads FILE:LINE:COLUMN: PATH: what is wrong; what would be right.
Result<JobSpec> read_job(std::string_view text, std::string_view file);
// The same from a tree: parse a file, set() on it what flags say, then read.
Result<JobSpec> read_job(const Node& document, std::string_view file);

// Gives `request` the CPUs and memory that were not stated. A share of a GPU counts as one GPU.
void fill_request(TaskRequest& request, bool cpus_stated, bool memory_stated);

// The document that reads back as `spec`. Flat when the job has one group called main.
Node job_node(const JobSpec& spec);
std::string job_to_yaml(const JobSpec& spec);

}  // namespace berth::document
