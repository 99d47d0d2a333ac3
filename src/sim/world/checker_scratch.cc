// What the checker recomputes from scratch, and the search for work that waits without a reason.

#include <algorithm>

#include "sim/world/checker.h"

namespace berth::sim {

namespace {

std::string text_of(JobId job) { return "job " + std::to_string(job.value()); }

}  // namespace

void Checker::check_from_scratch(const state::State& durable, Timestamp now, bool quiet) {
  if (violation_) return;
  ++scratch_checks_;
  now_ = std::max(now_, now);
  if (const auto wrong = durable.audit()) breach("P10", *wrong);
  check_sums(durable);
  check_integrals();
  check_fleet();
  if (quiet) check_waiting(now);
}

// The checker's sums, folded one by one, the same sums from nothing, and the state's.
void Checker::check_sums(const state::State& durable) {
  std::vector<Amounts> usage(queues_.size());
  std::vector<Amounts> within(queues_.size());
  std::vector<std::vector<std::int32_t>> bound(nodes_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) bound[n].resize(nodes_[n].gpus.size());
  for (const auto& [id, job] : jobs_) {
    for (const TaskPlacement& placement : job.placements) {
      for (const std::uint8_t gpu : placement.gpus) bound[placement.node.index()][gpu] += placement.gpu_milli;
    }
    for (const ChargeView& charge : job.charges) {
      for (std::uint32_t q = job.queue;; q = queues_[q].parent) {
        usage[q] += charge.amounts;
        if ((charge.within >> queues_[q].depth & 1U) != 0) within[q] += charge.amounts;
        if (q == 0) break;
      }
    }
  }
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    const state::QueueState* theirs = queues_[q].removed ? nullptr : durable.queue_at(queues_[q].path);
    require(usage[q] == queues_[q].usage && within[q] == queues_[q].within, "P10", "the checker's own sums drifted");
    if (theirs == nullptr) continue;
    require(theirs->usage == usage[q] && theirs->within_usage == within[q] && theirs->nominated == queues_[q].nominated,
            "P10", "the usage of queue '" + queues_[q].path + "' differs from the sum of its jobs");
  }
  require(durable.nodes().size() == nodes_.size(), "P10", "the number of nodes differs");
  for (std::size_t n = 0; n < std::min(nodes_.size(), durable.nodes().size()); ++n) {
    const state::NodeState& theirs = durable.nodes()[n];
    require(theirs.free_cpu_milli == nodes_[n].spec.cpu_milli - nodes_[n].cpu &&
                theirs.free_memory_mib == nodes_[n].spec.memory_mib - nodes_[n].memory,
            "P1", "free CPU or memory of " + theirs.spec.name + " differs");
    for (std::size_t g = 0; g < std::min(nodes_[n].gpus.size(), theirs.gpus.size()); ++g) {
      require(nodes_[n].gpus[g].bound == bound[n][g] && theirs.gpus[g].free_milli == kMilli - bound[n][g], "P1",
              "what is free of a GPU of " + theirs.spec.name + " differs");
    }
  }
  require(durable.jobs().size() == jobs_.size(), "P8", "the number of live jobs differs");
}

// P12: the integral over the GPUs equals the one over the queues, and each queue's the sum over its attempts.
void Checker::check_integrals() {
  std::int64_t bound = 0;
  for (const NodeView& node : nodes_) {
    for (const GpuView& gpu : node.gpus) bound += gpu.bound;
  }
  require(bound == bound_milli_, "P12", "the bound GPUs do not add up");
  total_integral_ += bound_milli_ * (now_ - total_to_);
  total_to_ = now_;
  std::vector<std::int64_t> billed(queues_.size());
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    integrate(queues_[q]);
    billed[q] = queues_[q].billed;
  }
  for (const auto& [id, job] : jobs_) {
    for (const ChargeView& charge : job.charges) billed[job.queue] += charge.amounts[kDimGpu] * (now_ - charge.since);
  }
  for (std::size_t q = queues_.size(); q-- > 1;) billed[queues_[q].parent] += billed[q];
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    require(billed[q] == queues_[q].integral, "P12",
            "the GPU time of queue '" + queues_[q].path + "' differs from the sum over its attempts");
  }
  require(queues_.empty() || queues_[0].integral == total_integral_, "P12",
          "the GPU time of all queues differs from that of all GPUs");
}

// I14: what lives on the fleet belongs to a running attempt.
void Checker::check_fleet() {
  for (const auto& [key, execution] : fleet_.executions()) {
    if (execution.phase != backend::Execution::Phase::kLive) continue;
    const auto job = jobs_.find(key.job);
    require(
        job != jobs_.end() && job->second.running && job->second.attempts == key.attempt && !job->second.over[key.task],
        "P9", text_of(key.job) + " lives on " + fleet_.node_name(execution.node) + " though no attempt is running");
  }
}

bool Checker::may_use_pool(std::uint32_t queue, const std::string& pool) const {
  for (const PoolConfig& config : config_.pools) {
    if (config.name != pool || config.queues.empty()) continue;
    const std::string path = queues_[queue].path + "/";
    return std::any_of(config.queues.begin(), config.queues.end(),
                       [&](const std::string& top) { return path.starts_with(top + "/"); });
  }
  return true;
}

