#include "sched/counterfactual.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "sched/blocking.h"
#include "sched/neighbours.h"
#include "sched/numa.h"
#include "sched/preempt.h"
#include "sched/topology.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::NodeState;
using state::QueueState;
using state::State;
using state::Trial;

constexpr std::size_t kMostVictims = 64;  // a longer list helps nobody, and each member costs tries
constexpr std::size_t kMostNodes = 64;
constexpr std::size_t kMostRaises = 16;
constexpr std::size_t kMostEnds = 512;
constexpr std::size_t kMostNames = 16;  // models, pools, taints and labels that are tried

class Inquiry {
 public:
  Inquiry(State& state, JobId id, Timestamp now, const Effort& effort)
      : state_(state), job_(*state.job(id)), now_(now), effort_(effort) {}

  std::vector<Change> run();
  bool starts(const Change& change, Reason* why = nullptr);

 private:
  bool spent() const { return tries_ >= effort_.tries || work_.nodes_scored >= effort_.nodes_scored; }
  void tell(std::optional<Change> change);
  void try_names(ChangeKind kind, std::size_t group, const std::set<std::string>& names);

  std::optional<Change> priority(JobId head);
  std::optional<Change> time_limit();
  std::optional<Change> wait();
  std::optional<Change> uncordon();
  void other_nodes(std::size_t group);
  void smaller_asks(std::size_t group);
  void fewer_tasks(std::size_t group);
  void wider_level();
  void wider_group_level(std::size_t group);
  void without_term();
  void other_numa(std::size_t group);
  std::optional<Change> largest(Change change, std::int64_t low, std::int64_t unit);
  std::optional<Change> largest(ChangeKind kind, std::size_t group, std::int64_t from, std::int64_t low,
                                std::int64_t unit);
  Change raise_limits();
  bool add_raise(Change& change, const Reason& why) const;
  void tighten(Change& change);
  std::optional<Change> evict(std::vector<Raise> raises);
  bool add_victims_below(Change& change, const Reason& why) const;
  bool add_neighbours(Change& change, NodeId node) const;
  bool add_neighbours_somewhere(Change& change, std::size_t group);
  bool add_victims_on_nodes(Change& change, const std::vector<NodeId>& nodes, std::size_t& next,
                            std::size_t many) const;
  std::vector<NodeId> nearly_fitting_nodes(const Reason& why) const;
  bool may_leave(JobId id, const Change& change) const;
  std::optional<Shrink> all_growth_of(JobId id) const;
  void keep_most(Change& change);
  void spare(Change& change);
  struct Cost {
    std::int32_t priority = 0;
    std::int64_t loss = 0;
    std::int64_t negated_start = 0;
    JobId job;
  };
  Cost cost_of(const state::RunningRow& row) const;
  static bool leaves_first(const Cost& a, const Cost& b);
  void order_victims(std::vector<JobId>& victims) const;
  void mark_below(QueueId queue, std::vector<bool>& below) const;
  template <class Part>
  void leave_out(Change& change, std::vector<Part> Change::*parts);

  State& state_;
  const JobState& job_;
  Timestamp now_;
  const Effort& effort_;
  std::uint64_t tries_ = 0;
  PlaceWork work_;
  std::vector<Change> told_;
};

bool is_quota(const Reason& why) {
  return why.code == ReasonCode::kQueueMax || why.code == ReasonCode::kQueueLending ||
         why.code == ReasonCode::kUserLimit;
}

bool is_of_neighbours(ReasonCode code) { return code == ReasonCode::kApart || code == ReasonCode::kAffinity; }

bool Inquiry::starts(const Change& change, Reason* why) {
  ++tries_;
  Trial trial(state_);
  if (job_.nomination) trial.lift_nomination(job_.id);
  apply(trial, state_, change, now_);
  if (change.at > now_) trial.look_at(change.at);
  const auto refused = blocking(state_, changed(job_, change), std::max(now_, change.at), work_);
  if (refused && why != nullptr) *why = *refused;
  return !refused;
}

