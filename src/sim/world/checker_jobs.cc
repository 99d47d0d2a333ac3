// The fold of the checker over the lives of jobs, and what each of their events may not break.

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "sim/world/checker.h"

namespace berth::sim {

namespace {

bool evicts_for_claimant(StopCause cause) { return cause == StopCause::kReclaim || cause == StopCause::kPreempt; }

// So many tasks of the victim stay.
std::size_t kept(const Nominated& event, JobId victim) {
  const auto found = std::find(event.victims.begin(), event.victims.end(), victim);
  return event.keeps.empty() ? 0 : event.keeps[static_cast<std::size_t>(found - event.victims.begin())];
}

}  // namespace

void Checker::on(const JobSubmitted& event) {
  count(event.parent.valid() ? "child submitted" : "submitted " + std::string(name_of(event.spec.kind)));
  require(!last_job_.valid() || event.job.value() == last_job_.value() + 1, "P8", "job ids do not follow each other");
  last_job_ = event.job;
  JobView job;
  job.id = event.job;
  job.spec = event.spec;
  job.spec.groups.shrink_to_fit();
  const auto queue = queue_of_.find(event.spec.queue);
  if (queue == queue_of_.end() || queues_[queue->second].removed) return breach("P8", "a job is in no queue");
  job.queue = queue->second;
  job.priority = event.priority;
  job.parent = event.parent;
  job.index = event.index;
  job.held = event.spec.held;
  job.submitted = now_;
  if (const auto parent = jobs_.find(event.parent); parent != jobs_.end()) job.submitted = parent->second.submitted;
  job.not_before = event.spec.earliest_start.value_or(Timestamp{});
  if (!event.key.empty()) {
    const auto [known, fresh] = answered_.try_emplace({event.spec.user, event.key}, event.job);
    require(fresh, "P8", "key '" + event.key + "' made " + text_of(event.job) + " and " + text_of(known->second));
  }
  jobs_.emplace(event.job, std::move(job));
}

void Checker::on(const JobHoldChanged& event) {
  count("hold");
  JobView* job = live(event.job, "a hold");
  if (job == nullptr) return;
  job->held = event.held;
  if (job->held) job->held_nodes.clear();
}
void Checker::on(const JobPriorityChanged& event) {
  if (JobView* job = live(event.job, "a priority")) job->priority = event.priority;
}
void Checker::on(const JobCancelRequested& event) {
  count("cancel");
  if (JobView* job = live(event.job, "a cancel")) {
    if (event.user == "berth") check_replacement(*job);  // not what a user cancels
    job->cancelled = true;
    cancelling_.insert(job->id);
  }
}

// The proof that the claimant fits when its victims have left.
void Checker::on(const Nominated& event) {
  JobView* job = live(event.job, "a nomination");
  if (job == nullptr) return;
  count("nominated");
  require(!job->running && !job->nomination, "P5", text_of(event.job) + " is promised a place though it has one");
  require(!event.victims.empty(), "P5", text_of(event.job) + " is promised a place without victims");
  check_counts(*job, event.placements);
  for (const TaskPlacement& placement : event.placements) promise(placement, +1);
  for (const JobId victim : event.victims) {
    const auto found = jobs_.find(victim);
    if (found == jobs_.end() || !found->second.running)
      return breach("P5", text_of(victim) + " is a victim but not running");
    for (std::size_t t = kept(event, victim); t < found->second.placements.size(); ++t) {
      bind(found->second, found->second.placements[t], -1);
    }
  }
  for (const TaskPlacement& placement : event.placements) {
    const NodeView& node = nodes_[placement.node.index()];
    require(node.cpu + node.nominated_cpu <= node.spec.cpu_milli &&
                node.memory + node.nominated_memory <= node.spec.memory_mib,
            "P5", text_of(event.job) + " would not fit on " + node.spec.name + " without its victims");
    for (const std::uint8_t gpu : placement.gpus) {
      require(node.gpus[gpu].bound + node.gpus[gpu].nominated <= kMilli, "P5",
              text_of(event.job) + " would not fit on a GPU of " + node.spec.name + " without its victims");
    }
  }
  for (const JobId victim : event.victims) {
    const JobView& other = jobs_.at(victim);
    for (std::size_t t = kept(event, victim); t < other.placements.size(); ++t) bind(other, other.placements[t], +1);
  }
  job->nomination = NominationView{event.placements, event.victims, amounts_of(event.placements), {}};
  for (const JobId victim : event.victims) {
    job->nomination->keeps[victim] = static_cast<std::uint32_t>(kept(event, victim));
  }
  job->held_nodes.clear();
  for (std::uint32_t q = job->queue;; q = queues_[q].parent) {
    queues_[q].nominated += job->nomination->amounts;
    if (q == 0) break;
  }
}

void Checker::on(const NominationDropped& event) {
  count("nomination dropped");
  if (JobView* job = live(event.job, "a dropped nomination")) drop_nomination(*job);
}

void Checker::on(const StartHeld& event) {
  count("start held");
  JobView* job = live(event.job, "a held start");
  if (job == nullptr) return;
  require(!job->running && !job->nomination, "P5", "a start is held for " + text_of(event.job) + ", which has places");
  require(event.start >= now_, "P5", "a start is held for " + text_of(event.job) + " in the past");
  check_counts(*job, event.placements);
  job->held_nodes.clear();
  for (const TaskPlacement& placement : event.placements) job->held_nodes.insert(placement.node.index());
  job->held_start = event.start;
}

void Checker::on(const StartHoldDropped& event) {
  count("held start dropped");
  if (JobView* job = live(event.job, "a dropped hold")) job->held_nodes.clear();
}

void Checker::check_counts(const JobView& job, const std::vector<TaskPlacement>& placements) {
  std::vector<std::int32_t> counts(job.spec.groups.size());
  for (const TaskPlacement& placement : placements) {
    if (placement.group >= counts.size() || placement.node.index() >= nodes_.size()) {
      return breach("P2", text_of(job.id) + " is placed outside its groups or nodes");
    }
    ++counts[placement.group];
    const TaskRequest& request = job.spec.groups[placement.group].request;
    const bool enough =
        job.spec.exclusive || (placement.cpu_milli == request.cpu_milli && placement.memory_mib == request.memory_mib &&
                               std::cmp_equal(placement.gpus.size(), request.gpus));
    require(enough && (job.spec.exclusive || request.gpus == 0 || placement.gpu_milli == request.gpu_milli), "P2",
            text_of(job.id) + " does not get what its task asked");
  }
  for (std::size_t g = 0; g < counts.size(); ++g) {
    const TaskGroup& group = job.spec.groups[g];
    require(counts[g] >= group.least() && counts[g] <= group.count, "P2",
            text_of(job.id) + " gets " + std::to_string(counts[g]) + " of " + std::to_string(group.least()) + " to " +
                std::to_string(group.count) + " tasks of a group");
  }
  check_topology(job, placements);
  check_groups(job, placements);
}

// The names of a node's places down to the level; empty where it has none there.
std::vector<std::string> Checker::domain_of(const NodeSpec& node, const std::string& level) const {
  if (level == "node") return {node.name};
  std::vector<std::string> names;
  for (const std::string& one : config_.topology_levels) {
    std::string name = names.size() < node.topology.size() ? node.topology[names.size()] : "";
    for (const auto& [key, value] : node.labels) {
      if (name.empty() && key == one) name = value;
    }
    if (one == level && name.empty()) return {};
    names.push_back(name);
    if (one == level) return names;
  }
  return {};
}

// A gang that requires a level is whole within one domain of it.
void Checker::check_topology(const JobView& job, const std::vector<TaskPlacement>& placements) {
  const std::string& level = job.spec.topology.required;
  if (level.empty() || placements.empty() || violation_) return;
  const auto domain = domain_of(nodes_[placements.front().node.index()].spec, level);
  require(!domain.empty(), "P2", text_of(job.id) + " is placed outside every " + level);
  for (const TaskPlacement& placement : placements) {
    require(domain_of(nodes_[placement.node.index()].spec, level) == domain, "P2",
            text_of(job.id) + " spans two domains of level " + level);
  }
  count("within one " + level);
}

// Called after the placement was bound: everything must still hold.
void Checker::check_place(const JobView& job, const TaskPlacement& placement, bool) {
  const NodeView& node = nodes_[placement.node.index()];
  const std::string where = text_of(job.id) + " on " + node.spec.name;
  require(node.status == NodeStatus::kReady && !node.cordoned && node.maintained == 0, "P1",
          where + ": the node takes no tasks");
  require(!closed_to(job, node), "maintenance", where + ": it is not gone before the window");
  require(may_use_pool(job, node.spec.pool), "P1", where + ": its queue and class may not use the pool");
  require(node.cpu <= node.spec.cpu_milli && node.memory <= node.spec.memory_mib, "P1",
          where + ": CPU or memory over capacity");
  require(std::max(node.nominated_cpu, std::int64_t{0}) <= node.spec.cpu_milli, "P1",
          where + ": promises over capacity");
  const TaskRequest& request = job.spec.groups[placement.group].request;
  for (const std::uint8_t index : placement.gpus) {
    const GpuView& gpu = node.gpus[index];
    require(gpu.healthy, "P1", where + ": the GPU is not healthy");
    require(gpu.bound <= kMilli, "P1", where + ": GPU over capacity");
    require(gpu.bound + gpu.nominated <= kMilli, "P5", where + ": takes a GPU that is promised to a claimant");
    require(placement.gpu_milli == kMilli || gpu.domain == queues_[job.queue].domain, "P11",
            where + ": shares a GPU with another trust domain");
    require(placement.gpu_milli < kMilli || gpu.sharers == 0, "P11", where + ": takes a GPU whole that is shared");
    require(request.gpu_models.empty() || job.spec.exclusive ||
                std::find(request.gpu_models.begin(), request.gpu_models.end(), models_[gpu.model]) !=
                    request.gpu_models.end(),
            "P2", where + ": not a GPU model it asked for");
  }
}

std::int64_t Checker::grace_ms(const JobView& job) const {
  return (job.spec.checkpoint.grace_s > 0 ? job.spec.checkpoint.grace_s : config_.scheduling.default_grace_s) * 1000;
}

bool Checker::is_replica(const JobView& job) const {
  const auto parent = jobs_.find(job.parent);
  return parent != jobs_.end() && parent->second.spec.kind == JobKind::kService;
}

// Whether a window of the node begins before the job, started now, is gone or has run its minimum and can be moved.
bool Checker::closed_to(const JobView& job, const NodeView& node) const {
  const bool moves = job.spec.checkpoint.on_signal || is_replica(job);
  const Timestamp begins = job.running ? job.started : now_;
  return std::any_of(node.windows.begin(), node.windows.end(), [&](const auto& window) {
    const auto& [from, to] = window;
    const bool gone = job.spec.time_limit_s > 0 && begins + job.spec.time_limit_s * 1000 <= from;
    return to > now_ && !gone && !(moves && now_ + config_.scheduling.min_runtime_s * 1000 + grace_ms(job) <= from);
  });
}

// Whether it is time for the job to leave for a window of one of its nodes.
bool Checker::departs(const JobView& job) const {
  for (std::size_t t = 0; t < job.placements.size(); ++t) {
    if (job.over[t]) continue;
    for (const auto& [from, to] : nodes_[job.placements[t].node.index()].windows) {
      const bool gone = job.spec.time_limit_s > 0 && job.started + job.spec.time_limit_s * 1000 <= from;
      if (!gone && from.ms - grace_ms(job) <= now_.ms) return true;
    }
  }
  return false;
}

// P13 for windows: who has to leave is asked to, but for replicas that their service cannot spare.
void Checker::check_departures() {
  for (const auto& [id, job] : jobs_) {
    const bool may_stay = !job.running || job.stopping() || is_replica(job);
    require(may_stay || !departs(job), "P13", text_of(id) + " runs on though a window begins");
  }
}

void Checker::check_max(const JobView& job, const Amounts& amounts) {
  for (std::uint32_t q = job.queue;; q = queues_[q].parent) {
    for (std::size_t d = 0; d < kDims; ++d) {
      if (amounts[d] == 0 || queues_[q].max[d] == kUnlimited) continue;
      require(queues_[q].usage[d] + amounts[d] <= queues_[q].max[d], "P4",
              text_of(job.id) + " raises queue '" + queues_[q].path + "' above its max");
    }
    if (q == 0) break;
  }
}

void Checker::check_no_life(JobId job, const char* when) {
  for (auto it = fleet_.executions().lower_bound(TaskKey{job, 0, 0, 0});
       it != fleet_.executions().end() && it->first.job == job; ++it) {
    if (it->second.phase == backend::Execution::Phase::kLive) {
      breach("P9", text_of(job) + " " + when + " while attempt " + std::to_string(it->first.attempt) + " task " +
                       std::to_string(it->first.task) + " lives");
    }
  }
}

void Checker::on(const AttemptStarted& event) {
  JobView* job = live(event.job, "a start");
  if (job == nullptr) return;
  count(event.attempt == 1 ? "started" : "started again");
  require(!job->running, "P2", text_of(event.job) + " starts while it runs");
  require(event.attempt == job->attempts + 1, "P9", "attempts of " + text_of(event.job) + " do not follow each other");
  require(!job->held && !job->cancelled && job->not_before <= now_ && dependencies_met(*job), "P6",
          text_of(event.job) + " starts though it is held, cancelled, too early or depends on another");
  check_no_life(event.job, "starts");
  check_counts(*job, event.placements);
  check_neighbours(*job, event.placements);
  if (violation_) return;
  job->held_nodes.clear();
  drop_nomination(*job);
  ChargeView one;
  one.amounts = amounts_of(event.placements);
  one.burst = in_burst(event.placements);
  if (one.burst) count("started in a burst pool");
  one.order = seq_;
  one.tasks = static_cast<std::uint32_t>(event.placements.size());
  one.since = now_;
  check_max(*job, one.amounts);
  require(event.within == within_of(*job, one), "P3",
          text_of(event.job) + " is marked within or borrowed against the stack of its queues");
  require(event.guaranteed == guaranteed(job->queue, event.within), "P3",
          text_of(event.job) + " is billed as guaranteed though it is not, or the reverse");
  count(event.guaranteed ? "within" : "borrowed");
  one.within = event.within;
  one.guaranteed = event.guaranteed;
  job->running = true;
  job->attempts = event.attempt;
  if (const auto parent = jobs_.find(job->parent); parent != jobs_.end()) {
    parent->second.attempts = std::max(parent->second.attempts, 1U);
  }
  job->started = now_;
  job->placements = event.placements;
  job->over.assign(event.placements.size(), false);
  job->began.assign(event.placements.size(), false);
  job->incarnations.assign(event.placements.size(), 1);
  job->shrinks = 0;
  job->over_count = 0;
  job->failed = false;
  for (const TaskPlacement& placement : event.placements) {
    bind(*job, placement, +1);
    check_place(*job, placement, true);
  }
  job->charges.push_back(one);
  charge(*job, one, 0, +1);
  if (job->spec.time_limit_s > 0) deadlines_.emplace(now_ + job->spec.time_limit_s * 1000, job->id);
}

void Checker::on(const AttemptGrown& event) {
  JobView* job = live_attempt(event.job, event.attempt, "growth");
  if (job == nullptr) return;
  count("grown");
  ChargeView one;
  one.amounts = amounts_of(event.placements);
  one.burst = in_burst(event.placements);
  one.order = seq_;
  one.first = static_cast<std::uint32_t>(job->placements.size());
  one.tasks = static_cast<std::uint32_t>(event.placements.size());
  one.since = now_;
  check_max(*job, one.amounts);
  require(event.within == within_of(*job, one), "P3", "growth is marked against the stack");
  require(event.guaranteed == guaranteed(job->queue, event.within), "P3",
          text_of(event.job) + " grows as guaranteed though it is not, or the reverse");
  check_neighbours(*job, event.placements);
  require(!job->stop, "P2", text_of(event.job) + " grows while it is asked to stop");
  one.within = event.within;
  one.guaranteed = event.guaranteed;
  for (const TaskPlacement& placement : event.placements) {
    job->placements.push_back(placement);
    job->over.push_back(false);
    job->began.push_back(false);
    job->incarnations.push_back(1 + job->shrinks);
    bind(*job, placement, +1);
    check_place(*job, placement, true);
  }
  check_counts(*job, job->placements);
  job->charges.push_back(one);
  charge(*job, one, static_cast<std::uint32_t>(job->charges.size() - 1), +1);
}

// Who is within at a queue loses that only to what a lowered guarantee leaves no room for, or to one that is within at
// the queue's child, as it is not itself.
void Checker::check_demotion(const JobView& job, const ChargeView& one, std::uint64_t within) {
  for (std::uint32_t q = job.queue, child = 0; q != 0; child = q, q = queues_[q].parent) {
    const QueueView& queue = queues_[q];
    const std::uint64_t bit = std::uint64_t{1} << queue.depth;
    if ((one.within & bit) == 0 || (within & bit) != 0) continue;
    count("demoted");
    bool exceeded = false;
    for (std::size_t d = 0; d < kDims; ++d) {
      if (queue.guaranteed.stated == 0 || queue.guaranteed.states(d))
        exceeded = exceeded || queue.within[d] > queue.guaranteed.amounts[d];
    }
    if (exceeded) continue;
    require(child != 0 && (within & bit << 1U) == 0, "P3", text_of(job.id) + " loses a guarantee it was within");
    contended_.insert(q);
  }
}

// Room goes to the oldest borrowed charge that fits into it; what was taken from another to who is within at the child.
void Checker::on(const ChargePromoted& event) {
  JobView* job = live_attempt(event.job, event.attempt, "a promotion");
  if (job == nullptr) return;
  ChargeView& one = job->charges[event.charge];
  check_demotion(*job, one, event.within);
  if ((event.within & ~one.within) != 0) count("promoted");
  for (std::uint32_t q = job->queue; q != 0; q = queues_[q].parent) {
    const QueueView& queue = queues_[q];
    const std::uint64_t bit = std::uint64_t{1} << queue.depth;
    if ((event.within & bit) == 0 || (one.within & bit) != 0) continue;
    require(!one.burst && fits_guarantee(queue, queue.within + queue.nominated, one.amounts), "P3",
            text_of(event.job) + " is promoted in '" + queue.path + "' without room");
    if (contended_.erase(q) == 1) {
      require(event.charge == 0 && q != job->queue && (event.within & bit << 1U) != 0, "P3",
              text_of(event.job) + " takes the room of another in '" + queue.path + "' and borrows below");
      continue;
    }
    for (const auto& [order, other, index] : queue.borrowed) {
      if (order >= one.order) break;
      const ChargeView& older = jobs_.at(other).charges[index];
      require(older.burst || !fits_guarantee(queue, queue.within + queue.nominated, older.amounts), "P3",
              text_of(event.job) + " is promoted in '" + queue.path + "' before the older " + text_of(other));
    }
  }
  require(event.guaranteed == guaranteed(job->queue, event.within), "P3",
          text_of(event.job) + " is promoted to guaranteed though it is not, or the reverse");
  book(*job, one);
  charge(*job, one, event.charge, -1);
  one.within = event.within;
  one.guaranteed = event.guaranteed;
  charge(*job, one, event.charge, +1);
}

void Checker::on(const TaskStarted& event) {
  JobView* job = live_attempt(event.job, event.attempt, "a task's start");
  if (job != nullptr && event.task < job->began.size()) job->began[event.task] = true;
}

void Checker::on(const TaskExited& event) {
  JobView* job = live_attempt(event.job, event.attempt, "a task's end");
  if (job == nullptr) return;
  count("task over: " + std::string(name_of(event.reason)));
  if (event.task >= job->over.size() || job->over[event.task])
    return breach("P9", "a task of " + text_of(event.job) + " ends twice");
  const auto execution = fleet_.executions().find({event.job, event.attempt, event.task, event.incarnation});
  require(execution == fleet_.executions().end() || execution->second.phase != backend::Execution::Phase::kLive, "P9",
          "a task of " + text_of(event.job) + " is taken for over while it lives");
  job->over[event.task] = true;
  ++job->over_count;
  on_notice_.erase(job->id);
  if (event.code != 0 && !job->gives_back(event.task)) {
    job->failed = true;
    failing_.insert(job->id);
  }
  if (job->over_count == job->over.size()) complete_.insert(job->id);
}

bool Checker::promised_elsewhere(JobId victim, JobId claimant) const {
  const auto found = jobs_.find(claimant);
  if (found == jobs_.end() || !found->second.nomination) return false;
  const auto& victims = found->second.nomination->victims;
  return std::find(victims.begin(), victims.end(), victim) != victims.end();
}

std::int64_t Checker::service_of(const JobView& job) const {
  std::int64_t service = job.past_service;
  for (const ChargeView& one : job.charges) service += one.amounts[kDimGpu] * (now_ - one.since);
  return service;
}

// The victim can save and has passed a threshold that the claimant has not, or the claimant was promoted. How long it
// waited in the line the checker does not know: at most since its submission, but for the time that it ran.
bool Checker::outserved(const JobView& victim, const JobView& claimant) const {
  const auto& order = queues_[victim.queue].attained_service;
  if (!order || victim.priority != claimant.priority || !victim.spec.checkpoint.on_signal) return false;
  const std::int64_t waited_ms = now_ - claimant.submitted - claimant.ran_ms;
  if (order->promote_after_s > 0 && waited_ms >= order->promote_after_s * 1000) return true;
  return std::any_of(order->thresholds_gpu_s.begin(), order->thresholds_gpu_s.end(), [&](std::int64_t gpu_s) {
    const std::int64_t threshold = gpu_s * kMilli * 1000;
    return service_of(victim) >= threshold && service_of(claimant) < threshold;
  });
}

std::int64_t Checker::minimum_ms(const JobView& victim) const {
  const SchedulingConfig& rules = config_.scheduling;
  return 1000 * (victim.evicted_last ? std::max(rules.min_runtime_s, rules.cooldown_s) : rules.min_runtime_s);
}

std::int64_t Checker::evictions_left() const {
  constexpr std::int64_t kHourMs = 3'600'000;
  const std::int64_t limit = config_.scheduling.evictions_per_hour;
  if (limit == 0) return kMostEvictionsPerHour;
  return limit -
         std::count_if(evictions_.begin(), evictions_.end(), [&](Timestamp when) { return now_ - when < kHourMs; });
}

void Checker::check_eviction(const JobView& victim, const StopBegan& event) {
  const std::string who = text_of(victim.id);
  if (!promised_elsewhere(victim.id, event.claimant)) return breach("P5", who + " is evicted without a nomination");
  if (event.keep == 0) {
    require(now_ - victim.started >= minimum_ms(victim), "P5", who + " is evicted before its minimum run time");
    require(evictions_left() > 0, "P5", who + " is one more than may be evicted within an hour");
    if (config_.scheduling.evictions_per_hour > 0) evictions_.push_back(now_);
  }
  const JobView& claimant = jobs_.at(event.claimant);
  require(claimant.claims_from <= now_, "P5",
          who + " is evicted for " + text_of(claimant.id) + ", which has just come to its own end");
  const StopCause justified = claimant.queue == victim.queue ? StopCause::kPreempt : StopCause::kReclaim;
  require(event.cause == justified, "P5",
          who + " is stopped by " + std::string(name_of(event.cause)) + ", and only " +
              std::string(name_of(justified)) + " could be right");
  if (claimant.queue == victim.queue) {
    const bool by_service = event.keep == 0 && outserved(victim, claimant);
    if (by_service) count("stop: outserved");
    const bool higher =
        victim.priority < claimant.priority || by_service || (event.keep > 0 && victim.priority == claimant.priority);
    require(higher && config_.scheduling.preempt, "P5",
            who + " is preempted by a job of no higher priority and no lower level");
    return;
  }
  require(config_.scheduling.reclaim, "P5", who + " is reclaimed though reclaim is off");
  const auto [mine, theirs] = siblings(claimant.queue, victim.queue);
  const std::uint32_t depth = queues_[theirs].depth;
  const bool borrowed =
      event.keep > 0 ? event.keep >= borrowed_from(victim, depth) : (victim.charges.front().within >> depth & 1U) == 0;
  require(borrowed, "P3", who + " is reclaimed though it is within at '" + queues_[theirs].path + "'");
  Amounts others = queues_[mine].within + queues_[mine].nominated;
  others -= claimant.nomination->amounts;
  for (const JobId id : claimant.nomination->victims) {  // those on the claimant's own side make room there, too
    const auto other = jobs_.find(id);
    if (other == jobs_.end()) continue;
    std::uint32_t above = other->second.queue;
    while (queues_[above].depth > queues_[mine].depth) above = queues_[above].parent;
    if (above != mine) continue;
    for (const ChargeView& one : other->second.charges) {
      if ((one.within >> queues_[mine].depth & 1U) == 0) continue;
      const std::uint32_t first = std::max(one.first, claimant.nomination->keeps.at(id));
      if (first >= one.first + one.tasks) continue;
      const auto tasks = other->second.placements.begin();
      others -= amounts_of({tasks + first, tasks + one.first + one.tasks});
    }
  }
  const bool by_share = event.keep > 0 && has_no_more(mine, theirs);
  if (by_share) count("stop: growth of who has more");
  require(
      by_share || fits_guarantee(queues_[mine], others, claimant.nomination->amounts), "P3",
      who + " is reclaimed for " + text_of(claimant.id) + ", which does not lie within '" + queues_[mine].path + "'");
}

// Whether what is bound and promised below the one is no more of the fleet, over the weight, than below the other.
bool Checker::has_no_more(std::uint32_t one, std::uint32_t other) const {
  const auto share = [&](std::uint32_t q) {
    const auto config = std::find_if(config_.queues.begin(), config_.queues.end(),
                                     [&](const QueueConfig& queue) { return queue.path == queues_[q].path; });
    std::array<std::int64_t, 3> there{};
    for (const NodeView& node : nodes_) {
      if (node.status == NodeStatus::kLost) continue;
      for (const GpuView& gpu : node.gpus) there[0] += gpu.healthy ? kMilli * weights_[gpu.model] : 0;
      there[1] += node.spec.cpu_milli;
      there[2] += node.spec.memory_mib;
    }
    const Amounts used = queues_[q].usage + queues_[q].nominated;
    const std::array<std::int64_t, 3> mine{used[kDimGpuEquivalent], used[kDimCpu], used[kDimMemory]};
    Fraction most{0, 1};
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const Fraction part{mine[i], checked_multiply(there[i], config->weight)};
      if (mine[i] > 0 && there[i] > 0 && most < part) most = part;
    }
    return most;
  };
  return !share(one).infinite() && !(share(other) < share(one));
}

