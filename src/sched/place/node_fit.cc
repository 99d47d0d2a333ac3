#include "sched/place/node_fit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/planted.h"
#include "model/node_rule.h"
#include "model/sharing.h"
#include "model/toleration.h"
#include "sched/place/numa.h"
#include "sched/place/place.h"
#include "state/estimate.h"
#include "state/replicas.h"

namespace berth::sched {

using state::GpuSlot;
using state::NodeState;
using state::State;

namespace {

bool usable_gpu(const GpuSlot& gpu, ModelMask models) {
  return gpu.usable() && (models >> gpu.model.index() & 1U) != 0;
}

bool takes_share(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken, std::uint8_t index) {
  const GpuSlot& gpu = node.gpus[index];
  if (!usable_gpu(gpu, ask.models) || gpu.available_milli() - taken.milli[index] < ask.group.request.gpu_milli)
    return false;
  return gpu.takes_shares_of(ask.trust_domain);
}

// Returns the slices of the GPU that the task cannot have: used, nominated, or taken by the gang itself.
MigSlices used_slices(const NodeState& node, const NodeDelta& taken, std::uint8_t index) {
  return node.gpus[index].unavailable_slices() | taken.slices[index];
}

std::optional<MigPlace> place_on(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken,
                                 std::uint8_t index) {
  const GpuSlot& gpu = node.gpus[index];
  if (ask.mig->of[gpu.model.index()] == nullptr || !usable_gpu(gpu, ask.models)) return std::nullopt;
  // A leaving victim and the nomination that waits for it are both counted here, as for shares, though both may be the
  // same slices.
  if (gpu.available_milli() - taken.milli[index] < ask.group.request.gpu_milli) return std::nullopt;
  return best_place(*ask.mig->of[gpu.model.index()], ask.mig->profile, used_slices(node, taken, index));
}

// A MIG instance on the node: the position that loses least for other instances, and of equal GPUs the first.
struct Instance {
  std::uint8_t gpu = 0;
  MigPlace place;
};
std::optional<Instance> pick_instance(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken) {
  std::optional<Instance> best;
  for (std::uint8_t g = 0; g < node.gpus.size(); ++g) {
    const auto place = place_on(ask, node, taken, g);
    if (place && (!best || place->loss < best->place.loss)) best = Instance{g, *place};
  }
  return best;
}

// Returns the GPU for a share by best fit: the fullest that has room and is idle or shared within the task's trust
// domain.
std::optional<std::uint8_t> pick_share(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken) {
  const std::int32_t milli = ask.group.request.gpu_milli;
  std::optional<std::uint8_t> best;
  std::int32_t best_left = 0;
  for (std::uint8_t g = 0; g < node.gpus.size(); ++g) {
    const GpuSlot& gpu = node.gpus[g];
    const std::int32_t available = gpu.available_milli() - taken.milli[g];
    if (!takes_share(ask, node, taken, g)) continue;
    if (!best || available - milli < best_left) {
      best = g;
      best_left = available - milli;
    }
  }
  return best;
}

// Returns true if the node has as many idle GPUs of one model as the task requests.
bool has_idle(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken) {
  std::array<std::int32_t, kMaxGpuModels> idle{};
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    const GpuSlot& gpu = node.gpus[g];
    if ((ask.models >> gpu.model.index() & 1U) == 0 || gpu.available_milli() - taken.milli[g] != kMilli) continue;
    if (++idle[gpu.model.index()] == ask.group.request.gpus) return true;
  }
  return false;
}

// Returns idle GPUs of one model near each other; none if there are too few or the NUMA policy refuses them.
std::vector<std::uint8_t> pick_whole(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken) {
  const auto count = static_cast<std::size_t>(ask.group.request.gpus);
  for (std::size_t m = 0; m < kMaxGpuModels; ++m) {
    if ((ask.models >> m & 1U) == 0) continue;
    std::array<std::uint8_t, kMaxGpusPerNode> idle{};
    std::size_t found = 0;
    for (std::uint8_t g = 0; g < node.gpus.size(); ++g) {
      const GpuSlot& gpu = node.gpus[g];
      if (gpu.model.index() == m && gpu.available_milli() - taken.milli[g] == kMilli) idle[found++] = g;
    }
    if (found < count) continue;
    auto picked = gpus_by_policy(ask, node, std::span(idle).first(found));
    if (!picked.empty()) return picked;
  }
  return {};
}

bool untouched(const NodeState& node) {
  return node.holders == 0 && node.available_cpu_milli() == node.own_cpu_milli() &&
         node.available_memory_mib() == node.own_memory_mib() &&
         std::all_of(node.gpus.begin(), node.gpus.end(),
                     [](const GpuSlot& gpu) { return !gpu.usable() || gpu.available_milli() == kMilli; });
}

// An exclusive job is charged the whole node, less what others use of it.
void take_all(const NodeState& node, TaskPlacement& placement) {
  placement.cpu_milli = node.own_cpu_milli();
  placement.memory_mib = node.own_memory_mib();
  placement.gpus.clear();
  placement.gpu_milli = kMilli;
  placement.slices = 0;
  for (std::uint8_t g = 0; g < node.gpus.size(); ++g) {
    if (node.gpus[g].usable()) placement.gpus.push_back(g);
  }
}

// Adds the amounts `sign` times. Amounts that become zero are taken out.
void add_amounts(Countables& sum, const Countables& more, int sign) {
  for (const auto& [name, amount] : more) {
    const auto at = std::lower_bound(sum.begin(), sum.end(), name,
                                     [](const auto& one, const std::string& wanted) { return one.first < wanted; });
    if (at == sum.end() || at->first != name) {
      sum.insert(at, {name, sign * amount});
    } else if ((at->second += sign * amount) == 0) {
      sum.erase(at);
    }
  }
}

}  // namespace

