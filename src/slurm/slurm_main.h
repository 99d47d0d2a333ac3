#pragma once
// The commands of Slurm in this program. A link named sbatch, squeue, scancel, sinfo, sacct, srun or scontrol that
// leads here is that command; `berth slurm install DIR` makes the links, `berth slurm NAME` runs one without a link,
// and `berth slurm options` prints the tables of docs/slurm.md.

#include <optional>
#include <string_view>

#include "slurm/tool.h"

namespace berth::slurm {

// Which tool a program of this name is; nothing if it is berth itself.
std::optional<Tool> tool_named(std::string_view program);

int tool_main(Tool tool, int argc, const char* const* argv);

// `argv` from "slurm" on.
int slurm_main(int argc, const char* const* argv);

}  // namespace berth::slurm
