#include "sched/resize/consolidate.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sched/backfill/backfill.h"
#include "sched/nomination/preemption_conflicts.h"
#include "sched/place/node_fit.h"
#include "sched/preempt/preempt.h"
#include "sched/queue/admit.h"
#include "sched/queue/order.h"
#include "sched/queue/quota.h"
#include "sched/start.h"
#include "state/back_off.h"
#include "state/grace.h"
#include "state/replicas.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::NodeState;
using state::State;
using state::Transaction;

constexpr std::size_t kMostLookedAt = 64;       // jobs of the order, in one search
constexpr std::size_t kMostJobsAsked = 8;       // of those, jobs for which enough is free in pieces
constexpr std::size_t kMostDomains = 8;         // of a required level, for one job
constexpr std::size_t kMostMoves = 64;          // for one job
constexpr std::size_t kSpareNodes = 64;         // nodes looked at, beyond four for each task
constexpr std::int64_t kInPeaceMs = 3'600'000;  // a moved job is not moved again for so long
constexpr std::size_t kMostAttempts = 16;       // searches with other movers, when one fits nowhere else

struct Mover {
  JobId job;
  std::int64_t gpu_milli = 0;
  Seq order = 0;
};

// A node, and how much GPU has to be vacated there at least for one more task.
struct Site {
  std::int64_t short_milli = 0;
  NodeId node;
  auto operator<=>(const Site&) const = default;
};

std::int64_t idle_gpu_milli(const State& state) {
  std::int64_t idle = 0;
  for (const NodeState& node : state.nodes()) {
    if (!node.takes_tasks()) continue;
    for (const state::GpuSlot& gpu : node.gpus) idle += std::max<std::int64_t>(0, gpu.available_milli());
  }
  return idle;
}

// Returns true if all the placements are free beside what runs and is nominated, and beside `taken`: what this decision
// has given out so far. Adds the placements to `taken`.
bool are_free(const State& state, std::span<const TaskPlacement> placements, std::map<NodeId, NodeDelta>& taken) {
  return std::all_of(placements.begin(), placements.end(), [&](const TaskPlacement& one) {
    const NodeState& node = state.node(one.node);
    NodeDelta& here = taken[one.node];
    here.add(one);
    return node.available_cpu_milli() >= here.cpu_milli && node.available_memory_mib() >= here.memory_mib &&
           !short_countable(node, here) && std::all_of(one.gpus.begin(), one.gpus.end(), [&](std::uint8_t gpu) {
             return node.gpus[gpu].available_milli() >= here.milli[gpu] &&
                    (node.gpus[gpu].unavailable_slices() & one.slices) == 0;
           });
  });
}

// The search for moves for one job.
class Moving {
 public:
  // `reserved_start`: when its backfill reservation lets the job start; never() if it has none.
  Moving(const MoveSearch& search, JobId preemptor, std::size_t group, std::size_t most, Timestamp reserved_start)
      : state_(search.state),
        transaction_(search.transaction),
        search_(search),
        preemptor_(*search.state.job(preemptor)),
        ask_(task_requirements(search.state, preemptor_, group, kAllModels)),
        most_(most),
        reserved_start_(reserved_start),
        before_(search.transaction.mark()) {
    list_sites();
  }

  std::optional<MoveDecision> find() {
    for (std::size_t attempt = 0; attempt < kMostAttempts; ++attempt) {
      const std::size_t stuck = stuck_.size();
      auto moves = try_moves();
      transaction_.rollback_to(before_);
      if (moves || stuck_.size() == stuck) return moves;
    }
    return std::nullopt;
  }

  Timestamp next_evictable() const { return next_evictable_; }
  // When a job may evict the preemptor that cannot now.
  Timestamp reevaluate_at() const { return reevaluate_at_; }

