#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <set>
#include <thread>

#include "cli/command/log_reader.h"
#include "slurm/job_script.h"
#include "slurm/submission.h"

namespace berth::slurm {
namespace {

constexpr std::string_view kNoAllocation = "Unable to allocate resources: ";
constexpr std::chrono::milliseconds kStepPause{100};
constexpr int kMostSilentReads = 600;  // so many reads of the output without a server are waited through: a minute

volatile std::sig_atomic_t asked_to_end = 0;

void note_signal(int) { asked_to_end = 1; }

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = &note_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// Shows what a stream of the step has written since; true once there is no more.
Result<bool> copy_stream(Shell& shell, const cli::LogSource& source, std::int64_t& from, std::ostream& to) {
  while (true) {
    const auto part = cli::read_log(source, from, shell.session);
    if (!part && part.error().code == ErrorCode::kNotFound) return false;
    if (!part) return part.error();
    from = part->next;
    to << part->bytes << std::flush;
    if (part->bytes.empty()) return part->complete;
  }
}

// Follows the job until it is over and all of its output is shown; its exit code.
Result<int> follow_step(Shell& shell, const std::string& id, bool quiet) {
  bool waited = false;
  bool running = false;
  bool cancelled = false;
  int silent = 0;
  std::int64_t from_out = 0;
  std::int64_t from_err = 0;
  catch_signals();
  while (true) {
    const auto job = job_once_told(shell, id);
    if (!job) return job.error();
    const std::string phase = cli::show(*job, "phase");
    if (phase == "pending" && !waited && !quiet) {
      shell.err() << "srun: job " << id << " queued and waiting for resources\n" << std::flush;
    }
    waited = waited || phase == "pending";
    if (phase != "pending" && !running) {
      running = true;
      if (waited && !quiet) shell.err() << "srun: job " << id << " has been allocated resources\n" << std::flush;
    }
    if (asked_to_end != 0 && !cancelled) {
      cancelled = true;
      shell.err() << "srun: Job allocation " << id << " has been revoked\n";
      if (const auto ended = cli::answer_of(shell.session.server.del("/v1/jobs/" + id)); !ended) return ended.error();
    }
    const auto out = copy_stream(shell, {id, 0, 0, false}, from_out, shell.out());
    const auto err = copy_stream(shell, {id, 0, 0, true}, from_err, shell.err());
    const bool is_away =
        (!out && out.error().code == ErrorCode::kUnavailable) || (!err && err.error().code == ErrorCode::kUnavailable);
    silent = is_away ? silent + 1 : 0;
    if ((!out || !err) && (!is_away || silent > kMostSilentReads)) return out ? err.error() : out.error();
    if (phase == "finished" && !is_away) return exit_code_of_job(*job);
    std::this_thread::sleep_for(kStepPause);
  }
}

// Says which options a step within a job does not obey: those of a job. Variables that a job has itself are no option
// of the step; SLURM_EXPORT_ENV is none of them.
void warn_of_job_options(Shell& shell, const std::vector<Given>& given) {
  constexpr std::array<std::string_view, 12> kOfStep{
      "ntasks", "ntasks-per-node",   "nodes",     "quiet", "output", "error", "input", "open-mode",
      "chdir",  "container-workdir", "test-only", "wrap"};
  std::set<std::string_view> named;
  for (const Given& one : given) {
    const bool counts = one.option.held == Held::kHeld && !one.option.says.starts_with("always so") &&
                        (!one.is_variable || one.option.name == "export") &&
                        std::find(kOfStep.begin(), kOfStep.end(), one.option.name) == kOfStep.end();
    if (counts && named.insert(one.option.name).second)
      shell.warning("--" + std::string(one.option.name) + " is not held in a job: a step has all of the job");
  }
}

// Within a job the step runs here: the process becomes the step.
int become_step(Shell& shell, const JobRequest& request, const std::vector<std::string>& command) {
  const std::vector<std::string> words = inner_step_command(request, command);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  shell.error("execve(): /bin/sh: not found");
  return 1;
}

}  // namespace

int run_srun(Shell& shell, const std::vector<std::string>& words) {
  Begun begun = begin_tool(shell, words);
  if (begun.code) return *begun.code;
  const bool in_job = !shell.variable("SLURM_JOB_ID").empty() && !shell.variable("BERTH_JOB").empty();
  CommandWords by_variables{given_by_variables(shell.tool, shell.variables), {}};
  for (const std::string& one : not_held(by_variables).warnings) shell.warning(one);
  if (const auto refusal = not_held(by_variables).refusal) {
    shell.error(*refusal);
    return 255;
  }
  std::vector<Given> given = by_variables.given;
  given.insert(given.end(), begun.words.given.begin(), begun.words.given.end());
  auto read = read_request(shell.tool, given, shell.now);
  if (const auto* complaint = std::get_if<Complaint>(&read)) return complain(shell, *complaint, kNoAllocation);
  JobRequest& request = std::get<JobRequest>(read);
  const std::vector<std::string>& command = begun.words.operands;
  if (command.empty()) {
    shell.err() << "srun: fatal: No command given to execute.\n";
    return 1;
  }
  request.in_job = in_job;
  if (in_job) {
    warn_of_job_options(shell, given);
    return become_step(shell, request, command);
  }
  if (request.name.empty()) request.name = command.front().substr(command.front().rfind('/') + 1);
  if (request.directory.empty()) request.directory = shell.directory;
  if (!request.directory.starts_with('/')) request.directory = shell.directory + "/" + request.directory;
  const auto answer = submit(shell, request, {"", command});
  if (const auto* complaint = std::get_if<Complaint>(&answer)) return complain(shell, *complaint, kNoAllocation);
  const auto code = follow_step(shell, cli::show(std::get<cli::Json>(answer), "id"), request.quiet);
  return code ? *code : server_failed(shell, code.error(), "srun: error: ");
}

}  // namespace berth::slurm
