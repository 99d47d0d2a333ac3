#pragma once
// From a request to a job: the document that the server takes, and its refusals in Slurm's words.

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "slurm/job_request.h"
#include "slurm/shell.h"

namespace berth::slurm {

// What runs: a script with its arguments, or the words of a command.
struct Work {
  std::string script;
  std::vector<std::string> words;
};

boost::json::object job_document(const Shell& shell, const JobRequest& request, const Work& work);

// Submits it; gives the server's answer. A GPU type that is no model stands for the models that begin with it.
OrComplaint<cli::Json> submit(Shell& shell, const JobRequest& request, const Work& work);

// The same, but asks only what would happen.
OrComplaint<cli::Json> foretell(Shell& shell, const JobRequest& request, const Work& work);

// Asks for the job until the server answers, for two minutes at most: it may be starting again.
Result<cli::Json> job_once_told(Shell& shell, const std::string& id);

// Waits until the job is over and returns its exit code; of an array the highest of its elements.
Result<int> wait_for_end(Shell& shell, const std::string& id);

// How a job that is over exited, as a shell would say it.
int exit_code_of_job(const cli::Json& job);

}  // namespace berth::slurm