 private:
  // Returns nothing if the job fits nowhere. A mover that fits nowhere else is added to `stuck_`.
  std::optional<MoveDecision> try_moves() {
    for (const std::vector<Site>& sites : regions()) {
      std::vector<Mover> movers;
      if (!vacate(sites, movers)) {
        transaction_.rollback_to(before_);
        continue;
      }
      spare(movers);
      auto decision = move_to_other_places(movers);
      transaction_.rollback_to(before_);
      if (decision) return decision;
    }
    return std::nullopt;
  }

  // Returns the sets of nodes to try: all nodes or, if a level is required, the nodes of each domain. Nodes and domains
  // where the least has to move go first.
  std::vector<std::vector<Site>> regions() {
    const std::vector<Site>& all = sites_;
    const std::string& required =
        preemptor_.spec.topology.required.empty() ? ask_.group.topology.required : preemptor_.spec.topology.required;
    const auto level = state_.topology().level_named(required);
    if (required.empty()) return {all};
    if (!level) return alone(all);
    std::map<DomainId, std::vector<Site>> by_domain;
    for (const Site& site : all) {
      for (const DomainId domain : state_.topology().of_node(site.node)) {
        if (state_.topology().domain(domain).level == *level) by_domain[domain].push_back(site);
      }
    }
    std::vector<std::pair<std::int64_t, std::string>> order;
    std::map<std::string, std::vector<Site>> by_path;
    for (auto& [domain, there] : by_domain) {
      const std::string& path = state_.topology().domain(domain).path;
      std::int64_t least = 0;
      const std::size_t tasks = std::min(there.size(), static_cast<std::size_t>(ask_.group.least()));
      for (std::size_t i = 0; i < tasks; ++i) least += there[i].short_milli;
      order.emplace_back(least, path);
      by_path[path] = std::move(there);
    }
    std::sort(order.begin(), order.end());
    if (order.size() > kMostDomains) order.resize(kMostDomains);
    std::vector<std::vector<Site>> found;
    for (const auto& [least, path] : order) found.push_back(std::move(by_path[path]));
    return found;
  }

  // For a job that requires one node.
  static std::vector<std::vector<Site>> alone(const std::vector<Site>& all) {
    std::vector<std::vector<Site>> found;
    for (std::size_t i = 0; i < std::min(all.size(), kSpareNodes); ++i) found.push_back({all[i]});
    return found;
  }

  void list_sites() {
    const std::int64_t asked = ask_.group.request.total_gpu_milli();
    for (const NodeState& node : state_.nodes()) {
      if (!node.takes_tasks() || node.tasks.empty() || !ask_.classes[state_.node_index().class_of(node.id).index()] ||
          !suits(ask_, node) || !could_hold(state_, ask_, node)) {
        continue;
      }
      std::int64_t idle = 0;
      for (const state::GpuSlot& gpu : node.gpus) idle += std::max<std::int64_t>(0, gpu.available_milli());
      ++search_.work.nodes_scored;
      const std::int64_t one_more =
          ask_.exclusive ? static_cast<std::int64_t>(node.gpus.size()) * kMilli : asked * (tasks_that_fit(node) + 1);
      const std::int64_t lacking = std::max<std::int64_t>(0, one_more - idle);
      std::vector<Mover> movers = movers_on(node);
      std::int64_t could_go = 0;
      for (const Mover& mover : movers) could_go += mover.gpu_milli;
      if (movers.empty() || could_go < lacking) continue;
      sites_.push_back({lacking, node.id});
      movers_.emplace(node.id, std::move(movers));
    }
    std::sort(sites_.begin(), sites_.end());
    const std::size_t most = 4 * static_cast<std::size_t>(ask_.group.least()) + kSpareNodes;
    const bool anywhere = preemptor_.spec.topology.required.empty() && ask_.group.topology.required.empty();
    if (sites_.size() > most && anywhere) sites_.resize(most);
  }

  // Returns how many tasks of the group fit on the node, at most min_count.
  std::int32_t tasks_that_fit(const NodeState& node) const {
    NodeDelta taken;
    std::int32_t count = 0;
    for (; count < ask_.group.least(); ++count) {
      const auto placement = try_node(ask_, node, taken);
      if (!placement) break;
      taken.add(*placement);
    }
    return count;
  }

