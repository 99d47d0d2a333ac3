#include "sched_scene.h"

#ifdef BERTH_MIMALLOC
#include <mimalloc.h>
#else
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "control/batch.h"
#include "control/commit.h"
#include "control/reconcile.h"
#include "model/plan.h"
#include "model/reason.h"
#include "sched/place/place.h"

namespace berth::bench {

namespace {

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

std::vector<std::string> models_of(const std::string& queue) {
  return queue.starts_with(kPlacesBranch) ? std::vector<std::string>{kModels[2]}
                                          : std::vector<std::string>{kModels[0], kModels[1]};
}

}  // namespace

#ifdef BERTH_MIMALLOC
std::size_t heap_bytes() {
  const auto add = [](const mi_heap_t*, const mi_heap_area_t* area, void*, std::size_t, void* sum) {
    *static_cast<std::size_t*>(sum) += area->used * area->block_size;
    return true;
  };
  std::size_t bytes = 0;
  mi_heap_collect(mi_heap_get_default(), false);
  mi_heap_visit_blocks(mi_heap_get_default(), false, add, &bytes);
  return bytes;
}
#else
std::size_t heap_bytes() {
  const struct mallinfo2 use = mallinfo2();
  return use.uordblks + use.hblkhd;
}
#endif

Scene::Scene(std::size_t nodes) : config(thousand_queues()) {
  apply_config();
  for (const state::QueueState& queue : state.queues()) {
    if (queue.is_leaf()) leaves.push_back(queue.path);
  }
  const std::size_t before = heap_bytes();
  for (std::size_t n = 0; n < nodes; ++n) register_node(n);
  node_bytes = (heap_bytes() - before) / nodes;
}

// Racks of 10 nodes, blocks of 25 racks; a block has one model.
void Scene::register_node(std::size_t n) {
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

std::optional<control::Reply> Scene::command(const Command& command) {
  control::Batch batch(state, now);
  auto reply = control::handle(batch, command);
  if (!reply) std::fprintf(stderr, "refused: %s\n", reply.error().message.c_str());
  control::reconcile(batch);
  return reply ? std::optional(*reply) : std::nullopt;
}

JobSpec Scene::spec_of(const Shape& shape, const std::string& queue) const {
  JobSpec spec;
  spec.name = "job";
  spec.queue = queue;
  spec.user = "ann";
  spec.checkpoint.on_signal = all_save;
  TaskGroup group;
  group.count = shape.tasks;
  group.request = shape.request;
  if (group.request.gpus > 0) group.request.gpu_models = models_of(queue);
  group.command = {"python3", "train.py"};
  spec.groups.push_back(group);
  return spec;
}

const std::string& Scene::some_leaf(bool for_places) {
  while (true) {
    const std::string& leaf = some_leaf();
    if (leaf.starts_with(kPlacesBranch) == for_places) return leaf;
  }
}

bool Scene::start(JobId id) {
  sched::SearchStats work;
  auto placements = sched::try_place(state, *state.job(id), sched::kAllModels, work);
  if (!placements) {
    command(CancelJob{id, "ann"});
    return false;
  }
  Plan plan;
  plan.decisions.emplace_back(StartDecision{id, std::move(*placements)});
  control::Batch batch(state, now);
  control::commit(batch, plan);
  control::reconcile(batch);
  return true;
}

std::vector<Command> Scene::exits_of(JobId id) const {
  std::vector<Command> commands;
  const auto& attempt = *state.job(id)->attempt;
  for (std::uint32_t t = 0; t < attempt.tasks.size(); ++t) {
    commands.emplace_back(ReportTaskExited{{id, attempt.number, t, 1, ExitReason::kExited, 0, ""}});
  }
  return commands;
}

void Scene::end(JobId id) {
  for (const Command& exit : exits_of(id)) command(exit);
}

void Scene::begin_all() {
  std::vector<Command> commands;
  for (const JobId id : state.running()) {
    const auto& attempt = *state.job(id)->attempt;
    for (std::uint32_t t = 0; t < attempt.tasks.size(); ++t)
      commands.emplace_back(ReportTaskStarted{id, attempt.number, t});
  }
  for (const Command& begin : commands) command(begin);
}

double Scene::filled(std::size_t dim) const {
  return static_cast<double>(state.queue(state.root()).usage[dim]) / static_cast<double>(state.capacity()[dim]);
}

double Scene::filled_shared() const { return (filled(kDimFirstModel) + filled(kDimFirstModel + 1)) / 2; }

// The first two models to their part, the third until several jobs in a row find no place.
void Scene::fill(std::vector<JobId>& running, int refusals) {
  while (filled_shared() < kShared) {
    const JobId id = submit(spec_of(draw(), some_leaf(false)));
    if (start(id)) running.push_back(id);
  }
  while (refusals > 0) {
    const JobId id = submit(spec_of(draw(), some_leaf(true)));
    if (start(id))
      running.push_back(id);
    else
      --refusals;
  }
}

// By trial: a walk over all that run would empty the caches before the cycle that is measured.
JobId Scene::some_running() {
  while (true) {
    const state::JobState* job = state.job(JobId(random.below(state.next_job_id().value())));
    if (job != nullptr && job->attempt) return job->id;
  }
}

void Scene::live() {
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

void Scene::close_branches() {
  for (QueueConfig& queue : config.queues) {
    const bool branch = queue.path.find('/') == std::string::npos && queue.path != kPlacesBranch;
    if (branch) queue.max.gpu_milli = state.queue_at(queue.path)->usage[kDimGpu];
  }
  apply_config();
}

std::size_t Scene::submit_pending(std::size_t count) {
  std::vector<std::vector<Shape>> habits(leaves.size());
  for (auto& shapes : habits) {
    while (shapes.size() < 5) {
      if (const Shape shape = draw(); shape.request.gpus > 0) shapes.push_back(shape);
    }
  }
  std::vector<JobSpec> specs;
  std::size_t before = heap_bytes();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t leaf = random.below(leaves.size());
    specs.push_back(spec_of(habits[leaf][random.below(habits[leaf].size())], leaves[leaf]));
  }
  const std::size_t spec_bytes = heap_bytes() - before;
  before = heap_bytes();
  for (const JobSpec& spec : specs) submit(spec);
  return (heap_bytes() - before - spec_bytes) / count;
}

void Scene::make_room(std::size_t nodes) {
  std::vector<JobId> over;
  for (std::size_t n = 0; n < nodes; ++n) {
    for (const auto& [job, task] : state.nodes()[n].tasks) over.push_back(job);
  }
  std::sort(over.begin(), over.end());
  over.erase(std::unique(over.begin(), over.end()), over.end());
  for (const JobId id : over) end(id);
}

void Scene::lend_all_of_owner() {
  for (QueueConfig& queue : config.queues) {
    queue.max = {};
    if (queue.path == "org3") queue.guaranteed.gpu_milli = 2'000'000;
  }
  QueueConfig owner;
  owner.path = "owner";
  owner.guaranteed.gpu_milli = 1'000'000;
  config.queues.push_back(owner);
  apply_config();
  for (const char* branch : {"org0", "org3"}) {  // the last whole GPUs
    const auto leaf =
        std::find_if(leaves.begin(), leaves.end(), [&](const std::string& path) { return path.starts_with(branch); });
    while (start(submit(spec_of({1, {0, 0, 1, 1000, {}, {}}}, *leaf)))) {
    }
  }
}

void Scene::guarantee_and_hold() {
  for (QueueConfig& queue : config.queues) queue.guaranteed = {};
  std::map<std::string, std::int64_t> of_branch;
  bool every_second = false;
  for (QueueConfig& queue : config.queues) {
    if (std::count(queue.path.begin(), queue.path.end(), '/') != 1 || (every_second = !every_second)) continue;
    queue.guaranteed.gpu_milli = state.queue_at(queue.path)->usage[kDimGpu];
    of_branch[queue.path.substr(0, queue.path.find('/'))] += *queue.guaranteed.gpu_milli;
  }
  for (QueueConfig& queue : config.queues) {
    if (const auto sum = of_branch.find(queue.path); sum != of_branch.end()) queue.guaranteed.gpu_milli = sum->second;
  }
  config.scheduling.backfill_after_s = 0;
  close_branches();
}

std::vector<JobId> Scene::leaving() const {
  std::vector<JobId> jobs;
  for (const JobId preemptor : state.nominated()) {
    for (const JobId victim : state.job(preemptor)->nomination->victims) {
      const state::JobState* job = state.job(victim);
      if (job != nullptr && job->attempt && job->attempt->stopping()) jobs.push_back(victim);
    }
  }
  return jobs;
}

JobSpec Scene::gang512(const std::string& queue) const {
  JobSpec spec = spec_of({64, {64'000, 524'288, 8, 1000, {}, {}}}, queue);
  spec.topology.preferred = "block";
  return spec;
}

}  // namespace berth::bench
