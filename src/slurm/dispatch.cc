#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "slurm/options.h"
#include "slurm/shell.h"
#include "slurm/slurm_main.h"

namespace berth::slurm {
namespace {

std::string directory_here() {
  std::array<char, PATH_MAX> path{};
  return ::getcwd(path.data(), path.size()) == nullptr ? "/" : path.data();
}

std::string host_here() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string user_here() {
  const passwd* account = ::getpwuid(::geteuid());
  return account == nullptr ? std::to_string(::geteuid()) : account->pw_name;
}

std::vector<std::string> all_variables() {
  std::vector<std::string> all;
  for (char** one = ::environ; one != nullptr && *one != nullptr; ++one) all.emplace_back(*one);
  return all;
}

int run_tool(Shell& shell, const std::vector<std::string>& words) {
  switch (shell.tool) {
    case Tool::kSbatch:
      return run_sbatch(shell, words);
    case Tool::kSrun:
      return run_srun(shell, words);
    case Tool::kSqueue:
      return run_squeue(shell, words);
    case Tool::kScancel:
      return run_scancel(shell, words);
    case Tool::kSinfo:
      return run_sinfo(shell, words);
    case Tool::kSacct:
      return run_sacct(shell, words);
    case Tool::kScontrol:
      return run_scontrol(shell, words);
  }
  return cli::kFailed;
}

int say(const std::string& text, int code) {
  std::cerr << "berth: " << cli::printable(text) << "\n";
  return code;
}

// Links with the names of the tools, in a directory that is there. One that leads here already is left.
int install(const std::string& directory) {
  std::error_code problem;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem) return say("/proc/self/exe: " + problem.message(), cli::kFailed);
  for (const Tool tool : kTools) {
    const std::filesystem::path link = std::filesystem::path(directory) / name_of(tool);
    if (std::filesystem::is_symlink(link, problem) && std::filesystem::read_symlink(link, problem) == program) continue;
    std::filesystem::create_symlink(program, link, problem);
    if (problem) return say(link.string() + ": " + problem.message() + "; give a directory of your own", cli::kFailed);
    std::cout << link.string() << "\n";
  }
  return std::cout.flush() ? cli::kOk : cli::kFailed;
}

}  // namespace

std::optional<Tool> tool_named(std::string_view program) {
  const std::size_t slash = program.rfind('/');
  return enum_from_name<Tool>(slash == std::string_view::npos ? program : program.substr(slash + 1));
}

int tool_main(Tool tool, int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto found = cli::find_server({}, &cli::process_environment);
  const client::ClientOptions server = found ? *found : client::ClientOptions{.base_url = cli::kDefaultServer};
  Shell shell{.tool = tool,
              .session = {std::cout, std::cerr, client::Client(server), server.base_url, false},
              .variable = &cli::process_environment,
              .variables = all_variables(),
              .now = cli::clock_now(),
              .directory = directory_here(),
              .host = host_here(),
              .user = user_here()};
  const bool in_job = tool == Tool::kSrun && !shell.variable("BERTH_JOB").empty();  // which asks no server
  if (!found && !in_job) shell.hint(found.error().message);
  const int code = run_tool(shell, words);
  return std::cout.flush() ? code : cli::kFailed;
}

int slurm_main(int argc, const char* const* argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (const auto tool = enum_from_name<Tool>(word)) return tool_main(*tool, argc - 1, argv + 1);
  if (word == "options" && argc == 2) {
    std::cout << option_pages();
    return std::cout.flush() ? cli::kOk : cli::kFailed;
  }
  if (word == "install" && argc == 3) return install(argv[2]);
  return say(
      "give `berth slurm install DIR`, `berth slurm options`, or a command of Slurm such as `berth slurm squeue`",
      cli::kUsage);
}

}  // namespace berth::slurm
