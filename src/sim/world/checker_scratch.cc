// What the checker recomputes from nothing, and the search for jobs that wait without a reason.

#include <algorithm>

#include "sim/world/checker.h"

namespace berth::sim {

void Checker::check_from_scratch(const state::State& durable, const billing::Meter& meter, Timestamp now, bool quiet) {
  if (violation_) return;
  ++scratch_checks_;
  pass_time(std::max(now_, now));
  if (const auto wrong = durable.audit()) breach("P10", *wrong);
  check_sums(durable);
  check_integrals();
  check_meter(meter);
  check_fleet();
  check_departures();
  if (!quiet) return;
  check_gpu_health(durable);
  check_waiting(now);
}

// Compares the checker's sums, which it folds one by one, with the same sums from nothing and with the state's.
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
    require(theirs->usage == usage[q] && theirs->within_usage == within[q] &&
                theirs->nominated == queues_[q].nominated && theirs->nominated_within == queues_[q].nominated_within,
            "P10", "the usage of queue '" + queues_[q].path + "' differs from the sum of its jobs");
    require(theirs->guaranteed == queues_[q].guaranteed, "P10", "the guarantee of '" + queues_[q].path + "' differs");
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

// P12: the integral over the GPUs equals the integral over the queues, and that of each queue equals the sum over its
// attempts.
void Checker::check_integrals() {
  std::int64_t bound = 0;
  for (const NodeView& node : nodes_) {
    for (const GpuView& gpu : node.gpus) bound += gpu.bound;
  }
  require(bound == bound_milli_, "P12", "the bound GPUs do not add up");
  for (auto& [id, job] : jobs_) {
    for (ChargeView& charge : job.charges) book(job, charge);
  }
  std::vector<std::int64_t> billed(queues_.size());
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    integrate(queues_[q]);
    billed[q] = queues_[q].billed;
  }
  for (std::size_t q = queues_.size(); q-- > 1;) billed[queues_[q].parent] += billed[q];
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    require(billed[q] == queues_[q].integral, "P12",
            "the GPU time of queue '" + queues_[q].path + "' differs from the sum over its attempts");
  }
  require(queues_.empty() || queues_[0].integral == total_integral_, "P12",
          "the GPU time of all queues differs from that of all GPUs");
}

// P12 for the product's own meter: each of its accounts, from the first event to now, equals the checker's. Requires:
// check_integrals has brought the checker's accounts up to now.
void Checker::check_meter(const billing::Meter& meter) {
  if (const auto wrong = meter.check_from_scratch()) breach("P12", *wrong);
  const billing::Usage usage = meter.usage(Timestamp{0}, now_);
  check_meter_rows(usage);
  check_meter_fleet(usage);
}

void Checker::check_meter_rows(const billing::Usage& usage) {
  std::map<BookKey, Book> theirs;
  for (const billing::UsageRow& row : usage.rows) {
    const std::uint32_t model = row.account.gpu_model.empty() ? 0 : model_index(row.account.gpu_model) + 1;
    theirs[{row.account.queue, row.account.user, model, row.account.borrowed}] = {
        row.gpu_milli_ms, static_cast<std::int64_t>(row.cpu_milli_ms), static_cast<std::int64_t>(row.memory_mib_ms)};
  }
  std::erase_if(books_, [](const auto& one) { return one.second == Book{}; });
  require(theirs.size() == books_.size(), "P12",
          "the meter has " + std::to_string(theirs.size()) + " accounts, not " + std::to_string(books_.size()));
  for (const auto& [key, book] : books_) {
    const auto& [queue, user, model, borrowed] = key;
    const auto found = theirs.find(key);
    require(found != theirs.end() && found->second == book, "P12",
            "the meter's account of queue '" + queue + "', " + user + ", " +
                (model == 0 ? "no GPU" : models_[model - 1]) + (borrowed ? ", borrowed" : ", guaranteed") +
                " differs from the sum over its attempts");
  }
}

