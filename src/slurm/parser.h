#pragma once
// Reads the words of a command line by the rows of options.h as getopt_long does: short options in one word, values
// joined or in the next word, long options by any prefix that only one has. The messages are those of the C library,
// because Slurm's users and their scripts know them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "slurm/options.h"

namespace berth::slurm {

struct Given {
  Option option;
  std::string value;
  bool has_value = false;
  bool is_variable = false;  // given by the environment
};

struct CommandWords {
  std::vector<Given> given;
  std::vector<std::string> operands;

  bool has(std::string_view name) const;
  // The last value of the option; nothing if it was not given.
  std::optional<std::string> value(std::string_view name) const;
};

// True for tools whose options end at the first operand: a script or a command with words of its own.
bool ends_at_operand(Tool tool);

Result<CommandWords> parse_words(Tool tool, const std::vector<std::string>& words);

// What to say of options that are not held. `refusal` is the first one that is refused.
struct NotHeld {
  std::vector<std::string> warnings;
  std::optional<std::string> refusal;
};
NotHeld not_held(const CommandWords& words);

}  // namespace berth::slurm
