#include "sched/place/numa.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>

#include "sched/place/gpu_locality.h"

namespace berth::sched {

using state::NodeShape;
using state::NodeState;
using state::NumaPart;

namespace {

using Sizes = std::vector<std::size_t>;

// Returns how many domains, the largest first, together have so many GPUs; one more than there are if all have fewer.
std::size_t fewest(Sizes sizes, std::size_t gpus) {
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  std::size_t sum = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    sum += sizes[d];
    if (sum >= gpus) return d + 1;
  }
  return sizes.size() + 1;
}

// Returns for each domain how many of its GPUs pass `counts`.
template <class Counts>
Sizes by_domain(const NodeState& node, Counts&& counts) {
  std::map<std::int32_t, std::size_t> sizes;
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    if (counts(g)) ++sizes[node.spec.gpus[g].numa];
  }
  Sizes all;
  for (const auto& [domain, size] : sizes) all.push_back(size);
  return all;
}

std::size_t most_domains_of(const TaskRequirements& ask, const NodeState& node, GpuModelId model) {
  return most_domains(ask.numa, by_domain(node, [&](std::size_t g) { return node.gpus[g].model == model; }),
                      static_cast<std::size_t>(ask.group.request.gpus));
}

}  // namespace

NumaPolicy numa_policy(const JobSpec& spec, const TaskGroup& group) {
  return group.request.gpus > 1 || spec.exclusive ? group.numa : NumaPolicy::kBestEffort;
}

std::size_t most_domains(NumaPolicy policy, Sizes all, std::size_t gpus) {
  switch (policy) {
    case NumaPolicy::kSingleNumaNode:
      return 1;
    case NumaPolicy::kRestricted:
      return fewest(std::move(all), gpus);
    case NumaPolicy::kBestEffort:
    case NumaPolicy::kNone:
      break;
  }
  return kMaxGpusPerNode;
}

std::int64_t tasks_within(std::size_t most, Sizes idle, std::size_t gpus) {
  if (most == 1) {
    return std::accumulate(idle.begin(), idle.end(), std::int64_t{0}, [&](std::int64_t tasks, std::size_t here) {
      return tasks + static_cast<std::int64_t>(here / gpus);
    });
  }
  const std::size_t all = std::accumulate(idle.begin(), idle.end(), std::size_t{0});
  return fewest(std::move(idle), gpus) <= most ? static_cast<std::int64_t>(all / gpus) : 0;
}

std::int64_t tasks_on(const TaskRequirements& ask, const NodeState& node, std::uint32_t idle) {
  if (idle == 0) return 0;
  if (!is_strict(ask.numa) || ask.exclusive) return std::popcount(idle) / ask.group.request.gpus;
  const auto first = static_cast<std::size_t>(std::countr_zero(idle));
  return tasks_within(most_domains_of(ask, node, node.gpus[first].model),
                      by_domain(node, [&](std::size_t g) { return (idle >> g & 1U) != 0; }),
                      static_cast<std::size_t>(ask.group.request.gpus));
}

std::int64_t tasks_on(const TaskRequirements& ask, const NodeShape& shape, std::size_t model) {
  if (!is_strict(ask.numa) || ask.exclusive) return shape.gpus[model] / ask.group.request.gpus;
  const auto gpus = static_cast<std::size_t>(ask.group.request.gpus);
  Sizes all;
  Sizes healthy;
  for (const NumaPart& part : shape.numa) {
    if (part.all == 0 || part.model != model) continue;
    all.push_back(part.all);
    healthy.push_back(part.healthy);
  }
  return tasks_within(most_domains(ask.numa, std::move(all), gpus), std::move(healthy), gpus);
}

std::vector<std::uint8_t> gpus_by_policy(const TaskRequirements& ask, const NodeState& node,
                                         std::span<const std::uint8_t> idle) {
  const auto count = static_cast<std::size_t>(ask.group.request.gpus);
  if (ask.numa == NumaPolicy::kNone) return linked_gpus(node.spec, idle, count);
  // An exclusive task gets all GPUs of the node, so there is no choice.
  if (!is_strict(ask.numa) || ask.exclusive) return local_gpus(node.spec, idle, count);
  return local_gpus_within(node.spec, idle, count, most_domains_of(ask, node, node.gpus[idle.front()].model));
}

bool is_kept(const TaskRequirements& ask, const NodeState& node, std::span<const std::uint8_t> gpus) {
  if (ask.numa != NumaPolicy::kSingleNumaNode) return true;
  return std::all_of(gpus.begin(), gpus.end(),
                     [&](std::uint8_t gpu) { return node.spec.gpus[gpu].numa == node.spec.gpus[gpus.front()].numa; });
}

}  // namespace berth::sched
