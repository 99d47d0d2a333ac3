// The control plane in virtual time with every check of the simulation on: 64 nodes of 8 GPUs, 50 queues, 500 live
// jobs. Prints one JSON object. sim_events_per_s counts durable, state-changing events on one core with the scheduling
// policies that are the defaults; sim_events_per_s_any_policy with others mixed in by chance (a quarter of the queues
// by attained service, holds from early on).

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "sim/world/simulation.h"

namespace {

struct Measured {
  bool sound = false;
  double events = 0;
  double processor_s = 0;
  double wall_s = 0;
  std::uint64_t iterations = 0;
};

berth::sim::SimulationShape benchmark_cluster(bool policies) {
  berth::sim::SimulationShape shape;
  shape.exact = true;
  shape.policies = policies;
  shape.live_jobs = 500;
  shape.faults = false;
  return shape;
}

Measured measure(berth::sim::Simulation& simulation, std::uint64_t live_jobs, std::uint64_t events) {
  while (simulation.world().durable().jobs().size() + 10 < live_jobs && !simulation.violation()) simulation.step();
  const std::uint64_t before = simulation.world().events();
  const std::uint64_t iterations = simulation.world().iterations();
  const auto began = std::chrono::steady_clock::now();
  const std::clock_t processor_began = std::clock();
  while (simulation.world().events() - before < events && !simulation.violation()) simulation.step();
  Measured measured;
  measured.processor_s = static_cast<double>(std::clock() - processor_began) / CLOCKS_PER_SEC;
  measured.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  measured.events = static_cast<double>(simulation.world().events() - before);
  measured.iterations = simulation.world().iterations() - iterations;
  measured.sound = !simulation.violation();
  if (!measured.sound) std::fprintf(stderr, "broken: %s\n", simulation.violation()->c_str());
  return measured;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t events = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200'000;
  const auto shape = benchmark_cluster(false);
  berth::sim::Simulation simulation(1, shape);
  const Measured plain = measure(simulation, shape.live_jobs, events);
  berth::sim::Simulation any_policy(1, benchmark_cluster(true));
  const Measured any = measure(any_policy, shape.live_jobs, events / 4);
  if (!plain.sound || !any.sound) return 1;
  std::printf(
      "{\"sim_events_per_s\": %.0f, \"sim_events_per_wall_s\": %.0f, \"sim_events\": %.0f, \"sim_turns\": %llu, "
      "\"sim_events_per_s_any_policy\": %.0f, \"sim_nodes\": %zu, \"sim_queues\": %zu, \"sim_live_jobs\": %zu, "
      "\"sim_checks_from_scratch\": %llu}\n",
      plain.events / plain.processor_s, plain.events / plain.wall_s, plain.events,
      static_cast<unsigned long long>(plain.iterations), any.events / any.processor_s,
      simulation.world().durable().nodes().size(), simulation.world().durable().queues().size() - 1,
      simulation.world().durable().jobs().size(),
      static_cast<unsigned long long>(simulation.checker().scratch_checks()));
  return 0;
}