void NodeDelta::add(const TaskPlacement& placement) {
  cpu_milli += placement.cpu_milli;
  memory_mib += placement.memory_mib;
  for (const std::uint8_t gpu : placement.gpus) milli[gpu] += placement.gpu_milli;
  for (const std::uint8_t gpu : placement.gpus) slices[gpu] |= placement.slices;
  add_amounts(countables, placement.countables, +1);
  ++tasks;
}

void NodeDelta::remove(const TaskPlacement& placement) {
  cpu_milli -= placement.cpu_milli;
  memory_mib -= placement.memory_mib;
  for (const std::uint8_t gpu : placement.gpus) milli[gpu] -= placement.gpu_milli;
  for (const std::uint8_t gpu : placement.gpus) slices[gpu] &= static_cast<MigSlices>(~placement.slices);
  add_amounts(countables, placement.countables, -1);
  --tasks;
}

ModelMask allowed_models(const State& state, const TaskRequest& request) {
  ModelMask mask = request.gpu_models.empty() ? kAllModels : 0;
  for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
    const ModelMask model = ModelMask{1} << m;
    mask = accepts(request, state.gpu_models()[m]) ? mask | model : mask & ~model;
  }
  return mask;
}

bool has_labels(const TaskGroup& group, const NodeSpec& node) {
  const auto& selector = group.node_selector;
  const auto& rules = group.node_rules;
  return std::all_of(selector.begin(), selector.end(),
                     [&](const auto& wanted) {
                       return std::find(node.labels.begin(), node.labels.end(), wanted) != node.labels.end();
                     }) &&
         std::all_of(rules.begin(), rules.end(),
                     [&](const NodeRule& rule) { return allows(rule, node.name, node.labels); });
}

state::NodeShape healed(state::NodeShape shape) {
  shape.gpus = {};
  for (state::NumaPart& part : shape.numa) {
    part.healthy = part.all;
    shape.gpus[part.model] = static_cast<std::uint8_t>(shape.gpus[part.model] + part.all);
  }
  std::sort(shape.numa.begin(), shape.numa.end(), std::greater<>());
  return shape;
}

std::int64_t slots_when_empty(const TaskRequirements& ask, const state::NodeShape& shape) {
  const TaskRequest& request = ask.group.request;
  std::int64_t slots = kUnlimited;
  if (request.cpu_milli > 0) slots = std::min(slots, shape.cpu_milli / request.cpu_milli);
  if (request.memory_mib > 0) slots = std::min(slots, shape.memory_mib / request.memory_mib);
  if (request.gpus > 0) {
    std::int64_t usable = 0;
    for (std::size_t m = 0; m < kMaxGpuModels; ++m) {
      if ((ask.models >> m & 1U) == 0) continue;
      if (ask.mig)
        usable += shape.gpus[m] * instances_beside(ask.mig->profile, 0);
      else
        usable += request.is_share() ? shape.gpus[m] * (kMilli / request.gpu_milli) : tasks_on(ask, shape, m);
    }
    slots = std::min(slots, usable);
  }
  if (!ask.class_slots.empty()) slots = std::min(slots, ask.class_slots[shape.node_class.index()]);
  const bool parted = shape.numa_domains > 1 && ask.numa == NumaPolicy::kSingleNumaNode;
  if (ask.exclusive && parted) return 0;
  return ask.exclusive ? std::min<std::int64_t>(slots, 1) : slots;
}

