// berth-sim [--seed N] [--seeds COUNT] [--steps M] [--events E] [--audit] [--seen]: lives of random clusters, checked.
// With --audit state and meter are recomputed from nothing after every event.
//
// One line for each seed, with the hash of its log: the same from every build (tests/sim/same_decisions). A violation
// prints the seed, the shortest prefix of steps that shows it, and what broke.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sim/world/simulation.h"

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;
  std::uint64_t steps = 1000;
  std::uint64_t events = 0;
  bool verbose = false;
  berth::sim::SimulationShape shape;
  for (int i = 1; i < argc; ++i) {
    const auto value = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (std::strcmp(argv[i], "--seed") == 0) {
      seed = value();
    } else if (std::strcmp(argv[i], "--seeds") == 0) {
      seeds = value();
    } else if (std::strcmp(argv[i], "--steps") == 0) {
      steps = value();
    } else if (std::strcmp(argv[i], "--events") == 0) {
      events = value();
    } else if (std::strcmp(argv[i], "--audit") == 0) {
      shape.audit_every_event = true;
    } else if (std::strcmp(argv[i], "--seen") == 0) {
      verbose = true;
    } else {
      std::fprintf(stderr, "usage: berth-sim [--seed N] [--seeds COUNT] [--steps M] [--events E] [--audit] [--seen]\n");
      return 2;
    }
  }
  int failures = 0;
  for (std::uint64_t s = seed; s < seed + seeds; ++s) {
    berth::sim::Verdict verdict = berth::sim::simulate(s, steps, events, shape);
    if (!verdict.violation) {
      std::printf(
          "seed %llu: %llu steps, %llu events, %llu restarts, %llu checks from scratch, %llu cycles replayed, sound, "
          "log "
          "%s\n",
          static_cast<unsigned long long>(s), static_cast<unsigned long long>(verdict.steps),
          static_cast<unsigned long long>(verdict.events), static_cast<unsigned long long>(verdict.restarts),
          static_cast<unsigned long long>(verdict.scratch_checks),
          static_cast<unsigned long long>(verdict.replayed_cycles), verdict.log_hash.c_str());
    } else {
      ++failures;
      verdict = berth::sim::shortest_prefix(verdict, shape);
      std::printf("seed %llu: BROKEN after %llu steps, %llu events: %s\n  again: berth-sim --seed %llu --steps %llu\n",
                  static_cast<unsigned long long>(s), static_cast<unsigned long long>(verdict.steps),
                  static_cast<unsigned long long>(verdict.events), verdict.violation->c_str(),
                  static_cast<unsigned long long>(s), static_cast<unsigned long long>(verdict.steps));
    }
    std::fflush(stdout);
    if (verbose) {
      for (const auto& [what, times] : verdict.seen) {
        std::printf("  %8llu %s\n", static_cast<unsigned long long>(times), what.c_str());
      }
    }
  }
  return failures == 0 ? 0 : 1;
}
