#pragma once
// A batch script: what sbatch refuses of it, and the options of its #SBATCH lines.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::slurm {

// Returns what sbatch says of a script that it does not take, a line each; nothing if it takes it.
std::vector<std::string> faults_of_script(std::string_view script);

// The words of the #SBATCH lines ahead of the first command, as a shell would split them: quotes and backslashes keep
// blanks together, and # begins a comment.
std::vector<std::string> directives_of(std::string_view script);

// The interpreter of the first line and its one argument, if it has one.
struct Interpreter {
  std::string program;
  std::string argument;
};
Interpreter interpreter_of(std::string_view script);

// The script of --wrap.
std::string wrapped(std::string_view command);

}  // namespace berth::slurm