// A result that was cut short may not be minimal, so it is not told.
void Inquiry::tell(std::optional<Change> change) {
  if (!change || spent() || told_.size() >= effort_.changes) return;
  change->text = text_of(state_, job_, *change);
  told_.push_back(std::move(*change));
}

std::vector<Change> Inquiry::run() {
  Reason why;
  if (job_.attempt || job_.is_parent() || starts({}, &why)) return {};
  if (why.code == ReasonCode::kHeld) {
    Change release;
    release.kind = ChangeKind::kRelease;
    if (starts(release)) tell(release);
  } else if (why.code == ReasonCode::kBehindHead) {
    tell(priority(why.job));
  } else if (why.code == ReasonCode::kEarliestStart) {
    tell(wait());
  } else if (why.code != ReasonCode::kDependency && why.code != ReasonCode::kDependencyNever) {
    if (why.code == ReasonCode::kBehindHold || !state_.maintenance().empty()) tell(time_limit());
    tell(wait());
    tell(uncordon());
    wider_level();
    without_term();
    for (std::size_t g = 0; g < job_.spec.groups.size(); ++g) {
      wider_group_level(g);
      other_numa(g);
      other_nodes(g);
      smaller_asks(g);
    }
    const Change quota = raise_limits();
    const bool enough = !quota.raises.empty() && starts(quota);
    if (enough) tell(quota);
    auto evicting = evict({});
    if (!evicting && !enough && !quota.raises.empty()) evicting = evict(quota.raises);
    tell(std::move(evicting));
  }
  return std::move(told_);
}

std::optional<Change> Inquiry::priority(JobId head) {
  Change change;
  change.kind = ChangeKind::kPriority;
  change.from = job_.priority;
  const std::int64_t level = state_.job(head)->priority;  // the same priority is enough for the older one
  for (change.to = std::max<std::int64_t>(level, change.from + 1); change.to <= level + 1; ++change.to) {
    if (starts(change)) return change;
  }
  return std::nullopt;
}

// Who is gone by a held start may pass it, and who is gone before a maintenance window may start; so the longest that
// helps ends at one of them.
std::optional<Change> Inquiry::time_limit() {
  const JobState* parent = state_.job(job_.parent);
  if (parent != nullptr && parent->spec.kind == JobKind::kService) return std::nullopt;
  std::set<std::int64_t> lengths_s;
  for (const JobId owner : state_.start_holds()) {
    lengths_s.insert((state_.job(owner)->start_hold->start - now_) / 1000);
  }
  for (const auto& [name, window] : state_.maintenance()) lengths_s.insert((window.from - now_) / 1000);
  Change change;
  change.kind = ChangeKind::kTimeLimit;
  change.from = job_.spec.time_limit_s;
  for (auto length_s = lengths_s.rbegin(); length_s != lengths_s.rend() && *length_s > 0; ++length_s) {
    change.to = *length_s;
    if (starts(change)) return change;
  }
  return std::nullopt;
}

// The first of the times at which something ends, such that the job starts then and not at the one before.
std::optional<Change> Inquiry::wait() {
  std::vector<Timestamp> times;
  for (const state::RunningRow& row : state_.running_table().rows()) {
    if (!row.end.is_never()) times.push_back(ends_by(row, now_));
  }
  if (job_.not_before > now_) times.push_back(job_.not_before);
  for (const auto& [name, window] : state_.maintenance()) times.push_back(window.to);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const std::size_t count = std::min(times.size(), kMostEnds);
  Change change;
  change.kind = ChangeKind::kWait;
  const auto starts_at = [&](std::size_t i) {
    change.at = times[i];
    return starts(change);
  };
  std::size_t refused = 0;  // so many of the first do not start it
  std::size_t step = 1;
  while (refused < count && !starts_at(std::min(refused + step, count) - 1)) {
    refused = std::min(refused + step, count);
    step *= 2;
  }
  if (refused == count) return std::nullopt;
  std::size_t enough = std::min(refused + step, count);
  while (enough - refused > 1) {
    const std::size_t middle = (refused + enough) / 2;
    (starts_at(middle - 1) ? enough : refused) = middle;
  }
  change.at = times[enough - 1];
  return change;
}

