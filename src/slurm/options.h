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
  std::string_view variable;  // of the environment, after SBATCH_ or SLURM_ (srun); empty: none
  std::string_view says;      // what it does here, or why it is not held
};

std::vector<Option> options_of(Tool tool);

// The tables of docs/slurm.md: a heading and a table for each tool.
std::string option_pages();

}  // namespace berth::slurm

namespace berth {
BERTH_ENUM_NAMES(slurm::Held, "held", "warned", "refused");
}  // namespace berth
