// The whole system by seed: 60 random lives of 400 steps and the healing after each, about 250,000 events. With
// BERTH_LONG=1 forty times as many. Prints what was checked; a violation prints the seed and the shortest prefix.

#include <cstdio>
#include <cstdlib>

#include "sim/world/simulation.h"

int main() {
  const std::uint64_t times = std::getenv("BERTH_LONG") != nullptr ? 40 : 1;
  const std::uint64_t seeds = 60 * times;
  berth::sim::SimulationShape shape;
  shape.audit_every_event = true;
  std::uint64_t events = 0;
  std::uint64_t restarts = 0;
  std::uint64_t scratch = 0;
  std::uint64_t audited = 0;
  std::uint64_t replayed = 0;
  std::map<std::string, std::uint64_t> seen;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    berth::sim::Verdict verdict = berth::sim::simulate(seed, 400, 0, shape);
    events += verdict.events;
    restarts += verdict.restarts;
    scratch += verdict.scratch_checks;
    audited += verdict.audited_events;
    replayed += verdict.replayed_cycles;
    for (const auto& [what, count] : verdict.seen) seen[what] += count;
    if (!verdict.violation) continue;
    verdict = berth::sim::shortest_prefix(verdict, shape);
    std::printf(
        "seed %llu is BROKEN after %llu steps and %llu events: %s\nagain: berth-sim --seed %llu --steps %llu --audit\n",
        static_cast<unsigned long long>(seed), static_cast<unsigned long long>(verdict.steps),
        static_cast<unsigned long long>(verdict.events), verdict.violation->c_str(),
        static_cast<unsigned long long>(seed), static_cast<unsigned long long>(verdict.steps));
    return 1;
  }
  // A simulation that never gets into trouble proves nothing.
  for (const char* must : {"stop: reclaim",
                           "stop: preempt",
                           "stop: drain",
                           "stop: time-limit",
                           "stop: user",
                           "let off",
                           "forced",
                           "promoted",
                           "node lost",
                           "node back",
                           "nomination dropped",
                           "started again",
                           "submitted array",
                           "submitted service",
                           "task over: node-lost",
                           "waiting job checked",
                           "waiting gang checked",
                           "waiting share checked",
                           "claim checked",
                           "claim of a gang checked",
                           "grown",
                           "in one NUMA domain",
                           "in few NUMA domains",
                           "failed GPU stays failed",
                           "budget marked 50",
                           "budget marked 80",
                           "budget marked 100",
                           "budget set back",
                           "grant marked 50",
                           "grant marked 80",
                           "grant marked 100",
                           "grant ended",
                           "marks checked",
                           "task over: supervisor-lost"}) {
    if (seen[must] > 0) continue;
    std::printf("the simulation never came to: %s\n", must);
    return 1;
  }
  std::printf(
      "%llu seeds, %llu events checked one by one, after %llu of them state and meter recomputed from nothing, %llu "
      "restarts, %llu checks from scratch, %llu cycles replayed: sound\n",
      static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(events),
      static_cast<unsigned long long>(audited), static_cast<unsigned long long>(restarts),
      static_cast<unsigned long long>(scratch), static_cast<unsigned long long>(replayed));
  return 0;
}