  // Returns the jobs on the node that may move: those with the fewest GPUs first, and of equal ones the newest.
  std::vector<Mover> movers_on(const NodeState& node) {
    std::vector<Mover> found;
    for (const auto& [id, task] : node.tasks) {
      const JobState& job = *state_.job(id);
      if (!found.empty() && found.back().job == id) continue;
      if (search_.already_victims.contains(id) || !may_move_for(state_, job, preemptor_)) continue;
      if (const Timestamp from = may_be_stopped_from(state_, job); from > search_.now) {
        next_evictable_ = std::min(next_evictable_, from);
        continue;
      }
      if (has_moved_since(job, Timestamp{search_.now.ms - kInPeaceMs})) {
        next_evictable_ = std::min(next_evictable_, job.attempt->started + kInPeaceMs);
        continue;
      }
      const state::RunningRow& row = state_.running_table().rows()[job.running_row];
      if (row.end <= search_.now + state::grace_left_ms(state_, job, search_.now)) continue;  // it is about to end
      found.push_back({id, row.gpu_milli, row.order});
    }
    std::sort(found.begin(), found.end(), [](const Mover& a, const Mover& b) {
      return a.gpu_milli != b.gpu_milli ? a.gpu_milli < b.gpu_milli : a.order > b.order;
    });
    return found;
  }

  // Removes movers until the job fits: for one more task on each node in turn, then again from the first node.
  bool vacate(const std::vector<Site>& sites, std::vector<Mover>& movers) {
    std::set<JobId> gone;
    std::set<JobId> services;  // one replica of a service moves at a time
    for (bool any = true; any;) {
      any = false;
      for (const Site& site : sites) {
        if (!vacate_for_one(site, movers, gone, services)) continue;
        any = true;
        if (fit()) return true;
      }
    }
    return false;
  }

  bool vacate_for_one(const Site& site, std::vector<Mover>& movers, std::set<JobId>& gone, std::set<JobId>& services) {
    const NodeState& node = state_.node(site.node);
    const Transaction::Mark mark = transaction_.mark();
    const std::int32_t before = tasks_that_fit(node);
    if (before == ask_.group.least()) return false;
    std::vector<Mover> leaving;
    for (const Mover& mover : movers_.at(site.node)) {
      if (stuck_.contains(mover.job) || gone.contains(mover.job)) continue;
      const JobState* service = state::service_of(state_, *state_.job(mover.job));
      if (service != nullptr && !services.insert(service->id).second) continue;
      transaction_.remove(mover.job);
      leaving.push_back(mover);
      if (tasks_that_fit(node) == before) continue;
      if (movers.size() + leaving.size() > kMostMoves) break;
      for (const Mover& one : leaving) gone.insert(one.job);
      movers.insert(movers.end(), leaving.begin(), leaving.end());
      return true;
    }
    transaction_.rollback_to(mark);
    return false;
  }

  std::optional<std::vector<TaskPlacement>> fit() {
    const StartQuestion question{state_, preemptor_, search_.now, search_.work};
    return try_start(transaction_, question.only_whether()).placements;
  }

  // Returns free places for a mover, beside reservations of other jobs. The preemptor's own reservation is ignored,
  // since it has its places by now.
  std::optional<std::vector<TaskPlacement>> fit_elsewhere(const JobState& job) {
    std::vector<JobId> owners = not_passed(state_, job, search_.now);
    std::erase(owners, preemptor_.id);
    const StartQuestion question{state_, job, search_.now, search_.work};
    return beside_reservations(transaction_, state_, owners,
                               [&] { return find_places(question.only_whether()).placements; });
  }

  // Drops the moves that are not needed, the largest first.
  void spare(std::vector<Mover>& movers) {
    std::stable_sort(movers.begin(), movers.end(),
                     [](const Mover& a, const Mover& b) { return a.gpu_milli > b.gpu_milli; });
    const auto without = [&](std::size_t left_out) {
      transaction_.rollback_to(before_);
      for (std::size_t i = 0; i < movers.size(); ++i) {
        if (i != left_out) transaction_.remove(movers[i].job);
      }
    };
    for (std::size_t i = 0; i < movers.size();) {
      without(i);
      if (fit())
        movers.erase(movers.begin() + static_cast<std::ptrdiff_t>(i));
      else
        ++i;
    }
    without(movers.size());
  }

