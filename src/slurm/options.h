#pragma once
// The options of each tool: one row for each that Slurm 22.05 has. The parser reads the rows, and docs/slurm.md has
// them as tables, so that no option is passed over in silence: it is held, or named in a warning, or refused.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/tool.h"

namespace berth::slurm {

enum class Takes { kNothing, kValue, kMaybe };
enum class Held {
  kHeld,     // does what `says` tells
  kWarned,   // is passed over with a warning, because the job is right without it
  kRefused,  // ends the command, because the job would be another one without it
};

struct Option {
  std::string_view name;
  char letter = 0;  // 0: none
  Takes takes = Takes::kNothing;
  Held held = Held::kHeld;
  // Variables of the environment, the last of which wins, without the SBATCH_, SLURM_ (srun) or SCANCEL_ before them;
  // one that begins with SRUN_ or SLURMD_ is whole. Empty: none.
  std::string_view variable;
  std::string_view says;  // what it does here, or why it is not held
};

std::vector<Option> options_of(Tool tool);

// The variables of the environment that stand for the option, by their whole names.
std::vector<std::string> variables_of(Tool tool, const Option& option);

// The tables of docs/slurm.md: a heading and a table for each tool.
std::string option_pages();

}  // namespace berth::slurm

namespace berth {
BERTH_ENUM_NAMES(slurm::Held, "held", "warned", "refused");
}  // namespace berth
