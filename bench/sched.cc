// The scheduler alone, on one core: a fleet of thousands of nodes that lives at 90 % of its GPUs, a thousand queues
// four levels deep, a hundred thousand waiting jobs. Shapes come from the public traces (openb pods with their CPU,
// memory and shares; Philly gangs) when BERTH_TRACES or ../shared/traces has them, and from a small built-in mix
// otherwise. Of the four branches of the tree three share two GPU models and are held by their ceilings; the fourth has
// no ceiling but the third model, which is full, so that what waits there waits for places.
//
//   bench/run sched [--quick]      --quick leaves out the fleet of ten times the size
//
// The keys are explained in docs/speed.md.

#include <malloc.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "control/commit.h"
#include "control/handle.h"
#include "control/settle.h"
#include "control/turn.h"
#include "sched/blocking.h"
#include "sched/cycle.h"
#include "sched/explain.h"
#include "sched/place.h"
#include "sched/preempt.h"

namespace berth {
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

std::size_t heap_bytes() {
  const struct mallinfo2 use = mallinfo2();
  return use.uordblks + use.hblkhd;
}

// --- shapes ------------------------------------------------------------------------------------------------------

struct Shape {
  std::int32_t tasks = 1;
  TaskRequest request;
};

std::string read_gzip(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  char block[1 << 16];
  for (int got = 0; (got = gzread(file, block, sizeof block)) > 0;) text.append(block, static_cast<std::size_t>(got));
  gzclose(file);
  return text;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// The jobs of one trace in its native form. Where a trace does not say, a GPU comes with 8 cores and 64 GiB.
std::vector<Shape> read_shapes(const std::string& name) {
  const char* folder = std::getenv("BERTH_TRACES");
  const std::string text = read_gzip(std::string(folder != nullptr ? folder : "../shared/traces") + "/" + name);
  const std::vector<std::string> lines = split(text, '\n');
  const std::vector<std::string> header = split(lines.front(), ',');
  std::vector<Shape> shapes;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = split(lines[i], ',');
    if (cells.size() != header.size()) continue;
    const auto number = [&](const char* column, std::int64_t otherwise) {
      const auto at = std::find(header.begin(), header.end(), column) - header.begin();
      const std::string& cell = cells[static_cast<std::size_t>(at)];
      return cell.empty() ? otherwise : std::atoll(cell.c_str());
    };
    Shape shape;
    shape.tasks = static_cast<std::int32_t>(std::max<std::int64_t>(1, number("workers", 1)));
    shape.request.gpus = static_cast<std::int32_t>(std::min<std::int64_t>(8, number("gpus_per_worker", 1)));
    shape.request.gpu_milli = static_cast<std::int32_t>(shape.request.gpus == 1 ? number("gpu_milli", 1000) : 1000);
    if (shape.request.gpu_milli <= 0) shape.request.gpu_milli = 1000;
    shape.request.cpu_milli = std::min<std::int64_t>(96'000, number("cpu_milli_per_worker", shape.request.gpus * 8000));
    shape.request.memory_mib =
        std::min<std::int64_t>(700 * 1024, number("mem_mib_per_worker", shape.request.gpus * 65'536));
    shapes.push_back(shape);
  }
  return shapes;
}

struct Mix {
  std::vector<Shape> pods;
  std::vector<Shape> gangs;
  bool traced = true;

  Mix()
      : pods(read_shapes("openb/openb_default.jobs.csv.gz")),
        gangs(read_shapes("philly/philly_to_oct2017.jobs.csv.gz")) {
    if (!pods.empty() && !gangs.empty()) return;
    traced = false;
    std::fprintf(stderr, "the public traces are not there (BERTH_TRACES); a built-in mix stands in for them\n");
    for (const std::int32_t milli : {100, 200, 250, 500, 800, 1000})
      pods.push_back({1, {6000, 24'576, 1, milli, {}, {}}});
    for (const std::int32_t gpus : {1, 1, 1, 2, 4, 8})
      gangs.push_back({1, {gpus * 8000, gpus * 65'536, gpus, 1000, {}, {}}});
    gangs.push_back({4, {64'000, 524'288, 8, 1000, {}, {}}});
  }
};

// --- the scene ---------------------------------------------------------------------------------------------------

const std::vector<std::string> kModels = {"H100", "A100", "V100"};
constexpr double kShared = 0.86;  // of the first two models; with the full third this makes 90 %
const std::string kPlacesBranch = "org3";

ClusterConfig thousand_queues() {
  ClusterConfig config = default_cluster_config();
  for (std::size_t m = 0; m < kModels.size(); ++m) {
    config.gpu_models.push_back({kModels[m], 1000 >> m, 81'920});
  }
  config.topology_levels = {"block", "rack"};
  config.queues.clear();
  const auto add = [&](const std::string& path) {
    QueueConfig queue;
    queue.path = path;
    config.queues.push_back(queue);
  };
  for (int org = 0; org < 4; ++org) {
    const std::string o = "org" + std::to_string(org);
    add(o);
    for (int team = 0; team < 6; ++team) {
      const std::string t = o + "/team" + std::to_string(team);
      add(t);
      for (int project = 0; project < 6; ++project) {
        const std::string p = t + "/project" + std::to_string(project);
        add(p);
        for (int user = 0; user < 5; ++user) add(p + "/user" + std::to_string(user));
      }
    }
  }
  for (std::size_t i = config.queues.size(); i < 1000; ++i) add("org0/team0/project0/user" + std::to_string(i));
  return config;
}

struct Scene {
  state::State state;
  Random random{42};
  Timestamp now{1'000'000};
  Mix mix;
  ClusterConfig config = thousand_queues();
  std::vector<std::string> leaves;
  control::TurnMemory memory;
  std::size_t node_bytes = 0;
  Hasher placed;  // where placements went that were taken back

  explicit Scene(std::size_t nodes) {
    command(ApplyConfig{config, "bench"});
    for (const state::QueueState& queue : state.queues()) {
      if (queue.is_leaf()) leaves.push_back(queue.path);
    }
    const std::size_t before = heap_bytes();
    for (std::size_t n = 0; n < nodes; ++n) register_node(n);
    node_bytes = (heap_bytes() - before) / nodes;
  }

  // Racks of 10 nodes, blocks of 25 racks; a block has one model.
  void register_node(std::size_t n) {
    NodeSpec node;
    node.name = "node" + std::to_string(n);
    node.topology = {"block" + std::to_string(n / 250), "rack" + std::to_string(n / 10)};
    node.cpu_milli = 128'000;
    node.memory_mib = 1024 * 1024;
    for (int g = 0; g < 8; ++g) {
      Gpu gpu;
      gpu.uuid = "GPU-" + std::to_string(n) + "-0000-0000-0000-00000000000" + std::to_string(g);
      gpu.model = kModels[n / 250 % kModels.size()];
      gpu.memory_mib = 81'920;
      gpu.nvlink_island = 0;
      gpu.numa = g / 4;
      node.gpus.push_back(gpu);
    }
    command(RegisterNode{node});
  }

  std::optional<control::Reply> command(const Command& command) {
    control::Batch batch(state, now);
    auto reply = control::handle(batch, command);
    if (!reply) std::fprintf(stderr, "refused: %s\n", reply.error().message.c_str());
    control::settle(batch);
    return reply ? std::optional(*reply) : std::nullopt;
  }

  JobSpec spec_of(const Shape& shape, const std::string& queue) {
    JobSpec spec;
    spec.name = "job";
    spec.queue = queue;
    spec.user = "ann";
    TaskGroup group;
    group.count = shape.tasks;
    group.request = shape.request;
    if (group.request.gpus > 0) group.request.gpu_models = models_of(queue);
    group.command = {"python3", "train.py"};
    spec.groups.push_back(group);
    return spec;
  }
  JobId submit(const JobSpec& spec) { return command(SubmitJob{spec, ""})->job; }
  const std::string& some_leaf() { return random.pick(leaves); }
  const std::string& some_leaf(bool for_places) {
    while (true) {
      const std::string& leaf = some_leaf();
      if (leaf.starts_with(kPlacesBranch) == for_places) return leaf;
    }
  }
  static std::vector<std::string> models_of(const std::string& queue) {
    return queue.starts_with(kPlacesBranch) ? std::vector<std::string>{kModels[2]}
                                            : std::vector<std::string>{kModels[0], kModels[1]};
  }

  Shape draw() {
    const std::vector<Shape>& from = random.chance(500) ? mix.pods : mix.gangs;
    return random.pick(from);
  }

  // Starts the job where it fits best, without asking quota. Returns microseconds of placement, or less than 0.
  double start(JobId id) {
    sched::PlaceWork work;
    Reason why;
    const auto begin = Clock::now();
    auto placements = sched::place(state, *state.job(id), sched::kAllModels, work, why);
    const double took = micros_since(begin);
    if (!placements) {
      command(CancelJob{id, "ann"});
      return -1;
    }
    Plan plan;
    plan.decisions.emplace_back(StartDecision{id, std::move(*placements)});
    control::Batch batch(state, now);
    control::commit(batch, plan);
    control::settle(batch);
    return took;
  }

  std::vector<Command> exits_of(JobId id) const {
    std::vector<Command> commands;
    const auto& attempt = *state.job(id)->attempt;
    for (std::uint32_t t = 0; t < attempt.tasks.size(); ++t) {
      commands.emplace_back(ReportTaskExited{{id, attempt.number, t, 1, ExitReason::kExited, 0, ""}});
    }
    return commands;
  }
  void end(JobId id) {
    for (const Command& exit : exits_of(id)) command(exit);
  }

  double filled(std::size_t dim) const {
    return static_cast<double>(state.queue(state.root()).usage[dim]) / static_cast<double>(state.capacity()[dim]);
  }
  double filled_shared() const { return (filled(kDimFirstModel) + filled(kDimFirstModel + 1)) / 2; }

  // The first two models to their part, the third until several jobs in a row find no place.
  void fill(std::vector<JobId>& running, int refusals) {
    while (filled_shared() < kShared) {
      const JobId id = submit(spec_of(draw(), some_leaf(false)));
      if (start(id) >= 0) running.push_back(id);
    }
    while (refusals > 0) {
      const JobId id = submit(spec_of(draw(), some_leaf(true)));
      if (start(id) >= 0)
        running.push_back(id);
      else
        --refusals;
    }
  }

  // By trial: a walk over all that run would empty the caches before the cycle that is measured.
  JobId some_running() {
    while (true) {
      const state::JobState* job = state.job(JobId(random.below(state.next_job_id().value())));
      if (job != nullptr && job->attempt) return job->id;
    }
  }

  // To 90 % of the GPUs, then as long again with jobs that leave and others that come.
  void live() {
    std::vector<JobId> running;
    fill(running, 100);
    const std::size_t rounds = running.size();
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::size_t at = random.below(running.size());
      end(running[at]);
      running[at] = running.back();
      running.pop_back();
      fill(running, 2);
    }
  }
};

// --- figures -----------------------------------------------------------------------------------------------------

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
  scene.command(ApplyConfig{scene.config, "bench"});
  std::vector<JobId> asked;
  for (int i = 0; i < kJobs; ++i) asked.push_back(scene.submit(scene.spec_of(scene.draw(), scene.some_leaf(false))));
  Placing placing;
  std::vector<NodeId> nodes;  // of the tasks
  double total = 0;
  {  // no event is applied while a trial is under way
    state::Trial trial(scene.state);
    const auto begin = Clock::now();
    const double cpu_begin = cpu_micros();
    for (const JobId id : asked) {
      sched::PlaceWork work;
      Reason why;
      const auto placements = sched::place(scene.state, *scene.state.job(id), sched::kAllModels, work, why);
      if (placements) {
        trial.place(id, *placements);
        for (const TaskPlacement& placement : *placements) nodes.push_back(placement.node);
        ++placing.placed;
      } else {
        ++placing.refused;
      }
      if (trial.mark() >= 200) trial.rollback_to(0);
    }
    total = micros_since(begin);
    placing.cpu_us_per_job = (cpu_micros() - cpu_begin) / kJobs;
    trial.rollback_to(0);
  }
  for (const NodeId node : nodes) scene.placed.add(std::uint64_t{node.value()});
  placing.us_per_task = total / static_cast<double>(nodes.size());
  placing.us_per_job = total / kJobs;
  for (const JobId id : asked) scene.command(CancelJob{id, "ann"});
  scene.config.scheduling.score = NodeScore::kBestFit;
  scene.command(ApplyConfig{scene.config, "bench"});
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

JobSpec gang512(Scene& scene, const std::string& queue) {
  JobSpec spec = scene.spec_of({64, {64'000, 524'288, 8, 1000, {}, {}}}, queue);
  spec.topology.preferred = "block";
  return spec;
}

// Room for one gang of 64 whole nodes, made by ending what runs on the emptiest block.
void make_room(Scene& scene, std::size_t nodes) {
  std::vector<JobId> over;
  for (std::size_t n = 0; n < nodes; ++n) {
    for (const auto& [job, task] : scene.state.nodes()[n].tasks) over.push_back(job);
  }
  std::sort(over.begin(), over.end());
  over.erase(std::unique(over.begin(), over.end()), over.end());
  for (const JobId id : over) scene.end(id);
}

struct GangPlacing {
  double us = 0;
  bool fits = false;
};

GangPlacing place_gang512(Scene& scene) {
  const JobId id = scene.submit(gang512(scene, scene.leaves.front()));
  std::vector<double> times;
  GangPlacing placing;
  for (int i = 0; i < 101; ++i) {
    sched::PlaceWork work;
    Reason why;
    const auto begin = Clock::now();
    placing.fits = sched::place(scene.state, *scene.state.job(id), sched::kAllModels, work, why).has_value();
    times.push_back(micros_since(begin));
  }
  scene.command(CancelJob{id, "ann"});
  placing.us = percentile(times, 0.5);
  return placing;
}

// Three branches are full by their ceilings: nothing of what waits there may start before something below ends.
void close_branches(Scene& scene) {
  for (QueueConfig& queue : scene.config.queues) {
    const bool branch = queue.path.find('/') == std::string::npos && queue.path != kPlacesBranch;
    if (branch) queue.max.gpu_milli = scene.state.queue_at(queue.path)->usage[kDimGpu];
  }
  scene.command(ApplyConfig{scene.config, "bench"});
}

// 100,000 waiting jobs: each user has some few shapes of the mix and sends them again and again.
std::size_t submit_pending(Scene& scene, std::size_t count) {
  std::vector<std::vector<Shape>> habits(scene.leaves.size());
  for (auto& shapes : habits) {
    while (shapes.size() < 5) {
      if (const Shape shape = scene.draw(); shape.request.gpus > 0) shapes.push_back(shape);
    }
  }
  std::vector<JobSpec> specs;
  std::size_t before = heap_bytes();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t leaf = scene.random.below(scene.leaves.size());
    specs.push_back(scene.spec_of(habits[leaf][scene.random.below(habits[leaf].size())], scene.leaves[leaf]));
  }
  const std::size_t spec_bytes = heap_bytes() - before;
  before = heap_bytes();
  for (const JobSpec& spec : specs) scene.submit(spec);
  return (heap_bytes() - before - spec_bytes) / count;
}

struct TurnWork {
  double us = 0;
  double cpu_us = 0;
  std::uint64_t asked = 0;
  std::uint64_t decided = 0;
};

// Turns until nothing more follows by itself.
TurnWork come_to_rest(Scene& scene, const std::vector<Command>& commands) {
  TurnWork work;
  const auto begin = Clock::now();
  const double cpu_begin = cpu_micros();
  auto turn = control::run_turn(scene.state, scene.now, commands, scene.memory, sched::run_cycle);
  while (true) {
    work.asked += turn.plan.jobs_asked;
    work.decided += turn.plan.decisions.size();
    if (!turn.again) break;
    turn = control::run_turn(scene.state, scene.now, {}, scene.memory, sched::run_cycle);
  }
  work.us = micros_since(begin);
  work.cpu_us = cpu_micros() - cpu_begin;
  return work;
}

// One job ends and one arrives: with all that follows at once, the turns after the first included.
std::vector<TurnWork> steady_cycles(Scene& scene, int count) {
  std::vector<TurnWork> works;
  for (int i = 0; i < count; ++i) {
    scene.now = scene.now + 100;
    std::vector<Command> commands = scene.exits_of(scene.some_running());
    const Shape shape = scene.draw();
    commands.emplace_back(SubmitJob{scene.spec_of(shape, scene.some_leaf()), ""});
    works.push_back(come_to_rest(scene, commands));
  }
  return works;
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
    sched::explain(scene.state, id, scene.now);
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
    sched::BlockingOfMany blocking(scene.state, scene.now);
    for (const state::JobState* job : page) blocking(*job);
    times.push_back(micros_since(begin));
  }
  return percentile(times, 0.5);
}

// The fleet is full of what others have borrowed; the owner of a guarantee wants 512 GPUs back.
double reclaim_us(Scene& scene) {
  for (QueueConfig& queue : scene.config.queues) {
    queue.max = {};
    if (queue.path == "org3") queue.guaranteed.gpu_milli = 2'000'000;
  }
  QueueConfig owner;
  owner.path = "owner";
  owner.guaranteed.gpu_milli = 1'000'000;
  scene.config.queues.push_back(owner);
  scene.command(ApplyConfig{scene.config, "bench"});
  for (const char* leaf : {"org0", "org3"}) {  // the last whole GPUs
    for (;;) {
      const auto below = std::find_if(scene.leaves.begin(), scene.leaves.end(),
                                      [&](const std::string& path) { return path.starts_with(leaf); });
      const JobId id = scene.submit(scene.spec_of({1, {0, 0, 1, 1000, {}, {}}}, *below));
      if (scene.start(id) < 0) break;
    }
  }
  const JobId claimant = scene.submit(gang512(scene, "owner"));
  scene.now = scene.now + 3'600'000;
  std::vector<double> times;
  for (int i = 0; i < 11; ++i) {
    sched::PlaceWork work;
    const std::set<JobId> nobody;
    const auto begin = Clock::now();
    const auto decision = sched::find_victims({scene.state, scene.now, nobody, 4096}, claimant, work);
    times.push_back(micros_since(begin));
    if (!decision) std::fprintf(stderr, "nothing to reclaim was found\n");
    if (decision && i == 0) std::fprintf(stderr, "reclaim: %zu victims\n", decision->victims.size());
  }
  return percentile(times, 0.5);
}

int run(bool quick) {
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
  close_branches(scene);
  const std::size_t job_bytes = submit_pending(scene, 100'000);
  stage("100,000 waiting");
  come_to_rest(scene, {});
  stage("at rest");
  std::vector<double> cycles;
  std::vector<double> cpu_cycles;
  TurnWork sum;
  for (const TurnWork& work : steady_cycles(scene, 1000)) {
    cycles.push_back(work.us);
    cpu_cycles.push_back(work.cpu_us);
    sum.asked += work.asked;
    sum.decided += work.decided;
  }
  stage("steady cycles");
  const std::vector<double> why = why_times(scene, 300);
  const double page = page_reasons_us(scene);
  stage("why");
  make_room(scene, 80);
  const GangPlacing gang = place_gang512(scene);
  stage("gang of 512");
  const double reclaim = reclaim_us(scene);
  stage("reclaim of 512");
  std::printf(
      "{\"nodes\": 6250, \"queues\": %zu, \"pending\": 100000, \"running\": %zu, \"filled\": %.3f, \"traces\": %s, "
      "\"node_groups\": %zu,\n"
      " \"placements_per_s\": %.0f, \"placed_jobs_per_s\": %.0f, \"placements_refused\": %zu,\n"
      " \"scored_placements_per_s\": %.0f, \"scored_jobs_per_s\": %.0f,\n"
      " \"steady_cycle_p50_us\": %.0f, \"steady_cycle_p99_us\": %.0f,\n"
      " \"steady_cycle_cpu_p50_us\": %.0f, \"steady_cycle_cpu_p99_us\": %.0f,\n"
      " \"steady_asked\": %.1f, \"steady_decided\": %.1f,\n"
      " \"gang512_us\": %.0f, \"gang512_fits\": %s, \"gang512_with_room_us\": %.0f,\n"
      " \"reclaim512_us\": %.0f, \"why_us\": %.0f, \"why_p99_us\": %.0f, \"page_reasons_us\": %.0f,\n"
      " \"bytes_per_pending_job\": %zu, \"bytes_per_node\": %zu",
      scene.config.queues.size() - 1, running, filled, scene.mix.traced ? "true" : "false", groups,
      1e6 / best_fit.us_per_task, 1e6 / best_fit.us_per_job, best_fit.refused, 1e6 / scored.us_per_task,
      1e6 / scored.us_per_job, percentile(cycles, 0.5), percentile(cycles, 0.99), percentile(cpu_cycles, 0.5),
      percentile(cpu_cycles, 0.99), static_cast<double>(sum.asked) / static_cast<double>(cycles.size()),
      static_cast<double>(sum.decided) / static_cast<double>(cycles.size()), gang_at_fill.us,
      gang_at_fill.fits ? "true" : "false", gang.us, reclaim, percentile(why, 0.5), percentile(why, 0.99), page,
      job_bytes, scene.node_bytes);
  if (!quick) std::printf(",\n \"cost_ratio_10x\": %.2f", ratio);
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::run(argc > 1 && std::strcmp(argv[1], "--quick") == 0); }