void Checker::check_meter_fleet(const billing::Usage& usage) {
  for (std::uint32_t model = 0; model < models_.size(); ++model) {
    const FleetBook& mine = fleet_books_[model];
    std::int64_t used[2] = {0, 0};
    for (const auto& [key, book] : books_) {
      if (std::get<2>(key) == model + 1) used[std::get<3>(key) ? 1 : 0] += book.gpu;
    }
    billing::FleetRow theirs;
    for (const billing::FleetRow& row : usage.fleet) {
      if (row.gpu_model == models_[model]) theirs = row;
    }
    require(theirs.used_guaranteed == used[0] && theirs.used_borrowed == used[1], "P12",
            "the meter's use of all " + models_[model] + " differs");
    require(theirs.capacity == mine.there_ms && theirs.down == mine.down_ms && theirs.foreign == mine.foreign_ms, "P12",
            "the meter's capacity, foreign or down time of all " + models_[model] + " differs");
    require(theirs.idle == mine.there_ms - mine.down_ms - mine.foreign_ms - used[0] - used[1], "P12",
            "the meter's idle time of all " + models_[model] + " differs");
  }
}

// I14: each task that lives on the fleet belongs to a running attempt, and is killed if it has to end: neither its
// program nor its supervisor can be trusted to end it.
void Checker::check_fleet() {
  for (const auto& [key, execution] : fleet_.executions()) {
    if (execution.phase != backend::Execution::Phase::kLive) continue;
    const auto job = jobs_.find(key.job);
    require(job != jobs_.end() && job->second.running && job->second.attempts == key.attempt &&
                key.task < job->second.over.size() && !job->second.over[key.task],
            "P9", text_of(key.job) + " lives on " + fleet_.node_name(execution.node) + " though no attempt is running");
    if (violation_) return;
    const auto& stop = job->second.stop;
    const bool must_end = stop && stop->forced && key.task >= stop->keep;
    require(!must_end || execution.killed || !fleet_.node_in_contact(fleet_.node_name(execution.node)), "P13",
            text_of(key.job) + " has to end, and a task of it is not killed");
  }
}

// When all reports are read, the state knows the true health of each GPU, through restarts and silence.
void Checker::check_gpu_health(const state::State& durable) {
  for (const state::NodeState& node : durable.nodes()) {
    const std::string& name = node.spec.name;
    if (node.status != NodeStatus::kReady || !fleet_.node_in_contact(name)) continue;
    const std::vector<Gpu>& truth = fleet_.gpus_of(name);
    for (std::size_t g = 0; g < truth.size(); ++g) {
      if (!truth[g].healthy) count("failed GPU stays failed");
      require(node.gpus[g].healthy == (truth[g].healthy && !node.spec.gpus[g].fenced), "P13",
              "GPU " + std::to_string(g) + " of " + name + " is taken for what it is not");
      require(node.gpus[g].foreign == fleet_.foreign_of(name).gpus.contains(truth[g].uuid), "P13",
              "the foreign use of GPU " + std::to_string(g) + " of " + name + " is not known");
    }
  }
}

bool Checker::may_use_pool(const JobView& job, const std::string& pool) const {
  for (const PoolConfig& config : config_.pools) {
    if (config.name != pool) continue;
    const auto& classes = config.classes;
    if (!classes.empty() && std::find(classes.begin(), classes.end(), job.spec.job_class) == classes.end())
      return false;
    if (config.queues.empty()) continue;
    const std::string path = queues_[job.queue].path + "/";
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
        // A sibling keeps idle guarantees for itself. The scenarios test whether that is the reason.
        if (sibling != q && queues_[sibling].lending[d] != kUnlimited) return true;
      }
    }
    if (q == 0) return false;
    if (budget_stops(queues_[q], BudgetAction::kStopStarting)) return true;
    if (budget_stops(queues_[q], BudgetAction::kStopBorrowing) && might_borrow(job, asked)) return true;
  }
}

// --- work that waits without a reason ---
//
// Covered are jobs of one task group that are not exclusive: gangs and single tasks; whole GPUs, shares, and none. For
// equal tasks, whether a gang fits is a sum over nodes, so the answer is exact.
//
// Not covered:
// - several groups, and exclusive jobs: whether they fit depends on the placement of each task (the exact solver of the
//   scheduler tests these on small clusters);
// - label selectors;
// - jobs of a strict queue except the head;
// - queues beside a queue that limits lending;
// - a share on a GPU that is nominated in part;
// - for reclaim, clusters of several GPU models.