void Checker::on(const StopBegan& event) {
  JobView* job = live_attempt(event.job, event.attempt, "a stop");
  if (job == nullptr) return;
  count("stop: " + std::string(name_of(event.cause)));
  require(!job->stop || (job->stop->keep > 0 && event.keep == 0), "P5", text_of(event.job) + " is stopped twice");
  shrinking_.erase(job->id);
  require(event.deadline >= now_, "P5", "a grace ends before it begins");
  switch (event.cause) {
    case StopCause::kReclaim:
    case StopCause::kPreempt:
      check_eviction(*job, event);
      if (event.keep == 0) on_notice_.insert(job->id);
      break;
    case StopCause::kDrain:
      require(std::any_of(job->placements.begin(), job->placements.end(),
                          [&](const TaskPlacement& placement) { return nodes_[placement.node.index()].draining; }),
              "P5", text_of(event.job) + " is drained from nodes that are not");
      check_disruption(*job);
      break;
    case StopCause::kSpotNotice:
      require(std::any_of(job->placements.begin(), job->placements.end(),
                          [&](const TaskPlacement& placement) {
                            const NodeView& node = nodes_[placement.node.index()];
                            return node.draining && node.gone_at.ms > 0 &&
                                   event.deadline <= std::max(now_, node.gone_at);
                          }),
              "P5", text_of(event.job) + " is given notice by no node, or more time than there is");
      break;
    case StopCause::kTimeLimit:
      require(job->spec.time_limit_s > 0 && job->started + job->spec.time_limit_s * 1000 <= now_, "P5",
              text_of(event.job) + " is stopped before its time limit");
      break;
    case StopCause::kUser:
      require(job->cancelled, "P5", text_of(event.job) + " is stopped by a user who did not ask");
      break;
    case StopCause::kTaskFailed:
      require(job->failed, "P5", text_of(event.job) + " is stopped for a failure that it did not have");
      break;
    case StopCause::kMaintenance:
      require(departs(*job), "P5", text_of(event.job) + " is stopped for maintenance that is not near");
      check_disruption(*job);
      break;
    case StopCause::kConsolidate:
    case StopCause::kNodeLost:
    case StopCause::kShrink:
      break;
  }
  if (event.keep > 0) check_shrink(*job, event);
  job->stop = StopView{event.cause, event.claimant, event.deadline, false, false, job->over_count, event.keep};
  deadlines_.emplace(event.deadline, job->id);
}

