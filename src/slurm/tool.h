#pragma once
// The commands of Slurm that this program answers to: by the name under which it is started, or as `berth slurm NAME`.

#include <array>
#include <optional>
#include <string_view>

#include "base/fields.h"

namespace berth::slurm {

enum class Tool { kSbatch, kSrun, kSqueue, kScancel, kSinfo, kSacct, kScontrol };

inline constexpr std::array kTools{Tool::kSbatch, Tool::kSrun,  Tool::kSqueue,  Tool::kScancel,
                                   Tool::kSinfo,  Tool::kSacct, Tool::kScontrol};

// What `--version` says: the release of Slurm whose commands these follow.
inline constexpr std::string_view kVersionText = "slurm-wlm 22.05.8";

}  // namespace berth::slurm

namespace berth {
BERTH_ENUM_NAMES(slurm::Tool, "sbatch", "srun", "squeue", "scancel", "sinfo", "sacct", "scontrol");
}  // namespace berth