Amounts Checker::least_amounts(const JobView& job, std::uint32_t model) const {
  const TaskGroup& group = job.spec.groups.front();
  Amounts asked;
  asked[kDimCpu] = group.least() * group.request.cpu_milli;
  asked[kDimMemory] = group.least() * group.request.memory_mib;
  asked[kDimGpu] = group.least() * group.request.total_gpu_milli();
  if (asked[kDimGpu] == 0) return asked;
  asked[kDimGpuEquivalent] = asked[kDimGpu] * weights_[model];
  asked[kDimFirstModel + model] = asked[kDimGpu];
  return asked;
}

Checker::Removable Checker::nothing_removable() const {
  Removable nothing;
  nothing.nodes.resize(nodes_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) nothing.nodes[n].gpus.resize(nodes_[n].gpus.size());
  return nothing;
}

// Returns how many tasks the node's GPUs of one model could take.
std::int64_t Checker::gpu_slots(const JobView& job, const NodeView& node, std::uint32_t model,
                                const Removable::Node& away) const {
  const TaskRequest& request = job.spec.groups.front().request;
  std::int64_t shares = 0;
  std::int64_t idle = 0;
  std::map<std::int32_t, std::int64_t> idle_in;  // by NUMA domain
  const MigGeometry* const mig = geometry_of(model);
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    const GpuView& gpu = node.gpus[g];
    if (!gpu.healthy || gpu.foreign || gpu.model != model || gpu.nominated > 0) continue;
    const std::int32_t bound = gpu.bound - away.gpus[g];
    if (mig != nullptr) {
      const MigProfile* profile = mig->profile_named(request.mig_profile);
      if (profile == nullptr || (bound > 0 && away.gpus[g] > 0)) continue;  // unknown which slices would be free
      for (std::uint32_t start = 0, next = 0; start < 8; ++start) {
        const bool may = (profile->starts >> start & 1U) != 0 && start >= next;
        const auto* const from = gpu.slices.begin() + start;
        if (!may || (bound > 0 && std::any_of(from, from + profile->width, [](auto here) { return here > 0; })))
          continue;
        ++shares;
        next = start + profile->width;
      }
      continue;
    }
    if (!request.mig_profile.empty()) continue;
    if (bound == 0) ++idle, ++idle_in[node.spec.gpus[g].numa];
    if (bound > 0 && (gpu.sharers == 0 || gpu.domain != queues_[job.queue].domain)) continue;
    shares += (kMilli - bound) / request.gpu_milli;
  }
  if (request.is_share() || !request.mig_profile.empty()) return shares;
  const NumaPolicy policy = job.spec.groups.front().numa;
  if (policy != NumaPolicy::kSingleNumaNode && policy != NumaPolicy::kRestricted) return idle / request.gpus;
  std::int64_t within = 0;
  for (const auto& [domain, here] : idle_in) within += here / request.gpus;
  const auto gpus = static_cast<std::size_t>(request.gpus);
  // A task that needs several domains in any case is only known to fit if it would fit an empty node.
  const bool whole = policy == NumaPolicy::kRestricted && idle_in.size() <= fewest_domains(node, model, gpus);
  return whole ? idle / request.gpus : within;
}

// Returns how many tasks of the job the node could take now without the removable tasks.
std::int64_t Checker::slots(const JobView& job, const NodeView& node, std::uint32_t model,
                            const Removable::Node& away) const {
  const TaskGroup& group = job.spec.groups.front();
  if (node.status != NodeStatus::kReady || node.cordoned || node.maintained > 0 || closed_to(job, node)) return 0;
  if (node.exclusive > 0) return 0;
  if (!is_allowed(group, node.spec) || (!group.pool.empty() && group.pool != node.spec.pool)) return 0;
  if (!may_use_pool(job, node.spec.pool)) return 0;
  TaskPlacement asked;
  asked.slices = group.request.mig_profile.empty() ? 0 : 1;
  const bool share = !job.spec.exclusive && group.request.is_share();
  if (group.request.gpus > 0 && !gives_gpus_as(asked, node.spec.pool, share)) return 0;
  if (!group.image.empty() && !node.spec.containers) return 0;
  std::int64_t count = group.count;
  const auto limit = [&](std::int64_t free, std::int64_t each) {
    if (each > 0) count = std::min(count, std::max<std::int64_t>(free, 0) / each);
  };
  limit(node.spec.cpu_milli - node.foreign.cpu_milli - node.cpu - node.nominated_cpu + away.cpu,
        group.request.cpu_milli);
  limit(node.spec.memory_mib - node.foreign.memory_mib - node.memory - node.nominated_memory + away.memory,
        group.request.memory_mib);
  const auto of = [](const std::map<std::string, std::int64_t>& sums, const std::string& name) {
    const auto found = sums.find(name);
    return found == sums.end() ? std::int64_t{0} : found->second;
  };
  const std::map<std::string, std::int64_t> has(node.spec.countables.begin(), node.spec.countables.end());
  const std::map<std::string, std::int64_t> theirs(node.foreign.countables.begin(), node.foreign.countables.end());
  const auto left = [&](const std::string& name) {
    return of(has, name) - of(theirs, name) - of(node.counted, name) - of(node.nominated_counted, name) +
           of(away.counted, name);
  };
  if (has.contains("pods")) limit(left("pods"), 1);
  for (const auto& [name, each] : group.request.countables) limit(left(name), each);
  return group.request.gpus == 0 ? count : std::min(count, gpu_slots(job, node, model, away));
}