// Again and again, until none of the parts can be spared: what one part makes possible may spare another.
template <class Part>
void Inquiry::leave_out(Change& change, std::vector<Part> Change::*parts) {
  bool again = true;
  while (again && !spent()) {
    again = false;
    for (std::size_t i = (change.*parts).size(); i-- > 0;) {
      Change fewer = change;
      (fewer.*parts).erase((fewer.*parts).begin() + static_cast<std::ptrdiff_t>(i));
      if (!starts(fewer)) continue;
      change = std::move(fewer);
      again = true;
    }
  }
}

std::optional<Change> Inquiry::uncordon() {
  Change change;
  change.kind = ChangeKind::kUncordon;
  for (const NodeState& node : state_.nodes()) {
    if (node.cordoned && node.status == NodeStatus::kReady && change.nodes.size() < kMostNodes)
      change.nodes.push_back(node.id);
  }
  if (change.nodes.empty() || !starts(change)) return std::nullopt;
  leave_out(change, &Change::nodes);
  return change;
}

void Inquiry::try_names(ChangeKind kind, std::size_t group, const std::set<std::string>& names) {
  std::size_t tried = 0;
  for (const std::string& name : names) {
    if (++tried > kMostNames) return;
    Change change;
    change.kind = kind;
    change.group = group;
    change.name = name;
    if (!starts(change)) continue;
    tell(change);
    return;
  }
}

// The same ask, elsewhere.
void Inquiry::other_nodes(std::size_t index) {
  const TaskGroup& group = job_.spec.groups[index];
  std::set<std::string> names;
  if (!group.request.gpu_models.empty()) {
    for (const auto& model : state_.gpu_models()) names.insert(model.name);
    for (const std::string& model : group.request.gpu_models) names.erase(model);
    try_names(ChangeKind::kModel, index, names);
  }
  if (!group.pool.empty()) {
    names.clear();
    for (const auto& pool : state_.pools()) names.insert(pool.name);
    names.erase(group.pool);
    try_names(ChangeKind::kPool, index, names);
  }
  names.clear();
  for (const NodeState& node : state_.nodes()) {
    for (const Taint& taint : node.spec.taints) names.insert(taint.key);
  }
  for (const std::string& key : group.tolerations) names.erase(key);
  try_names(ChangeKind::kTolerate, index, names);
  names.clear();
  for (const auto& [key, value] : group.node_selector) names.insert(key);
  try_names(ChangeKind::kSelect, index, names);
}

// The narrowest level beyond the required one that is wide enough.
void Inquiry::wider_level() {
  const std::int32_t required = level_range(state_, job_.spec.topology).required;
  for (std::int32_t level = required - 1; level >= kAnywhere; --level) {
    Change change;
    change.kind = ChangeKind::kLevel;
    change.name = level_name(state_, level);
    if (!starts(change)) continue;
    tell(std::move(change));
    return;
  }
}

void Inquiry::wider_group_level(std::size_t group) {
  const std::int32_t required = level_range(state_, job_.spec.groups[group].topology).required;
  const std::int32_t widest = level_range(state_, job_.spec.topology).required;
  for (std::int32_t level = required - 1; level >= widest; --level) {
    Change change;
    change.kind = ChangeKind::kGroupLevel;
    change.group = group;
    change.name = level == widest ? std::string() : level_name(state_, level);
    if (!starts(change)) continue;
    tell(std::move(change));
    return;
  }
}