// The growth of a gang that lies outside the guarantee at that depth, and behind which nothing is within.
std::uint32_t Checker::borrowed_from(const JobView& job, std::uint32_t depth) {
  auto from = static_cast<std::uint32_t>(job.placements.size());
  for (std::size_t c = job.charges.size(); c-- > 1 && (job.charges[c].within >> depth & 1U) == 0;) {
    from = job.charges[c].first;
  }
  return from;
}

// A service that limits how many of its replicas may be away keeps the others while nodes are drained.
void Checker::check_disruption(const JobView& replica) {
  const auto service = jobs_.find(replica.parent);
  if (service == jobs_.end() || service->second.spec.max_unavailable == 0 || !replica.serves()) return;
  count("drain of a limited replica");
  require(away_of(service->second) < service->second.spec.max_unavailable, "P5",
          text_of(replica.id) + " is drained though as many replicas are away as its service allows");
}

std::int32_t Checker::away_of(const JobView& service) const {
  std::int32_t away = service.spec.groups.front().count;
  for (const auto& [id, other] : jobs_) {
    if (other.parent == service.id && other.serves()) --away;
  }
  return away;
}

// An update takes replicas that serve one after another, or as many at once as may be away.
void Checker::check_replacement(const JobView& replica) {
  const auto parent = jobs_.find(replica.parent);
  if (parent == jobs_.end() || parent->second.spec.kind != JobKind::kService || !replica.serves()) return;
  const JobView& service = parent->second;
  if (service.cancelled || replica.index >= service.spec.groups.front().count) return;
  count("replica replaced");
  require(away_of(service) < std::max(1, service.spec.max_unavailable), "P5",
          text_of(replica.id) + " is replaced though as many replicas are away as its service allows");
}

