#pragma once
// argv as options. CLI11 is included by command_line.cc alone; what shell completion needs to know of the commands is
// taken from the same declarations.

#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cli/options.h"

namespace berth::cli {

struct CommandLine {
  ConnectionOptions connection;
  Command command;
};

// Help that was asked for.
struct HelpText {
  std::string text;
};

// `words` is the command line without the program's name. A mistake is an Error with what would be right. Everything
// behind the first "--" is the command of `submit` and `run`, untouched.
Result<std::variant<CommandLine, HelpText>> parse_command_line(std::vector<std::string> words);

struct FlagShape {
  std::vector<std::string> names;  // with their dashes
  bool takes_value = false;
  bool takes_file = false;
  std::vector<std::string> choices;
  std::string says;
};
struct CommandShape {
  std::string name;
  std::string says;
  std::vector<FlagShape> flags;
};
std::vector<CommandShape> command_shapes();

}  // namespace berth::cli
