#pragma once
// What a tool works with: the server, where it writes, and what it is started from.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/timestamp.h"
#include "cli/session.h"
#include "slurm/complaint.h"
#include "slurm/parser.h"
#include "slurm/tool.h"

namespace berth::slurm {

struct Shell {
  Tool tool;
  cli::Session session;
  std::function<std::string(const std::string&)> variable;
  std::vector<std::string> variables;  // NAME=VALUE
  Timestamp now;
  std::string directory;
  std::string host;
  std::string user;  // the account that runs the tool

  std::ostream& out() { return session.out; }
  std::ostream& err() { return session.err; }
  // "sbatch: error: TEXT"
  void error(std::string_view text);
  void warning(std::string_view text);
  void hint(std::string_view text);
};

// Says it, and returns its exit code. `failed` stands before a refusal, as "Batch job submission failed: ".
int complain(Shell& shell, const Complaint& complaint, std::string_view failed);

// Reads the words, answers --version, --help and --usage, and says what is not held. A value ends the tool with this
// code.
struct Begun {
  CommandWords words;
  std::optional<int> code;
};
Begun begin_tool(Shell& shell, const std::vector<std::string>& words);

// What could not be asked of the server, in Slurm's words, with berth's own after them. Returns 1.
int server_failed(Shell& shell, const Error& error, std::string_view what);

// Every item of a list that has pages.
Result<std::vector<cli::Json>> all_items(cli::Session& session, const std::string& path);

std::vector<std::string> comma_list(std::string_view text);

// The name of an account that is given by its number; other text as it is.
std::string user_named(const std::string& text);

int run_sbatch(Shell& shell, const std::vector<std::string>& words);
int run_srun(Shell& shell, const std::vector<std::string>& words);
int run_squeue(Shell& shell, const std::vector<std::string>& words);
int run_scancel(Shell& shell, const std::vector<std::string>& words);
int run_sinfo(Shell& shell, const std::vector<std::string>& words);
int run_sacct(Shell& shell, const std::vector<std::string>& words);
int run_scontrol(Shell& shell, const std::vector<std::string>& words);

}  // namespace berth::slurm