std::optional<state::ClosedSpan> closing(const TaskRequirements& ask, const NodeState& node) {
  if (!ask.stay || planted(Bug::kWindowIgnored)) return std::nullopt;
  const RunWindow& stay = *ask.stay;
  for (const state::ClosedSpan& span : node.maintenance) {
    const bool over = span.to <= stay.start;
    const bool gone = stay.gone <= span.from || (stay.moves && stay.latest + stay.least_ms <= span.from);
    if (!over && !gone) return span;
  }
  return std::nullopt;
}

namespace {

bool counts_at_most(const NodeState& node, const Amounts& most) {
  Amounts counts;
  counts[kDimCpu] = node.own_cpu_milli();
  counts[kDimMemory] = node.own_memory_mib();
  for (const GpuSlot& gpu : node.gpus) {
    if (!gpu.usable()) continue;
    counts[kDimGpu] += kMilli;
    counts[dim_of(gpu.model)] += kMilli;
  }
  for (std::size_t dim = 0; dim < kDims; ++dim) {
    if (counts[dim] > most[dim]) return false;
  }
  return true;
}

}  // namespace

bool has_countables(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken) {
  if (ask.class_slots.empty()) return true;
  const Countables& wanted = ask.group.request.countables;
  std::size_t named = 0;
  for (std::size_t c = 0; c < node.countables.size(); ++c) {
    const std::string& name = node.spec.countables[c].first;
    const std::int64_t need = taken_by_task(wanted, name);
    if (need == 0) continue;
    if (name != kPodsCountable) ++named;
    if (node.available_countable(c) - taken.taken_of(name) < need) return false;
  }
  return named == wanted.size();
}

std::optional<std::string_view> short_countable(const NodeState& node, const NodeDelta& taken) {
  for (const auto& [name, amount] : taken.countables) {
    if (amount_in(node.spec.countables, name) < amount) return name;
  }
  for (std::size_t c = 0; c < node.countables.size(); ++c) {
    const std::string& name = node.spec.countables[c].first;
    if (taken.taken_of(name) > node.available_countable(c)) return name;
  }
  return std::nullopt;
}

bool suits(const TaskRequirements& ask, const NodeState& node) {
  return has_labels(ask.group, node.spec) && !closing(ask, node) && (!ask.most || counts_at_most(node, *ask.most));
}

bool passes(const TaskRequirements& ask, const NodeState& node) {
  if (judged_by_node(ask) && !suits(ask, node)) return false;
  if (!has_countables(ask, node, {})) return false;
  return !is_strict(ask.numa) || ask.exclusive || !pick_whole(ask, node, {}).empty();
}

namespace {

// A GPU that is shared by time-slice serves one trust domain at a time: GpuSlot keeps it, by one domain for each GPU.
// It could not if the table refused strangers to some jobs only.
constexpr bool refuses_all(Sharers sharers, GpuLevel level) {
  for (const GpuNeed need :
       {GpuNeed::kTraining, GpuNeed::kInference, GpuNeed::kDev, GpuNeed::kBatch, GpuNeed::kLatencyCritical}) {
    if (sharing_of(sharers, need, level) != Sharing::kRefused) return false;
  }
  return true;
}
static_assert(refuses_all(Sharers::kStrangers, GpuLevel::kTimeSlice));

// Returns true if the pool gives its GPUs at the level that the group asks for, and the table of sharing allows that
// level for what the job needs.
bool may_have_level(const JobSpec& spec, const TaskGroup& group, const state::PoolState& pool) {
  const auto level = level_of(spec, group);
  if (!level || planted(Bug::kForbiddenShare)) return true;
  return pool.admits(*level) && may_ever_share(need_of(spec.job_class, spec.latency_objective_ms), *level);
}

RunWindow run_window_of(const State& state, const state::JobState& job) {
  RunWindow stay;
  stay.start = state.asked_at();
  stay.latest = state.asked_until();
  const Timestamp limit = job.limit_ends(job.attempt ? job.attempt->started : stay.latest);
  stay.gone = limit + state::grace_after_limit_ms(state, job);
  stay.moves = job.spec.checkpoint.on_signal || state::service_of(state, job) != nullptr;
  // At least one second: otherwise a job could start at the very moment it must leave, and would do so again and again.
  const std::int64_t least_s = std::max<std::int64_t>(state.queue(job.queue).eviction.min_runtime_s, 1);
  stay.least_ms = checked_multiply(least_s, 1000) + state.grace_ms(job);
  return stay;
}

std::vector<bool> allowed_classes(const State& state, const state::JobState& job, const TaskGroup& group, Pools pools,
                                  bool containers) {
  std::vector<bool> classes;
  for (const state::NodeClass& one : state.node_index().classes()) {
    const state::PoolState& pool = state.pools()[one.pool];
    const bool in_pool = group.pool.empty() || group.pool == pool.name;
    const bool looked_at = pools == Pools::kAny || pool.burst == (pools == Pools::kBurst);
    classes.push_back(in_pool && looked_at && state.may_use(job.queue, job.spec.job_class, one.pool) &&
                      may_have_level(job.spec, group, pool) && tolerates_all(group.tolerations, one.taints) &&
                      (one.containers || !containers));
  }
  return classes;
}

}  // namespace

