#pragma once
// GPUs that are declared where there are none: `--simulate-gpus 8xH100-SXM5-80GB`. They take part in everything but
// computing, and are marked as simulated.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "telemetry/gpu.h"

namespace berth::telemetry {

// "COUNTxMODEL", several joined by commas. The same node name and declaration give the same GPUs, with the same uuids,
// on every start. kInvalid says what would be right.
Result<std::vector<GpuFound>> parse_simulated_gpus(std::string_view declaration, std::string_view node_name);

}  // namespace berth::telemetry
