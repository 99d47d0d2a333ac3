// State::audit: computes every sum and index again from the primary facts, and compares.

#include "state/guarantee_decay.h"
#include "state/state.h"

namespace berth::state {

namespace {

struct NodeSums {
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
  std::int64_t nominated_cpu = 0;
  std::int64_t nominated_memory = 0;
  std::vector<std::int64_t> milli;
  std::vector<std::int64_t> nominated_milli;
  std::vector<GpuSlot> nominated;
  std::map<std::string, CountableUse> countables;
  std::size_t tasks = 0;
  std::int32_t holders = 0;
  std::int32_t exclusive = 0;
  std::map<QueueId, std::int32_t> tenants;
};

struct QueueSums {
  Amounts usage;
  Amounts within;
  Amounts nominated, nominated_within;
  Amounts burst;
  Amounts demand;
  std::size_t borrowed = 0;
  std::size_t entitled = 0;
  std::map<Amounts, std::size_t> borrowed_of;
  Amounts idle;
  Amounts within_above;
  std::size_t pending = 0;
  std::int64_t pending_below = 0;
  std::int64_t running_below = 0;
  std::map<std::string, UserUsage, std::less<>> users;
  std::map<std::int32_t, std::set<JobId>> running;
};

void count_stack(const QueueState& queue, const Charge& charge, bool first, bool below, QueueSums& sums) {
  if (queue.configured.stated == 0) return;
  const bool within = (charge.within >> queue.depth & 1U) != 0;
  const bool within_at_child = (charge.within >> (queue.depth + 1) & 1U) != 0;
  if (within && below && !within_at_child) sums.idle += charge.amounts;
  if (within && (charge.within >> (queue.depth - 1) & 1U) != 0) sums.within_above += charge.amounts;
  if (!within && !charge.burst) ++sums.borrowed_of[charge.amounts];
  if (!within && first && within_at_child) ++sums.entitled;
}

}  // namespace

std::optional<std::string> State::audit() const {
  std::vector<NodeSums> nodes(nodes_.size());
  std::vector<QueueSums> queues(queues_.size());
  for (const NodeState& node : nodes_) {
    nodes[node.id.index()].milli.resize(node.gpus.size());
    nodes[node.id.index()].nominated_milli.resize(node.gpus.size());
    nodes[node.id.index()].nominated.resize(node.gpus.size());
  }
  std::set<JobId> running;
  std::size_t timed = 0;
  std::map<Timestamp, std::size_t> by_minute;
  std::set<JobId> elastic;
  std::set<JobId> nominated;
  std::set<JobId> reservations;
  PresenceIndex presences;
  ReplicaPlaces replicas;
  NominatedShares shares;
  std::optional<std::string> wrong;
  const auto nominate = [&](const JobState& job, const TaskPlacement& placement) {
    NodeSums& sums = nodes[placement.node.index()];
    ++sums.tenants[job.queue];
    presences.nominate(job.queue, job.spec, placement.node, +1);
    if (job.spreads_with_others()) replicas.count(job.parent, placement.node, +1);
    sums.nominated_cpu += placement.cpu_milli;
    sums.nominated_memory += placement.memory_mib;
    for (const auto& [countable, amount] : placement.countables) sums.countables[countable].nominated += amount;
    ++sums.countables[std::string(kPodsCountable)].nominated;
    for (const std::uint8_t gpu : placement.gpus) {
      sums.nominated_milli[gpu] += placement.gpu_milli;
      if (const MigGeometry* mig = models_[nodes_[placement.node.index()].gpus[gpu].model.index()].mig) {
        sums.nominated[gpu].nominate_slices(mig->taken_by(placement.slices), +1);
        continue;
      }
      if (placement.gpu_milli == kMilli) continue;
      shares.count(placement.node, gpu, queue(job.queue).trust_domain, +1, sums.nominated[gpu]);
    }
  };
  jobs_.for_each([&](const JobState& job) {
    const auto path = path_to(job.queue);
    for (const QueueId q : path) {
      if (!queue(q).limits_users()) continue;
      UserUsage user;
      if (!job.parent.valid()) ++user.submitted;
      user.jobs = (job.attempt ? 1 : 0) + (job.nomination ? 1 : 0);
      if (job.nomination) user.gpu_milli += job.nomination->amounts[kDimGpu];
      if (job.attempt) {
        for (const Charge& charge : job.attempt->charges) user.gpu_milli += charge.amounts[kDimGpu];
      }
      if (user == UserUsage()) continue;
      UserUsage& sum = queues[q.index()].users[job.spec.user];
      sum = {sum.jobs + user.jobs, sum.gpu_milli + user.gpu_milli, sum.submitted + user.submitted};
    }
    if (job.attempt) {
      running.insert(job.id);
      if (running_row(job).timed) ++timed;
      if (!running_table_.describes(job)) wrong = "job " + std::to_string(job.id.value()) + ": its row differs";
      if (job.is_elastic()) elastic.insert(job.id);
      for (const TaskState& task : job.attempt->tasks) {
        NodeSums& sums = nodes[task.placement.node.index()];
        ++sums.holders;
        sums.exclusive += job.spec.exclusive ? 1 : 0;
        ++sums.tenants[job.queue];
        presences.bind(job.queue, job.spec, task.placement.node, +1);
        if (job.spreads_with_others()) replicas.count(job.parent, task.placement.node, +1);
        sums.cpu += task.placement.cpu_milli;
        sums.memory += task.placement.memory_mib;
        for (const auto& [countable, amount] : task.placement.countables) sums.countables[countable].bound += amount;
        ++sums.countables[std::string(kPodsCountable)].bound;
        for (const std::uint8_t gpu : task.placement.gpus) {
          sums.milli[gpu] += task.placement.gpu_milli;
          const MigGeometry* mig = models_[nodes_[task.placement.node.index()].gpus[gpu].model.index()].mig;
          if (mig == nullptr) continue;
          const MigSlices slices = mig->taken_by(task.placement.slices);
          if ((sums.nominated[gpu].slices & slices) != 0) wrong = "two instances of a GPU overlap";
          sums.nominated[gpu].slices |= slices;
        }
        if (task.phase != TaskPhase::kExited) ++sums.tasks;
      }
      if (job.attempt->stop) {
        for (const TaskPlacement& placement : job.attempt->stop->to) nominate(job, placement);
      }
      for (const Charge& charge : job.attempt->charges) {
        for (const QueueId q : path) {
          const bool within = (charge.within >> queue(q).depth & 1U) != 0;
          queues[q.index()].usage += charge.amounts;
          if (charge.burst) queues[q.index()].burst += *charge.burst;
          if (within)
            queues[q.index()].within += charge.amounts;
          else
            ++queues[q.index()].borrowed;
          count_stack(queue(q), charge, &charge == &job.attempt->charges.front(), q != job.queue, queues[q.index()]);
        }
      }
      for (const QueueId q : path) ++queues[q.index()].running_below;
      queues[job.queue.index()].running[job.priority].insert(job.id);
      if ((job.phase == JobPhase::kStopping) != job.attempt->stop.has_value()) {
        wrong = "job " + std::to_string(job.id.value()) + ": phase and stop disagree";
      }
    }
    if (job.nomination) {
      nominated.insert(job.id);
      for (const TaskPlacement& placement : job.nomination->placements) nominate(job, placement);
      for (const QueueId q : path) {
        queues[q.index()].nominated += job.nomination->amounts;
        if ((job.nomination->within >> queue(q).depth & 1U) != 0)
          queues[q.index()].nominated_within += job.nomination->amounts;
      }
    }
    if (job.reservation) {
      reservations.insert(job.id);
      if (job.nomination || job.attempt) wrong = "job " + std::to_string(job.id.value()) + ": held for and placed";
    }
    if (job.in_pending) {
      ++queues[job.queue.index()].pending;
      for (const QueueId q : path) {
        ++queues[q.index()].pending_below;
        if (queue(q).guarantee_decay_ms > 0) queues[q.index()].demand += demand_of(*this, job.spec);
      }
    }
    if (job.in_pending) ++by_minute[whole_minute(job.waiting_since)];
    const bool waits =
        job.phase == JobPhase::kPending && !job.attempt && !job.held && job.open_dependencies == 0 && !job.is_parent();
    if (waits != job.in_pending && !unreconciled_.contains(job.id)) {
      wrong = "job " + std::to_string(job.id.value()) + ": waits but is on no list, or the reverse";
    }
  });
  if (wrong) return wrong;
  if (by_minute != waits_by_minute_) return "the minutes since which jobs wait differ";
  if (running != running_) return "the set of running jobs differs";
  if (running.size() != running_table_.rows().size() || timed != running_table_.timed())
    return "the table of running jobs differs";
  std::array<std::size_t, 3> by_status{};
  std::set<NodeId> deferred;
  for (const NodeState& node : nodes_) {
    if (!node.removed) ++by_status[static_cast<std::size_t>(node.status)];
    if (node.loss_deferred) deferred.insert(node.id);
  }
  if (by_status != nodes_by_status_ || deferred != deferred_losses_) return "the count of nodes by status differs";
  if (elastic != elastic_) return "the set of elastic jobs differs";
  if (reservations != reservations_) return "the set of jobs that places are held for differs";
  for (const JobId id : reservations) {
    for (const TaskPlacement& place : job(id)->reservation->placements) {
      if (node(place.node).removed)
        return "job " + std::to_string(id.value()) + ": its reservation names a removed node";
    }
  }
  if (nominated != nominated_) return "the set of nominated jobs differs";
  std::vector<std::pair<std::multiset<ClosedSpan>, std::int32_t>> closed(nodes_.size());
  for (const auto& [window_name, window] : maintenance_) {
    for (const NodeId id : window.nodes) {
      closed[id.index()].first.insert({window.from, window.to});
      if (window.begun) ++closed[id.index()].second;
    }
  }
  for (const NodeState& node : nodes_) {
    if (node.maintenance != closed[node.id.index()].first || node.maintained != closed[node.id.index()].second)
      return "node " + node.spec.name + ": its maintenance differs";
  }
  for (const NodeState& node : nodes_) {
    const NodeSums& sums = nodes[node.id.index()];
    const std::string name = "node " + node.spec.name + ": ";
    if (node.free_cpu_milli != node.spec.cpu_milli - sums.cpu) return name + "free CPU differs";
    if (node.free_memory_mib != node.spec.memory_mib - sums.memory) return name + "free memory differs";
    if (node.free_cpu_milli < 0 || node.free_memory_mib < 0) return name + "CPU or memory bound over capacity";
    if (node.nominated_cpu_milli != sums.nominated_cpu) return name + "nominated CPU differs";
    if (node.nominated_memory_mib != sums.nominated_memory) return name + "nominated memory differs";
    for (std::size_t c = 0; c < node.countables.size(); ++c) {
      const auto& [countable, amount] = node.spec.countables[c];
      CountableUse use = nodes[node.id.index()].countables[countable];
      use.foreign = amount_in(node.foreign.countables, countable);
      if (node.countables[c] != use) return name + "what is used of " + countable + " differs";
    }
    if (node.tasks.size() != sums.tasks) return name + "the set of tasks differs";
    if (node.exclusive != sums.exclusive) return name + "the number of exclusive tasks differs";
    if (node.holders != sums.holders) return name + "the number of tasks that hold something differs";
    if (std::map(node.tenants.begin(), node.tenants.end()) != sums.tenants) return name + "the queues on it differ";
    for (std::size_t g = 0; g < node.gpus.size(); ++g) {
      if (node.gpus[g].free_milli != kMilli - sums.milli[g])
        return name + "free share of GPU " + std::to_string(g) + " differs";
      if (node.gpus[g].kept != (sums.exclusive > 0 && sums.milli[g] == 0))
        return name + "whether GPU " + std::to_string(g) + " is kept for an exclusive job differs";
      if (sums.milli[g] > kMilli) return name + "GPU " + std::to_string(g) + " bound over capacity";
      if (node.gpus[g].nominated_milli != sums.nominated_milli[g]) return name + "nominated share differs";
      if (node.gpus[g].nominated_domain != sums.nominated[g].nominated_domain ||
          node.gpus[g].nominated_to_several != sums.nominated[g].nominated_to_several)
        return name + "whose shares are nominated differs";
      if (node.gpus[g].slices != sums.nominated[g].slices ||
          node.gpus[g].nominated_slices != sums.nominated[g].nominated_slices)
        return name + "slices of GPU " + std::to_string(g) + " differ";
    }
  }
  NodeIndex scratch;
  for (const NodeState& node : nodes_) scratch.install(node);
  if (!node_index_.describes_same(scratch)) return "the node index differs";
  TopologyIndex domains;
  domains.configure(config_.topology_levels);
  for (const NodeState& node : nodes_) domains.install(node, scratch);
  if (!topology_.describes_same(node_index_, domains, scratch)) return "the topology index differs";
  if (!(presences_ == presences)) return "the index of what affinity goes by differs";
  ImageIndex images;
  for (const NodeState& node : nodes_) images.enter(node.id, node.spec.images);
  if (!(images_ == images)) return "the index of images differs";
  if (!(nominated_shares_ == shares)) return "whose nominated shares of GPUs differ";
  if (!(replica_places_ == replicas)) return "the index of where replicas are differs";
  if (!fragmentation_.describes(nodes_)) return "the index of fragmentation differs";
  for (const QueueState& queue : queues_) {
    const QueueSums& sums = queues[queue.id.index()];
    const std::string name = "queue '" + queue.path + "': ";
    if (!(queue.usage == sums.usage)) return name + "usage differs";
    if (!(queue.within_usage == sums.within)) return name + "usage within the guarantee differs";
    if (!(queue.nominated == sums.nominated && queue.nominated_within == sums.nominated_within))
      return name + "nominated usage differs";
    if (!(queue.burst_usage == sums.burst)) return name + "usage in burst pools differs";
    if (!(queue.demand == sums.demand)) return name + "what waits below it asks for something else";
    if (guarantee_due(queue).at != queue.guarantee_use.due) return name + "its guarantee changes at another time";
    if (queue.users != sums.users) return name + "what its users have differs";
    if (queue.borrowed.size() != sums.borrowed) return name + "the stack of borrowed charges differs";
    std::map<Amounts, std::size_t> borrowed_of;
    for (const auto& [amounts, keys] : queue.stack.borrowed_of) borrowed_of[amounts] = keys.size();
    if (borrowed_of != sums.borrowed_of || queue.stack.entitled.size() != sums.entitled ||
        !(queue.stack.idle_usage == sums.idle) || !(queue.stack.within_above == sums.within_above))
      return name + "what of its stack may move differs";
    std::size_t in_eq_classes = 0;
    for (const auto& [shape, eq_class] : queue.eq_classes) in_eq_classes += eq_class.size();
    if (in_eq_classes != sums.pending) return name + "the lanes of the waiting differ";
    for (const auto& [shape, eq_class] : queue.eq_classes) {
      const EquivalenceKey key{queue.id, shape};
      if (waits_.is_active(key) == waits_.is_parked(key)) return name + "a lane is neither awake nor asleep";
    }
    if (queue.running != sums.running) return name + "the list of running jobs differs";
    if (queue.pending.size() != sums.pending || queue.pending_below != sums.pending_below)
      return name + "the waiting differ";
    if (queue.running_below != sums.running_below) return name + "the count of running jobs differs";
  }
  return run_times_.audit();
}

}  // namespace berth::state
