// Advice about requests: tasks that need so much CPU or memory for each GPU that other GPUs of the node are left
// without.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "explain/advice/rules.h"
#include "explain/text_list.h"
#include "model/document/quantity.h"
#include "sched/place/node_fit.h"

namespace berth::explain {

using namespace sched;

using state::JobState;
using state::NodeShape;
using state::NodeState;
using state::State;

namespace {

// The larger of the parts of CPU and memory that a task takes of a node, in thousandths of the node's GPUs.
std::int64_t taken_milli(std::int64_t gpus, std::int64_t cpu, std::int64_t cpu_of_node, std::int64_t memory,
                         std::int64_t memory_of_node) {
  const auto part = [&](std::int64_t amount, std::int64_t of) {
    return of == 0 ? 0 : static_cast<std::int64_t>(Int128{amount} * gpus * kMilli / of);
  };
  return std::max(part(cpu, cpu_of_node), part(memory, memory_of_node));
}

std::int64_t gpus_of(const NodeShape& shape) {
  std::int64_t gpus = 0;
  for (const std::uint8_t count : shape.gpus) gpus += count;
  return gpus;
}

// CPU and memory for each GPU on the nodes where the task would take the smallest part.
struct Part {
  std::int64_t beyond_milli = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  auto operator<=>(const Part&) const = default;
};

// Nothing if some node could hold the task without taking more than the part of its GPUs, or none could hold it at all.
std::optional<Part> too_much(Survey& survey, const JobState& job, std::size_t group) {
  const State& state = survey.state();
  const TaskRequest& request = job.spec.groups[group].request;
  const TaskRequirements ask = task_requirements(state, job, group, kAllModels);
  std::optional<Part> least;
  const auto judge = [&](const NodeShape& shape) {
    if (!ask.classes[shape.node_class.index()] || slots_when_empty(ask, shape) == 0) return;
    const std::int64_t gpus = gpus_of(shape);
    const std::int64_t taken =
        taken_milli(gpus, request.cpu_milli, shape.cpu_milli, request.memory_mib, shape.memory_mib);
    const Part part{taken - request.total_gpu_milli(), shape.cpu_milli / gpus, shape.memory_mib / gpus};
    if (!least || part < *least) least = part;
  };
  if (!selects_by_label(ask)) {
    if (!survey.look(state.node_index().shapes().size())) return std::nullopt;
    for (const auto& [shape, count] : state.node_index().shapes()) {
      if (count.there > 0) judge(shape);
    }
  } else {
    if (!survey.look(state.nodes().size())) return std::nullopt;
    for (const NodeState& node : state.nodes()) {
      if (node.status != NodeStatus::kLost && has_labels(ask.group, node.spec))
        judge(state.node_index().shape_of(node.id));
    }
  }
  return least && least->beyond_milli > 0 ? least : std::nullopt;
}

class Verdicts {
 public:
  explicit Verdicts(Survey& survey) : survey_(survey) {}

  // The first group of the job that needs too much, and what its nodes have.
  std::optional<std::pair<std::size_t, Part>> of(const JobState& job) {
    for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
      if (job.spec.groups[g].request.gpus == 0) continue;
      const auto [found, fresh] = known_.try_emplace(request_key(job, g));
      if (fresh) found->second = too_much(survey_, job, g);
      if (found->second) return std::pair(g, *found->second);
    }
    return std::nullopt;
  }

