#pragma once
// `berth simulate`: the command line of the simulator.

#include <span>
#include <string_view>

namespace berth::sim {

// Takes the arguments after `simulate`. Returns the exit code: 0; 1 if a run or its files failed; 2 for a wrong command
// line.
int simulate_main(std::span<const std::string_view> arguments);

}  // namespace berth::sim
