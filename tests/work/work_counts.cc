// Counts the work of each kind of step on fixed inputs: a placement by each score, a submit, a steady iteration, an
// explanation, an event of the simulation. Prints one JSON object: by kind the number of steps and, of each counter,
// the sum over them. No counter depends on how fast or how busy the machine is. work_counts_test.py compares them.
//
// Under callgrind the instructions of each kind are counted too: it writes one file for each kind, with its name.

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name)
#endif

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "../../bench/sched_scene.h"
#include "control/iteration.h"
#include "explain/why.h"
#include "model/plan.h"
#include "sched/cycle.h"
#include "sched/place/place.h"
#include "sim/world/simulation.h"
#include "state/transaction.h"
#include "store/event_codec.h"

namespace {

std::uint64_t allocations = 0;
std::uint64_t allocated_bytes = 0;

}  // namespace

// Every allocation of the program is counted.
void* operator new(std::size_t bytes) {
  ++allocations;
  allocated_bytes += bytes;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

namespace berth {
namespace {

struct Work {
  std::uint64_t steps = 0;         // what the counters are divided by
  std::uint64_t nodes_scored = 0;  // nodes and groups of nodes that searches looked at
  std::uint64_t attempts = 0;      // jobs that cycles tried
  std::uint64_t log_bytes = 0;     // of the records of events
};

// One kind of step is measured from construction until done().
class Measuring {
 public:
  explicit Measuring(const char* kind) : kind_(kind), allocations_(allocations), bytes_(allocated_bytes) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
  }
  void done(const Work& work) const {
    CALLGRIND_DUMP_STATS_AT(kind_);
    CALLGRIND_STOP_INSTRUMENTATION;
    const auto of = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf(
        "%s \"%s\": {\"steps\": %llu, \"nodes_scored\": %llu, \"attempts\": %llu, \"log_bytes\": %llu, "
        "\"allocations\": %llu, \"allocated_bytes\": %llu}",
        first ? "{\n" : ",\n", kind_, of(work.steps), of(work.nodes_scored), of(work.attempts), of(work.log_bytes),
        of(allocations - allocations_), of(allocated_bytes - bytes_));
    first = false;
  }

 private:
  static inline bool first = true;
  const char* kind_;
  std::uint64_t allocations_;
  std::uint64_t bytes_;
};

void count_records(const std::vector<EventRecord>& records, Work& work) {
  for (const EventRecord& record : records) work.log_bytes += store::to_record(record, 1).payload.size();
}

// Places jobs by the score at the fill of the scene, and takes all back now and then, so that the fill stays.
void placements(bench::Scene& scene, NodeScore score, const char* kind) {
  constexpr int kJobs = 300;
  scene.config.scheduling.score = score;
  scene.apply_config();
  std::vector<JobId> asked;
  for (int i = 0; i < kJobs; ++i) asked.push_back(scene.submit(scene.spec_of(scene.draw(), scene.some_leaf(false))));
  Work work{.steps = kJobs};
  {
    state::Transaction transaction(scene.state);
    const Measuring measuring(kind);
    for (const JobId id : asked) {
      sched::SearchStats stats;
      const auto answer = sched::place(scene.state, *scene.state.job(id), sched::kAllModels, stats);
      work.nodes_scored += stats.nodes_scored;
      if (answer) transaction.place(id, *answer.placements);
      if (transaction.mark() >= 50) transaction.rollback_to(0);
    }
    measuring.done(work);
    transaction.rollback_to(0);
  }
  for (const JobId id : asked) scene.command(CancelJob{id, "ann"});
}

void iterate(bench::Scene& scene, const std::vector<Command>& commands, Work& work) {
  auto iteration = control::run_iteration(scene.state, scene.now, commands, scene.memory, sched::run_cycle);
  while (true) {
    count_records(iteration.records, work);
    work.nodes_scored += iteration.plan.nodes_scored;
    work.attempts += iteration.plan.scheduling_attempts;
    if (!iteration.again) return;
    iteration = control::run_iteration(scene.state, scene.now, {}, scene.memory, sched::run_cycle);
  }
}

// Jobs that come while thousands wait, eight at a time.
void submits(bench::Scene& scene) {
  constexpr int kRounds = 40;
  constexpr int kAtOnce = 8;
  std::vector<std::vector<Command>> rounds(kRounds);
  for (auto& commands : rounds) {
    for (int i = 0; i < kAtOnce; ++i)
      commands.emplace_back(SubmitJob{scene.spec_of(scene.draw(), scene.some_leaf()), ""});
  }
  Work work{.steps = kRounds * kAtOnce};
  const Measuring measuring("submit");
  for (const auto& commands : rounds) {
    scene.now = scene.now + 100;
    iterate(scene, commands, work);
  }
  measuring.done(work);
}

// One job ends and one arrives.
void steady_iterations(bench::Scene& scene) {
  Work work{.steps = 60};
  const Measuring measuring("steady_iteration");
  for (std::uint64_t i = 0; i < work.steps; ++i) {
    scene.now = scene.now + 100;
    std::vector<Command> commands = scene.exits_of(scene.some_running());
    commands.emplace_back(SubmitJob{scene.spec_of(scene.draw(), scene.some_leaf()), ""});
    iterate(scene, commands, work);
  }
  measuring.done(work);
}

void explanations(bench::Scene& scene) {
  std::vector<JobId> waiting;
  scene.state.jobs().for_each([&](const state::JobState& job) {
    if (job.phase == JobPhase::kPending) waiting.push_back(job.id);
  });
  Work work{.steps = 20};
  const Measuring measuring("why");
  for (std::uint64_t i = 0; i < work.steps; ++i)
    explain::why(scene.state, scene.random.pick(waiting), scene.now, explain::Viewer::sees_all());
  measuring.done(work);
}

// The cluster of bench_control_sim, some moments of it.
bool simulated_events() {
  sim::SimulationShape shape;
  shape.exact = true;
  shape.policies = false;
  shape.live_jobs = 500;
  shape.faults = false;
  sim::Simulation simulation(1, shape);
  while (simulation.world().durable().jobs().size() + 10 < shape.live_jobs && !simulation.violation())
    simulation.step();
  const std::uint64_t before = simulation.world().events();
  const Measuring measuring("simulated_event");
  while (simulation.world().events() - before < 400 && !simulation.violation()) simulation.step();
  measuring.done({.steps = simulation.world().events() - before});
  if (simulation.violation()) std::fprintf(stderr, "broken: %s\n", simulation.violation()->c_str());
  return !simulation.violation();
}

int run() {
  setenv("BERTH_TRACES", "/nowhere", 1);  // so that every machine has the built-in mix
  {
    bench::Scene scene(600);
    scene.live();
    placements(scene, NodeScore::kBestFit, "placement_best_fit");
    placements(scene, NodeScore::kFragmentation, "placement_by_score");
    scene.close_branches();
    scene.submit_pending(3000);
    Work ignored;
    iterate(scene, {}, ignored);
    submits(scene);
    steady_iterations(scene);
    explanations(scene);
  }
  const bool sound = simulated_events();
  std::printf("\n}\n");
  return sound ? 0 : 1;
}

}  // namespace
}  // namespace berth

int main() { return berth::run(); }