 private:
  Survey& survey_;
  std::map<RequestKey, std::optional<Part>> known_;
};

struct Tally {
  std::vector<JobId> jobs;
  std::size_t running = 0;
  std::map<NodeId, std::int64_t> beyond_milli;  // on nodes where such tasks run
  std::string example;
};

void count_places(const State& state, const JobState& job, Tally& tally) {
  for (const state::TaskState& task : job.attempt->tasks) {
    const NodeState& node = state.node(task.placement.node);
    const auto gpus = static_cast<std::int64_t>(node.gpus.size());
    const std::int64_t own =
        static_cast<std::int64_t>(task.placement.gpus.size()) * std::int64_t{task.placement.gpu_milli};
    if (own == 0) continue;
    const std::int64_t beyond = taken_milli(gpus, task.placement.cpu_milli, node.spec.cpu_milli,
                                            task.placement.memory_mib, node.spec.memory_mib) -
                                own;
    if (beyond > 0) tally.beyond_milli[node.id] += beyond;
  }
}

// Idle GPUs of which the tasks have the CPU or memory.
std::int64_t stranded_milli(const State& state, const Tally& tally) {
  std::int64_t sum = 0;
  for (const auto& [node, beyond] : tally.beyond_milli) {
    std::int64_t idle = 0;
    for (const state::GpuSlot& gpu : state.node(node).gpus) idle += gpu.usable() ? gpu.free_milli : 0;
    sum += std::min(beyond, idle);
  }
  return sum;
}

// "job 7 needs 9 CPUs for each GPU, and the nodes that suit it best have 8 CPUs for each"
std::string example_of(const State& state, const JobState& job, std::size_t group, const Part& part) {
  const TaskRequest& request = job.spec.groups[group].request;
  const auto each = [&](std::int64_t amount) {
    return static_cast<std::int64_t>(Int128{amount} * kMilli / request.total_gpu_milli());
  };
  const bool cpu = each(request.cpu_milli) > part.cpu_milli;
  const std::size_t dim = cpu ? kDimCpu : kDimMemory;
  const std::int64_t has = cpu ? part.cpu_milli : part.memory_mib;
  const std::int64_t asks = each(cpu ? request.cpu_milli : request.memory_mib);
  return "job " + std::to_string(job.id.value()) + " needs " + amount_words(state, dim, asks) +
         " for each GPU, and the nodes that suit it best have " + amount_words(state, dim, has) + " for each";
}

void say_of(Survey& survey, QueueId queue, const Tally& tally) {
  const State& state = survey.state();
  const std::int64_t stranded = stranded_milli(state, tally);
  const std::size_t waiting = tally.jobs.size() - tally.running;
  Advice advice{
      AdviceCode::kAsksStrandGpus, AdviceSeverity::kNote, AdviceAbout::kQueue, state.queue(queue).path, {}, {}};
  if (stranded >= kMilli) advice.severity = AdviceSeverity::kWarning;
  advice.text = counted(static_cast<std::int64_t>(tally.jobs.size()), "job") + " (" + std::to_string(tally.running) +
                verb(tally.running, " run, ", " runs, ") + std::to_string(waiting) + verb(waiting, " wait", " waits") +
                ") " + verb(tally.jobs.size(), "take", "takes") +
                " more of any node's CPU or memory than of its GPUs: " + tally.example + ".";
  if (stranded >= 100) {
    const std::string gpus = gpus_words(stranded);
    advice.text +=
        " Those that run have the CPU or memory of " + gpus + " that " + (gpus == "1 GPU" ? "is" : "are") + " idle.";
  }
  advice.remedy = "Ask less `cpus` and `memory` for each GPU in these jobs.";
  survey.say(std::move(advice), stranded);
}

}  // namespace

// Jobs with GPUs that take a larger part of the CPU or the memory than of the GPUs, on each kind of node that could
// hold one of their tasks. Exclusive jobs have whole nodes anyway. A warning where a whole GPU is idle for it.
void advise_on_asks(Survey& survey) {
  const State& state = survey.state();
  Verdicts verdicts(survey);
  std::map<QueueId, Tally> tallies;
  for (const JobState* job : survey.jobs()) {
    if (job->spec.exclusive) continue;
    const auto verdict = verdicts.of(*job);
    if (!verdict) continue;
    Tally& tally = tallies[job->queue];
    tally.jobs.push_back(job->id);
    if (tally.example.empty()) tally.example = example_of(state, *job, verdict->first, verdict->second);
    if (!job->attempt) continue;
    ++tally.running;
    count_places(state, *job, tally);
  }
  for (const auto& [queue, tally] : tallies) say_of(survey, queue, tally);
}

}  // namespace berth::explain
