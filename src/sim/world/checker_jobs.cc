// Folds the events of jobs, and checks what each of them may not break.

#include <algorithm>

#include "sim/world/checker.h"

namespace berth::sim {

namespace {

bool evicts_for_preemptor(StopCause cause) { return cause == StopCause::kReclaim || cause == StopCause::kPreempt; }

// Returns how many tasks of the victim stay.
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
  if (!job.spec.ports.empty() || !job.spec.anti_affinity.empty()) with_rules_.insert(event.job);
  jobs_.emplace(event.job, std::move(job));
}

// The next number is above all that a forgotten log may have given.
void Checker::on(const LogRestored& event) {
  count("restored");
  require(event.next_job.value() > last_job_.value() + 5'000'000, "P8", "a restored log gives numbers again");
  last_job_ = JobId(event.next_job.value() - 1);
}

void Checker::on(const JobHoldChanged& event) {
  count("hold");
  JobView* job = live(event.job, "a hold");
  if (job == nullptr) return;
  job->held = event.held;
  if (job->held) drop_reservation(*job);
}
void Checker::on(const JobPriorityChanged& event) {
  if (JobView* job = live(event.job, "a priority")) job->priority = event.priority;
}
void Checker::on(const JobCancelRequested& event) {
  count("cancel");
  if (JobView* job = live(event.job, "a cancel")) {
    if (event.user == "berth") check_replacement(*job);  // jobs that a user cancels are not replacements
    job->cancelled = true;
    cancelling_.insert(job->id);
  }
}

// Checks the proof that the preemptor fits when its victims have left.
void Checker::on(const Nominated& event) {
  JobView* job = live(event.job, "a nomination");
  if (job == nullptr) return;
  count("nominated");
  require(!job->running && !job->nomination, "P5", text_of(event.job) + " is promised a place though it has one");
  const bool moved = event.victims.empty() && is_move(event.cause);
  if (moved) count("move: promised again (" + std::string(name_of(event.cause)) + ")");
  require(!event.victims.empty() || (moved && event.placements == job->moved_to), "P5",
          text_of(event.job) + " is promised a place without victims, and has not moved");
  job->moved_to.clear();
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
    if (moved) break;  // these places were kept since the order to move; other jobs may be nominated beside them by now
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
  job->nomination =
      NominationView{event.placements, event.victims, amounts_of(event.placements), {}, event.cause, event.within};
  for (const JobId victim : event.victims) {
    job->nomination->keeps[victim] = static_cast<std::uint32_t>(kept(event, victim));
  }
  drop_reservation(*job);
  promise_of_queues(*job, +1);
  check_kept_room(*job);
}

// Checks that room is kept in exactly those guarantees that the preemptor will be within when its victims have left.
void Checker::check_kept_room(const JobView& job) {
  if (job.nomination->victims.empty() || is_move(job.nomination->cause) || in_burst(job.nomination->placements)) return;
  std::optional<std::uint32_t> child;
  for (std::uint32_t q = job.queue; q != 0; q = queues_[q].parent) {
    const bool kept = (job.nomination->within >> queues_[q].depth & 1U) != 0;
    if (!kept) count("promised and will borrow");
    const bool within_guarantee = fits_guarantee(queues_[q], others_within(q, job, child), job.nomination->amounts);
    require(kept || !within_guarantee, "P3",
            "no room is kept in '" + queues_[q].path + "' for " + text_of(job.id) + ", which will lie within there");
    require(!kept || within_guarantee, "P3",
            "room is kept in '" + queues_[q].path + "' for " + text_of(job.id) + ", which will borrow there");
    child = kept ? std::optional(q) : std::nullopt;
  }
}

void Checker::on(const NominationDropped& event) {
  count("nomination dropped");
  JobView* job = live(event.job, "a dropped nomination");
  if (job == nullptr) return;
  drop_nomination(*job);
  // The first lost nomination has no effect. Later ones forbid the job to evict for 10 s, 20 s, 40 s ...
  if (++job->lost_nominations < 2) return;
  job->lost_nominations_from = now_ + (std::int64_t{10'000} << std::min(job->lost_nominations - 2, 20));
}

void Checker::on(const ReservationMade& event) {
  count("start held");
  JobView* job = live(event.job, "a held start");
  if (job == nullptr) return;
  require(!job->running && !job->nomination, "P5", "a start is held for " + text_of(event.job) + ", which has places");
  require(event.start >= now_, "P5", "a start is held for " + text_of(event.job) + " in the past");
  check_counts(*job, event.placements);
  drop_reservation(*job);
  for (const TaskPlacement& placement : event.placements) job->held_nodes.insert(placement.node.index());
  holders_.insert(event.job);
  job->reserved_start = event.start;
}

void Checker::on(const ReservationDropped& event) {
  count("held start dropped");
  if (JobView* job = live(event.job, "a dropped hold")) drop_reservation(*job);
}

// Jobs that only this reservation kept waiting have to be tried again.
void Checker::drop_reservation(JobView& job) {
  if (job.held_nodes.empty()) return;
  job.held_nodes.clear();
  holders_.erase(job.id);
  less_is_kept_ = true;
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
  job->lost_nominations = 0;
  job->lost_nominations_from = {};
  check_no_life(event.job, "starts");
  check_counts(*job, event.placements);
  check_affinity_rules(*job, event.placements);
  if (violation_) return;
  drop_reservation(*job);
  const std::uint64_t stood = job->nomination && job->nomination->has_moved() ? job->stood : 0;
  const bool room_is_kept = job->nomination && guaranteed(job->queue, job->nomination->within);
  drop_nomination(*job);
  ChargeView one;
  one.amounts = amounts_of(event.placements);
  one.burst = in_burst(event.placements);
  if (one.burst) count("started in a burst pool");
  one.order = seq_;
  one.tasks = static_cast<std::uint32_t>(event.placements.size());
  one.since = now_;
  check_max(*job, one.amounts);
  require(event.within == within_of(*job, one, stood), "P3",
          text_of(event.job) + " is marked within or borrowed against the stack of its queues");
  if ((stood & ~event.within & ~std::uint64_t{1}) != 0) count("move: stands lower than before");
  require(event.guaranteed == guaranteed(job->queue, event.within), "P3",
          text_of(event.job) + " is billed as guaranteed though it is not, or the reverse");
  count(event.guaranteed ? "within" : "borrowed");
  check_budgets_allow(*job, event.guaranteed || room_is_kept);
  one.within = event.within;
  one.guaranteed = event.guaranteed;
  job->running = true;
  job->attempts = event.attempt;
  if (const auto parent = jobs_.find(job->parent); parent != jobs_.end()) {
    parent->second.attempts = std::max(parent->second.attempts, 1U);
  }
  constexpr std::int64_t kAtOnceMs = 10'000;  // a job that waits longer has lost the places to which it was to move
  if (job->moved && now_ - *job->moved > kAtOnceMs) {
    job->moved.reset();
    job->evicted_last = false;
  }
  if (!job->moved) job->runs_since = now_;
  job->started = now_;
  job->placements = event.placements;
  job->over.assign(event.placements.size(), false);
  job->began.assign(event.placements.size(), false);
  job->incarnations.assign(event.placements.size(), 1);
  job->shrinks = 0;
  job->grace_used_ms = 0;
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
  check_budgets_allow(*job, event.guaranteed);
  check_affinity_rules(*job, event.placements);
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

// Checks that a charge leaves a guarantee only for one of three causes: the guarantee was lowered below its usage; it
// no longer covers the charge's resources; or a charge that is within at the child of the queue takes the room, while
// this one borrows there.
void Checker::check_demotion(const JobView& job, const ChargeView& one, std::uint64_t within) {
  for (std::uint32_t q = job.queue, child = 0; q != 0; child = q, q = queues_[q].parent) {
    const QueueView& queue = queues_[q];
    const std::uint64_t bit = std::uint64_t{1} << queue.depth;
    if ((one.within & bit) == 0 || (within & bit) != 0) continue;
    count("demoted");
    bool exceeded = !is_of(queue.guaranteed, one.amounts);
    for (std::size_t d = 0; d < kDims; ++d) {
      if (queue.guaranteed.stated == 0 || queue.guaranteed.states(d))
        exceeded = exceeded || queue.within[d] > queue.guaranteed.amounts[d];
    }
    if (exceeded) continue;
    require(child != 0 && (within & bit << 1U) == 0, "P3", text_of(job.id) + " loses a guarantee it was within");
    contended_.insert(q);
  }
}

// Checks promotions. Free room goes to the oldest borrowed charge that fits. Room that was taken from another charge
// goes to a charge that is within at the child.
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
    require(!one.burst && fits_guarantee(queue, queue.within + queue.nominated_within, one.amounts), "P3",
            text_of(event.job) + " is promoted in '" + queue.path + "' without room");
    if (contended_.erase(q) == 1) {
      require(event.charge == 0 && q != job->queue && (event.within & bit << 1U) != 0, "P3",
              text_of(event.job) + " takes the room of another in '" + queue.path + "' and borrows below");
      continue;
    }
    for (const auto& [order, other, index] : queue.borrowed) {
      if (order >= one.order) break;
      const ChargeView& older = jobs_.at(other).charges[index];
      require(older.burst || !fits_guarantee(queue, queue.within + queue.nominated_within, older.amounts), "P3",
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

void Checker::on(const CheckpointReported& event) {
  JobView* job = live_attempt(event.job, event.attempt, "a checkpoint");
  if (job == nullptr) return;
  count("checkpoint");
  if (job->stop) job->stop->acknowledged = true;
  on_notice_.erase(job->id);
}

// A short run that ended by itself forbids the job to evict for sixteen times 1 s, 2 s, 4 s ... 5 min.
void Checker::note_own_end(JobView& job) {
  const bool was_long = now_ - job.started >= 600'000;
  job.own_ends = was_long ? 1 : job.own_ends + 1;
  const std::int64_t pause_ms = std::min<std::int64_t>(300'000, std::int64_t{1000} << std::min(job.own_ends - 1, 16));
  job.evicts_from = was_long ? Timestamp() : now_ + 16 * pause_ms;
}

void Checker::on(const AttemptEnded& event) {
  JobView* job = live_attempt(event.job, event.attempt, "an end");
  if (job == nullptr) return;
  count("ended: " + std::string(name_of(event.outcome)));
  require(job->over_count == job->over.size(), "P9", text_of(event.job) + " ends before its tasks");
  check_no_life(event.job, "ends");
  job->stood = ~std::uint64_t{0};
  for (std::uint32_t c = 0; c < job->charges.size(); ++c) {
    job->stood &= job->charges[c].within;
    book(*job, job->charges[c]);
    charge(*job, job->charges[c], c, -1);
  }
  for (const TaskPlacement& placement : job->placements) bind(*job, placement, -1);
  job->failure_counted = event.outcome == Outcome::kFailed || event.outcome == Outcome::kStartFailed;
  if (job->failure_counted) ++job->failures;
  job->failed_attempt = event.attempt;
  job->failed_on.clear();
  if (job->failure_counted || event.outcome == Outcome::kNodeLost) {
    for (const TaskPlacement& placement : job->placements) job->failed_on.insert(placement.node);
  }
  job->moved.reset();
  if (job->stopping() && is_move(job->stop->cause))
    job->moved = now_;
  else
    job->evicted_last = job->stopping() && evicts_for_preemptor(job->stop->cause);
  if (job->stopping() && !job->cancelled) {
    require(!evicts_for_preemptor(job->stop->cause) || event.outcome == Outcome::kPreempted, "P5",
            text_of(event.job) + " was evicted but ends as " + std::string(name_of(event.outcome)));
    require(job->stop->cause != StopCause::kTimeLimit || event.outcome == Outcome::kTimeLimit, "P8",
            text_of(event.job) + " was stopped for its time limit but ends as " + std::string(name_of(event.outcome)));
  }
  job->ran_ms += now_ - job->started;
  if (event.outcome != Outcome::kPreempted && event.outcome != Outcome::kNodeLost) note_own_end(*job);
  job->running = false;
  job->placements.clear();
  job->charges.clear();
  job->over.clear();
  job->over_count = 0;
  if (job->stop) job->moved_to = job->stop->to;
  job->ordered_off.clear();
  drop_move(*job);
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
  drop_reservation(*job);
  cancelling_.erase(event.job);
  finished_.emplace(event.job, event.outcome);
  with_rules_.erase(event.job);
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
