#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "cli/command/log_reader.h"
#include "slurm/job_script.h"
#include "slurm/submission.h"

namespace berth::slurm {
namespace {

constexpr std::string_view kNoAllocation = "Unable to allocate resources: ";
constexpr std::chrono::milliseconds kStepPause{100};

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
  std::int64_t from_out = 0;
  std::int64_t from_err = 0;
  catch_signals();
  while (true) {
    const auto job = cli::get(shell.session, "/v1/jobs/" + id);
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
    if (!out || !err) return out ? err.error() : out.error();
    if (phase == "finished") return exit_code_of_job(*job);
    std::this_thread::sleep_for(kStepPause);
  }
}

// Within a job the step runs here: the process becomes the step.
int become_step(Shell& shell, const JobRequest& request, const std::vector<std::string>& command) {
  const std::vector<std::string> words = inner_step_command(request.tasks(), command);
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
  if (in_job) return become_step(shell, request, command);
  if (request.name.empty()) request.name = command.front().substr(command.front().rfind('/') + 1);
  if (request.directory.empty()) request.directory = shell.directory;
  const auto answer = submit(shell, request, {"", command});
  if (const auto* complaint = std::get_if<Complaint>(&answer)) return complain(shell, *complaint, kNoAllocation);
  const auto code = follow_step(shell, cli::show(std::get<cli::Json>(answer), "id"), request.quiet);
  return code ? *code : server_failed(shell, code.error(), "srun: error: ");
}

}  // namespace berth::slurm
