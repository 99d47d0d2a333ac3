#include "explain/shortage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "explain/text_list.h"
#include "explain/why.h"
#include "sched/place/place.h"
#include "sched/queue/admit.h"

namespace berth::explain {

using namespace sched;

namespace {

using state::JobState;
using state::NodeState;
using state::State;

constexpr std::size_t kMostInEverySet = 4;  // groups of which each set is looked at; of more each one and all together
constexpr std::array kDimsOfRoom = {kDimGpu, kDimCpu, kDimMemory};

std::vector<TaskRequirements> asks_of(const State& state, const JobState& job) {
  std::vector<TaskRequirements> asks;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) asks.push_back(task_requirements(state, job, g, kAllModels));
  return asks;
}

std::int64_t asked_by(const TaskRequirements& ask, std::size_t dim) {
  const TaskRequest& request = ask.group.request;
  if (dim == kDimGpu) return ask.group.least() * request.total_gpu_milli();
  return ask.group.least() * (dim == kDimCpu ? request.cpu_milli : request.memory_mib);
}

std::int64_t free_of(const NodeState& node, std::size_t dim, ModelMask models) {
  if (dim == kDimCpu) return std::max<std::int64_t>(0, node.available_cpu_milli());
  if (dim == kDimMemory) return std::max<std::int64_t>(0, node.available_memory_mib());
  std::int64_t milli = 0;
  for (const state::GpuSlot& gpu : node.gpus) {
    if ((models >> gpu.model.index() & 1U) != 0) milli += gpu.available_milli();
  }
  return milli;
}

// Sets of groups: bit g is group g.
using Groups = std::uint32_t;

bool is_in(Groups set, std::size_t group) { return group < 32 && (set >> group & 1U) != 0; }

// All groups first, then each group, then, if there are few, the other sets.
std::vector<Groups> sets_of(std::size_t groups) {
  const std::size_t some = std::min<std::size_t>(groups, 31);
  const Groups all = (Groups{1} << some) - 1;
  std::vector<Groups> sets{all};
  for (std::size_t g = 0; g < some && some > 1; ++g) sets.push_back(Groups{1} << g);
  for (Groups set = 1; set < all && some <= kMostInEverySet; ++set) {
    if (std::popcount(set) > 1) sets.push_back(set);
  }
  return sets;
}

// What a set of groups requests in a dimension, and how much of it is free on nodes that could hold a task of one of
// these groups.
struct Room {
  std::int64_t asked = 0;
  std::int64_t free = 0;
  std::int64_t too_small = 0;  // free on other nodes that they may use
};

class FreeWhereItMayRun {
 public:
  FreeWhereItMayRun(const State& state, const JobState& job) : state_(state), asks_(asks_of(state, job)) {
    for (const NodeState& node : state.nodes()) {
      if (!node.takes_tasks()) continue;
      Usable usable{node.id, 0, 0};
      for (std::size_t g = 0; g < std::min<std::size_t>(asks_.size(), 31); ++g) {
        const bool allowed = asks_[g].classes[state.node_index().class_of(node.id).index()] && suits(asks_[g], node);
        if (allowed) (could_hold(state, asks_[g], node) ? usable.by : usable.too_small_for) |= Groups{1} << g;
      }
      if ((usable.by | usable.too_small_for) != 0) nodes_.push_back(usable);
    }
  }

  Room of(Groups set, std::size_t dim) const {
    Room room;
    Groups asking = 0;
    for (std::size_t g = 0; g < asks_.size(); ++g) {
      if (!is_in(set, g) || asked_by(asks_[g], dim) == 0) continue;
      room.asked += asked_by(asks_[g], dim);
      asking |= Groups{1} << g;
    }
    for (const Usable& node : nodes_) {
      const Groups here = node.by & asking;
      const std::int64_t free =
          free_of(state_.node(node.id), dim, models_of(here != 0 ? here : node.too_small_for & asking));
      if (here != 0)
        room.free += free;
      else if ((node.too_small_for & asking) != 0)
        room.too_small += free;
    }
    return room;
  }

  std::size_t groups() const { return asks_.size(); }

