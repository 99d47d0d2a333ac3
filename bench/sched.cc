// The scheduler alone, on one core, in the scene of sched_scene.h: placements, steady cycles, a large gang, reclaim and
// explanations, with a hundred thousand jobs that wait.
//
//   bench/run sched [--quick]      --quick leaves out the fleet of ten times the size
//
// The keys are explained in docs/lab/speed.md.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/large_pages.h"
#include "control/iteration.h"
#include "explain/pending_reason.h"
#include "explain/why.h"
#include "sched/cycle.h"
#include "sched/place/place.h"
#include "sched/preempt/preempt.h"
#include "sched/resize/consolidate.h"
#include "sched_scene.h"
#include "state/transaction.h"

namespace berth::bench {
namespace {

using Clock = std::chrono::steady_clock;

double micros_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Of this thread: what else runs on the machine adds nothing but the caches it empties.
double cpu_micros() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) * 1e6 + static_cast<double>(spent.tv_nsec) / 1e3;
}

double percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

struct Placing {
  double us_per_task = 0;
  double us_per_job = 0;  // one that found no place counts, too
  double cpu_us_per_job = 0;
  std::size_t placed = 0;
  std::size_t refused = 0;
};

// Placing and binding jobs of the mix, pods and gangs alike, at the fill; all are taken back now and then, so that the
// fill stays. Where `score` says so nodes are scored by what the placement costs the fleet.
Placing placements(Scene& scene, NodeScore score) {
  constexpr int kJobs = 20'000;
  scene.config.scheduling.score = score;
  scene.apply_config();
  std::vector<JobId> asked;
  for (int i = 0; i < kJobs; ++i) asked.push_back(scene.submit(scene.spec_of(scene.draw(), scene.some_leaf(false))));
  Placing placing;
  std::vector<NodeId> nodes;  // of the tasks
  double total = 0;
  {  // no event is applied while a trial is under way
    state::Transaction transaction(scene.state);
    const auto begin = Clock::now();
    const double cpu_begin = cpu_micros();
    for (const JobId id : asked) {
      sched::SearchStats work;
      const auto placements = sched::place(scene.state, *scene.state.job(id), sched::kAllModels, work).placements;
      if (placements) {
        transaction.place(id, *placements);
        for (const TaskPlacement& placement : *placements) nodes.push_back(placement.node);
        ++placing.placed;
      } else {
        ++placing.refused;
      }
      if (transaction.mark() >= 200) transaction.rollback_to(0);
    }
    total = micros_since(begin);
    placing.cpu_us_per_job = (cpu_micros() - cpu_begin) / kJobs;
    transaction.rollback_to(0);
  }
  for (const NodeId node : nodes) scene.placed.add(std::uint64_t{node.value()});
  placing.us_per_task = total / static_cast<double>(nodes.size());
  placing.us_per_job = total / kJobs;
  for (const JobId id : asked) scene.command(CancelJob{id, "ann"});
  scene.config.scheduling.score = NodeScore::kBestFit;
  scene.apply_config();
  return placing;
}

// What placing a job costs in the large fleet, over the small one: in CPU time, of rounds that alternate between the
// two, because what else runs on the machine slows both; the median.
double cost_ratio(Scene& small, Scene& large) {
  constexpr int kRounds = 9;
  std::vector<double> ratios;
  for (int i = 0; i < kRounds; ++i) {
    const double above = placements(large, NodeScore::kBestFit).cpu_us_per_job;
    const double below = placements(small, NodeScore::kBestFit).cpu_us_per_job;
    std::fprintf(stderr, "  %.2f us, %.2f us\n", above, below);
    ratios.push_back(above / below);
  }
  return percentile(ratios, 0.5);
}

struct GangPlacing {
  double us = 0;
  bool fits = false;
};

GangPlacing place_gang512(Scene& scene) {
  const JobId id = scene.submit(scene.gang512(scene.leaves.front()));
  std::vector<double> times;
  GangPlacing placing;
  for (int i = 0; i < 101; ++i) {
    sched::SearchStats work;
    const auto begin = Clock::now();
    placing.fits = bool{sched::place(scene.state, *scene.state.job(id), sched::kAllModels, work)};
    times.push_back(micros_since(begin));
  }
  scene.command(CancelJob{id, "ann"});
  placing.us = percentile(times, 0.5);
  return placing;
}

struct IterationWork {
  double us = 0;
  double cpu_us = 0;
  std::uint64_t asked = 0;
  std::uint64_t decided = 0;
};

// Turns until nothing more follows by itself.
IterationWork come_to_rest(Scene& scene, const std::vector<Command>& commands) {
  IterationWork work;
  const auto begin = Clock::now();
  const double cpu_begin = cpu_micros();
  auto iteration = control::run_iteration(scene.state, scene.now, commands, scene.memory, sched::run_cycle);
  while (true) {
    work.asked += iteration.plan.scheduling_attempts;
    work.decided += iteration.plan.decisions.size();
    if (!iteration.again) break;
    iteration = control::run_iteration(scene.state, scene.now, {}, scene.memory, sched::run_cycle);
  }
  work.us = micros_since(begin);
  work.cpu_us = cpu_micros() - cpu_begin;
  return work;
}