void Checker::on(const ServiceUpdated& event) {
  JobView* job = live(event.job, "an update");
  if (job == nullptr) return;
  count("service updated");
  job->spec = event.spec;
  job->priority = event.priority;
  if (event.key.empty()) return;
  const auto [known, fresh] = answered_.try_emplace({event.spec.user, event.key}, event.job);
  require(fresh, "P8", "key '" + event.key + "' made " + text_of(event.job) + " and " + text_of(known->second));
}

// Every group keeps its least count.
void Checker::check_shrink(const JobView& victim, const StopBegan& event) {
  count("asked to shrink");
  shrinking_.insert(victim.id);
  if (event.keep >= victim.placements.size())
    return breach("P5", text_of(victim.id) + " is asked to give back nothing");
  check_counts(victim, {victim.placements.begin(), victim.placements.begin() + event.keep});
}

void Checker::on(const AttemptShrunk& event) {
  JobView* job = live_attempt(event.job, event.attempt, "a shrink");
  if (job == nullptr) return;
  count("shrunk");
  if (!job->stop || job->stop->keep != event.keep || event.keep == 0) {
    return breach("P5", text_of(event.job) + " shrinks to what nobody asked");
  }
  for (std::size_t t = event.keep; t < job->over.size(); ++t) {
    require(job->over[t], "P9", text_of(event.job) + " gives back a task that is not over");
  }
  for (std::size_t c = job->charges.size(); c-- > 0;) {
    ChargeView& one = job->charges[c];
    if (one.first + one.tasks <= event.keep) break;
    book(*job, one);
    charge(*job, one, static_cast<std::uint32_t>(c), -1);
    if (one.first >= event.keep) {
      job->charges.pop_back();
      continue;
    }
    one.tasks = event.keep - one.first;
    const std::vector<TaskPlacement> rest{job->placements.begin() + one.first, job->placements.begin() + event.keep};
    one.amounts = amounts_of(rest);
    one.burst = in_burst(rest);
    charge(*job, one, static_cast<std::uint32_t>(c), +1);
  }
  for (std::size_t t = event.keep; t < job->placements.size(); ++t) bind(*job, job->placements[t], -1);
  job->over_count -= static_cast<std::uint32_t>(job->over.size() - event.keep);
  job->placements.resize(event.keep);
  job->over.resize(event.keep);
  job->began.resize(event.keep);
  job->incarnations.resize(event.keep);
  job->stop.reset();
  ++job->shrinks;
  shrinking_.erase(job->id);
}

