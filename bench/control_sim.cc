// The control plane in virtual time with every check of the simulation on: 64 nodes of 8 GPUs, 50 queues, 500 live
// jobs. Prints one JSON object; sim_events_per_s counts durable, state-changing events on one core.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "sim/world/simulation.h"

int main(int argc, char** argv) {
  const std::uint64_t events = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200'000;
  berth::sim::SimulationShape shape;
  shape.exact = true;
  shape.live_jobs = 500;
  shape.faults = false;
  berth::sim::Simulation simulation(1, shape);
  while (simulation.world().durable().jobs().size() + 10 < shape.live_jobs && !simulation.violation())
    simulation.step();
  const std::uint64_t before = simulation.world().events();
  const std::uint64_t turns = simulation.world().turns();
  const auto began = std::chrono::steady_clock::now();
  const std::clock_t processor_began = std::clock();
  while (simulation.world().events() - before < events && !simulation.violation()) simulation.step();
  const double processor_seconds = static_cast<double>(std::clock() - processor_began) / CLOCKS_PER_SEC;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (simulation.violation()) {
    std::fprintf(stderr, "broken: %s\n", simulation.violation()->c_str());
    return 1;
  }
  const auto done = static_cast<double>(simulation.world().events() - before);
  std::printf(
      "{\"sim_events_per_s\": %.0f, \"sim_events_per_wall_s\": %.0f, \"sim_events\": %.0f, \"sim_turns\": %llu, "
      "\"sim_nodes\": %zu, \"sim_queues\": "
      "%zu, "
      "\"sim_live_jobs\": %zu, \"sim_checks_from_scratch\": %llu}\n",
      done / processor_seconds, done / seconds, done,
      static_cast<unsigned long long>(simulation.world().turns() - turns), simulation.world().durable().nodes().size(),
      simulation.world().durable().queues().size() - 1, simulation.world().durable().jobs().size(),
      static_cast<unsigned long long>(simulation.checker().scratch_checks()));
  return 0;
}
