#pragma once
// What really runs: a line for /bin/sh that gives the process the SLURM_ environment of what berth told it, opens the
// files of its output, and starts the script from the copy that stands in the job. Nothing of it needs berth on the
// node.

#include <string>
#include <utility>
#include <vector>

#include "slurm/job_request.h"

namespace berth::slurm {

// The words of the job's command. `words` are the script's arguments.
std::vector<std::string> batch_command(const JobRequest& request, const std::string& script,
                                       const std::vector<std::string>& words);

// The same of srun: as many processes of one command as there are tasks.
std::vector<std::string> step_command(const JobRequest& request, const std::vector<std::string>& command);

// A step within a job that is running: of its request only the tasks, the files and the directory count.
std::vector<std::string> inner_step_command(const JobRequest& request, const std::vector<std::string>& command);

// The variables of a job that are known when it is submitted.
std::vector<std::pair<std::string, std::string>> fixed_variables(const JobRequest& request, const std::string& host);

// True for "none", in any case: the file is /dev/null.
bool is_no_file(std::string_view pattern);

// The name of an output file as words of a shell: 'slurm-'"$SLURM_JOB_ID"'.out'.
std::string file_word(const JobRequest& request, const std::string& pattern);

// In single quotes, as a shell reads it.
std::string shell_word(std::string_view text);

}  // namespace berth::slurm
