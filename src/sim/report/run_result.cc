#include "sim/report/run_result.h"

namespace berth::sim {

namespace {
constexpr std::size_t kMostReasons = 20;
}

void count_refusal(RunResult& run, const std::string& why) {
  const bool known = run.refused_because.contains(why) || run.refused_because.size() < kMostReasons;
  ++run.refused_because[known ? why : "other reasons"];
}

}  // namespace berth::sim
