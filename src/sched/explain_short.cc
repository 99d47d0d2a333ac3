#include "sched/explain_short.h"

#include <algorithm>
#include <vector>

#include "sched/admit.h"
#include "sched/explain.h"
#include "sched/place.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::NodeState;
using state::State;

bool asks_gpus(const TaskAsk& ask) { return ask.group.request.gpus > 0; }

std::vector<TaskAsk> asks_of(const State& state, const JobState& job) {
  std::vector<TaskAsk> asks;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) asks.push_back(task_ask(state, job, g, kAllModels));
  return asks;
}

// Milli-GPUs that are available where a group that asks GPUs may have them. The refusal counts also those of nodes
// where only a group without GPUs may stand.
std::int64_t free_to_groups_with_gpus(const State& state, const std::vector<TaskAsk>& asks) {
  std::int64_t milli = 0;
  for (const NodeState& node : state.nodes()) {
    ModelMask models = 0;
    for (const TaskAsk& ask : asks) {
      const bool may = ask.classes[state.node_index().class_of(node.id).index()] && suits(ask, node);
      if (asks_gpus(ask) && may) models |= ask.models;
    }
    for (const state::GpuSlot& gpu : node.gpus) {
      if (node.takes_tasks() && (models >> gpu.model.index() & 1U) != 0) milli += gpu.available_milli();
    }
  }
  return milli;
}

Reason with_what_is_short(const State& state, const JobState& job, Reason reason) {
  const std::vector<TaskAsk> asks = asks_of(state, job);
  const bool mixed =
      std::any_of(asks.begin(), asks.end(), asks_gpus) && !std::all_of(asks.begin(), asks.end(), asks_gpus);
  if (mixed && reason.wish.empty()) reason.limit = free_to_groups_with_gpus(state, asks);
  if (reason.limit < reason.asked) return reason;
  std::int64_t cpu_asked = 0;
  std::int64_t memory_asked = 0;
  for (const TaskAsk& ask : asks) {
    cpu_asked += ask.group.least() * ask.group.request.cpu_milli;
    memory_asked += ask.group.least() * ask.group.request.memory_mib;
  }
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  for (const NodeState& node : state.nodes()) {
    const auto holds = [&](const TaskAsk& ask) { return could_hold(state, ask, node); };
    if (!node.takes_tasks() || std::none_of(asks.begin(), asks.end(), holds)) continue;
    cpu_milli += std::max<std::int64_t>(0, node.available_cpu_milli());
    memory_mib += std::max<std::int64_t>(0, node.available_memory_mib());
  }
  const bool lacks_memory = cpu_milli >= cpu_asked && memory_mib < memory_asked;
  if (!lacks_memory && reason.asked > 0 && cpu_milli >= cpu_asked) return reason;
  reason.dim = lacks_memory ? kDimMemory : kDimCpu;
  reason.asked = lacks_memory ? memory_asked : cpu_asked;
  reason.limit = lacks_memory ? memory_mib : cpu_milli;
  return reason;
}

// Whether the least of it would find its places if its tasks asked no memory, or no CPU.
bool fits_without(const State& state, const JobState& job, bool memory, bool cpu) {
  JobState relaxed = job;
  for (TaskGroup& group : relaxed.spec.groups) {
    group.count = group.least();
    if (memory) group.request.memory_mib = 0;
    if (cpu) group.request.cpu_milli = 0;
  }
  PlaceWork work;
  return try_place(state, relaxed, admit(state, job).models, Pools::kAny, work).has_value();
}

// What there is too little of beside the rest, or nothing: neither is what is in the way.
std::string too_little_beside(const State& state, const JobState& job, const Reason& reason) {
  if (job.spec.exclusive) return {};
  if (fits_without(state, job, true, false)) return "memory";
  if (reason.dim == kDimCpu) return {};
  if (fits_without(state, job, false, true)) return "CPU";
  return fits_without(state, job, true, true) ? "CPU and memory" : "";
}

// Milli-GPUs that are of no use to the shares of GPUs that it asks, because shares of another trust domain are beside
// them; 0 where it would not find enough there either.
std::int64_t kept_by_trust_domains(const State& state, const JobState& job) {
  const TaskAsk ask = task_ask(state, job, 0, kAllModels);
  if (job.spec.groups.size() > 1 || !ask.group.request.is_share()) return 0;
  std::int64_t own_tasks = 0;
  std::int64_t others_tasks = 0;
  std::int64_t others_milli = 0;
  for (const NodeState& node : state.nodes()) {
    if (!node.takes_tasks() || !could_hold(state, ask, node) || !suits(ask, node)) continue;
    for (const state::GpuSlot& gpu : node.gpus) {
      if ((ask.models >> gpu.model.index() & 1U) == 0) continue;
      const std::int64_t tasks = gpu.available_milli() / ask.group.request.gpu_milli;
      if (gpu.takes_shares_of(ask.trust_domain)) {
        own_tasks += tasks;
        continue;
      }
      others_tasks += tasks;
      others_milli += gpu.available_milli();
    }
  }
  return own_tasks < ask.group.least() && own_tasks + others_tasks >= ask.group.least() ? others_milli : 0;
}

}  // namespace

bool is_one(std::size_t dim, std::int64_t amount) { return dim == kDimMemory || amount == kMilli; }

std::string counted(std::size_t dim, std::int64_t amount) {
  if (dim == kDimMemory) return amount_text(dim, amount) + " of memory";
  const std::string what = dim == kDimCpu ? " CPU" : " GPU";
  return amount_text(dim, amount) + what + (amount == kMilli ? "" : "s");
}

std::string sentence_with_what_is_short(const State& state, const JobState& job, Reason reason) {
  if (reason.code != ReasonCode::kGpusBusy && reason.code != ReasonCode::kFragmented) return sentence(state, reason);
  reason = with_what_is_short(state, job, std::move(reason));
  if (reason.asked == 0 || reason.limit < reason.asked) return sentence(state, reason);
  const std::string free = counted(reason.dim, reason.limit) + (is_one(reason.dim, reason.limit) ? " is" : " are") +
                           " free where it may run, but ";
  if (const std::int64_t kept = kept_by_trust_domains(state, job); kept > 0) {
    return free + (kept == reason.limit ? "" : amount_text(kDimGpu, kept) + " of them ") +
           "beside shares of another trust domain";
  }
  const std::string lacking = too_little_beside(state, job, reason);
  return lacking.empty()
             ? sentence(state, reason)
             : free + "with too little " + lacking + " beside " + (is_one(reason.dim, reason.limit) ? "it" : "them");
}

}  // namespace berth::sched
