// Checks which jobs may be evicted for which: reclaim, preemption, scale-down, drains and updates.

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "sim/world/checker.h"

namespace berth::sim {

bool Checker::nominated_elsewhere(JobId victim, JobId preemptor) const {
  const auto found = jobs_.find(preemptor);
  if (found == jobs_.end() || !found->second.nomination) return false;
  const auto& victims = found->second.nomination->victims;
  return std::find(victims.begin(), victims.end(), victim) != victims.end();
}

std::int64_t Checker::service_of(const JobView& job) const {
  std::int64_t service = job.past_service;
  for (const ChargeView& one : job.charges) service += one.amounts[kDimGpu] * (now_ - one.since);
  return service;
}

// Returns true if the victim can save and has passed a threshold that the preemptor has not, or if the preemptor was
// promoted. The checker does not know exactly how long the preemptor has waited: at most since its submission, minus
// its run time.
bool Checker::outserved(const JobView& victim, const JobView& preemptor) const {
  const auto& order = queues_[victim.queue].attained_service;
  if (!order || victim.priority != preemptor.priority || !victim.spec.checkpoint.on_signal) return false;
  const std::int64_t waited_ms = now_ - preemptor.submitted - preemptor.ran_ms;
  if (order->promote_after_s > 0 && waited_ms >= order->promote_after_s * 1000) return true;
  return std::any_of(order->thresholds_gpu_s.begin(), order->thresholds_gpu_s.end(), [&](std::int64_t gpu_s) {
    const std::int64_t threshold = gpu_s * kMilli * 1000;
    return service_of(victim) >= threshold && service_of(preemptor) < threshold;
  });
}

std::int64_t Checker::minimum_ms(const JobView& victim) const {
  const EvictionTermsConfig& terms = queues_[victim.queue].eviction;
  const std::int64_t cooldown_s = victim.evicted_last ? *terms.cooldown_s : 0;
  return 1000 * std::max(*terms.min_runtime_s, cooldown_s);
}

namespace {

// Returns what is left of `limit` within the last hour; a limit of 0 means none.
std::int64_t left_of(std::int64_t limit, const std::vector<Timestamp>& evictions, Timestamp now) {
  constexpr std::int64_t kHourMs = 3'600'000;
  if (limit == 0) return kMostEvictionsPerHour;
  return limit -
         std::count_if(evictions.begin(), evictions.end(), [&](Timestamp when) { return now - when < kHourMs; });
}

// A cancelled eviction no longer counts.
void forget(std::vector<Timestamp>& evictions, Timestamp when) {
  const auto one = std::find(evictions.begin(), evictions.end(), when);
  if (one != evictions.end()) evictions.erase(one);
}

}  // namespace

std::int64_t Checker::evictions_left() const {
  return left_of(config_.scheduling.evictions_per_hour, evictions_, now_);
}

std::int64_t Checker::evictions_left_below(std::uint32_t queue) const {
  return left_of(queues_[queue].eviction.evictions_per_hour, queues_[queue].evictions, now_);
}

// Checks the rate of the cluster and of each queue on the path to the root.
void Checker::check_rates(const JobView& victim) {
  const std::string who = text_of(victim.id);
  require(evictions_left() > 0, "P5", who + " is one more than may be evicted within an hour");
  if (config_.scheduling.evictions_per_hour > 0) evictions_.push_back(now_);
  for (std::uint32_t q = victim.queue; q != 0; q = queues_[q].parent) {
    if (queues_[q].eviction.evictions_per_hour == 0) continue;
    count("stop: counted by a queue");
    require(evictions_left_below(q) > 0, "P5",
            who + " is one more than '" + queues_[q].path + "' lets go within an hour");
    queues_[q].evictions.push_back(now_);
  }
}

void Checker::check_eviction(const JobView& victim, const StopBegan& event) {
  const std::string who = text_of(victim.id);
  if (!nominated_elsewhere(victim.id, event.preemptor)) return breach("P5", who + " is evicted without a nomination");
  if (event.keep == 0) {
    require(now_ - victim.runs_since >= minimum_ms(victim), "P5", who + " is evicted before its minimum run time");
    check_rates(victim);
  }
  const JobView& preemptor = jobs_.at(event.preemptor);
  require(preemptor.evicts_from <= now_, "P5",
          who + " is evicted for " + text_of(preemptor.id) + ", which has just come to its own end");
  require(preemptor.lost_nominations_from <= now_, "P5",
          who + " is evicted for " + text_of(preemptor.id) + ", which has lost promises again and again");
  const StopCause justified = preemptor.queue == victim.queue ? StopCause::kPreempt : StopCause::kReclaim;
  require(event.cause == justified, "P5",
          who + " is stopped by " + std::string(name_of(event.cause)) + ", and only " +
              std::string(name_of(justified)) + " could be right");
  if (preemptor.queue == victim.queue) {
    const bool by_service = event.keep == 0 && outserved(victim, preemptor);
    if (by_service) count("stop: outserved");
    const bool higher =
        victim.priority < preemptor.priority || by_service || (event.keep > 0 && victim.priority == preemptor.priority);
    require(higher && config_.scheduling.preempt, "P5",
            who + " is preempted by a job of no higher priority and no lower level");
    return;
  }
  require(config_.scheduling.reclaim, "P5", who + " is reclaimed though reclaim is off");
  const auto [mine, theirs] = siblings(preemptor.queue, victim.queue);
  const std::uint32_t depth = queues_[theirs].depth;
  const bool borrowed =
      event.keep > 0 ? event.keep >= borrowed_from(victim, depth) : (victim.charges.front().within >> depth & 1U) == 0;
  require(borrowed, "P3", who + " is reclaimed though it is within at '" + queues_[theirs].path + "'");
  const bool by_share = event.keep > 0 && has_no_more(mine, theirs);
  if (by_share) count("stop: growth of who has more");
  require(
      by_share || within_guarantee(mine, preemptor), "P3",
      who + " is reclaimed for " + text_of(preemptor.id) + ", which does not lie within '" + queues_[mine].path + "'");
}

// Returns what other jobs use of the guarantee of the queue when the victims of the preemptor have left. If the
// preemptor is within at the child, it displaces charges that are within here and borrow at their child. Then these do
// not count, and of the child only as much counts as fits beside the preemptor.
Amounts Checker::others_within(std::uint32_t queue, const JobView& preemptor,
                               std::optional<std::uint32_t> child) const {
  const Amounts& asked = preemptor.nomination->amounts;
  const auto nominated_to_others = [&](std::uint32_t q) {
    const bool own = (preemptor.nomination->within >> queues_[q].depth & 1U) != 0;
    return own ? queues_[q].nominated_within - asked : queues_[q].nominated_within;
  };
  Amounts others = nominated_to_others(queue);
  Amounts of_child;
  if (child) of_child = nominated_to_others(*child);
  const std::uint32_t depth = queues_[queue].depth;
  for (const auto& [id, other] : jobs_) {
    std::uint32_t way = other.queue, below = other.queue;
    for (; queues_[way].depth > depth; way = queues_[way].parent) below = way;
    if (way != queue) continue;
    const auto victim = preemptor.nomination->keeps.find(id);
    for (const ChargeView& one : other.charges) {
      const bool idle = other.queue != queue && (one.within >> (depth + 1) & 1U) == 0;
      if ((one.within >> depth & 1U) == 0 || (child && idle)) continue;
      std::uint32_t stay = one.first + one.tasks;
      if (victim != preemptor.nomination->keeps.end()) stay = std::min(stay, victim->second);
      if (stay <= one.first) continue;
      const auto tasks = other.placements.begin();
      const Amounts amounts = amounts_of({tasks + one.first, tasks + stay});
      others += amounts;
      if (child && below == *child) of_child += amounts;
    }
  }
  if (!child) return others;
  for (std::size_t dim = 0; dim < kDims; ++dim) {
    const QuotaAmounts& guaranteed = queues_[*child].guaranteed;
    const std::int64_t fits = guaranteed.amounts[dim] - asked[dim];
    if (guaranteed.states(dim) && asked[dim] > 0) others[dim] -= std::max<std::int64_t>(of_child[dim] - fits, 0);
  }
  return others;
}

// Returns true if the preemptor will be within the guarantee of `side`, worked out from its own queue upwards.
bool Checker::within_guarantee(std::uint32_t side, const JobView& preemptor) const {
  std::optional<std::uint32_t> child;
  for (std::uint32_t queue = preemptor.queue;; queue = queues_[queue].parent) {
    const Amounts& asked = preemptor.nomination->amounts;
    const bool within = fits_guarantee(queues_[queue], others_within(queue, preemptor, child), asked);
    if (queue == side) return within;
    child = within ? std::optional(queue) : std::nullopt;
  }
}

// Returns true if queue `one` has no larger share of the fleet over its weight than `other`, bound and nominated.
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
    case StopCause::kConsolidate:
      // The grace that was used before an eviction was cancelled is recovered as time passes.
      job->grace_used_ms =
          std::max<std::int64_t>(0, std::min(job->grace_used_ms, grace_ms(*job)) - (now_ - job->cancel_eviction));
      job->cancel_eviction = now_;
      require(event.deadline == now_ + std::max<std::int64_t>(0, grace_ms(*job) - job->grace_used_ms), "P5",
              text_of(event.job) + " is given another grace than it has left");
      if (event.cause == StopCause::kConsolidate)
        check_move(*job, event);
      else
        check_eviction(*job, event);
      if (event.keep == 0 && event.cause != StopCause::kConsolidate)
        on_notice_.insert(job->id);  // a move is never cancelled
      break;
    case StopCause::kMove:
      check_order(*job, event);
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
    case StopCause::kNodeLost:
    case StopCause::kShrink:
      break;
  }
  if (event.keep > 0) check_shrink(*job, event);
  job->stop = StopView{event.cause, event.preemptor, now_, event.deadline, false, false, job->over_count, event.keep};
  deadlines_.emplace(event.deadline, job->id);
}