namespace {

// Returns how many tasks the countables of an empty node of the class let it hold.
std::int64_t slots_of_class(const TaskRequest& request, const Countables& has) {
  std::int64_t slots = kUnlimited;
  for (const auto& [name, amount] : has) {
    if (name == kPodsCountable) slots = amount;
  }
  for (const auto& [name, amount] : request.countables) slots = std::min(slots, amount_in(has, name) / amount);
  return slots;
}

std::vector<std::int64_t> class_slots(const State& state, const TaskRequest& request) {
  const auto& classes = state.node_index().classes();
  const auto counts_pods = [](const state::NodeClass& one) { return amount_in(one.countables, kPodsCountable) > 0; };
  if (request.countables.empty() && std::none_of(classes.begin(), classes.end(), counts_pods)) return {};
  std::vector<std::int64_t> slots;
  for (const state::NodeClass& one : classes) slots.push_back(slots_of_class(request, one.countables));
  return slots;
}

// If no model is cut so, nothing fits: the configuration has changed since submission.
MigRequirement mig_ask(const State& state, const TaskRequest& request) {
  MigRequirement ask;
  for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
    const state::GpuModelState& model = state.gpu_models()[m];
    if (!accepts(request, model)) continue;
    ask.of[m] = model.mig;
    ask.profile = *model.mig->profile_named(request.mig_profile);
  }
  return ask;
}

}  // namespace

TaskRequirements task_requirements(const State& state, const state::JobState& job, std::size_t group_index,
                                   ModelMask models, Pools pools) {
  const TaskGroup& group = job.spec.groups[group_index];
  TaskRequirements ask{group,
                       static_cast<std::uint16_t>(group_index),
                       models & allowed_models(state, group.request),
                       {},
                       {},
                       {},
                       {},
                       {},
                       {},
                       {},
                       {},
                       {},
                       {}};
  ask.trust_domain = state.queue(job.queue).trust_domain;
  ask.exclusive = job.spec.exclusive;
  ask.numa = numa_policy(job.spec, group);
  ask.spread = job.spec.spread;
  if (!state.maintenance().empty()) ask.stay = run_window_of(state, job);
  ask.classes = allowed_classes(state, job, group, pools, !group.image.empty());
  if (!group.request.mig_profile.empty()) ask.mig = mig_ask(state, group.request);
  ask.class_slots = class_slots(state, group.request);
  return ask;
}

std::int32_t places_on_a_gpu(const TaskRequirements& ask) {
  return ask.mig ? std::popcount(ask.mig->profile.starts) : 0;
}

void set_image_aside(const State& state, const state::JobState& job, TaskRequirements& ask) {
  ask.classes = allowed_classes(state, job, ask.group, Pools::kAny, false);
}

namespace {

bool has_amounts(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken) {
  const TaskRequest& request = ask.group.request;
  return has_countables(ask, node, taken) && node.available_cpu_milli() - taken.cpu_milli >= request.cpu_milli &&
         node.available_memory_mib() - taken.memory_mib >= request.memory_mib;
}

}  // namespace

std::int32_t instances_on(const TaskRequirements& ask, const GpuSlot& gpu, MigSlices used) {
  if (!usable_gpu(gpu, ask.models) || ask.mig->of[gpu.model.index()] == nullptr) return 0;
  return instances_beside(ask.mig->profile, used);
}

bool has_place(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken) {
  if (ask.exclusive || is_strict(ask.numa)) return try_node(ask, node, taken).has_value();
  if (!has_amounts(ask, node, taken)) return false;
  if (ask.mig) return pick_instance(ask, node, taken).has_value();
  if (ask.group.request.is_share()) return pick_share(ask, node, taken).has_value();
  return ask.group.request.gpus == 0 || has_idle(ask, node, taken);
}