  // Returns the decision with new places for all movers, beside those of the preemptor. A mover that fits nowhere is
  // added to `stuck_`.
  std::optional<MoveDecision> move_to_other_places(const std::vector<Mover>& movers) {
    MoveDecision decision;
    decision.preemptor = preemptor_.id;
    auto places = movers.size() > most_ ? std::nullopt : fit();
    if (!places || movers.empty()) return std::nullopt;
    decision.placements = std::move(*places);
    std::int64_t moved = 0;
    for (const Mover& mover : movers) moved += mover.gpu_milli;
    if (moved > gpu_milli_of(decision.placements) || starts_as_soon(movers)) return std::nullopt;
    std::set<JobId> leaving = search_.already_victims;
    for (const Mover& mover : movers) leaving.insert(mover.job);
    const ConflictSearch conflicts{transaction_, state_, search_.now, leaving, search_.work, reevaluate_at_};
    if (could_be_stopped(conflicts, preemptor_, decision.placements)) return std::nullopt;
    if (any_window(decision.placements)) return std::nullopt;
    transaction_.place(preemptor_.id, decision.placements);
    for (const Mover& mover : movers) {
      const JobState& job = *state_.job(mover.job);
      auto to = fit_elsewhere(job);
      if (!to || !are_as_good(job, *to)) {
        stuck_.insert(job.id);
        return std::nullopt;
      }
      transaction_.place(job.id, *to);
      decision.moves.push_back({job.id, std::move(*to)});
    }
    transaction_.rollback_to(before_);
    return all_free(decision) && all_keep_standing(decision) ? std::optional(std::move(decision)) : std::nullopt;
  }

  // A window may not affect a task that runs there now, but it may affect one that starts anew a little later.
  bool any_window(const std::vector<TaskPlacement>& placements) const {
    return std::any_of(placements.begin(), placements.end(),
                       [&](const TaskPlacement& one) { return !state_.node(one.node).maintenance.empty(); });
  }

  // Moves stay within the pool: elsewhere the job could become preemptible by queues that cannot reach it now.
  bool are_as_good(const JobState& job, const std::vector<TaskPlacement>& to) const {
    const std::uint32_t pool = state_.node(job.attempt->tasks.front().placement.node).pool;
    return !any_window(to) && std::all_of(to.begin(), to.end(),
                                          [&](const TaskPlacement& one) { return state_.node(one.node).pool == pool; });
  }

  // Returns true if the backfill reservation lets the job start before the movers must be gone.
  bool starts_as_soon(const std::vector<Mover>& movers) const {
    if (reserved_start_.is_never()) return false;
    std::int64_t longest_ms = 0;
    for (const Mover& mover : movers)
      longest_ms = std::max(longest_ms, state::grace_left_ms(state_, *state_.job(mover.job), search_.now));
    return reserved_start_ <= search_.now + longest_ms;
  }

  // Returns true if all new places are free now, before any mover has left, beside what the job will be nominated.
  // Places that become free only when another mover leaves do not count.
  bool all_free(const MoveDecision& decision) {
    std::map<NodeId, NodeDelta> taken;
    for (const TaskPlacement& one : decision.placements) taken[one.node].add(one);
    for (const Move& move : decision.moves) {
      if (are_free(state_, move.to, taken)) continue;
      stuck_.insert(move.job);
      return false;
    }
    return true;
  }