// The first of its required terms without which it would start.
void Inquiry::without_term() {
  const auto& near = job_.spec.affinity;
  const auto& away = job_.spec.anti_affinity;
  for (std::size_t i = 0; i < near.size() + away.size(); ++i) {
    if (!(i < near.size() ? near[i] : away[i - near.size()]).required) continue;
    Change change;
    change.kind = ChangeKind::kNoTerm;
    change.from = static_cast<std::int64_t>(i);
    if (!starts(change)) continue;
    tell(std::move(change));
    return;
  }
}

void Inquiry::other_numa(std::size_t group) {
  if (!is_strict(numa_policy(job_.spec, job_.spec.groups[group]))) return;
  Change change;
  change.kind = ChangeKind::kNuma;
  change.group = group;
  if (starts(change)) tell(std::move(change));
}

std::optional<Change> Inquiry::largest(ChangeKind kind, std::size_t group, std::int64_t from, std::int64_t low,
                                       std::int64_t unit) {
  Change change;
  change.kind = kind;
  change.group = group;
  change.from = from;
  return largest(std::move(change), low, unit);
}

std::optional<Change> Inquiry::largest(Change change, std::int64_t low, std::int64_t unit) {
  change.to = low;
  if (low >= change.from || !starts(change)) return std::nullopt;
  std::int64_t refused = change.from;
  while (refused - change.to > unit) {
    Change more = change;
    more.to += (refused - change.to) / (2 * unit) * unit;
    if (starts(more))
      change = more;
    else
      refused = more.to;
  }
  return change;
}

// Less, as much of it as possible.
void Inquiry::smaller_asks(std::size_t index) {
  const TaskGroup& group = job_.spec.groups[index];
  const TaskRequest& request = group.request;
  if (job_.spec.exclusive && index == 0) {
    Change change;
    change.kind = ChangeKind::kShareNodes;
    if (starts(change)) tell(change);
  }
  if (request.is_share())
    tell(largest(ChangeKind::kGpus, index, request.gpu_milli, 1, 1));
  else
    tell(largest(ChangeKind::kGpus, index, request.total_gpu_milli(), kMilli, kMilli));
  fewer_tasks(index);
  const std::int64_t something = request.gpus > 0 ? 0 : 1;  // a task that asks nothing is no task
  tell(largest(ChangeKind::kCpus, index, request.cpu_milli, something, 1));
  tell(largest(ChangeKind::kMemory, index, request.memory_mib, something, 1));
}

// And more than that where elastic gangs give back what they have grown by.
void Inquiry::fewer_tasks(std::size_t group) {
  const std::int64_t least = job_.spec.groups[group].least();
  const auto alone = largest(ChangeKind::kTasks, group, least, 1, 1);
  tell(alone);
  Change change;
  change.kind = ChangeKind::kTasks;
  change.group = group;
  change.from = least;
  for (const JobId id : state_.elastic()) {
    const auto growth = all_growth_of(id);
    if (growth && change.shrinks.size() < kMostVictims) change.shrinks.push_back(*growth);
  }
  change.to = least;
  if (change.shrinks.empty() || starts(change)) return;  // it need not be fewer then
  auto beside = largest(std::move(change), alone ? alone->to + 1 : 1, 1);
  if (!beside) return;
  spare(*beside);
  tell(std::move(beside));
}

// --- limits ---

// Raises limits, the innermost first, as long as quota is what refuses.
Change Inquiry::raise_limits() {
  Change change;
  change.kind = ChangeKind::kQuota;
  Reason why;
  bool enough = false;
  while (!spent() && !(enough = starts(change, &why))) {
    if (change.raises.size() >= kMostRaises || !is_quota(why) || !add_raise(change, why)) break;
  }
  if (enough && !change.raises.empty()) tighten(change);
  return change;
}

