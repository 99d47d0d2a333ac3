// Nodes: registration, status, and what is bound on them. bind_task and nominate_task are the choke points of P1.

#include <algorithm>

#include "base/checked.h"
#include "state/state.h"

namespace berth::state {

GpuModelId State::model_id(const std::string& name) {
  if (const auto known = gpu_model_named(name)) return *known;
  BERTH_CHECK(models_.size() < kMaxGpuModels);
  models_.push_back({name});
  waits_.activate_all();  // a parked class that names this model did not wait for it
  return GpuModelId(static_cast<std::uint16_t>(models_.size() - 1));
}

std::uint32_t State::pool_index(const std::string& name) {
  for (std::uint32_t i = 0; i < pools_.size(); ++i) {
    if (pools_[i].name == name) return i;
  }
  pools_.push_back(PoolState{name});
  return static_cast<std::uint32_t>(pools_.size() - 1);
}

// Sets all that follows from the spec of the node, with nothing bound. The caller then counts what is bound there.
void State::install_node(NodeState& node) {
  node.pool = pool_index(node.spec.pool);
  node.free_cpu_milli = node.spec.cpu_milli;
  node.free_memory_mib = node.spec.memory_mib;
  node.nominated_cpu_milli = 0;
  node.nominated_memory_mib = 0;
  node.holders = 0;
  node.exclusive = 0;
  node.tenants.clear();
  node.gpus.clear();
  for (const Gpu& gpu : node.spec.gpus) {
    GpuSlot slot;
    slot.model = model_id(gpu.model);
    slot.healthy = gpu.healthy;
    node.gpus.push_back(slot);
  }
  node.countables.assign(node.spec.countables.size(), {});
  count_foreign(node);
}

// Marks what others use of the node. Countables that it does not name are passed over.
void State::count_foreign(NodeState& node) {
  for (GpuSlot& gpu : node.gpus) gpu.foreign = false;
  for (const std::uint8_t index : node.foreign.gpus) node.gpus[index].foreign = true;
  for (std::size_t c = 0; c < node.countables.size(); ++c)
    node.countables[c].foreign = amount_in(node.foreign.countables, node.spec.countables[c].first);
}

namespace {

// Calls `change` for each countable of the node that a task with this placement takes, with the amount.
template <class Change>
void each_countable(NodeState& node, const TaskPlacement& placement, Change&& change) {
  for (std::size_t c = 0; c < node.countables.size(); ++c) {
    const std::int64_t amount = taken_by_task(placement.countables, node.spec.countables[c].first);
    if (amount != 0) change(node.countables[c], amount);
  }
}

}  // namespace

void State::install_in_indexes(const NodeState& node) {
  node_index_.install(node);
  topology_.install(node, node_index_);
  fragmentation_.refresh(node);
}

void State::refresh_in_indexes(NodeId id) {
  node_index_.refresh(node(id));
  topology_.refresh(node(id));
  fragmentation_.refresh(node(id));
}

// Builds the topology index again if the configured levels have changed.
void State::configure_topology() {
  if (topology_.levels() == config_.topology_levels) return;
  topology_.configure(config_.topology_levels);
  for (const NodeState& node : nodes_) topology_.install(node, node_index_);
}

void State::recount_capacity() {
  capacity_ = {};
  burst_capacity_ = {};
  for (const NodeState& node : nodes_) count_capacity(node, +1);
}

void State::count_capacity(const NodeState& node, int sign) {
  if (node.status == NodeStatus::kLost) return;
  Amounts amounts;
  amounts[kDimCpu] = node.spec.cpu_milli;
  amounts[kDimMemory] = node.spec.memory_mib;
  for (const GpuSlot& gpu : node.gpus) {
    if (!gpu.healthy) continue;
    amounts[kDimGpu] += kMilli;
    amounts[kDimGpuEquivalent] += kMilli * models_[gpu.model.index()].weight_permille;
    amounts[dim_of(gpu.model)] += kMilli;
  }
  const bool burst = pools_[node.pool].burst;
  if (sign > 0) {
    capacity_ += amounts;
    if (burst) burst_capacity_ += amounts;
  } else {
    capacity_ -= amounts;
    if (burst) burst_capacity_ -= amounts;
  }
}

// Sets the status and records a loss of contact. Any change of status ends a deferred loss.
void State::set_status(NodeState& node, NodeStatus status) {
  constexpr std::size_t kLossesKept = 1000;
  if (node.status == NodeStatus::kReady && status != NodeStatus::kReady) {
    if (node.contact_losses.size() == kLossesKept) node.contact_losses.erase(node.contact_losses.begin());
    node.contact_losses.push_back(now_);
  }
  if (!node.removed) --nodes_by_status_[static_cast<std::size_t>(node.status)];
  ++nodes_by_status_[static_cast<std::size_t>(status)];
  node.status = status;
  node.loss_deferred = false;
  deferred_losses_.erase(node.id);
  node.removed = false;
  removals_.erase(node.id);
}

void State::enter_identity(const NodeState& node) {
  identities_.enter(node.id, node.spec, [this](NodeId other) { return this->node(other).status == NodeStatus::kLost; });
}

// Gives a lost node with the new name the earlier name of the node that takes the name over.
void State::free_name(const NodeRegistered& event) {
  const auto other = identities_.named(event.spec.name);
  if (event.renamed_from.empty() || !other || *other == event.node) return;
  NodeState& lost = node_mut(*other);
  identities_.forget(lost.id, lost.spec);
  identities_.forget(event.node, node(event.node).spec);
  lost.spec.name = event.renamed_from;
  enter_identity(lost);
}

void State::on(const NodeRegistered& event) {
  const bool fresh = event.node.index() == nodes_.size();
  if (fresh) {
    NodeState unknown;
    unknown.id = event.node;
    nodes_.push_back(std::move(unknown));
    ++nodes_by_status_[static_cast<std::size_t>(NodeStatus::kReady)];
  }
  free_name(event);
  NodeState& node = node_mut(event.node);
  if (!fresh) count_capacity(node, -1);
  if (fresh || node.status == NodeStatus::kLost) node.idle_since = now_;
  const bool same = !fresh && node.spec == event.spec && node.foreign == event.foreign;
  node.lease = event.lease;
  set_status(node, NodeStatus::kReady);
  if (!same) {
    images_.forget(node.id, node.spec.images);
    identities_.forget(node.id, node.spec);
    node.spec = event.spec;
    node.foreign = event.foreign;
    images_.enter(node.id, node.spec.images);
    install_node(node);
    presences_.forget(node.id);
    replica_places_.forget(node.id);
    nominated_shares_.forget(node.id);
    if (!fresh) count_again(node);
    for (const JobId id : nominated_) unreconciled_.insert(id);  // a nominated GPU may have failed
  }
  enter_identity(node);  // also if nothing changed: a node that was lost may have lost its entries
  count_capacity(node, +1);
  install_in_indexes(node);
  mark_freed(node.id);
  // A node that comes back with tasks, or in another domain, frees nothing. Yet its jobs may be possible victims.
  if (!fresh) waits_.activate_all();
  ++opportunity_;
}

// Adds a node in a transaction. Requires that its pool, GPU models, taints and domains are known. So only its entries
// in vectors by node are new, and these are last.
void State::add_for_a_transaction(const NodeSpec& spec) {
  BERTH_CHECK(transactions_ > 0);
  NodeState node;
  node.id = NodeId(static_cast<std::uint32_t>(nodes_.size()));
  node.spec = spec;
  install_node(node);
  nodes_.push_back(std::move(node));
  ++nodes_by_status_[static_cast<std::size_t>(NodeStatus::kReady)];
  count_capacity(nodes_.back(), +1);
  install_in_indexes(nodes_.back());
}

void State::remove_after_a_transaction() {
  BERTH_CHECK(nodes_.back().holders == 0);
  count_capacity(nodes_.back(), -1);
  --nodes_by_status_[static_cast<std::size_t>(NodeStatus::kReady)];
  node_index_.forget_last();
  topology_.forget_last();
  fragmentation_.forget_last();
  nodes_.pop_back();
}

// Counts again what is bound and nominated on a node, after its spec has changed.
void State::count_again(const NodeState& node) {
  for (const JobId id : running_) {
    const JobState& job = existing(id);
    for (const TaskState& task : job.attempt->tasks) {
      if (task.placement.node == node.id) bind_task(job, task.placement, +1);
    }
    if (!job.attempt->stop) continue;
    for (const TaskPlacement& placement : job.attempt->stop->to) {
      if (placement.node == node.id) nominate_task(job, placement, +1);
    }
  }
  for (const JobId id : nominated_) {
    const JobState& job = existing(id);
    for (const TaskPlacement& placement : job.nomination->placements) {
      if (placement.node == node.id) nominate_task(job, placement, +1);
    }
  }
}

void State::on(const NodeStatusChanged& event) {
  NodeState& node = node_mut(event.node);
  count_capacity(node, -1);
  set_status(node, event.status);
  count_capacity(node, +1);
  if (event.loss_deferred) {
    node.loss_deferred = true;
    deferred_losses_.insert(node.id);
  }
  if (event.removed) removals_.insert(node.id);
  install_in_indexes(node);
  mark_freed(node.id);
  for (const auto& [job, task] : node.tasks) unreconciled_.insert(job);
  for (const JobId id : nominated_) unreconciled_.insert(id);
  ++opportunity_;
}

// What is left has no GPUs, CPUs and labels, so code that goes over all nodes counts nothing of it.
void State::on(const NodeRemoved& event) {
  NodeState& node = node_mut(event.node);
  BERTH_CHECK(node.status == NodeStatus::kLost && !node.removed && node.tenants.empty());
  images_.forget(node.id, node.spec.images);
  identities_.forget(node.id, node.spec);
  NodeSpec nothing;
  nothing.name = node.spec.name;
  nothing.pool = node.spec.pool;
  nothing.containers = node.spec.containers;  // images stay allowed where nodes come and go
  nothing.cell = node.spec.cell;
  node.spec = std::move(nothing);
  node.foreign = {};
  node.contact_losses = {};
  node.blames = {};
  forget_failures_on(event.node);  // another machine may come by its name
  node.cordoned = node.draining = false;
  node.cordon_why.clear();
  node.gone_at = {};
  install_node(node);
  enter_identity(node);
  presences_.forget(node.id);
  replica_places_.forget(node.id);
  nominated_shares_.forget(node.id);
  install_in_indexes(node);
  --nodes_by_status_[static_cast<std::size_t>(node.status)];
  node.removed = true;
  removals_.erase(node.id);
  waits_.activate_all();  // what waits for it to come back has another reason now
  ++opportunity_;
}

// Cordons or uncordons the node, and updates all that follows from that.
// No job will blame the node for what has failed there until now.
void State::forget_failures_on(NodeId node) {
  jobs_.for_each([&](JobState& job) {
    for (AttemptRecord& one : job.past) {
      if (one.failed_on == node) one.failed_on = NodeId::none();
    }
    if (job.attempt && job.attempt->failed_on == node) job.attempt->failed_on = NodeId::none();
  });
}

void State::set_cordoned(NodeId id, bool cordoned) {
  node_mut(id).cordoned = cordoned;
  refresh_in_indexes(id);
  mark_freed(id);
}

void State::on(const NodeCordoned& event) {
  set_cordoned(event.node, event.cordoned);
  NodeState& node = node_mut(event.node);
  node.draining = event.cordoned && event.draining;
  node.cordon_why = event.cordoned ? event.why : std::string();
  node.gone_at = event.cordoned ? event.gone_at : Timestamp();
  if (!event.cordoned) node.contact_losses.clear();
  if (!event.cordoned) {
    node.blames.clear();
    forget_failures_on(event.node);
  }
  for (const auto& [job, task] : node.tasks) {
    unreconciled_.insert(job);
    reset_timer(existing(job));
  }
  for (const JobId id : nominated_) unreconciled_.insert(id);
  ++opportunity_;
}

void State::on(const NodeBlamed& event) {
  constexpr std::size_t kBlamesKept = 100;
  JobState& job = existing(event.job);
  const auto attempt = std::find_if(job.past.begin(), job.past.end(),
                                    [&](const AttemptRecord& one) { return one.number == event.attempt; });
  BERTH_CHECK(attempt != job.past.end() && attempt->failed_on == event.node);
  attempt->failed_on = NodeId::none();
  if (attempt->outcome != Outcome::kNodeLost && !std::exchange(job.try_given_back, true)) --job.failures;
  auto& blames = node_mut(event.node).blames;
  std::erase_if(blames, [&](const Blame& one) { return one.user == job.spec.user; });
  if (blames.size() == kBlamesKept) blames.erase(blames.begin());
  blames.push_back({job.spec.user, job.id, attempt->ended});
}

void State::on(const GpuHealthChanged& event) {
  NodeState& node = node_mut(event.node);
  count_capacity(node, -1);
  node.gpus[event.gpu].healthy = event.healthy;
  Gpu& gpu = node.spec.gpus[event.gpu];
  gpu.healthy = event.healthy;
  gpu.fenced = !event.healthy && event.fenced;
  gpu.fault = gpu.fenced ? event.why : "";
  gpu.failed = gpu.fenced && event.failed;
  count_capacity(node, +1);
  install_in_indexes(node);
  mark_freed(node.id);
  for (const JobId id : nominated_) unreconciled_.insert(id);
  ++opportunity_;
}

void State::on(const ForeignUseChanged& event) {
  NodeState& node = node_mut(event.node);
  node.foreign = event.use;
  count_foreign(node);
  refresh_in_indexes(node.id);
  mark_freed(node.id);
  for (const JobId id : nominated_) unreconciled_.insert(id);
  ++opportunity_;
}

// Images do not decide whether a job fits, so no class is activated.
void State::on(const NodeImagesChanged& event) {
  NodeState& node = node_mut(event.node);
  images_.forget(node.id, event.dropped);
  images_.enter(node.id, event.pulled);
  node.spec.images = with_change(node.spec.images, event.pulled, event.dropped);
}

// Binds (sign +1) or releases (sign -1) the placements. A gang lists the placements of one node together, so the
// indexes are updated once per node.
void State::bind_tasks(const JobState& job, std::span<const TaskPlacement> placements, int sign) {
  for (std::size_t i = 0; i < placements.size(); ++i) {
    bind_task(job, placements[i], sign);
    const bool last_here = i + 1 == placements.size() || placements[i + 1].node != placements[i].node;
    if (!last_here) continue;
    refresh_in_indexes(placements[i].node);
    if (sign < 0) mark_freed(placements[i].node);
  }
}

void State::nominate_tasks(const JobState& job, std::span<const TaskPlacement> placements, int sign) {
  for (std::size_t i = 0; i < placements.size(); ++i) {
    nominate_task(job, placements[i], sign);
    const bool last_here = i + 1 == placements.size() || placements[i + 1].node != placements[i].node;
    if (!last_here) continue;
    refresh_in_indexes(placements[i].node);
    if (sign < 0) mark_freed(placements[i].node);
  }
}

namespace {

void bind_slices(GpuSlot& gpu, MigSlices slices, int sign) {
  BERTH_CHECK((gpu.slices & slices) == (sign > 0 ? 0 : slices));
  gpu.slices = static_cast<MigSlices>(gpu.slices ^ slices);
}

}  // namespace

void State::bind_task(const JobState& job, const TaskPlacement& placement, int sign) {
  NodeState& node = node_mut(placement.node);
  node.holders += sign;
  if (sign < 0 && node.holders == 0 && transactions_ == 0) node.idle_since = now_;
  count_tenant(node, job.queue, sign);
  presences_.bind(job.queue, job.spec, node.id, sign);
  if (job.spreads_with_others()) replica_places_.count(job.parent, node.id, sign);
  node.free_cpu_milli -= sign * placement.cpu_milli;
  node.free_memory_mib -= sign * placement.memory_mib;
  BERTH_CHECK(node.free_cpu_milli >= 0);
  BERTH_CHECK(node.free_memory_mib >= 0);
  each_countable(node, placement, [sign](CountableUse& use, std::int64_t amount) {
    use.bound += sign * amount;
    BERTH_CHECK(use.bound >= 0);
  });
  if (job.spec.exclusive) {
    node.exclusive += sign;
    for (GpuSlot& gpu : node.gpus) gpu.kept = node.exclusive > 0;
    for (const std::uint8_t index : placement.gpus) node.gpus[index].kept = false;
  }
  for (const std::uint8_t index : placement.gpus) {
    GpuSlot& gpu = node.gpus[index];
    gpu.free_milli = static_cast<std::int16_t>(gpu.free_milli - sign * placement.gpu_milli);
    BERTH_CHECK(gpu.free_milli >= 0);
    BERTH_CHECK(gpu.free_milli <= kMilli);
    if (const MigGeometry* mig = models_[gpu.model.index()].mig) {
      bind_slices(gpu, mig->taken_by(placement.slices), sign);
    } else if (placement.gpu_milli < kMilli) {
      gpu.sharers = static_cast<std::int16_t>(gpu.sharers + sign);
      gpu.share_domain =
          gpu.sharers > 0 ? (sign > 0 ? queue(job.queue).trust_domain : gpu.share_domain) : TrustDomainId();
    }
  }
}

// Counts a bound or nominated task of the queue on the node. The last task of a queue may have kept other trust domains
// off the nodes around it. When it is gone, these nodes are marked as freed.
void State::count_tenant(NodeState& node, QueueId queue, int sign) {
  const auto mine =
      std::find_if(node.tenants.begin(), node.tenants.end(), [&](const auto& one) { return one.first == queue; });
  if (mine == node.tenants.end()) {
    node.tenants.emplace_back(queue, sign);
    return;
  }
  mine->second += sign;
  if (mine->second != 0) return;
  node.tenants.erase(mine);
  for (const NodeId other : kept_apart_with(node.id)) mark_freed(other);
}

std::vector<NodeId> State::kept_apart_with(NodeId id) const {
  const auto apart = pools_[node(id).pool].trust_domain_isolation;
  if (!apart) return {};
  for (const DomainId domain : topology_.of_node(id)) {
    if (topology_.domain(domain).level != *apart) continue;
    std::vector<NodeId> nodes = topology_.domain(domain).nodes;
    std::erase_if(nodes, [&](NodeId other) { return node(other).pool != node(id).pool; });
    return nodes;
  }
  return {id};
}

void State::nominate_task(const JobState& job, const TaskPlacement& placement, int sign) {
  NodeState& node = node_mut(placement.node);
  count_tenant(node, job.queue, sign);
  presences_.nominate(job.queue, job.spec, node.id, sign);
  if (job.spreads_with_others()) replica_places_.count(job.parent, node.id, sign);
  node.nominated_cpu_milli += sign * placement.cpu_milli;
  node.nominated_memory_mib += sign * placement.memory_mib;
  each_countable(node, placement, [sign](CountableUse& use, std::int64_t amount) { use.nominated += sign * amount; });
  for (const std::uint8_t index : placement.gpus) {
    GpuSlot& gpu = node.gpus[index];
    gpu.nominated_milli = static_cast<std::int16_t>(gpu.nominated_milli + sign * placement.gpu_milli);
    BERTH_CHECK(gpu.nominated_milli >= 0);
    if (const MigGeometry* mig = models_[gpu.model.index()].mig)
      gpu.nominate_slices(mig->taken_by(placement.slices), sign);
    else if (placement.gpu_milli < kMilli)
      nominated_shares_.count(node.id, index, queue(job.queue).trust_domain, sign, gpu);
  }
}

}  // namespace berth::state
