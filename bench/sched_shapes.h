#pragma once
// What the jobs of the benchmark's scene ask for: shapes drawn from the public traces.

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "model/resources.h"

namespace berth::bench {

struct Shape {
  std::int32_t tasks = 1;
  TaskRequest request;
};

// Half of it openb pods with their CPU, memory and shares of GPUs, half Philly gangs, when BERTH_TRACES or
// ../shared/traces has them; a small built-in mix otherwise.
struct Mix {
  std::vector<Shape> pods;
  std::vector<Shape> gangs;
  bool traced = true;

  Mix();
  const Shape& draw(Random& random) const { return random.pick(random.chance(500) ? pods : gangs); }
};

}  // namespace berth::bench
