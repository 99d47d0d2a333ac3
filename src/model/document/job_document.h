#pragma once
// job.yaml or JSON: a JobSpec as its user writes it; docs/jobs.md has the syntax. A job with one task group may have
// the fields of the group at the top. Default CPUs and memory are set only here (fill_request). Whether the cluster can
// take the job is checked by control::validate.

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

// Returns the job in `text`. An error has a line for each mistake, FILE:LINE:COLUMN: PATH: what is
// wrong; what would be right.
Result<JobSpec> read_job(std::string_view text, std::string_view file);
// The same from a tree: parse a file, set() what the flags state, then read.
Result<JobSpec> read_job(const Node& document, std::string_view file);
// The same, with each mistake by itself.
Checked<JobSpec> check_job(const Node& document);

// Sets the CPUs and memory of `request` that were not stated. A share of a GPU counts as one GPU.
void fill_request(TaskRequest& request, bool cpus_stated, bool memory_stated);

// Returns the document that reads back as `spec`. It is flat if the job has one group called main.
Node job_node(const JobSpec& spec);
std::string job_to_yaml(const JobSpec& spec);

}  // namespace berth::document