void Checker::on(const StopCancelled& event) {
  JobView* job = live_attempt(event.job, event.attempt, "a let-off");
  if (job == nullptr) return;
  count("let off");
  require(
      job->stopping() && !job->stop->forced && !job->stop->acknowledged && job->over_count == job->stop->over_before,
      "P5", text_of(event.job) + " is let off though it has begun to leave");
  job->stop.reset();
  on_notice_.erase(job->id);
  if (job->spec.time_limit_s > 0) deadlines_.emplace(job->started + job->spec.time_limit_s * 1000, job->id);
}

void Checker::on(const StopForced& event) {
  JobView* job = live_attempt(event.job, event.attempt, "a kill");
  if (job == nullptr) return;
  count("forced");
  if (!job->stop) return breach("P5", text_of(event.job) + " is killed without having been asked to stop");
  const bool loses_node = std::any_of(job->placements.begin(), job->placements.end(), [&](const auto& placement) {
    const Timestamp gone_at = nodes_[placement.node.index()].gone_at;
    return gone_at.ms > 0 && gone_at <= now_;
  });
  require(job->stop->acknowledged || job->stop->deadline <= now_ || loses_node, "P5",
          text_of(event.job) + " is killed within its grace");
  job->stop->forced = true;
  on_notice_.erase(job->id);
}

