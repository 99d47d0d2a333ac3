#pragma once
// GPUs that are declared where there are none: `--simulate-gpus 8xH100-SXM5-80GB`. They take part in everything but
// computing, and are marked as simulated.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "telemetry/gpu.h"

namespace berth::telemetry {

// "COUNTxMODEL", several joined by commas. The same owner (a machine or its name) and declaration give the same GPUs,
// with the same uuids, on every start. kInvalid says what would be right.
Result<std::vector<GpuFound>> parse_simulated_gpus(std::string_view declaration, std::string_view owner);

// Returns the uuid of the GPU with this index in the declaration.
std::string simulated_uuid(std::string_view owner, std::string_view model, std::uint64_t index);

}  // namespace berth::telemetry