 private:
  struct Usable {
    NodeId id;
    Groups by = 0;             // groups of which it could hold a task
    Groups too_small_for = 0;  // that may use it, but for its size
  };
  ModelMask models_of(Groups set) const {
    ModelMask models = 0;
    for (std::size_t g = 0; g < asks_.size(); ++g) models |= is_in(set, g) ? asks_[g].models : 0;
    return models;
  }

  const State& state_;
  std::vector<TaskRequirements> asks_;
  std::vector<Usable> nodes_;
};

// "3 free GPUs", "60 GiB of free memory"
std::string free_text(std::size_t dim, std::int64_t amount) {
  if (dim == kDimMemory) return amount_text(dim, amount) + " of free memory";
  return amount_text(dim, amount) + (dim == kDimCpu ? " free CPU" : " free GPU") + (amount == kMilli ? "" : "s");
}

// "3 free GPUs", "2 x 1g.10gb": the amount that the groups request, in MIG instances where all that request GPUs name
// the same profile.
std::string requested_text(const JobState& job, Groups set, std::size_t dim, std::int64_t amount) {
  std::string profile;
  std::int64_t instances = 0;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const TaskGroup& group = job.spec.groups[g];
    if (dim != kDimGpu || !is_in(set, g) || group.request.gpus == 0) continue;
    if (group.request.mig_profile.empty() || (instances > 0 && profile != group.request.mig_profile))
      return free_text(dim, amount);
    profile = group.request.mig_profile;
    instances += group.least();
  }
  return instances == 0 ? free_text(dim, amount) : std::to_string(instances) + " x " + profile;
}

// "group main", "groups main and side"
std::string text_of(const JobState& job, Groups set) {
  std::vector<std::size_t> groups;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    if (is_in(set, g)) groups.push_back(g);
  }
  return (groups.size() == 1 ? "group " : "groups ") +
         listed(groups, [&](std::size_t g) { return job.spec.groups[g].name; });
}

struct Shortage {
  std::size_t dim = 0;
  std::int64_t needed = 0;
  std::int64_t free = 0;       // on eligible nodes
  std::int64_t too_small = 0;  // free on nodes too small for its tasks
  std::string waits;           // "waits for 3 free GPUs", "waits: groups main and side need 4 free CPUs"
};

// The first of GPUs, CPUs and memory of which eligible nodes have too little free for the job, for one of its groups or
// for some of them; where each is enough in all, the first that the job requests, with `needed` at most `free`.
Shortage shortage_of(const State& state, const JobState& job) {
  const FreeWhereItMayRun free(state, job);
  const std::vector<Groups> sets = sets_of(free.groups());
  const auto shortage = [&](const Room& room, std::size_t dim, Groups set) {
    const std::string groups = set == sets.front() ? std::string() : text_of(job, set);
    const bool several = groups.starts_with("groups ");
    const std::string waits =
        groups.empty() ? std::string("waits for ") : "waits: " + groups + (several ? " need " : " needs ");
    return Shortage{dim, room.asked, room.free, room.too_small, waits + requested_text(job, set, dim, room.asked)};
  };
  for (const Groups set : sets) {
    for (const std::size_t dim : kDimsOfRoom) {
      const Room room = free.of(set, dim);
      if (room.free < room.asked) return shortage(room, dim, set);
    }
  }
  for (const std::size_t dim : kDimsOfRoom) {
    const Room room = free.of(sets.front(), dim);
    if (room.asked > 0) return shortage(room, dim, sets.front());
  }
  return {};
}

// Returns true if the least of the job would find places if its tasks requested no memory, or no CPU.
bool fits_without(const State& state, const JobState& job, bool memory, bool cpu) {
  JobState relaxed = job;
  for (TaskGroup& group : relaxed.spec.groups) {
    group.count = group.least();
    if (memory) group.request.memory_mib = 0;
    if (cpu) group.request.cpu_milli = 0;
  }
  SearchStats work;
  return try_place(state, relaxed, admit(state, job).models, Pools::kAny, work).has_value();
}