bool Inquiry::add_raise(Change& change, const Reason& why) const {
  if (why.code == ReasonCode::kQueueMax) {
    change.raises.push_back({why.queue, false, why.dim, why.limit, checked_add(why.used, why.asked)});
    return true;
  }
  if (why.code == ReasonCode::kUserLimit) {
    change.raises.push_back({why.queue, false, why.dim, why.limit, checked_add(why.used, why.asked), true});
    return true;
  }
  std::int64_t missing = why.used + why.asked - why.limit;
  for (const QueueId id : state_.queue(why.queue).children) {
    const QueueState& child = state_.queue(id);
    const bool limits = child.limits_lending && child.lending_limit[why.dim] != kUnlimited;
    if (missing <= 0 || state_.is_below(job_.queue, id) || !limits) continue;
    const std::int64_t idle = child.guaranteed.amounts[why.dim] - (child.usage[why.dim] - child.burst_usage[why.dim]) -
                              child.nominated[why.dim];
    const std::int64_t more = std::min(missing, idle - child.lending_limit[why.dim]);
    const Raise raise{id, true, why.dim, child.lending_limit[why.dim], child.lending_limit[why.dim] + more};
    if (more <= 0 || std::find(change.raises.begin(), change.raises.end(), raise) != change.raises.end()) continue;
    change.raises.push_back(raise);
    missing -= more;
  }
  return missing < why.used + why.asked - why.limit;
}

// No raise that can be spared, and each as small as it can be.
void Inquiry::tighten(Change& change) {
  leave_out(change, &Change::raises);
  for (std::size_t i = 0; i < change.raises.size(); ++i) {
    std::int64_t refused = change.raises[i].from;
    std::int64_t probe = change.raises[i].to - 1;  // as a rule the raise was exact
    while (change.raises[i].to - refused > 1 && !spent()) {
      Change less = change;
      less.raises[i].to = probe;
      if (starts(less))
        change = std::move(less);
      else
        refused = probe;
      probe = refused + (change.raises[i].to - refused) / 2;
    }
  }
}

// --- victims ---

bool Inquiry::may_leave(JobId id, const Change& change) const {
  return state_.job(id)->phase == JobPhase::kRunning &&
         std::find(change.victims.begin(), change.victims.end(), id) == change.victims.end();
}

std::optional<Shrink> Inquiry::all_growth_of(JobId id) const {
  const JobState& job = *state_.job(id);
  if (job.phase != JobPhase::kRunning || !state_.elastic().contains(id)) return std::nullopt;
  const auto tasks = static_cast<std::uint32_t>(job.attempt->tasks.size());
  const std::uint32_t least = job.attempt->base_tasks();
  return least < tasks ? std::optional(Shrink{id, least, tasks}) : std::nullopt;
}

// Nobody gives back a task more than has to be. Of those who leave, who need not give back all of it.
void Inquiry::keep_most(Change& change) {
  for (std::size_t i = change.victims.size(); i-- > 0;) {
    const auto growth = all_growth_of(change.victims[i]);
    if (!growth) continue;
    Change less = change;
    less.victims.erase(less.victims.begin() + static_cast<std::ptrdiff_t>(i));
    less.shrinks.push_back(*growth);
    if (starts(less)) change = std::move(less);
  }
  for (std::size_t i = 0; i < change.shrinks.size(); ++i) {
    std::uint32_t refused = change.shrinks[i].tasks;
    while (refused - change.shrinks[i].keep > 1 && !spent()) {
      Change less = change;
      less.shrinks[i].keep += (refused - change.shrinks[i].keep) / 2;
      if (starts(less))
        change = std::move(less);
      else
        refused = less.shrinks[i].keep;
    }
  }
}

// Nobody leaves or gives back who need not. Beside a gang that gives back and stays nearby another may be spared who
// had to leave beside none.
void Inquiry::spare(Change& change) {
  bool again = true;
  while (again && !spent()) {
    const Change before = change;
    leave_out(change, &Change::victims);
    leave_out(change, &Change::shrinks);
    keep_most(change);
    again = !change.shrinks.empty() && (change.victims != before.victims || change.shrinks != before.shrinks);
  }
}

