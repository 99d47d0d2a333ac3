#include <unistd.h>

#include "cli/connection.h"
#include "cli/printable.h"
#include "slurm/script.h"
#include "slurm/submission.h"
#include "slurm/time_forms.h"

namespace berth::slurm {
namespace {

constexpr std::string_view kFailed = "Batch job submission failed: ";
constexpr int kUsageError = 255;
constexpr std::size_t kLongestScript = 4 * 1024 * 1024;

// The script, by the words of the command line: --wrap, a file or standard input.
OrComplaint<Work> work_of(const CommandWords& words) {
  Work work;
  if (const auto wrap = words.value("wrap")) {
    if (!words.operands.empty()) return error_line("Script arguments not permitted with --wrap option", 1);
    work.script = wrapped(*wrap);
    work.words = {""};
    return work;
  }
  const std::string file = words.operands.empty() ? "-" : words.operands.front();
  auto text = cli::read_file(file, kLongestScript);
  const bool is_open = text || (text.error().code != ErrorCode::kNotFound && ::access(file.c_str(), R_OK) == 0);
  if (!is_open && file != "-") return error_line("Unable to open file " + file, 1);
  if (!text && text.error().code != ErrorCode::kTooLarge) return error_line("Batch script is empty!", 1);
  if (!text) return refused("Pathname of a file, directory or other parameter too long", text.error().message);
  work.script = std::move(*text);
  work.words = words.operands.empty() ? std::vector<std::string>{""} : words.operands;
  const std::vector<std::string> faults = faults_of_script(work.script);
  if (!faults.empty()) return Complaint{.errors = faults};
  return work;
}

std::string job_name(const CommandWords& words) {
  if (words.has("wrap")) return "wrap";
  if (words.operands.empty()) return "sbatch";
  return words.operands.front().substr(words.operands.front().rfind('/') + 1);
}

int test_only(Shell& shell, const JobRequest& request, const Work& work) {
  const auto answer = foretell(shell, request, work);
  if (const auto* complaint = std::get_if<Complaint>(&answer))
    return complain(shell, *complaint, "allocation failure: ");
  const cli::Json& forecast = std::get<cli::Json>(answer);
  const auto start = cli::has(forecast, "start") ? from_iso8601(cli::show(forecast, "start")) : std::nullopt;
  std::string nodes;
  for (const cli::Json& place : cli::items(forecast, "places"))
    nodes += (nodes.empty() ? "" : ",") + cli::show(place, "node");
  if (nodes.empty() && !start) {
    shell.err() << "allocation failure: Requested node configuration is not available\n";
    shell.hint(cli::show(cli::at(forecast, "why"), "headline"));
    return 1;
  }
  const bool at_once = cli::integer(forecast, "started") > 0;
  shell.err() << "sbatch: Job " << cli::show(forecast, "id") << " to start at "
              << local_time(at_once || !start ? shell.now : *start) << " using " << request.cpus()
              << " processors on nodes " << nodes << " in partition " << request.partition << "\n";
  return 0;
}

}  // namespace

int run_sbatch(Shell& shell, const std::vector<std::string>& words) {
  Begun begun = begin_tool(shell, words);
  if (begun.code) return *begun.code;
  const auto found = work_of(begun.words);
  if (const auto* complaint = std::get_if<Complaint>(&found)) return complain(shell, *complaint, kFailed);
  const Work& work = std::get<Work>(found);
  Begun script = begin_tool(shell, directives_of(work.script));
  if (script.code) return *script.code;
  if (!script.words.operands.empty()) {
    shell.error("Invalid directive found in batch script: " + script.words.operands.front());
    shell.hint("a word in an #SBATCH line that is no option; put a value with blanks between quotes");
    return kUsageError;
  }
  CommandWords by_variables{given_by_variables(shell.tool, shell.variables), {}};
  for (const std::string& one : not_held(by_variables).warnings) shell.warning(one);
  if (const auto refusal = not_held(by_variables).refusal) {
    shell.error(*refusal);
    return 255;
  }
  std::vector<Given> given = script.words.given;
  given.insert(given.end(), by_variables.given.begin(), by_variables.given.end());
  given.insert(given.end(), begun.words.given.begin(), begun.words.given.end());
  auto read = read_request(shell.tool, given, shell.now);
  if (const auto* complaint = std::get_if<Complaint>(&read)) return complain(shell, *complaint, kFailed);
  JobRequest& request = std::get<JobRequest>(read);
  if (request.name.empty()) request.name = job_name(begun.words);
  if (request.directory.empty()) request.directory = shell.directory;
  if (!request.directory.starts_with('/')) request.directory = shell.directory + "/" + request.directory;
  if (request.test_only) return test_only(shell, request, work);
  const auto answer = submit(shell, request, work);
  if (const auto* complaint = std::get_if<Complaint>(&answer)) return complain(shell, *complaint, kFailed);
  const std::string id = cli::show(std::get<cli::Json>(answer), "id");
  if (request.parsable) {
    shell.out() << id << "\n";
  } else if (!request.quiet) {
    shell.out() << "Submitted batch job " << id << "\n";
  }
  if (!request.wait) return 0;
  shell.out().flush();
  const auto code = wait_for_end(shell, id);
  return code ? *code : server_failed(shell, code.error(), "sbatch: error: ");
}

}  // namespace berth::slurm