// Checks a consolidation: the job loses no work, it does not move for a job of lower priority, and the rate is kept.
void Checker::check_move(const JobView& job, const StopBegan& event) {
  const std::string who = text_of(job.id);
  if (!nominated_elsewhere(job.id, event.preemptor)) return breach("P5", who + " moves for nobody");
  const JobView& preemptor = jobs_.at(event.preemptor);
  const auto parent = jobs_.find(job.parent);
  const bool replica = parent != jobs_.end() && parent->second.spec.kind == JobKind::kService;
  require(event.keep == 0 && (job.spec.checkpoint.on_signal || replica), "P5", who + " moves and loses its work");
  if (replica) check_disruption(job);
  require(now_ - job.runs_since >= minimum_ms(job), "P5", who + " moves before its minimum run time");
  require(!job.moved || now_ - job.started >= 3'600'000, "P5", who + " moves again within an hour");
  require(job.priority <= preemptor.priority, "P5", who + " moves for a job of lower priority");
  constexpr std::int64_t kHourMs = 3'600'000;
  require(std::count_if(moves_.begin(), moves_.end(), [&](Timestamp when) { return now_ - when < kHourMs; }) <
              config_.scheduling.consolidations_per_hour,
          "P5", who + " is one more than may move within an hour");
  if (config_.scheduling.consolidations_per_hour > 0) moves_.push_back(now_);
  std::int64_t moved = 0;
  std::int64_t started = 0;
  for (const JobId id : preemptor.nomination->victims) moved += gpu_milli_of(jobs_.at(id).placements);
  started = gpu_milli_of(preemptor.nomination->placements);
  require(moved <= started, "P5", "more GPUs move for " + text_of(preemptor.id) + " than it starts on");
}