void Checker::on(const CheckpointReported& event) {
  JobView* job = live_attempt(event.job, event.attempt, "a checkpoint");
  if (job == nullptr) return;
  count("checkpoint");
  if (job->stop) job->stop->acknowledged = true;
  on_notice_.erase(job->id);
}

// A short run that ended by itself makes it wait sixteen times 1 s, 2 s, 4 s ... 5 min before it may stop others.
void Checker::note_own_end(JobView& job) {
  const bool was_long = now_ - job.started >= 600'000;
  job.own_ends = was_long ? 1 : job.own_ends + 1;
  const std::int64_t pause_ms = std::min<std::int64_t>(300'000, std::int64_t{1000} << std::min(job.own_ends - 1, 16));
  job.claims_from = was_long ? Timestamp() : now_ + 16 * pause_ms;
}

void Checker::on(const AttemptEnded& event) {
  JobView* job = live_attempt(event.job, event.attempt, "an end");
  if (job == nullptr) return;
  count("ended: " + std::string(name_of(event.outcome)));
  require(job->over_count == job->over.size(), "P9", text_of(event.job) + " ends before its tasks");
  check_no_life(event.job, "ends");
  for (std::uint32_t c = 0; c < job->charges.size(); ++c) {
    book(*job, job->charges[c]);
    charge(*job, job->charges[c], c, -1);
  }
  for (const TaskPlacement& placement : job->placements) bind(*job, placement, -1);
  if (event.outcome == Outcome::kFailed || event.outcome == Outcome::kStartFailed) ++job->failures;
  job->evicted_last = job->stopping() && evicts_for_claimant(job->stop->cause);
  if (job->stopping() && !job->cancelled) {
    require(!evicts_for_claimant(job->stop->cause) || event.outcome == Outcome::kPreempted, "P5",
            text_of(event.job) + " was evicted but ends as " + std::string(name_of(event.outcome)));
  }
  job->ran_ms += now_ - job->started;
  if (event.outcome != Outcome::kPreempted && event.outcome != Outcome::kNodeLost) note_own_end(*job);
  job->running = false;
  job->placements.clear();
  job->charges.clear();
  job->over.clear();
  job->over_count = 0;
  job->stop.reset();
  complete_.erase(job->id);
  failing_.erase(job->id);
  shrinking_.erase(job->id);
  on_notice_.erase(job->id);
}

void Checker::on(const JobRequeued& event) {
  JobView* job = live(event.job, "a requeue");
  if (job == nullptr) return;
  require(!job->running, "P9", text_of(event.job) + " is requeued while it runs");
  job->not_before = event.not_before;
}

void Checker::on(const JobFinished& event) {
  JobView* job = live(event.job, "an end");
  if (job == nullptr) return;
  count("finished: " + std::string(name_of(event.outcome)));
  require(!job->running, "P9", text_of(event.job) + " is finished while it runs");
  const bool failed = event.outcome == Outcome::kFailed || event.outcome == Outcome::kStartFailed;
  const bool parent = job->spec.kind == JobKind::kArray || job->spec.kind == JobKind::kService;
  require(!failed || parent || job->failures > job->spec.retries, "P8",
          text_of(event.job) + " is given up with retries left");
  require(event.outcome != Outcome::kPreempted && event.outcome != Outcome::kNodeLost, "P8",
          text_of(event.job) + " is given up though it was interrupted through no fault of its own");
  require(event.outcome != Outcome::kCancelled || job->cancelled, "P8", text_of(event.job) + " is cancelled by nobody");
  drop_nomination(*job);
  cancelling_.erase(event.job);
  finished_.emplace(event.job, event.outcome);
  jobs_.erase(event.job);
}

bool Checker::dependencies_met(const JobView& job) const {
  return std::all_of(job.spec.dependencies.begin(), job.spec.dependencies.end(), [&](const Dependency& dependency) {
    const auto other = jobs_.find(dependency.job);
    if (other != jobs_.end()) return dependency.kind == DependencyKind::kAfter && other->second.attempts > 0;
    const auto done = finished_.find(dependency.job);
    return done != finished_.end() &&
           (dependency.kind != DependencyKind::kAfterOk || done->second == Outcome::kSucceeded);
  });
}

}  // namespace berth::sim