std::optional<TaskPlacement> try_node(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken) {
  const TaskRequest& request = ask.group.request;
  if (!has_amounts(ask, node, taken)) return std::nullopt;
  if (ask.exclusive && (taken.tasks > 0 || !untouched(node))) return std::nullopt;
  TaskPlacement placement;
  placement.node = node.id;
  placement.group = ask.group_index;
  placement.cpu_milli = request.cpu_milli;
  placement.memory_mib = request.memory_mib;
  placement.countables = request.countables;
  if (ask.mig) {
    const auto instance = pick_instance(ask, node, taken);
    if (!instance) return std::nullopt;
    placement.gpus = {instance->gpu};
    placement.gpu_milli = request.gpu_milli;
    placement.slices = instance->place.slices;
  } else if (request.is_share()) {
    const auto gpu = pick_share(ask, node, taken);
    if (!gpu) return std::nullopt;
    placement.gpus = {*gpu};
    placement.gpu_milli = request.gpu_milli;
  } else if (request.gpus > 0) {
    placement.gpus = pick_whole(ask, node, taken);
    if (placement.gpus.empty()) return std::nullopt;
  }
  if (ask.exclusive) take_all(node, placement);
  if (ask.exclusive && !is_kept(ask, node, placement.gpus)) return std::nullopt;
  return placement;
}

namespace {

state::SeenFree free_after(const NodeState& node, const NodeDelta& taken) {
  std::array<std::int32_t, kMaxGpusPerNode> milli{};
  for (std::size_t g = 0; g < node.gpus.size(); ++g) milli[g] = node.gpus[g].available_milli() - taken.milli[g];
  return state::seen_free(node, node.available_cpu_milli() - taken.cpu_milli, std::span(milli).first(node.gpus.size()));
}

}  // namespace

std::optional<LeastLoss> least_loss(const state::PlacementLoss& loss, const TaskRequirements& ask,
                                    const NodeState& node, const NodeDelta& taken) {
  const auto before = taken.tasks == 0 ? loss.before(node.id) : loss.before(free_after(node, taken));
  if (ask.mig) {
    const auto instance = pick_instance(ask, node, taken);
    if (!instance) return std::nullopt;
    const std::int32_t available = node.gpus[instance->gpu].available_milli() - taken.milli[instance->gpu];
    return LeastLoss{loss.on(before, available), instance->gpu};
  }
  if (!ask.group.request.is_share()) return LeastLoss{loss.on(before, static_cast<std::int32_t>(kMilli)), 0};
  std::array<std::int32_t, kMaxGpusPerNode> fills{};  // the first GPU of each fill level; equal ones are skipped
  std::size_t looked_at = 0;
  std::optional<std::pair<std::int64_t, std::int32_t>> best;  // its loss, and what is available on it
  std::uint8_t gpu = 0;
  for (std::uint8_t g = 0; g < node.gpus.size(); ++g) {
    const std::int32_t available = node.gpus[g].available_milli() - taken.milli[g];
    const auto known = std::span(fills).first(looked_at);
    if (std::ranges::find(known, available) != known.end() || !takes_share(ask, node, taken, g)) continue;
    fills[looked_at++] = available;
    const std::pair here(loss.on(before, available), available);
    if (best && here >= *best) continue;
    best = here;
    gpu = g;
  }
  if (!best) return std::nullopt;
  return LeastLoss{best->first, gpu};
}

bool has_image(const TaskRequirements& ask, NodeId node) {
  return ask.image_on != nullptr && std::binary_search(ask.image_on->begin(), ask.image_on->end(), node);
}

Fit fit_of(const TaskRequirements& ask, const NodeState& node, const NodeDelta& taken) {
  Fit fit;
  fit.node = node.id;
  fit.lacks_image = ask.image_on != nullptr && !has_image(ask, node.id);
  fit.own_tasks = ask.spread ? taken.tasks : 0;
  if (ask.exclusive) {  // the job keeps also what it does not use: the smallest node fits best
    fit.gpu_milli_left =
        kMilli * std::count_if(node.gpus.begin(), node.gpus.end(), [](const GpuSlot& gpu) { return gpu.usable(); });
    fit.cpu_left = node.own_cpu_milli();
    fit.memory_left = node.own_memory_mib();
    return fit;
  }
  for (std::uint8_t g = 0; g < node.gpus.size(); ++g)
    fit.gpu_milli_left += node.gpus[g].available_milli() - taken.milli[g];
  fit.gpu_milli_left -= ask.group.request.total_gpu_milli();
  fit.cpu_left = node.available_cpu_milli() - taken.cpu_milli - ask.group.request.cpu_milli;
  return fit;
}

}  // namespace berth::sched
