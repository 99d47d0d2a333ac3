// The jobs of a random life.

#include <string>
#include <utility>
#include <vector>

#include "sim/world/simulation.h"

namespace berth::sim {

namespace {

constexpr std::int64_t kSecondMs = 1000;

}  // namespace

void Simulation::random_requests(JobSpec& spec) {
  const std::size_t groups = random_.chance(100) ? 2 : 1;
  for (std::size_t g = 0; g < groups; ++g) {
    TaskGroup group;
    group.name = "g" + std::to_string(g);
    group.command = {"train"};
    group.request.cpu_milli = random_.between(1, 8) * 1000;
    group.request.memory_mib = random_.between(0, 16) * 1024;
    const std::uint64_t what = random_.below(100);
    if (what < 10) {
      group.request.gpus = 0;
    } else if (what < 25) {
      group.request.gpus = 1;
      group.request.gpu_milli = static_cast<std::int32_t>(random_.between(1, 9) * 100);
    } else {
      group.request.gpus = static_cast<std::int32_t>(random_.pick(std::vector<std::int64_t>{1, 1, 2, 2, 4, 8}));
    }
    if (random_.chance(250)) group.count = static_cast<std::int32_t>(random_.between(2, 8));
    if (group.count > 1 && random_.chance(300))
      group.min_count = static_cast<std::int32_t>(random_.between(1, group.count));
    if (random_.chance(100)) group.request.gpu_models = {random_.pick(config_.gpu_models).name};
    if (random_.chance(50)) group.tolerations = {"spot"};
    if (random_.chance(300)) group.launch = Launch::kPerGpu;
    spec.groups.push_back(std::move(group));
  }
}

// Requests a MIG profile for some tasks. No job names the model that uses MIG.
void Simulation::choose_instance(TaskRequest& request, Random& knives) {
  if (request.gpu_models == std::vector<std::string>{config_.gpu_models.back().name}) request.gpu_models.clear();
  if (!knives.chance(400)) return;
  request.gpus = 0;
  request.gpu_milli = static_cast<std::int32_t>(kMilli);
  request.gpu_models.clear();
  request.mig_profile =
      knives.pick(std::vector<std::string>{"1g.5gb", "1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"});
}

// Asks for nodes by their labels, and tolerates taints by their effects.
void Simulation::choose_rules(TaskGroup& group, Random& zones) {
  if (!group.tolerations.empty() && zones.chance(500))
    group.tolerations = {zones.pick(std::vector<std::string>{"spot:NoSchedule", "spot=:NoExecute", "*", "spot=a"})};
  if (!zones.chance(200)) return;
  const std::vector<NodeExpression> some = {
      {"zone", NodeOperator::kIn, {"z0", "z1"}, false}, {"zone", NodeOperator::kNotIn, {"z1"}, false},
      {"zone", NodeOperator::kDoesNotExist, {}, false}, {"cores", NodeOperator::kExists, {}, false},
      {"cores", NodeOperator::kGreater, {"16"}, false}, {"cores", NodeOperator::kLess, {"48"}, false},
      {"", NodeOperator::kNotIn, {"n0"}, true}};
  NodeRule& rule = group.node_rules.emplace_back();
  rule.terms.resize(zones.chance(300) ? 2 : 1);
  for (auto& term : rule.terms) {
    term.push_back(zones.pick(some));
    if (zones.chance(300)) term.push_back(zones.pick(some));
  }
  if (zones.chance(200)) group.node_rules.push_back({{{zones.pick(some)}}});
}

// Chooses NUMA policies, node rules, images, ports, labels, affinity terms and levels of groups, with random numbers of
// its own (see choose_policies).
void Simulation::choose_for_affinity(JobSpec& spec) {
  Random sockets(seed_ ^ (steps_ << 24U));
  for (TaskGroup& group : spec.groups) {
    if (shape_.policies && seed_ % 4 == 0 && sockets.chance(300))
      group.numa = static_cast<NumaPolicy>(sockets.below(4));
  }
  Random crates(seed_ ^ (steps_ << 28U));
  for (TaskGroup& group : spec.groups) {
    if (has_images() && crates.chance(400)) group.image = crates.chance(500) ? "llama:1" : "pytorch";
  }
  Random counters(seed_ ^ (steps_ << 44U));
  for (TaskGroup& group : spec.groups) {
    if (has_countables() && counters.chance(250)) group.request.countables = {{"rdma/hca", counters.between(1, 3)}};
  }
  Random zones(seed_ ^ (steps_ << 4U));
  for (TaskGroup& group : spec.groups) {
    if (has_rules()) choose_rules(group, zones);
  }
  Random knives(seed_ ^ (steps_ << 12U));
  for (TaskGroup& group : spec.groups) {
    if (has_cut_gpus()) choose_instance(group.request, knives);
  }
  Random doors(seed_ ^ (steps_ << 8U));
  if (shape_.policies && seed_ % 5 == 2 && doors.chance(200)) {
    spec.ports = {8080};
    if (doors.chance(300)) spec.ports.push_back(9090);
    if (doors.chance(300)) spec.ports.erase(spec.ports.begin());
    if (spec.ports.empty()) spec.ports = {9090};
  }
  Random apart(seed_ ^ (steps_ << 20U));
  if (!shape_.policies || !apart.chance(400)) return;
  const bool levels = !config_.topology_levels.empty();
  const auto level = [&]() -> std::string {
    return !levels || apart.chance(400) ? "node" : apart.chance(600) ? "rack" : "block";
  };
  const auto app = [&] { return Labels{{"app", apart.chance(500) ? "a" : "b"}}; };
  if (apart.chance(700)) spec.labels = app();
  if (apart.chance(300)) spec.affinity.push_back({app(), level(), apart.chance(600)});
  if (apart.chance(300)) spec.anti_affinity.push_back({app(), level(), apart.chance(600)});
  for (TaskGroup& group : spec.groups) {
    if (levels && spec.topology == TopologyConstraint() && apart.chance(400)) group.topology.required = level();
  }
}

JobSpec Simulation::random_job() {
  JobSpec spec;
  spec.name = "job";
  spec.queue = random_.pick(leaves_);
  spec.user = random_.chance(500) ? "ann" : "bob";
  random_requests(spec);
  const std::uint64_t kind = random_.below(100);
  if (kind < 5) {
    spec.kind = JobKind::kService;
    spec.groups.resize(1);
    spec.groups[0].min_count = 0;
    Random apart(seed_ ^ steps_);  // as above
    if (apart.chance(600)) spec.max_unavailable = static_cast<std::int32_t>(apart.between(1, spec.groups[0].count));
  } else if (kind < 12) {
    spec.kind = JobKind::kArray;
    spec.array_size = static_cast<std::int32_t>(random_.between(1, 20));
    spec.array_running = static_cast<std::int32_t>(random_.between(0, 4));
  }
  if (Random apart(seed_ ^ (steps_ << 16U)); apart.chance(400)) {
    spec.job_class = static_cast<JobClass>(apart.below(4));
    if (apart.chance(100)) spec.groups.back().pool = apart.pick(config_.pools).name;
  }
  if (random_.chance(500)) spec.priority_class = random_.pick(config_.priority_classes).name;
  if (random_.chance(300)) spec.time_limit_s = random_.between(10, 3600);
  if (random_.chance(300)) spec.retries = static_cast<std::int32_t>(random_.between(1, 4));
  if (random_.chance(400)) spec.checkpoint.on_signal = true;
  if (random_.chance(200)) spec.checkpoint.grace_s = random_.between(1, 300);
  spec.held = random_.chance(50);
  spec.exclusive = random_.chance(40);
  spec.spread = random_.chance(100);
  if (!config_.topology_levels.empty() && random_.chance(250))
    spec.topology.required = random_.pick(std::vector<std::string>{"block", "rack", "rack", "node"});
  if (!config_.topology_levels.empty() && random_.chance(100) && spec.topology.required != "node")
    spec.topology.preferred = spec.topology.required == "rack" || random_.chance(300) ? "node" : "rack";
  choose_for_affinity(spec);
  if (random_.chance(50)) spec.earliest_start = world_.clock() + random_.between(1, 600) * kSecondMs;
  if (random_.chance(100)) {
    if (const auto other = some_job()) {
      spec.dependencies.push_back({static_cast<DependencyKind>(random_.below(3)), *other});
    }
  }
  return spec;
}

}  // namespace berth::sim