bool Checker::over_quota(const JobView& job, const Amounts& asked) const {
  for (std::uint32_t q = job.queue;; q = queues_[q].parent) {
    for (std::size_t d = 0; d < kDims; ++d) {
      if (asked[d] == 0) continue;
      const std::int64_t used = queues_[q].usage[d] + queues_[q].nominated[d];
      if (queues_[q].max[d] != kUnlimited && used + asked[d] > queues_[q].max[d]) return true;
      if (q == 0) continue;
      for (const std::uint32_t sibling : queues_[queues_[q].parent].children) {
        // Somebody beside it keeps idle guarantees for itself; whether that is why is for the scenarios to say.
        if (sibling != q && queues_[sibling].lending[d] != kUnlimited) return true;
      }
    }
    if (q == 0) return false;
  }
}

// A node that could take a single task of the job now, when `removable` is out of the way; its name.
std::optional<std::string> Checker::place_for(const JobView& job,
                                              const std::vector<std::vector<std::int32_t>>& removable) const {
  const TaskGroup& group = job.spec.groups.front();
  const TaskRequest& request = group.request;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const NodeView& node = nodes_[n];
    if (node.status != NodeStatus::kReady || node.cordoned || !node.spec.taints.empty()) continue;
    if (!group.pool.empty() && group.pool != node.spec.pool) continue;
    if (!may_use_pool(job.queue, node.spec.pool)) continue;
    if (node.cpu + node.nominated_cpu + request.cpu_milli > node.spec.cpu_milli) continue;
    if (node.memory + node.nominated_memory + request.memory_mib > node.spec.memory_mib) continue;
    for (std::uint32_t model = 0; model < models_.size(); ++model) {
      const auto& names = request.gpu_models;
      if (!names.empty() && std::find(names.begin(), names.end(), models_[model]) == names.end()) continue;
      std::int32_t idle = 0;
      for (std::size_t g = 0; g < node.gpus.size(); ++g) {
        const GpuView& gpu = node.gpus[g];
        const std::int32_t away = removable.empty() ? 0 : removable[n][g];
        if (gpu.healthy && gpu.model == model && gpu.bound - away + gpu.nominated == 0) ++idle;
      }
      if (idle < request.gpus) continue;
      Amounts asked;
      asked[kDimCpu] = request.cpu_milli;
      asked[kDimMemory] = request.memory_mib;
      asked[kDimGpu] = request.total_gpu_milli();
      asked[kDimGpuEquivalent] = asked[kDimGpu] * weights_[model];
      asked[kDimFirstModel + model] = asked[kDimGpu];
      if (!over_quota(job, asked)) return node.spec.name;
    }
  }
  return std::nullopt;
}

void Checker::check_waiting(Timestamp now) {
  for (const auto& [id, job] : jobs_) {
    const bool parent = job.spec.kind == JobKind::kArray || job.spec.kind == JobKind::kService;
    if (job.running || parent || job.held || job.cancelled || job.nomination || job.not_before > now) continue;
    if (!dependencies_met(job) || queues_[job.queue].strict) continue;
    const TaskGroup& group = job.spec.groups.front();
    // One task of whole GPUs is a question that a few lines can answer; larger ones are for the exact solver.
    if (job.spec.groups.size() != 1 || group.least() != 1 || job.spec.exclusive || group.request.gpus == 0 ||
        group.request.is_share() || !group.node_selector.empty()) {
      continue;
    }
    count("waiting job checked");
    if (const auto node = place_for(job, {})) breach("P6", text_of(id) + " waits though it would fit on " + *node);
    check_waiting_job(job, now);
  }
}

// P3: a job inside the guarantees of all its queues that fits beside what is not borrowed is promised a place.
void Checker::check_waiting_job(const JobView& job, Timestamp now) {
  if (!config_.scheduling.reclaim || models_.size() != 1) return;
  const TaskRequest& request = job.spec.groups.front().request;
  Amounts asked;
  asked[kDimCpu] = request.cpu_milli;
  asked[kDimMemory] = request.memory_mib;
  asked[kDimGpu] = asked[kDimFirstModel] = request.total_gpu_milli();
  asked[kDimGpuEquivalent] = asked[kDimGpu] * weights_[0];
  for (std::uint32_t q = job.queue; q != 0; q = queues_[q].parent) {
    if (!fits_guarantee(queues_[q], queues_[q].within + queues_[q].nominated, asked)) return;
  }
  count("claim checked");
  std::vector<std::vector<std::int32_t>> removable(nodes_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) removable[n].resize(nodes_[n].gpus.size());
  for (const auto& [id, victim] : jobs_) {
    if (!victim.running || victim.stop || victim.queue == job.queue) continue;
    if (victim.charges.front().order > last_cycle_) continue;  // started after the job was asked, in the same cycle
    if (now - victim.started < config_.scheduling.min_runtime_s * 1000) continue;
    const std::uint32_t depth = queues_[siblings(job.queue, victim.queue).second].depth;
    const bool borrowed = std::any_of(victim.charges.begin(), victim.charges.end(),
                                      [&](const ChargeView& one) { return (one.within >> depth & 1U) == 0; });
    if (!borrowed) continue;
    for (const TaskPlacement& placement : victim.placements) {
      for (const std::uint8_t gpu : placement.gpus) removable[placement.node.index()][gpu] += placement.gpu_milli;
    }
  }
  if (const auto node = place_for(job, removable)) {
    breach("P3",
           text_of(job.id) + " lies within its guarantee and waits, though borrowers on " + *node + " could leave");
  }
}

}  // namespace berth::sim