// Whose leaving costs least first: the cycle's order of victims.
Inquiry::Cost Inquiry::cost_of(const state::RunningRow& row) const {
  return {row.priority, loss_of_stopping(row, now_), -row.started.ms, row.job};
}

// Of two that cost the same the later one.
bool Inquiry::leaves_first(const Cost& a, const Cost& b) {
  return std::tie(a.priority, a.loss, a.negated_start, b.job) < std::tie(b.priority, b.loss, b.negated_start, a.job);
}

void Inquiry::order_victims(std::vector<JobId>& victims) const {
  std::vector<Cost> costs;
  for (const JobId id : victims) costs.push_back(cost_of(state::running_row(*state_.job(id))));
  std::sort(costs.begin(), costs.end(), leaves_first);
  for (std::size_t i = 0; i < costs.size(); ++i) victims[i] = costs[i].job;
}

void Inquiry::mark_below(QueueId id, std::vector<bool>& below) const {
  below[id.index()] = true;
  for (const QueueId child : state_.queue(id).children) mark_below(child, below);
}

bool Inquiry::add_victims_below(Change& change, const Reason& why) const {
  // How much of what is asked the job gives back.
  const auto gives = [&](const JobState& job) {
    if (why.code == ReasonCode::kUserLimit && job.spec.user != job_.spec.user) return std::int64_t{0};
    if (why.dim == kDims) return std::int64_t{1};
    std::int64_t amount = 0;
    for (const state::Charge& charge : job.attempt->charges) amount += charge.amounts[why.dim];
    return amount;
  };
  std::vector<bool> below(state_.queues().size());
  mark_below(why.queue, below);
  const bool by_gpus = why.code != ReasonCode::kUserLimit && why.dim == kDimGpu;
  std::vector<Cost> costs;
  for (const state::RunningRow& row : state_.running_table().rows()) {
    if (!below[row.queue.index()] || row.stopping || (by_gpus && row.gpu_milli == 0)) continue;
    if ((by_gpus || gives(*state_.job(row.job)) > 0) && may_leave(row.job, change)) costs.push_back(cost_of(row));
  }
  // Few of them are needed: a heap gives them without sorting the rest.
  const auto leaves_later = [](const Cost& a, const Cost& b) { return leaves_first(b, a); };
  std::make_heap(costs.begin(), costs.end(), leaves_later);
  const bool any = !costs.empty();
  std::int64_t missing = why.used + why.asked - why.limit;
  while (!costs.empty() && missing > 0 && change.victims.size() <= kMostVictims) {
    std::pop_heap(costs.begin(), costs.end(), leaves_later);
    const JobId id = costs.back().job;
    costs.pop_back();
    missing -= gives(*state_.job(id));
    change.victims.push_back(id);
  }
  return any;
}

// Nodes that could hold a task of the group, those of the domain that comes closest first, then those that lack the
// fewest GPUs for it.
std::vector<NodeId> Inquiry::nearly_fitting_nodes(const Reason& why) const {
  const auto group = static_cast<std::size_t>(why.group);
  const auto outside = [&](NodeId node) {
    const auto domains = state_.topology().of_node(node);
    const bool in_domain = std::find(domains.begin(), domains.end(), why.domain) != domains.end();
    return (why.node.valid() && node != why.node) || (why.domain.valid() && !in_domain);
  };
  const TaskRequest& request = job_.spec.groups[group].request;
  const TaskAsk ask = task_ask(state_, job_, group, kAllModels);
  std::vector<std::tuple<bool, std::int64_t, NodeId>> by_need;
  for (const NodeState& node : state_.nodes()) {
    if (!node.takes_tasks() || node.tasks.empty() || !could_hold(state_, ask, node)) continue;
    const auto fitting = std::count_if(node.gpus.begin(), node.gpus.end(), [&](const state::GpuSlot& gpu) {
      return gpu.available_milli() >= request.gpu_milli;
    });
    by_need.emplace_back(outside(node.id), std::max<std::int64_t>(0, request.gpus - fitting), node.id);
  }
  std::sort(by_need.begin(), by_need.end());
  std::vector<NodeId> nodes;
  for (const auto& [away, need, node] : by_need) nodes.push_back(node);
  return nodes;
}

