// The queue tree: limits from configuration, and the sums of what runs below each queue.

#include <algorithm>

#include "base/checked.h"
#include "state/state.h"

namespace berth::state {

namespace {

// Amounts by name to the dense vector; what is not stated keeps its value in `into`.
template <class Set>
void resolve(const ResourceAmounts& named, const State& state, Set&& set) {
  if (named.gpu_milli) set(kDimGpu, *named.gpu_milli);
  if (named.cpu_milli) set(kDimCpu, *named.cpu_milli);
  if (named.memory_mib) set(kDimMemory, *named.memory_mib);
  for (const auto& [model, milli] : named.model_gpu_milli) {
    const auto id = state.gpu_model_named(model);
    BERTH_CHECK(id.has_value());
    set(dim_of(*id), milli);
  }
}

}  // namespace

TrustDomainId State::trust_domain_id(const std::string& name) {
  const auto found = std::find(trust_domains_.begin(), trust_domains_.end(), name);
  const auto index = found - trust_domains_.begin();
  if (found == trust_domains_.end()) trust_domains_.push_back(name);
  return TrustDomainId(static_cast<std::uint16_t>(index));
}

void State::configure_limits(QueueState& queue, const QueueConfig& config) {
  queue.guaranteed = {};
  resolve(config.guaranteed, *this, [&](std::size_t dim, std::int64_t amount) { queue.guaranteed.state(dim, amount); });
  queue.max = Amounts::unlimited();
  resolve(config.max, *this, [&](std::size_t dim, std::int64_t amount) { queue.max[dim] = amount; });
  queue.lending_limit = Amounts::unlimited();
  queue.limits_lending = false;
  resolve(config.lending_limit, *this, [&](std::size_t dim, std::int64_t amount) {
    queue.lending_limit[dim] = amount;
    queue.limits_lending = true;
  });
  queue.weight = config.weight;
  queue.policy = config.policy;
  queue.trust_domain =
      config.trust_domain.empty() ? queues_[queue.parent.index()].trust_domain : trust_domain_id(config.trust_domain);
}

// Queues keep their ids for ever; one that is no longer configured is marked removed (control sees to it that it is
// empty).
void State::configure_queues(const ClusterConfig& config) {
  for (QueueState& queue : queues_) {
    queue.removed = queue.id != root();
    queue.children.clear();
  }
  for (const QueueConfig& one : config.queues) {
    const std::size_t slash = one.path.rfind('/');
    const QueueId parent = queue_paths_.at(slash == std::string::npos ? std::string() : one.path.substr(0, slash));
    auto found = queue_paths_.find(one.path);
    if (found == queue_paths_.end()) {
      QueueState fresh;
      fresh.id = QueueId(static_cast<std::uint32_t>(queues_.size()));
      fresh.path = one.path;
      queues_.push_back(std::move(fresh));
      found = queue_paths_.emplace(one.path, queues_.back().id).first;
    }
    QueueState& queue = queue_mut(found->second);
    queue.removed = false;
    queue.parent = parent;
    queue.depth = queues_[parent.index()].depth + 1;
    queue_mut(parent).children.push_back(queue.id);
    configure_limits(queue, one);
    roomier_.insert(queue.id);
  }
}

void State::on(const ClusterConfigured& event) {
  config_ = event.config;
  config_version_ = event.version;
  // A model that is no longer named counts as one that never was, as it does after a checkpoint is loaded.
  for (GpuModelState& model : models_) model.weight_permille = 1000;
  for (const GpuModelConfig& model : event.config.gpu_models) {
    models_[model_id(model.name).index()].weight_permille = model.weight_permille;
  }
  configure_queues(event.config);
  for (PoolState& pool : pools_) pool.queues.clear();
  for (const PoolConfig& pool : event.config.pools) {
    PoolState& mine = pools_[pool_index(pool.name)];
    for (const std::string& path : pool.queues) mine.queues.push_back(queue_paths_.at(path));
  }
  recount_capacity();
  recount_charges();
  waits_.wake_all();
  ++opportunity_;
}

// GPU weights may have changed, and with them what every running charge counts.
void State::recount_charges() {
  for (QueueState& queue : queues_) {
    queue.usage = {};
    queue.within_usage = {};
    queue.nominated = {};
    queue.borrowed.clear();
    queue.running_below = 0;
  }
  for (const JobId id : running_) {
    JobState& job = existing(id);
    for (std::uint32_t i = 0; i < job.attempt->charges.size(); ++i) {
      Charge& charge = job.attempt->charges[i];
      std::vector<TaskPlacement> placements;
      for (std::uint32_t t = 0; t < charge.tasks; ++t) {
        placements.push_back(job.attempt->tasks[charge.first_task + t].placement);
      }
      charge.amounts = amounts_of(job.spec, placements);
      charge_queues(job, charge, i, +1);
    }
  }
  for (const JobId id : nominated_) {
    JobState& job = existing(id);
    job.nomination->amounts = amounts_of(job.spec, job.nomination->placements);
    nominate_queues(job.queue, job.nomination->amounts, +1);
  }
}

std::vector<QueueId> State::path_to(QueueId queue_id) const {
  std::vector<QueueId> path(queue(queue_id).depth + 1);
  for (std::size_t i = path.size(); i-- > 0; queue_id = queue(queue_id).parent) path[i] = queue_id;
  return path;
}

bool State::is_below(QueueId queue_id, QueueId ancestor) const {
  while (queue_id.valid() && queue(queue_id).depth > queue(ancestor).depth) queue_id = queue(queue_id).parent;
  return queue_id == ancestor;
}

Amounts State::amounts_of(const JobSpec&, std::span<const TaskPlacement> placements) const {
  Amounts amounts;
  for (const TaskPlacement& placement : placements) {
    amounts[kDimCpu] += placement.cpu_milli;
    amounts[kDimMemory] += placement.memory_mib;
    for (const std::uint8_t index : placement.gpus) {
      const GpuModelId model = node(placement.node).gpus[index].model;
      amounts[kDimGpu] += placement.gpu_milli;
      amounts[kDimGpuEquivalent] += placement.gpu_milli * models_[model.index()].weight_permille;
      amounts[dim_of(model)] += placement.gpu_milli;
    }
  }
  return amounts;
}

std::uint64_t State::within_mask(QueueId queue_id, const Amounts& amounts) const {
  std::uint64_t mask = 1;  // the root guarantees what it has
  for (QueueId q = queue_id; q != root(); q = queue(q).parent) {
    if (inside_guarantee(queue(q).within_usage, amounts, queue(q).guaranteed))
      mask |= std::uint64_t{1} << queue(q).depth;
  }
  return mask;
}

bool State::guaranteed(QueueId queue_id, std::uint64_t within) const {
  bool stated = false;
  for (QueueId q = queue_id; q != root(); q = queue(q).parent) {
    if (queue(q).guaranteed.stated == 0) continue;
    stated = true;
    if ((within >> queue(q).depth & 1U) == 0) return false;
  }
  return stated;
}

void State::charge_queues(const JobState& job, const Charge& charge, std::uint32_t index, int sign) {
  for (QueueId id = job.queue; id.valid(); id = queue(id).parent) {
    QueueState& q = queue_mut(id);
    const bool within = (charge.within >> q.depth & 1U) != 0;
    const BorrowedKey key{charge.order, job.id, index};
    if (sign > 0) {
      q.usage += charge.amounts;
      if (within)
        q.within_usage += charge.amounts;
      else
        q.borrowed.insert(key);
      if (index == 0) ++q.running_below;
    } else {
      q.usage -= charge.amounts;
      if (within)
        q.within_usage -= charge.amounts;
      else
        BERTH_CHECK(q.borrowed.erase(key) == 1);
      if (index == 0) --q.running_below;
      waits_.ease(id);
    }
  }
}

void State::nominate_queues(QueueId queue_id, const Amounts& amounts, int sign) {
  for (QueueId id = queue_id; id.valid(); id = queue(id).parent) {
    if (sign > 0)
      queue_mut(id).nominated += amounts;
    else {
      queue_mut(id).nominated -= amounts;
      waits_.ease(id);
    }
  }
}

}  // namespace berth::state