  // Returns true if each mover stays within the guarantees that it is within now. The nomination of the preemptor does
  // not count against it.
  bool all_keep_standing(const MoveDecision& decision) {
    for (const Move& move : decision.moves) {
      const JobState& job = *state_.job(move.job);
      transaction_.remove(move.job);
      const std::uint64_t within = state_.burst_amounts_of(job.spec, move.to)
                                       ? 1
                                       : state_.within_mask(job.queue, state_.amounts_of(job.spec, move.to));
      transaction_.rollback_to(before_);
      if ((job.attempt->charges.front().within & ~within) == 0) continue;
      stuck_.insert(move.job);
      return false;
    }
    return true;
  }

  State& state_;
  Transaction& transaction_;
  const MoveSearch& search_;
  const JobState& preemptor_;
  TaskRequirements ask_;  // requirements of the group that does not fit
  std::size_t most_;
  Timestamp reserved_start_;
  Transaction::Mark before_;
  std::vector<Site> sites_;  // nodes where the least has to move go first
  std::map<NodeId, std::vector<Mover>> movers_;
  std::set<JobId> stuck_;  // movers that fit nowhere else
  Timestamp next_evictable_ = Timestamp::never();
  Timestamp reevaluate_at_ = Timestamp::never();
};

}  // namespace

bool may_move_for(const State& state, const JobState& job, const JobState& preemptor) {
  if (job.phase != JobPhase::kRunning || job.cancel_requested || job.held || job.attempt->exited > 0) return false;
  if (job.priority > preemptor.priority || job.spec.kind == JobKind::kInteractive) return false;
  if (job.attempt->charges.size() > 1) return false;
  const auto& tasks = job.attempt->tasks;
  const bool one_node = std::all_of(tasks.begin(), tasks.end(), [&](const state::TaskState& task) {
    return task.placement.node == tasks.front().placement.node;
  });
  if (!one_node) return false;
  const JobState* parent = state.job(job.parent);
  if (parent != nullptr && (parent->held || parent->cancel_requested)) return false;
  const bool replica = state::service_of(state, job) != nullptr;
  return replica ? state::may_leave_by_choice(state, job) : job.spec.checkpoint.on_signal;
}

MovesFound find_moves(const MoveSearch& search, const Plan& plan) {
  MovesFound found;
  State& state = search.state;
  const std::int64_t limit = state.config().scheduling.consolidations_per_hour;
  if (limit == 0) return found;
  const auto left = static_cast<std::size_t>(state.moves().left(limit, search.now));
  if (left == 0) {
    found.reevaluate_at = state.moves().next(search.now);
    return found;
  }
  const std::int64_t idle = idle_gpu_milli(state);
  Order order(state, search.now);
  std::size_t asked = 0;
  for (std::size_t looked_at = 0; looked_at < kMostLookedAt && asked < kMostJobsAsked; ++looked_at) {
    const auto id = order.next();
    if (!id) break;
    order.refuse();
    const JobState& job = *state.job(*id);
    if (search.decided.contains(*id) || state::may_evict_from(job) > search.now) continue;
    const StartAnswer start = try_start(search.transaction, {state, job, search.now, search.work});
    const Reason& why = start.why;
    if (start) continue;
    if (!is_room_reason(why.code) && why.code != ReasonCode::kNuma) continue;
    if (least_amounts(state, job.spec)[kDimGpu] > idle) continue;  // moves only put idle GPUs together
    ++asked;
    const Transaction::Mark mark = search.transaction.mark();
    Timestamp reserved_start = job.reservation ? job.reservation->start : Timestamp::never();
    for (const Decision& decision : plan.decisions) {
      const auto* hold = std::get_if<ReserveDecision>(&decision);
      if (hold == nullptr) continue;
      if (hold->job == *id)
        reserved_start = hold->start;
      else
        search.transaction.set_aside(hold->job, hold->placements);
    }
    Moving moving(search, *id, static_cast<std::size_t>(why.group), left, reserved_start);
    found.decision = moving.find();
    search.transaction.rollback_to(mark);
    found.reevaluate_at = std::min(found.reevaluate_at, moving.reevaluate_at());
    if (found.decision) return found;
    found.reevaluate_at = std::min(found.reevaluate_at, moving.next_evictable());
  }
  return found;
}

}  // namespace berth::sched