bool Inquiry::add_neighbours(Change& change, NodeId node) const {
  const std::size_t before = change.victims.size();
  for (const JobId id : Neighbours(state_, job_).in_the_way(node)) {
    if (state_.job(id)->attempt && may_leave(id, change)) change.victims.push_back(id);
  }
  return change.victims.size() > before;
}

// Of the first node that somebody closes to the job although it could hold a task of the group. Another rule may be
// what refuses (NUMA, fragments), and more nodes help against that, too.
bool Inquiry::add_neighbours_somewhere(Change& change, std::size_t group) {
  Trial trial(state_);
  if (job_.nomination) trial.lift_nomination(job_.id);
  apply(trial, state_, change, now_);
  const Neighbours neighbours(state_, job_);
  const TaskAsk ask = task_ask(state_, job_, group, kAllModels);
  std::size_t tried = 0;
  for (const NodeState& node : state_.nodes()) {
    if (!node.takes_tasks() || !could_hold(state_, ask, node) || neighbours.allows(node.id)) continue;
    if (add_neighbours(change, node.id)) return true;
    if (++tried == kMostNodes) return false;
  }
  return false;
}

bool Inquiry::add_victims_on_nodes(Change& change, const std::vector<NodeId>& nodes, std::size_t& next,
                                   std::size_t many) const {
  const std::size_t before = change.victims.size();
  for (; next < nodes.size() && many > 0 && change.victims.size() <= kMostVictims; ++next) {
    const std::size_t known = change.victims.size();
    for (const auto& [job, task] : state_.node(nodes[next]).tasks) {
      if (may_leave(job, change)) change.victims.push_back(job);
    }
    if (change.victims.size() > known) --many;
  }
  return change.victims.size() > before;
}

// A sufficient set first, along what refuses: jobs below the queue whose limit is reached, jobs on the nodes that come
// closest, whoever has to be away. Then everyone is spared whom the job fits beside, the dearest first.
std::optional<Change> Inquiry::evict(std::vector<Raise> raises) {
  Change change;
  change.kind = ChangeKind::kEvict;
  change.raises = std::move(raises);
  std::vector<std::vector<NodeId>> nodes(job_.spec.groups.size());
  std::vector<std::size_t> next(nodes.size(), 0);
  std::size_t many = 1;
  Reason why;
  while (!starts(change, &why)) {
    if (spent() || change.victims.size() > kMostVictims) return std::nullopt;
    bool more = false;
    if (is_quota(why)) {
      more = add_victims_below(change, why);
    } else if (is_of_neighbours(why.code) && add_neighbours(change, why.node)) {
      more = true;
    } else {
      const auto group = static_cast<std::size_t>(why.group);
      if (nodes[group].empty()) nodes[group] = nearly_fitting_nodes(why);
      more = add_victims_on_nodes(change, nodes[group], next[group], many) || add_neighbours_somewhere(change, group);
      many *= 2;
    }
    if (!more) return std::nullopt;
  }
  if (change.victims.empty()) return std::nullopt;
  order_victims(change.victims);
  spare(change);
  if (!change.raises.empty()) tighten(change);
  return change;
}

}  // namespace

std::vector<Change> smallest_changes(State& state, JobId job, Timestamp now, const Effort& effort) {
  if (state.job(job) == nullptr) return {};
  return Inquiry(state, job, now, effort).run();
}

bool starts_with(State& state, JobId job, Timestamp now, const Change& change) {
  return Inquiry(state, job, now, {}).starts(change);
}

}  // namespace berth::sched
