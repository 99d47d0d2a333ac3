#pragma once
// A random fleet, for tests of properties that hold in every state.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "control/commit.h"
#include "control/handle.h"
#include "control/reconcile.h"
#include "sched/cycle.h"

namespace berth {

inline const std::vector<std::string> kModels = {"A", "B", "C"};

// Nodes of three GPU models in two pools; some are tainted, labelled, cordoned, unhealthy or lost. Random jobs arrive,
// run and end; the product's own cycle schedules them.
struct Fleet {
  state::State state;
  Random random;
  Random sockets;    // for NUMA domains and policies, so that the other random numbers stay the same
  Random crates;     // for images, likewise
  Random knives;     // for MIG, likewise
  Random zones;      // for node rules and effects of taints, likewise
  bool cut = false;  // GPUs of model C use MIG
  Timestamp now{1'000'000};
  std::uint32_t nodes = 0;
  std::function<void(const EventRecord&)> on_event;

  explicit Fleet(std::uint64_t seed)
      : random(seed), sockets(seed), crates(seed), knives(seed), zones(seed), cut(seed % 4 == 3) {
    ClusterConfig config = default_cluster_config();
    for (const std::string& model : kModels) config.gpu_models.push_back({model, 1000, 81'920});
    if (cut) config.gpu_models.back().mig = "h100-80gb";
    config.queues.clear();
    for (const char* path : {"a", "b"}) {
      QueueConfig queue;
      queue.path = path;
      queue.guaranteed.gpu_milli = 6000;
      queue.trust_domain = path;
      config.queues.push_back(queue);
      for (int team = 0; team < 3; ++team) {
        QueueConfig leaf;
        leaf.path = std::string(path) + "/t" + std::to_string(team);
        if (random.chance(500)) leaf.max.gpu_milli = random.between(1, 12) * 1000;
        if (random.chance(300)) leaf.max.model_gpu_milli = {{kModels[random.below(3)], random.between(0, 3) * 1000}};
        if (random.chance(300)) leaf.guaranteed.gpu_milli = random.between(0, 2) * 1000;
        if (random.chance(100)) leaf.lending_limit.gpu_milli = 500;
        if (random.chance(300)) leaf.policy = QueuePolicy::kStrict;
        if (random.chance(200)) leaf.max_jobs_per_user = random.between(0, 3);
        if (random.chance(200)) leaf.max_gpu_milli_per_user = random.between(0, 8) * 1000;
        config.queues.push_back(leaf);
      }
    }
    config.scheduling.min_runtime_s = random.between(0, 90);
    if (random.chance(500)) config.scheduling.usage_half_life_s = random.between(30, 3600);
    config.scheduling.deadline_slack_s = random.between(0, 120);
    config.scheduling.score = seed % 2 == 0 ? NodeScore::kBestFit : NodeScore::kFragmentation;
    config.scheduling.backfill_after_s = random.between(0, 120);
    choose_terms(config, seed);
    config.pools = {{"p", {}}, {"q", {"a"}}};
    config.pools[1].burst = seed % 3 == 0;
    if (seed % 5 == 0) config.pools[0].classes = {JobClass::kTraining, JobClass::kBatch};
    command(ApplyConfig{config, "test"});
    const std::int64_t count = random.between(3, 14);
    for (std::int64_t i = 0; i < count; ++i) register_node("n" + std::to_string(i));
  }

  // Chooses eviction terms with random numbers of its own, so that the rest of a seed's life stays the same.
  static void choose_terms(ClusterConfig& config, std::uint64_t seed) {
    Random agreed(seed ^ 0x7e2a5ULL);
    if (!agreed.chance(500)) return;
    for (QueueConfig& queue : config.queues) {
      if (agreed.chance(300)) queue.eviction.min_runtime_s = agreed.between(0, 120);
      if (agreed.chance(200)) queue.eviction.cooldown_s = agreed.between(0, 240);
      if (agreed.chance(200)) queue.eviction.grace_s = agreed.between(0, 60);
      if (agreed.chance(150)) queue.eviction.evictions_per_hour = agreed.between(1, 4);
    }
  }

  void register_node(const std::string& name) {
    NodeSpec node;
    node.name = name;
    node.cuts_gpus = true;
    node.pool = random.chance(700) ? "p" : "q";
    node.cpu_milli = random.between(1, 4) * 8000;
    node.memory_mib = random.between(1, 4) * 16'384;
    if (random.chance(200)) node.taints.push_back({"spot", ""});
    if (random.chance(300)) node.labels.emplace_back("disk", "fast");
    for (Taint& taint : node.taints) taint.effect = static_cast<TaintEffect>(zones.below(2));
    if (zones.chance(700)) node.labels.emplace_back("zone", zones.chance(500) ? "1" : "2");
    const std::string& first = kModels[random.below(3)];
    const std::string& other = random.chance(150) ? kModels[random.below(3)] : first;
    const std::int64_t gpus = random.between(0, 8);
    for (std::int64_t g = 0; g < gpus; ++g) {
      Gpu gpu;
      gpu.uuid = name + "-" + std::to_string(g);
      gpu.model = g % 2 == 0 ? first : other;
      gpu.numa = static_cast<std::int32_t>(sockets.below(3));
      node.gpus.push_back(gpu);
    }
    node.containers = crates.chance(700);
    if (node.containers) node.images = random_images();
    command(RegisterNode{node});
  }

  std::vector<std::string> random_images() {
    std::vector<std::string> images;
    for (const char* image : {"llama", "mistral", "pytorch"}) {
      if (crates.chance(300)) images.emplace_back(image);
    }
    return images;
  }

  JobSpec random_spec() {
    JobSpec spec;
    spec.name = "job";
    spec.queue = (random.chance(500) ? "a/t" : "b/t") + std::to_string(random.below(3));
    if (random.chance(100)) spec.job_class = JobClass::kDev;
    if (random.chance(300)) spec.time_limit_s = random.between(10, 900);
    if (random.chance(200)) spec.checkpoint.on_signal = true;
    if (random.chance(200)) spec.priority_class = random.chance(500) ? "production" : "dev";
    spec.user = random.chance(700) ? "ann" : "bob";
    if (random.chance(200)) spec.deadline = now + random.between(0, 600) * 1000;
    if (random.chance(200)) spec.estimate_s = random.between(1, 300);
    spec.exclusive = random.chance(50);
    spec.spread = random.chance(150);
    const std::int64_t groups = random.chance(250) ? 2 : 1;
    for (std::int64_t g = 0; g < groups; ++g) {
      TaskGroup group;
      group.name = "g" + std::to_string(g);
      group.count = static_cast<std::int32_t>(random.chance(400) ? 1 : random.between(1, 9));
      if (random.chance(200)) group.min_count = static_cast<std::int32_t>(random.between(1, group.count));
      group.request.cpu_milli = random.between(0, 6) * 1000;
      group.request.memory_mib = random.between(0, 6) * 1024;
      group.request.gpus = static_cast<std::int32_t>(random.chance(500) ? random.between(0, 2) : random.between(0, 8));
      if (group.request.gpus == 1 && random.chance(600)) {
        group.request.gpu_milli = static_cast<std::int32_t>(random.between(1, 9) * 100);
      }
      if (group.request.gpus > 0 && random.chance(300)) group.request.gpu_models = {kModels[random.below(3)]};
      if (cut) choose_instance(group.request);
      if (random.chance(200)) group.pool = "p";
      if (random.chance(500)) group.tolerations = {"spot"};
      if (random.chance(100)) group.node_selector.emplace_back("disk", "fast");
      if (zones.chance(150)) group.node_rules = {random_rule()};
      if (!group.tolerations.empty() && zones.chance(300)) group.tolerations = {"spot:NoSchedule"};
      if (sockets.chance(300)) group.numa = static_cast<NumaPolicy>(sockets.below(4));
      if (crates.chance(300)) group.image = crates.chance(500) ? "llama" : "mistral";
      group.command = {"true"};
      spec.groups.push_back(group);
    }
    return spec;
  }

  NodeRule random_rule() {
    const std::vector<NodeExpression> some = {
        {"zone", NodeOperator::kIn, {"1", "3"}, false},   {"zone", NodeOperator::kNotIn, {"2"}, false},
        {"zone", NodeOperator::kGreater, {"1"}, false},   {"disk", NodeOperator::kExists, {}, false},
        {"disk", NodeOperator::kDoesNotExist, {}, false}, {"", NodeOperator::kIn, {"n0", "n2", "n4"}, true}};
    NodeRule rule{{{zones.pick(some)}}};
    if (zones.chance(300)) rule.terms.front().push_back(zones.pick(some));
    if (zones.chance(300)) rule.terms.push_back({zones.pick(some)});
    return rule;
  }

  // Requests a MIG profile for some tasks. No job names model C, which uses MIG.
  void choose_instance(TaskRequest& request) {
    if (request.gpu_models == std::vector<std::string>{"C"}) request.gpu_models.clear();
    if (!knives.chance(500)) return;
    request.gpus = 0;
    request.gpu_milli = static_cast<std::int32_t>(kMilli);
    request.gpu_models.clear();
    const std::vector<std::string> profiles{"1g.10gb", "1g.10gb", "1g.20gb", "2g.20gb",
                                            "3g.40gb", "4g.40gb", "7g.80gb"};
    request.mig_profile = knives.pick(profiles);
  }

  std::optional<control::Reply> command(const Command& command) {
    control::Batch batch(state, now);
    auto reply = control::handle(batch, command);
    control::reconcile(batch);
    keep(batch);
    return reply ? std::optional(*reply) : std::nullopt;
  }

  void cycle() {
    control::Batch batch(state, now);
    control::reconcile(batch);  // as an iteration does: first ends the windows that are over
    control::commit(batch, sched::run_cycle(state, now));
    control::reconcile(batch);
    keep(batch);
  }

  // Gives the events of a batch to `on_event`, if a test has set it.
  void keep(const control::Batch& batch) const {
    if (!on_event) return;
    for (const EventRecord& record : batch.records()) on_event(record);
  }

  void end_some() {
    const std::vector<JobId> running(state.running().begin(), state.running().end());
    for (const JobId id : running) {
      if (!random.chance(250)) continue;
      const auto attempt = *state.job(id)->attempt;
      for (std::uint32_t t = 0; t < attempt.tasks.size(); ++t) {
        if (attempt.tasks[t].phase == TaskPhase::kExited) continue;
        command(ReportTaskExited{{id, attempt.number, t, 1, ExitReason::kExited, 0, ""}});
      }
    }
  }

  void disturb() {
    const state::NodeState& node = state.nodes()[random.below(state.nodes().size())];
    const std::string name = node.spec.name;
    const std::size_t gpus = node.gpus.size();
    if (random.chance(200)) command(CordonNode{name, random.chance(500), random.chance(200), "op"});
    if (gpus > 0 && random.chance(200)) {
      command(ReportGpuHealth{name, static_cast<std::uint8_t>(random.below(gpus)), random.chance(600), ""});
    }
    if (node.spec.containers && crates.chance(300)) command(ReportNodeImages{name, random_images()});
    if (random.chance(100)) command(ReportNodeStatus{name, NodeStatus::kUnknown, ""});
    if (random.chance(100)) command(ReportNodeStatus{name, NodeStatus::kReady, ""});
    if (random.chance(50)) command(ReportNodeStatus{name, NodeStatus::kLost, ""});
    if (random.chance(80)) {
      PlanMaintenance plan;
      plan.nodes = {name};
      plan.from = now + random.between(-10'000, 900'000);
      plan.for_s = random.between(30, 600);
      command(plan);
    }
    if (const auto& windows = state.maintenance(); !windows.empty() && random.chance(100))
      command(CancelMaintenance{windows.begin()->first, "op"});
  }

  void live() {
    now = now + random.between(1, 60'000);
    for (std::int64_t i = random.between(0, 4); i > 0; --i) command(SubmitJob{random_spec(), ""});
    cycle();
    end_some();
    disturb();
  }
};

inline std::vector<JobId> pending_of(const state::State& state) {
  std::vector<JobId> pending;
  for (const state::QueueState& queue : state.queues()) {
    for (const state::PendingKey& key : queue.pending) pending.push_back(key.job);
  }
  return pending;
}

// Runs fleets with the seeds from `first` to before `end`. `arrivals` more jobs arrive after each step.
struct Lives {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  int steps = 0;
  int arrivals = 0;
};

template <class See>
void for_each_step(const Lives& lives, See see) {
  for (std::uint64_t seed = lives.first; seed < lives.end; ++seed) {
    Fleet fleet(seed);
    for (int step = 0; step < lives.steps; ++step) {
      fleet.live();
      for (int i = 0; i < lives.arrivals; ++i) fleet.command(SubmitJob{fleet.random_spec(), ""});
      CAPTURE(seed);
      CAPTURE(step);
      see(fleet);
    }
  }
}

}  // namespace berth