struct Steady {
  std::vector<double> us;
  std::vector<double> cpu_us;
  double asked = 0;
  double decided = 0;
};

// One job ends and one arrives: with all that follows at once, the turns after the first included. Who was asked to
// leave has done so before.
Steady steady_cycles(Scene& scene, int count) {
  Steady steady;
  for (int i = 0; i < count; ++i) {
    scene.now = scene.now + 100;
    for (const JobId id : scene.leaving()) scene.end(id);
    std::vector<Command> commands = scene.exits_of(scene.some_running());
    const Shape shape = scene.draw();
    commands.emplace_back(SubmitJob{scene.spec_of(shape, scene.some_leaf()), ""});
    const IterationWork work = come_to_rest(scene, commands);
    steady.us.push_back(work.us);
    steady.cpu_us.push_back(work.cpu_us);
    steady.asked += static_cast<double>(work.asked) / count;
    steady.decided += static_cast<double>(work.decided) / count;
  }
  return steady;
}

std::vector<double> why_times(Scene& scene, int count) {
  std::vector<JobId> waiting;
  scene.state.jobs().for_each([&](const state::JobState& job) {
    if (job.phase == JobPhase::kPending) waiting.push_back(job.id);
  });
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const JobId id = waiting[scene.random.below(waiting.size())];
    const auto begin = Clock::now();
    explain::why(scene.state, id, scene.now, explain::Viewer::sees_all());
    times.push_back(micros_since(begin));
  }
  return times;
}

// The reasons of a page of a thousand waiting jobs, as GET /v1/jobs asks for them.
double page_reasons_us(Scene& scene) {
  std::vector<const state::JobState*> page;
  scene.state.jobs().for_each([&](const state::JobState& job) {
    if (job.phase == JobPhase::kPending && page.size() < 1000) page.push_back(&job);
  });
  std::vector<double> times;
  for (int i = 0; i < 11; ++i) {
    const auto begin = Clock::now();
    explain::PendingReasons pending_reason(scene.state, scene.now);
    for (const state::JobState* job : page) pending_reason(*job);
    times.push_back(micros_since(begin));
  }
  return percentile(times, 0.5);
}

// The victims for a gang of 512 GPUs whose owner wants its guarantee back.
double reclaim_us(Scene& scene) {
  scene.lend_all_of_owner();
  const JobId preemptor = scene.submit(scene.gang512("owner"));
  scene.now = scene.now + 3'600'000;
  std::vector<double> times;
  for (int i = 0; i < 11; ++i) {
    sched::SearchStats work;
    const std::set<JobId> nobody;
    const auto begin = Clock::now();
    const auto decision = sched::find_victims({scene.state, scene.now, nobody, 4096}, preemptor, work).decision;
    times.push_back(micros_since(begin));
    if (!decision) std::fprintf(stderr, "nothing to reclaim was found\n");
    if (decision && i == 0) std::fprintf(stderr, "reclaim: %zu victims\n", decision->victims.size());
  }
  return percentile(times, 0.5);
}

struct MoveTimes {
  double us = 0;
  double idle_us = 0;  // where nobody could be helped
  std::size_t moves = 0;
};