// Returns true if min_count tasks of the job could start now on one GPU model without the removable tasks.
bool Checker::fits(const JobView& job, const Removable& removable, const std::set<std::size_t>& held) const {
  const TaskGroup& group = job.spec.groups.front();
  const auto& names = group.request.gpu_models;
  for (std::uint32_t model = 0; model < models_.size(); ++model) {
    if (!names.empty() && std::find(names.begin(), names.end(), models_[model]) == names.end()) continue;
    if (over_quota(job, least_amounts(job, model))) continue;
    std::map<std::vector<std::string>, std::int64_t> tasks;  // by domain of the required level, if any
    // The group's level counts if it is stated, else the job's: the group's is never the wider one.
    const std::string& level = group.topology.required.empty() ? job.spec.topology.required : group.topology.required;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (held.contains(n)) continue;
      const std::int64_t here = slots(job, nodes_[n], model, removable.nodes[n]);
      if (here == 0 || !is_open(job, n)) continue;
      const std::string& wider = job.spec.topology.required;
      if (!wider.empty() && domain_of(nodes_[n].spec, wider).empty()) continue;
      const auto domain = level.empty() ? std::vector<std::string>() : domain_of(nodes_[n].spec, level);
      const bool counts = level.empty() || !domain.empty();
      if (counts && (tasks[domain] += here) >= group.least()) return true;
    }
  }
  return false;
}

bool Checker::answerable(const JobView& job, Timestamp now) const {
  const bool parent = job.spec.kind == JobKind::kArray || job.spec.kind == JobKind::kService;
  if (job.running || parent || job.held || job.cancelled || job.nomination || job.not_before > now) return false;
  if (!dependencies_met(job) || queues_[job.queue].strict || !stands_by_itself(job)) return false;
  return job.spec.groups.size() == 1 && !job.spec.exclusive && job.spec.groups.front().node_selector.empty();
}

// Returns the nodes of backfill reservations that the job might delay: it has no time limit that ends before the
// reserved start (with its grace, if it saves), or it is a replica, which would be started again.
std::set<std::size_t> Checker::held_from(const JobView& job, Timestamp now) const {
  std::set<std::size_t> held;
  const auto parent = jobs_.find(job.parent);
  const bool replica = parent != jobs_.end() && parent->second.spec.kind == JobKind::kService;
  const std::int64_t limit_ms = replica ? 0 : job.spec.time_limit_s * 1000;
  const std::int64_t saves_ms = job.spec.checkpoint.on_signal ? grace_ms(job) : 0;
  for (const JobId id : holders_) {
    const JobView& owner = jobs_.at(id);
    const bool ends_before = limit_ms > 0 && now + limit_ms + saves_ms <= owner.reserved_start;
    if (id == job.id || owner.running || ends_before || job.priority > owner.priority) continue;
    held.insert(owner.held_nodes.begin(), owner.held_nodes.end());
    if (queues_[owner.queue].domain == queues_[job.queue].domain) continue;
    for (const std::size_t held_node : owner.held_nodes) {
      const std::string& pool = nodes_[held_node].spec.pool;
      const std::string level = apart_in(pool);
      for (std::size_t n = 0; n < nodes_.size() && !level.empty(); ++n) {
        const bool beside = nodes_[n].spec.pool == pool && near(NodeId(static_cast<std::uint32_t>(n)),
                                                                NodeId(static_cast<std::uint32_t>(held_node)), level);
        if (beside) held.insert(n);
      }
    }
  }
  return held;
}