// What there is too little of beside the rest: "memory", "CPU", both, or nothing if neither keeps the job from
// starting.
std::string too_little_beside(const State& state, const JobState& job, std::size_t dim) {
  if (job.spec.exclusive || dim == kDimMemory) return {};
  if (fits_without(state, job, true, false)) return "memory";
  if (dim == kDimCpu) return {};
  if (fits_without(state, job, false, true)) return "CPU";
  return fits_without(state, job, true, true) ? "CPU and memory" : "";
}

// Returns the milli-GPUs that the job cannot use for its shares of GPUs because another trust domain has shares of the
// same GPUs; 0 if they would not be enough either.
std::int64_t kept_by_trust_domains(const State& state, const JobState& job) {
  const TaskRequirements ask = task_requirements(state, job, 0, kAllModels);
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

// The predicate for an exclusive job with too few idle nodes; empty if there are enough.
std::string too_few_whole_nodes(const State& state, const JobState& job) {
  if (!job.spec.exclusive) return {};
  const std::vector<TaskRequirements> asks = asks_of(state, job);
  std::int64_t asked = 0;
  for (const TaskRequirements& ask : asks) asked += ask.group.least();
  const auto idle = std::count_if(state.nodes().begin(), state.nodes().end(), [&](const NodeState& node) {
    return node.takes_tasks() && std::any_of(asks.begin(), asks.end(), [&](const TaskRequirements& ask) {
             return could_hold(state, ask, node) && !closing(ask, node) && has_place(ask, node, {});
           });
  });
  if (idle >= asked) return {};
  return "waits for " + counted(asked, "idle node") + "; " + (idle == 0 ? "none" : std::to_string(idle)) +
         (idle <= 1 ? " is" : " are") + " idle now";
}

// "; none is free now", "; 2 are free now where it may run": nodes that it may not use may have more.
std::string free_now(const State& state, const Shortage& shortage) {
  std::int64_t everywhere = 0;
  for (const NodeState& node : state.nodes()) {
    if (node.takes_tasks()) everywhere += free_of(node, shortage.dim, kAllModels);
  }
  const bool elsewhere = everywhere > shortage.free + shortage.too_small;
  const bool one = shortage.free == 0 || is_one(shortage.dim, shortage.free);
  return "; " + (shortage.free == 0 ? "none" : amount_text(shortage.dim, shortage.free)) +
         (one ? " is free now" : " are free now") + (elsewhere ? " where it may run" : "");
}

}  // namespace

bool is_one(std::size_t dim, std::int64_t amount) { return dim == kDimMemory || amount == kMilli; }

std::string counted(std::size_t dim, std::int64_t amount) {
  if (dim == kDimMemory) return amount_text(dim, amount) + " of memory";
  const std::string what = dim == kDimCpu ? " CPU" : " GPU";
  return amount_text(dim, amount) + what + (amount == kMilli ? "" : "s");
}

std::string text_with_what_is_short(const Words& words, const JobState& job, const Reason& reason,
                                    std::vector<std::string> notes) {
  const State& state = words.state();
  const Shortage shortage = shortage_of(state, job);
  const std::string text = shortage.waits + free_now(state, shortage);
  if (shortage.free < shortage.needed) {
    if (shortage.dim == kDimGpu && shortage.too_small > 0)
      notes.insert(notes.begin(), amount_text(kDimGpu, shortage.too_small) + " free on nodes too small");
    return text + in_parentheses(notes);
  }
  if (const std::string nodes = too_few_whole_nodes(state, job); !nodes.empty()) return nodes + in_parentheses(notes);
  if (shortage.needed == 0) return "waits for " + counted(reason.dim, reason.asked) + in_parentheses(notes);
  if (const std::int64_t kept = kept_by_trust_domains(state, job); kept > 0) {
    return text + ", but " + (kept == shortage.free ? "" : amount_text(kDimGpu, kept) + " of them ") +
           "beside shares of another trust domain" + in_parentheses(notes);
  }
  const std::string lacking = too_little_beside(state, job, shortage.dim);
  return text +
         (lacking.empty() ? ", but too scattered for its tasks"
                          : ", but with too little " + lacking + " beside " +
                                (is_one(shortage.dim, shortage.free) ? "it" : "them")) +
         in_parentheses(notes);
}

}  // namespace berth::explain
