#pragma once
// What sbatch and srun are asked for, as values: read of the given options in the order of the script, the environment
// and the command line, so that the last one wins. Complaints are Slurm's own words and exit codes.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "slurm/array_spec.h"
#include "slurm/complaint.h"
#include "slurm/parser.h"

namespace berth::slurm {

// How the rules of --nodelist and --exclude begin.
inline constexpr std::string_view kWantedNode = "metadata.name=";
inline constexpr std::string_view kUnwantedNode = "metadata.name!=";

struct DependsOn {
  std::string key;  // after, afterok or afterany
  std::string job;  // "7" or "7_3"
};

struct JobRequest {
  std::string name;
  std::string account;
  std::string partition;
  std::string qos;
  std::string comment;
  std::string directory;
  std::string output;
  std::string error;
  std::string input;
  bool append = false;
  std::string exported = "ALL";
  std::optional<ArraySpec> array;
  std::vector<DependsOn> dependencies;
  std::optional<Timestamp> begin;
  std::optional<Timestamp> deadline;
  bool hold = false;
  bool exclusive = false;
  std::map<std::string, std::vector<std::string>, std::less<>> node_rules;  // by the option that they are of
  std::string image;
  std::vector<std::string> mounts;
  std::optional<std::int64_t> ntasks;
  std::optional<std::int64_t> ntasks_per_node;
  std::optional<std::int64_t> cpus_per_task;
  std::int64_t cpus_per_gpu = 0;
  std::int64_t least_cpus = 0;
  std::int64_t gpus = 0;
  std::int64_t gpus_per_task = 0;
  std::map<std::string, std::string, std::less<>> gpu_types;  // by the option that names it
  std::optional<std::int64_t> memory_mib;
  std::int64_t memory_per_cpu_mib = 0;
  std::int64_t memory_per_gpu_mib = 0;
  std::string signal;
  std::int64_t signal_s = 60;
  std::int64_t limit_minutes = -1;  // kUnlimited: none
  bool parsable = false;
  bool quiet = false;
  bool wait = false;
  bool test_only = false;
  bool in_job = false;  // a step of a job that runs
  std::optional<std::string> wrap;

  std::int64_t tasks() const;
  std::int64_t cpus() const;
  std::int64_t all_gpus() const;
  std::string gpu_type() const;  // empty: any
  std::optional<std::int64_t> memory() const;
};

OrComplaint<JobRequest> read_request(Tool tool, const std::vector<Given>& given, Timestamp now);

// The options that variables of the environment stand for, as SBATCH_PARTITION does for --partition.
std::vector<Given> given_by_variables(Tool tool, const std::vector<std::string>& variables);

}  // namespace berth::slurm