void Checker::check_waiting(Timestamp now) {
  const Removable nothing = nothing_removable();
  for (const auto& [id, job] : jobs_) {
    if (!answerable(job, now)) continue;
    const TaskGroup& group = job.spec.groups.front();
    count(group.least() > 1 ? "waiting gang checked" : "waiting job checked");
    if (group.request.is_share()) count("waiting share checked");
    require(!fits(job, nothing, held_from(job, now)), "P6", text_of(id) + " waits though it would fit");
    check_claim(job, now);
  }
}

// Returns what borrowers on the other side of the tree hold, if they have run long enough.
Checker::Removable Checker::removable_for(const JobView& job, Timestamp now) const {
  Removable removable = nothing_removable();
  const bool wants_gpus = job.spec.groups.front().request.gpus > 0;
  for (const auto& [id, victim] : jobs_) {
    if (!victim.running || victim.stop || victim.queue == job.queue) continue;
    // The cycle tries the first job of the most deserving queue. So a job within its guarantee may be behind a head
    // that borrows, and lose its place to a borrower of the same cycle. It may reclaim at the next opportunity.
    if (victim.charges.front().order > last_cycle_) continue;
    const std::uint32_t depth = queues_[siblings(job.queue, victim.queue).second].depth;
    const bool whole =
        (victim.charges.front().within >> depth & 1U) == 0 && now - victim.runs_since >= minimum_ms(victim);
    if (!whole && victim.charges.back().order > last_cycle_) continue;
    const std::uint32_t from = whole ? 0 : borrowed_from(victim, depth);
    const bool frees = from < victim.placements.size() &&
                       (!wants_gpus || std::any_of(victim.placements.begin() + from, victim.placements.end(),
                                                   [](const TaskPlacement& task) { return !task.gpus.empty(); }));
    if (!frees) continue;
    ++removable.jobs;
    for (std::uint32_t q = victim.queue; q != 0; q = queues_[q].parent) ++removable.below[q];
    for (std::size_t t = from; t < victim.placements.size(); ++t) {
      const TaskPlacement& placement = victim.placements[t];
      Removable::Node& node = removable.nodes[placement.node.index()];
      node.cpu += placement.cpu_milli;
      node.memory += placement.memory_mib;
      count_countables(node.counted, placement, +1);
      for (const std::uint8_t gpu : placement.gpus) node.gpus[gpu] += placement.gpu_milli;
    }
  }
  return removable;
}

// P3: a job that is within all its guarantees, and fits without the borrowed charges, must be nominated.
void Checker::check_claim(const JobView& job, Timestamp now) {
  if (!config_.scheduling.reclaim || models_.size() != 1 || std::max(job.evicts_from, job.lost_nominations_from) > now)
    return;
  const bool needs_others = std::any_of(job.spec.affinity.begin(), job.spec.affinity.end(),
                                        [](const AffinityTerm& term) { return term.required; });
  if (needs_others) return;       // the jobs that it needs near may be among the victims
  if (!windows_.empty()) return;  // when its victims have left, it might not end before a window
  const Amounts asked = least_amounts(job, 0);
  for (std::uint32_t q = job.queue; q != 0; q = queues_[q].parent) {
    if (!fits_guarantee(queues_[q], queues_[q].within + queues_[q].nominated_within, asked)) return;
    if (budget_stops(queues_[q], BudgetAction::kStopStarting)) return;
  }
  const Removable removable = removable_for(job, now);
  if (removable.jobs == 0 || removable.jobs > std::min(config_.scheduling.victims_per_cycle, evictions_left())) return;
  const bool limited = std::any_of(removable.below.begin(), removable.below.end(),
                                   [&](const auto& one) { return one.second > evictions_left_below(one.first); });
  if (limited) return;
  count(job.spec.groups.front().least() > 1 ? "claim of a gang checked" : "claim checked");
  std::set<std::size_t> burst;  // no job is evicted from burst pools for a guarantee
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const PoolConfig* pool = pool_of(NodeId(static_cast<std::uint32_t>(n)));
    if (pool != nullptr && pool->burst) burst.insert(n);
  }
  require(!fits(job, removable, burst), "P3",
          text_of(job.id) + " lies within its guarantee and waits, though borrowers could leave");
}

}  // namespace berth::sim
