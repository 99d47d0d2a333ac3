// The nodes, queues and policies of a random life.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/world/simulation.h"

namespace berth::sim {

// Places the node: some nodes name their rack by a label, and some are in none.
void Simulation::place_node(NodeSpec& spec) {
  spec.topology.push_back("b" + std::to_string(random_.below(2)));
  const std::string rack = "r" + std::to_string(random_.below(3));
  if (random_.chance(600))
    spec.topology.push_back(rack);
  else if (random_.chance(800))
    spec.labels.emplace_back("rack", rack);
}

std::vector<std::string> Simulation::random_images(Random& random) {
  std::vector<std::string> images;
  for (const char* image : {"llama:1", "llama:2", "pytorch"}) {
    if (random.chance(400)) images.emplace_back(image);
  }
  return images;
}

void Simulation::build_nodes() {
  const auto count =
      shape_.exact ? shape_.most_nodes : static_cast<std::uint32_t>(random_.between(1, shape_.most_nodes));
  for (std::uint32_t n = 0; n < count; ++n) {
    NodeSpec spec;
    spec.name = "n" + std::to_string(n);
    spec.machine = "m" + std::to_string(n);
    spec.cuts_gpus = true;
    spec.cpu_milli = 64'000;
    spec.memory_mib = 256 * 1024;
    if (!config_.pools.empty() && random_.chance(300)) spec.pool = config_.pools.front().name;
    Random apart(seed_ ^ (0x9001ULL + n));
    if (config_.pools.size() > 1 && shape_.policies && apart.chance(400)) spec.pool = config_.pools.back().name;
    if (!config_.topology_levels.empty()) place_node(spec);
    if (!shape_.exact && random_.chance(50)) spec.taints.push_back({"spot", ""});
    const std::size_t model = random_.below(config_.gpu_models.size());
    const std::int64_t gpus = shape_.exact ? 8 : random_.pick(std::vector<std::int64_t>{0, 2, 4, 4, 8, 8, 8});
    Random sockets(seed_ ^ (0xa001ULL + n));  // as above
    spec.numa_nodes = shape_.policies && seed_ % 4 == 0 ? static_cast<std::int32_t>(sockets.between(1, 4)) : 1;
    if (has_images()) {
      Random crates(seed_ ^ (0xb001ULL + n));  // as above
      spec.containers = crates.chance(600);
      if (spec.containers) spec.images = random_images(crates);
    }
    if (has_countables()) {
      Random counters(seed_ ^ (0xc001ULL + n));  // as above
      if (counters.chance(700)) spec.countables.emplace_back("pods", counters.between(1, 8));
      if (counters.chance(600)) spec.countables.emplace_back("rdma/hca", counters.between(1, 4));
    }
    for (std::int64_t g = 0; g < gpus; ++g) {
      Gpu gpu;
      gpu.uuid = "GPU-" + spec.name + "-" + std::to_string(g);
      gpu.model = config_.gpu_models[model].name;
      gpu.numa = static_cast<std::int32_t>(g * spec.numa_nodes / gpus);
      spec.gpus.push_back(gpu);
    }
    if (has_rules()) {
      Random zones(seed_ ^ (0xc001ULL + n));  // as above
      if (zones.chance(800)) spec.labels.emplace_back("zone", "z" + std::to_string(zones.below(3)));
      if (zones.chance(800)) spec.labels.emplace_back("cores", std::to_string(zones.between(1, 4) * 16));
      std::sort(spec.labels.begin(), spec.labels.end());
      for (Taint& taint : spec.taints) taint.effect = static_cast<TaintEffect>(zones.below(2));
    }
    node_names_.push_back(spec.name);
    world_.fleet().add_node(spec, world_.now());
  }
  world_.reconcile();
}

void Simulation::add_queues(ClusterConfig& config, const std::string& parent, std::int64_t guaranteed_milli,
                            std::uint32_t depth) {
  const auto children = static_cast<std::uint32_t>(random_.between(1, depth == 0 ? 6 : 4));
  for (std::uint32_t c = 0; c < children && config.queues.size() < shape_.most_queues; ++c) {
    QueueConfig queue;
    queue.path = (parent.empty() ? "" : parent + "/") + "q" + std::to_string(c);
    std::int64_t guaranteed = 0;
    if (random_.chance(800) && guaranteed_milli > 0) {
      guaranteed = guaranteed_milli / children / kMilli * kMilli;
      queue.guaranteed.gpu_milli = guaranteed;
      if (random_.chance(100)) queue.guaranteed.cpu_milli = guaranteed * 8;
    }
    if (random_.chance(300)) queue.max.gpu_milli = guaranteed + random_.between(1, 32) * kMilli;
    if (random_.chance(100) && guaranteed > 0) queue.lending_limit.gpu_milli = guaranteed / 2;
    queue.weight = random_.between(0, 4);
    if (random_.chance(150)) queue.policy = QueuePolicy::kStrict;
    if (random_.chance(300)) queue.trust_domain = "d" + std::to_string(random_.below(3));
    config.queues.push_back(queue);
    if (depth < 3 && random_.chance(depth == 0 ? 800 : 400)) add_queues(config, queue.path, guaranteed, depth + 1);
  }
}

ClusterConfig Simulation::random_config() {
  ClusterConfig config = default_cluster_config();
  config.queues.clear();
  config.gpu_models = {{"H100", 1000, 81'920}};
  if (random_.chance(300) || has_cut_gpus()) config.gpu_models.push_back({"A100", 500, 40'960});
  if (has_cut_gpus()) config.gpu_models.back().mig = "a100-40gb";
  const std::int64_t capacity = std::int64_t{shape_.most_nodes} * 4 * kMilli;
  add_queues(config, "", random_.between(1, 10) * capacity / 10 / kMilli * kMilli, 0);
  if (shape_.exact) {  // a flat layer gives the exact number
    for (std::uint32_t i = 0; config.queues.size() < shape_.most_queues; ++i) {
      QueueConfig queue;
      queue.path = "flat" + std::to_string(i);
      queue.guaranteed.gpu_milli = 2 * kMilli;
      config.queues.push_back(queue);
    }
  }
  for (QueueConfig& queue : config.queues) queue.returns = true;
  if (random_.chance(500)) config.topology_levels = {"block", "rack"};
  if (!shape_.exact && random_.chance(300)) config.pools.push_back({"dedicated", {config.queues.front().path}});
  config.scheduling.min_runtime_s = random_.chance(300) ? random_.between(1, 600) : 0;
  config.scheduling.default_grace_s = random_.between(1, 60);
  config.scheduling.reclaim = !random_.chance(100);
  config.scheduling.preempt = !random_.chance(200);
  leaves_.clear();
  for (const QueueConfig& queue : config.queues) {
    const bool leaf = std::none_of(config.queues.begin(), config.queues.end(),
                                   [&](const QueueConfig& other) { return other.path.starts_with(queue.path + "/"); });
    if (leaf) leaves_.push_back(queue.path);
  }
  if (shape_.policies) {
    choose_policies(config);
    choose_terms(config);
    choose_budgets(config);
  }
  return config;
}

// Gives one queue of the configuration in force another name.
void Simulation::rename_a_queue(Random& moving) {
  config_ = world_.durable().config();
  for (QueueConfig& queue : config_.queues) queue.moved_from.clear();
  const std::string from = moving.pick(config_.queues).path;
  const std::size_t name = from.rfind('/') + 1;  // 0 if there is no parent
  const QueueMove move{from, from.substr(0, name) + "renamed" + std::to_string(steps_)};
  for (QueueConfig& queue : config_.queues) {
    if (queue.path == move.from) queue.moved_from = move.from;
    queue.path = moved_path(queue.path, {move});
  }
  for (PoolConfig& pool : config_.pools) {
    for (std::string& path : pool.queues) path = moved_path(path, {move});
  }
}

// Chooses policies with random numbers of its own, so that the rest of a seed's life stays the same.
void Simulation::choose_policies(ClusterConfig& config) {
  Random apart(seed_ ^ 0x5c04eULL);
  config.scheduling.score = apart.chance(300) ? NodeScore::kFragmentation : NodeScore::kBestFit;
  if (apart.chance(500)) config.scheduling.fragmentation_alert_percent = apart.between(1, 60);
  if (apart.chance(500)) config.scheduling.resize_interval_s = apart.between(0, 120);
  config.scheduling.backfill_after_s = apart.chance(500) ? 0 : apart.between(1, 7200);
  if (apart.chance(500)) config.scheduling.flap_losses = apart.between(0, 5);
  if (apart.chance(500)) config.scheduling.max_unreachable_percent = apart.between(0, 60);
  Random suspicion(seed_ ^ 0x5a59ec7ULL);
  if (suspicion.chance(500)) config.scheduling.suspect_users = suspicion.between(0, 3);
  Random levels(seed_ ^ 0x1e7e15ULL);
  for (PoolConfig& pool : config.pools) {
    if (levels.chance(150)) pool.gpu_levels = {GpuLevel::kWhole, GpuLevel::kMig};
  }
  for (PoolConfig& pool : config.pools) {
    if (!apart.chance(300)) continue;
    pool.trust_domain_isolation = config.topology_levels.empty() || apart.chance(300) ? "node"
                                  : apart.chance(500)                                 ? "rack"
                                                                                      : "block";
  }
  if (apart.chance(200)) config.scheduling.cooldown_s = apart.between(1, 1800);
  if (apart.chance(100)) config.scheduling.evictions_per_hour = apart.between(1, 20);
  if (apart.chance(200)) config.scheduling.preempt_max_loss_s = apart.between(1, 3600);
  for (QueueConfig& queue : config.queues) {
    const bool leaf = std::find(leaves_.begin(), leaves_.end(), queue.path) != leaves_.end();
    if (!leaf || !apart.chance(250)) continue;
    const std::int64_t first_gpu_s = apart.between(1, 2000);
    queue.attained_service = {{first_gpu_s, first_gpu_s * 10}, apart.chance(700) ? apart.between(60, 7200) : 0};
  }
  Random moving(seed_ ^ 0x307e5ULL);
  if (moving.chance(400)) config.scheduling.consolidations_per_hour = moving.between(1, 200);
  Random drawing(seed_ ^ 0xe4e46ULL);
  config.scheduling.energy = drawing.chance(300);
  for (GpuModelConfig& model : config.gpu_models) model.watts = drawing.between(0, 700);
  for (QueueConfig& queue : config.queues) {
    if (queue.guaranteed.gpu_milli && apart.chance(250)) queue.guarantee_decay_s = apart.between(30, 3600);
  }
  if (shape_.exact || !apart.chance(500)) return;
  PoolConfig extra{"extra"};
  extra.burst = apart.chance(600);
  if (apart.chance(400)) extra.classes.push_back(static_cast<JobClass>(apart.below(4)));
  if (apart.chance(200)) extra.queues.push_back(apart.pick(config.queues).path);
  config.pools.push_back(std::move(extra));
}

// Chooses eviction terms, likewise with random numbers of its own.
void Simulation::choose_terms(ClusterConfig& config) {
  Random agreed(seed_ ^ 0x7e2a5ULL);
  if (!agreed.chance(400)) return;
  for (QueueConfig& queue : config.queues) {
    EvictionTermsConfig& terms = queue.eviction;
    if (agreed.chance(300)) terms.min_runtime_s = agreed.chance(300) ? 0 : agreed.between(1, 1200);
    if (agreed.chance(200)) terms.cooldown_s = agreed.between(0, 3600);
    if (agreed.chance(200)) terms.grace_s = agreed.between(0, 90);
    if (agreed.chance(150)) terms.evictions_per_hour = agreed.between(1, 5);
  }
}

}  // namespace berth::sim
