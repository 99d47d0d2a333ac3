#pragma once
// Several ranks in one container: a script for its shell, which starts the command once for each, with the rank's
// variables. It passes SIGTERM on to all of them. When one fails, it stops the others, and kills after `grace_s` what
// has not ended. It ends with the code of the one that failed.

#include <cstdint>
#include <string>
#include <vector>

#include "model/effect.h"

namespace berth::kube {

// Returns the text for `sh -c TEXT NAME COMMAND...`. Requires variables that are names of the shell.
std::string rank_script(const std::vector<Environment>& ranks, std::int64_t grace_s);

}  // namespace berth::kube