// Checks the order to move: the job runs, is not interactive, and loses no work unless the order allows it.
void Checker::on(const MoveOrdered& event) {
  JobView* job = live_attempt(event.job, event.attempt, "an order to move");
  if (job == nullptr) return;
  count(event.lose_work ? "move: ordered, work or not" : "move: ordered");
  const std::string who = text_of(event.job);
  require(!event.off.empty(), "P5", who + " is ordered to leave no node");
  require(!job->stop && !job->cancelled && job->over_count == 0, "P5",
          who + " is ordered to move though it is leaving");
  require(job->spec.kind != JobKind::kInteractive, "P5", who + " is interactive and is ordered to move");
  require(event.lose_work || job->spec.checkpoint.on_signal || is_replica(*job), "P5",
          who + " is ordered to move and loses its work");
  const bool any_here = std::any_of(job->placements.begin(), job->placements.end(), [&](const TaskPlacement& one) {
    return std::find(event.off.begin(), event.off.end(), one.node) != event.off.end();
  });
  require(any_here, "P5", who + " is ordered to leave nodes that it is not on");
  job->ordered_off = event.off;
}

// Checks a stop by an order to move. No rate and no minimum run time applies, and there is no preemptor.
void Checker::check_order(const JobView& job, const StopBegan& event) {
  const std::string who = text_of(job.id);
  require(!job.ordered_off.empty(), "P5", who + " is asked to move by nobody");
  require(event.keep == 0 && !event.preemptor.valid(), "P5", who + " moves by order, and for somebody");
  require(event.deadline == now_ + grace_ms(job), "P5", who + " is given another grace than its own to move");
  check_disruption(job);
}