// The moves for a gang of eight whole nodes where fewer are empty, and everybody saves; and the same search when nobody
// may move.
MoveTimes move_times() {
  Scene scene(6'250);
  scene.all_save = true;
  scene.live();
  JobSpec gang = scene.gang512(scene.some_leaf(false));
  gang.groups.front().count = 8;
  while (scene.start(scene.submit(gang))) continue;  // until no more than seven nodes are empty
  scene.begin_all();
  scene.config.scheduling.consolidations_per_hour = 10'000;
  scene.apply_config();
  scene.submit(gang);
  scene.now = scene.now + 3'600'000;
  MoveTimes found;
  const auto median_us = [&](std::set<JobId> already_victims) {
    std::vector<double> times;
    for (int i = 0; i < 11; ++i) {
      state::Transaction transaction(scene.state);
      sched::SearchStats work;
      const std::set<JobId> nobody;
      const auto begin = Clock::now();
      const auto decision =
          sched::find_moves({scene.state, transaction, scene.now, work, already_victims, nobody}, Plan()).decision;
      times.push_back(micros_since(begin));
      found.moves = std::max(found.moves, decision ? decision->moves.size() : 0);
    }
    return percentile(times, 0.5);
  };
  found.us = median_us({});
  const std::size_t moves = found.moves;
  found.idle_us = median_us({scene.state.running().begin(), scene.state.running().end()});
  found.moves = moves;
  return found;
}

int run(bool quick) {
  take_large_pages();
  const auto begin = Clock::now();
  Scene scene(6'250);
  // With a digest of what was decided so far, which a change that is only to be faster leaves as it was.
  const auto stage = [&](const char* name) {
    const std::uint64_t digest = Hasher().add(scene.state.digest()).add(scene.placed.digest()).digest();
    std::fprintf(stderr, "%8.1f s  %016llx  %s\n", micros_since(begin) / 1e6, static_cast<unsigned long long>(digest),
                 name);
  };
  stage("nodes registered");
  scene.live();
  stage("alive at 90 %");
  const double filled = scene.filled(kDimGpu);
  const Placing best_fit = placements(scene, NodeScore::kBestFit);
  stage("placements");
  const Placing scored = placements(scene, NodeScore::kFragmentation);
  stage("placements, nodes scored by fragmentation");
  const GangPlacing gang_at_fill = place_gang512(scene);
  const std::size_t groups = scene.state.node_index().group_count();
  const std::size_t running = scene.state.running().size();
  double ratio = 0;
  if (!quick) {
    Scene large(62'500);
    stage("ten times the nodes");
    large.live();
    stage("ten times the nodes, alive");
    const Random random = scene.random;  // what follows is the same with --quick
    ratio = cost_ratio(scene, large);
    scene.random = random;
    stage("placements in both");
  }
  scene.close_branches();
  const std::size_t job_bytes = scene.submit_pending(100'000);
  stage("100,000 waiting");
  come_to_rest(scene, {});
  stage("at rest");
  const Steady steady = steady_cycles(scene, 1000);
  stage("steady cycles");
  const std::vector<double> why = why_times(scene, 300);
  const double page = page_reasons_us(scene);
  stage("why");
  scene.make_room(80);
  const GangPlacing gang = place_gang512(scene);
  stage("gang of 512");
  const double reclaim = reclaim_us(scene);
  stage("reclaim of 512");
  scene.guarantee_and_hold();
  come_to_rest(scene, {});
  stage("with guarantees and holds, at rest");
  const Steady guaranteed = steady_cycles(scene, 300);
  stage("steady cycles with guarantees and holds");
  const MoveTimes moves = move_times();
  stage("moves");
  std::printf(
      "{\"nodes\": 6250, \"queues\": %zu, \"pending\": 100000, \"running\": %zu, \"filled\": %.3f, \"traces\": %s, "
      "\"node_groups\": %zu,\n"
      " \"placements_per_s\": %.0f, \"placed_jobs_per_s\": %.0f, \"placements_refused\": %zu,\n"
      " \"scored_placements_per_s\": %.0f, \"scored_jobs_per_s\": %.0f,\n"
      " \"steady_cycle_p50_us\": %.0f, \"steady_cycle_p99_us\": %.0f,\n"
      " \"steady_cycle_cpu_p50_us\": %.0f, \"steady_cycle_cpu_p99_us\": %.0f,\n"
      " \"steady_asked\": %.1f, \"steady_decided\": %.1f,\n"
      " \"guaranteed_cycle_p50_us\": %.0f, \"guaranteed_cycle_p99_us\": %.0f, \"guaranteed_cycle_max_us\": %.0f,\n"
      " \"guaranteed_asked\": %.1f, \"guaranteed_decided\": %.1f,\n"
      " \"gang512_us\": %.0f, \"gang512_fits\": %s, \"gang512_with_room_us\": %.0f,\n"
      " \"reclaim512_us\": %.0f, \"why_us\": %.0f, \"why_p99_us\": %.0f, \"page_reasons_us\": %.0f,\n"
      " \"moves64_us\": %.0f, \"moves64_found\": %zu, \"moves_in_vain_us\": %.0f,\n"
      " \"bytes_per_pending_job\": %zu, \"bytes_per_node\": %zu",
      scene.config.queues.size() - 1, running, filled, scene.mix.traced ? "true" : "false", groups,
      1e6 / best_fit.us_per_task, 1e6 / best_fit.us_per_job, best_fit.refused, 1e6 / scored.us_per_task,
      1e6 / scored.us_per_job, percentile(steady.us, 0.5), percentile(steady.us, 0.99), percentile(steady.cpu_us, 0.5),
      percentile(steady.cpu_us, 0.99), steady.asked, steady.decided, percentile(guaranteed.us, 0.5),
      percentile(guaranteed.us, 0.99), percentile(guaranteed.us, 1), guaranteed.asked, guaranteed.decided,
      gang_at_fill.us, gang_at_fill.fits ? "true" : "false", gang.us, reclaim, percentile(why, 0.5),
      percentile(why, 0.99), page, moves.us, moves.moves, moves.idle_us, job_bytes, scene.node_bytes);
  if (!quick) std::printf(",\n \"cost_ratio_10x\": %.2f", ratio);
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) { return berth::bench::run(argc > 1 && std::strcmp(argv[1], "--quick") == 0); }