// Checks the new places of a move: same pool, no planned maintenance, no node that it was ordered to leave, and within
// the same guarantees as now.
void Checker::check_moves_to(JobView& job, const std::vector<TaskPlacement>& to) {
  const std::string who = text_of(job.id);
  for (const TaskPlacement& placement : to) {
    const NodeView& node = nodes_[placement.node.index()];
    const bool same_pool = std::any_of(job.placements.begin(), job.placements.end(), [&](const TaskPlacement& one) {
      return nodes_[one.node.index()].spec.pool == node.spec.pool;
    });
    require(same_pool, "P5", who + " moves out of its pool");
    require(!node.cordoned && node.windows.empty(), "P5",
            who + " moves to " + node.spec.name + ", which takes no tasks or for which maintenance is planned");
    require(std::find(job.ordered_off.begin(), job.ordered_off.end(), placement.node) == job.ordered_off.end(), "P5",
            who + " moves to " + node.spec.name + ", which it was ordered to leave");
  }
  for (std::uint32_t c = 0; c < job.charges.size(); ++c) charge(job, job.charges[c], c, -1);
  ChargeView there;
  there.amounts = amounts_of(to);
  there.burst = in_burst(to);
  const std::uint64_t within = within_of(job, there, job.charges.front().within);
  for (std::uint32_t c = 0; c < job.charges.size(); ++c) charge(job, job.charges[c], c, +1);
  require((job.charges.front().within & ~within) == 0, "P3", who + " is within where it runs, and not where it moves");
}

std::int64_t Checker::gpu_milli_of(std::span<const TaskPlacement> placements) {
  std::int64_t milli = 0;
  for (const TaskPlacement& one : placements) milli += static_cast<std::int64_t>(one.gpus.size()) * one.gpu_milli;
  return milli;
}

// Checks that the new places are free now, beside everything that runs or is nominated.
void Checker::on(const MoveNominated& event) {
  JobView* job = live_attempt(event.job, event.attempt, "a move");
  if (job == nullptr) return;
  count("move");
  if (!job->stop || !is_move(job->stop->cause) || !job->stop->to.empty())
    return breach("P5", text_of(event.job) + " is promised places without having been asked to move");
  check_counts(*job, event.placements);
  if (violation_) return;
  check_moves_to(*job, event.placements);
  job->stop->to = event.placements;
  for (const TaskPlacement& placement : event.placements) promise(placement, +1);
  for (const TaskPlacement& placement : event.placements) {
    const NodeView& node = nodes_[placement.node.index()];
    require(node.status == NodeStatus::kReady, "P5", text_of(event.job) + " moves to a node that is not ready");
    require(node.cpu + node.nominated_cpu <= node.spec.cpu_milli &&
                node.memory + node.nominated_memory <= node.spec.memory_mib,
            "P5", text_of(event.job) + " moves to " + node.spec.name + ", where it does not fit");
    for (const std::uint8_t gpu : placement.gpus) {
      require(node.gpus[gpu].bound + node.gpus[gpu].nominated <= kMilli, "P5",
              text_of(event.job) + " moves to a GPU of " + node.spec.name + " that is not free");
    }
  }
}

void Checker::drop_move(JobView& job) {
  if (!job.stop) return;
  for (const TaskPlacement& placement : job.stop->to) promise(placement, -1);
  job.stop->to.clear();
}

// Returns the first scaled-up task that is borrowed at that depth and has no later charge within.
std::uint32_t Checker::borrowed_from(const JobView& job, std::uint32_t depth) {
  auto from = static_cast<std::uint32_t>(job.placements.size());
  for (std::size_t c = job.charges.size(); c-- > 1 && (job.charges[c].within >> depth & 1U) == 0;) {
    from = job.charges[c].first;
  }
  return from;
}

// Checks that a drain leaves a service the replicas that max_unavailable requires.
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

// Checks that an update replaces serving replicas one by one, or as many at once as max_unavailable allows.
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

// Checks that every group keeps its min_count.
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
  job->grace_used_ms += now_ - job->stop->began;
  job->cancel_eviction = now_;
  require(!is_move(job->stop->cause), "P5", text_of(event.job) + " moves and is let off");
  forget(evictions_, job->stop->began);
  for (std::uint32_t q = job->queue; q != 0; q = queues_[q].parent) forget(queues_[q].evictions, job->stop->began);
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

}  // namespace berth::sim
