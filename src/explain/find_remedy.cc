#include "explain/find_remedy.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "explain/pending_reason.h"
#include "explain/what_if.h"
#include "model/toleration.h"
#include "sched/backfill/backfill.h"
#include "sched/backfill/earliest_start.h"
#include "sched/place/numa.h"
#include "sched/place/topology.h"
#include "sched/queue/order.h"
#include "sched/queue/quota.h"
#include "sched/start.h"

namespace berth::explain {

using namespace sched;

using state::BackfillReservation;
using state::JobState;
using state::NodeState;
using state::State;
using state::Transaction;

namespace {

constexpr std::size_t kMostEnds = 512;
constexpr std::size_t kOneByOne = 32;
constexpr std::size_t kMostAskedBefore = 64;
constexpr std::size_t kMostNames = 16;  // models, pools, taints and labels that are tried

}  // namespace

// Lets the backfill reservations that begin by `when` start, but for those that the job may pass. Jobs that end by
// `when` are gone again.
void WhatIf::start_held(Transaction& transaction, Timestamp when) const {
  const std::set<JobId> owners = state_.reservations();
  for (const JobId owner : owners) {
    const JobState& other = *state_.job(owner);
    const BackfillReservation hold = *other.reservation;
    const Timestamp start = std::max(now_, hold.start);
    if (owner == job_.id || start > when || (start == when && may_pass(state_, job_, other, when))) continue;
    transaction.drop_reservation(owner);
    if (held_end(owner, hold) > when)
      transaction.nominate(owner, hold.placements, within_of_nomination(state_, other, hold.placements, {}, {}));
  }
}

Timestamp WhatIf::held_end(JobId owner, const BackfillReservation& hold) const {
  return expected_end(state_, *state_.job(owner), hold.placements, std::max(now_, hold.start)).expected;
}

bool WhatIf::starts(const Remedy& change, Reason* why) {
  ++tries_;
  Transaction transaction(state_);
  if (job_.nomination) transaction.lift_nomination(job_.id);
  apply(transaction, state_, change, now_);
  if (change.at > now_) {
    transaction.look_at(change.at);
    start_held(transaction, change.at);
  }
  const auto refused = pending_reason(state_, changed(job_, change), std::max(now_, change.at), work_);
  if (refused && why != nullptr) *why = *refused;
  return !refused;
}

// A result that was cut short may not be minimal, so it is not told.
void WhatIf::tell(std::optional<Remedy> change) {
  if (!change || spent() || told_.size() >= effort_.changes) return;
  told_.push_back(std::move(*change));
}

std::vector<Remedy> WhatIf::run() {
  Reason why;
  if (job_.attempt || job_.is_parent() || starts({}, &why)) return {};
  if (why.code == ReasonCode::kHeld) {
    Remedy release;
    release.kind = RemedyKind::kRelease;
    if (starts(release)) tell(release);
  } else if (why.code == ReasonCode::kBehindQueueHead) {
    tell(priority(why.job));
  } else if (why.code == ReasonCode::kEarliestStart) {
    tell(wait());
  } else if (why.code != ReasonCode::kDependency && why.code != ReasonCode::kDependencyNever) {
    if (why.code == ReasonCode::kWouldDelayReservation || !state_.maintenance().empty()) tell(time_limit());
    tell(wait());
    tell(uncordon());
    wider_level();
    without_term();
    other_ports();
    for (std::size_t g = 0; g < job_.spec.groups.size(); ++g) {
      wider_group_level(g);
      other_numa(g);
      without_image(g);
      other_nodes(g);
      smaller_asks(g);
    }
    const Remedy quota = raise_limits();
    const bool enough = !quota.raises.empty() && starts(quota);
    if (enough) tell(quota);
    auto evicting = evict({});
    if (!evicting && !enough && !quota.raises.empty()) evicting = evict(quota.raises);
    tell(std::move(evicting));
  }
  for (Remedy& change : told_) change.taken_by = taken_by(change);
  return std::move(told_);
}

namespace {

// Returns true if the change helps other jobs too. A change of the job alone does not help the jobs ahead of it.
bool frees_others(const Remedy& change) {
  const bool limits = change.kind == RemedyKind::kQuota && !change.raises.empty();
  return limits || change.kind == RemedyKind::kWait || change.kind == RemedyKind::kUncordon ||
         change.kind == RemedyKind::kEvict || !change.shrinks.empty();
}

}  // namespace

// Returns the job ahead that would take the places which the change frees, or none(). Tries the jobs ahead as a cycle
// would, for as long as the job still fits beside those that start: kMostAskedBefore at most, without their preemption.
JobId WhatIf::taken_by(const Remedy& change) {
  if (!frees_others(change) || !job_.in_pending || job_.nomination) return JobId::none();
  const Timestamp when = std::max(now_, change.at);
  const std::set<JobId> held = state_.reservations();
  Transaction transaction(state_);
  apply(transaction, state_, change, now_);
  if (change.at > now_) {
    transaction.look_at(change.at);
    start_held(transaction, change.at);
  }
  SearchStats work;
  Order order(state_, when);
  for (std::size_t asked = 0; asked < kMostAskedBefore; ++asked) {
    const auto next = order.next();
    if (!next || *next == job_.id) break;
    const JobState& other = *state_.job(*next);
    if (held.contains(other.id) && !other.reservation) continue;  // its backfill reservation has started by then
    const auto placements = try_start(transaction, {state_, other, when, work}).placements;
    if (!placements) {
      order.refuse();
      continue;
    }
    transaction.place(other.id, *placements);
    if (pending_reason(state_, changed(job_, change), when, work)) return other.id;
  }
  return JobId::none();
}

std::optional<Remedy> WhatIf::priority(JobId head) {
  Remedy change;
  change.kind = RemedyKind::kPriority;
  change.from = job_.priority;
  const std::int64_t level = state_.job(head)->priority;  // the same priority is enough for the older one
  for (change.to = std::max<std::int64_t>(level, change.from + 1); change.to <= level + 1; ++change.to) {
    if (starts(change)) return change;
  }
  return std::nullopt;
}

// A job that ends before a backfill reservation or a maintenance window may start ahead of it, so the longest limit
// that helps ends at one of them.
std::optional<Remedy> WhatIf::time_limit() {
  const JobState* parent = state_.job(job_.parent);
  if (parent != nullptr && parent->spec.kind == JobKind::kService) return std::nullopt;
  std::set<std::int64_t> lengths_s;
  const std::int64_t saves_ms = job_.spec.checkpoint.on_signal ? state_.grace_ms(job_) : 0;  // after the limit
  for (const JobId owner : state_.reservations()) {
    lengths_s.insert((state_.job(owner)->reservation->start - now_ - saves_ms) / 1000);
  }
  for (const auto& [name, window] : state_.maintenance()) {
    lengths_s.insert((window.from - now_ - saves_ms) / 1000);
  }
  Remedy change;
  change.kind = RemedyKind::kTimeLimit;
  change.from = job_.spec.time_limit_s;
  for (auto length_s = lengths_s.rbegin(); length_s != lengths_s.rend() && *length_s > 0; ++length_s) {
    change.to = *length_s;
    if (starts(change)) return change;
  }
  return std::nullopt;
}

// The first of the times at which something ends, such that the job starts then and not at the one before. Later is
// easier, unless maintenance windows or backfill reservations come near or a job ends that this one must be near: then
// the first times are tried one by one.
std::optional<Remedy> WhatIf::wait() {
  std::vector<Timestamp> times;
  state::ExpectedEnds late(state_, now_);
  for (const state::RunningRow& row : state_.running_table().rows()) {
    const Timestamp ends[] = {ends_by(state_, row, now_, late), gives_back_by(state_, row, now_)};
    std::copy_if(std::begin(ends), std::end(ends), std::back_inserter(times),
                 [](Timestamp end) { return !end.is_never(); });
  }
  if (job_.not_before > now_) times.push_back(job_.not_before);
  if (job_.reservation && job_.reservation->start > now_) times.push_back(job_.reservation->start);
  for (const auto& [name, window] : state_.maintenance()) times.push_back(window.to);
  for (const JobId owner : state_.reservations()) {
    const Timestamp end = held_end(owner, *state_.job(owner)->reservation);
    if (!end.is_never()) times.push_back(end);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  std::size_t count = std::min(times.size(), kMostEnds);
  Remedy change;
  change.kind = RemedyKind::kWait;
  const auto starts_at = [&](std::size_t i) {
    change.at = times[i];
    return starts(change);
  };
  if (job_.reservation) {
    const auto held = std::lower_bound(times.begin(), times.end(), job_.reservation->start) - times.begin();
    const auto place = static_cast<std::size_t>(held);
    if (place < count && times[place] == job_.reservation->start && starts_at(place)) count = place + 1;
  }
  std::size_t refused = 0;  // so many of the first do not start it
  const bool needs_others = std::any_of(job_.spec.affinity.begin(), job_.spec.affinity.end(),
                                        [](const AffinityTerm& term) { return term.required; });
  const bool later_is_easier = state_.maintenance().empty() && state_.reservations().empty() && !needs_others;
  const std::size_t one_by_one = later_is_easier ? 0 : std::min(count, kOneByOne);
  for (; refused < one_by_one; ++refused) {
    if (starts_at(refused)) return change;
  }
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

std::optional<Remedy> WhatIf::uncordon() {
  Remedy change;
  change.kind = RemedyKind::kUncordon;
  for (const NodeState& node : state_.nodes()) {
    if (node.cordoned && node.status == NodeStatus::kReady && change.nodes.size() < kMostNodes)
      change.nodes.push_back(node.id);
  }
  if (change.nodes.empty() || !starts(change)) return std::nullopt;
  leave_out(change, &Remedy::nodes);
  return change;
}

void WhatIf::try_names(RemedyKind kind, std::size_t group, const std::set<std::string>& names) {
  std::size_t tried = 0;
  for (const std::string& name : names) {
    if (++tried > kMostNames) return;
    Remedy change;
    change.kind = kind;
    change.group = group;
    change.name = name;
    if (!starts(change)) continue;
    tell(change);
    return;
  }
}

// The same request on other nodes: other models, pools, taints or labels.
void WhatIf::other_nodes(std::size_t index) {
  const TaskGroup& group = job_.spec.groups[index];
  std::set<std::string> names;
  if (!group.request.gpu_models.empty()) {
    TaskRequest anywhere = group.request;
    anywhere.gpu_models.clear();
    for (const auto& model : state_.gpu_models()) {
      if (accepts(anywhere, model)) names.insert(model.name);
    }
    for (const std::string& model : group.request.gpu_models) names.erase(model);
    try_names(RemedyKind::kModel, index, names);
  }
  if (!group.pool.empty()) {
    names.clear();
    for (const auto& pool : state_.pools()) names.insert(pool.name);
    names.erase(group.pool);
    try_names(RemedyKind::kPool, index, names);
  }
  names.clear();
  for (const NodeState& node : state_.nodes()) {
    for (const Taint& taint : node.spec.taints) {
      if (!tolerates(group.tolerations, taint)) names.insert(taint.key);
    }
  }
  try_names(RemedyKind::kTolerate, index, names);
  names.clear();
  for (const auto& [key, value] : group.node_selector) names.insert(key);
  try_names(RemedyKind::kSelect, index, names);
  without_rule(index);
}

// The first of its node rules without which it would start.
void WhatIf::without_rule(std::size_t index) {
  const std::size_t rules = std::min(job_.spec.groups[index].node_rules.size(), kMostNames);
  for (std::size_t i = 0; i < rules; ++i) {
    Remedy change;
    change.kind = RemedyKind::kNoRule;
    change.group = index;
    change.from = static_cast<std::int64_t>(i);
    if (!starts(change)) continue;
    tell(std::move(change));
    return;
  }
}

// The narrowest level beyond the required one that is wide enough.
void WhatIf::wider_level() {
  const std::int32_t required = level_range(state_, job_.spec.topology).required;
  for (std::int32_t level = required - 1; level >= kAnywhere; --level) {
    Remedy change;
    change.kind = RemedyKind::kLevel;
    change.name = level_name(state_, level);
    if (!starts(change)) continue;
    tell(std::move(change));
    return;
  }
}

void WhatIf::wider_group_level(std::size_t group) {
  const std::int32_t required = level_range(state_, job_.spec.groups[group].topology).required;
  const std::int32_t widest = level_range(state_, job_.spec.topology).required;
  for (std::int32_t level = required - 1; level >= widest; --level) {
    Remedy change;
    change.kind = RemedyKind::kGroupLevel;
    change.group = group;
    change.name = level == widest ? std::string() : level_name(state_, level);
    if (!starts(change)) continue;
    tell(std::move(change));
    return;
  }
}

// The first of its required terms without which it would start.
void WhatIf::without_term() {
  const auto& near = job_.spec.affinity;
  const auto& away = job_.spec.anti_affinity;
  for (std::size_t i = 0; i < near.size() + away.size(); ++i) {
    if (!(i < near.size() ? near[i] : away[i - near.size()]).required) continue;
    Remedy change;
    change.kind = RemedyKind::kNoTerm;
    change.from = static_cast<std::int64_t>(i);
    if (!starts(change)) continue;
    tell(std::move(change));
    return;
  }
}

// One of its ports, or all of them.
void WhatIf::other_ports() {
  std::vector<std::int32_t> tried = job_.spec.ports;
  if (tried.size() > 1) tried.push_back(0);
  for (const std::int32_t port : tried) {
    Remedy change;
    change.kind = RemedyKind::kOtherPorts;
    change.from = port;
    if (!starts(change)) continue;
    tell(std::move(change));
    return;
  }
}

void WhatIf::other_numa(std::size_t group) {
  if (!is_strict(numa_policy(job_.spec, job_.spec.groups[group]))) return;
  Remedy change;
  change.kind = RemedyKind::kNuma;
  change.group = group;
  if (starts(change)) tell(std::move(change));
}

// An image may be all that says what is to run.
void WhatIf::without_image(std::size_t group) {
  if (job_.spec.groups[group].image.empty() || job_.spec.groups[group].command.empty()) return;
  Remedy change;
  change.kind = RemedyKind::kNoImage;
  change.group = group;
  if (starts(change)) tell(std::move(change));
}

std::optional<Remedy> WhatIf::largest(RemedyKind kind, std::size_t group, std::int64_t from, std::int64_t low,
                                      std::int64_t unit) {
  Remedy change;
  change.kind = kind;
  change.group = group;
  change.from = from;
  return largest(std::move(change), low, unit);
}

// Strict NUMA policies refuse some numbers of GPUs and take larger ones: 3 from two domains, but not 4 from one.
bool WhatIf::less_may_be_harder(const Remedy& change) const {
  if (change.kind != RemedyKind::kGpus) return false;
  const TaskGroup& group = job_.spec.groups[change.group];
  return !group.request.is_share() && is_strict(numa_policy(job_.spec, group));
}

std::optional<Remedy> WhatIf::largest(Remedy change, std::int64_t low, std::int64_t unit) {
  if (less_may_be_harder(change) && (change.from - low) / unit <= std::int64_t{kMaxGpusPerNode}) {
    for (change.to = change.from - unit; change.to >= low; change.to -= unit) {
      if (starts(change)) return change;
    }
    return std::nullopt;
  }
  change.to = low;
  if (low >= change.from || !starts(change)) return std::nullopt;
  std::int64_t refused = change.from;
  while (refused - change.to > unit) {
    Remedy more = change;
    more.to += (refused - change.to) / (2 * unit) * unit;
    if (starts(more))
      change = more;
    else
      refused = more.to;
  }
  return change;
}

void WhatIf::smaller_asks(std::size_t index) {
  const TaskGroup& group = job_.spec.groups[index];
  const TaskRequest& request = group.request;
  if (job_.spec.exclusive && index == 0) {
    Remedy change;
    change.kind = RemedyKind::kShareNodes;
    if (starts(change)) tell(change);
  }
  const bool instance = !request.mig_profile.empty();
  if (instance)
    smaller_profile(index);
  else if (request.is_share())
    less_beside_growth(RemedyKind::kGpus, index, request.gpu_milli, 1);
  else
    less_beside_growth(RemedyKind::kGpus, index, request.total_gpu_milli(), kMilli);
  less_beside_growth(RemedyKind::kTasks, index, group.least(), 1);
  tell(largest(RemedyKind::kCpus, index, request.cpu_milli, 1, 1));  // a task without CPU is of no use
  tell(largest(RemedyKind::kMemory, index, request.memory_mib, 1, 1));
}

// The largest profile that counts less than the requested one, or as much with more places on a GPU.
void WhatIf::smaller_profile(std::size_t index) {
  const TaskRequest& request = job_.spec.groups[index].request;
  std::set<std::tuple<std::int64_t, int, std::string_view>> smaller;  // by what they count, negated, and their places
  for (const state::GpuModelState& model : state_.gpu_models()) {
    if (!accepts(request, model)) continue;
    const auto size_of = [&](const MigProfile& profile) {
      return std::tuple(-std::int64_t{model.mig->milli_of(profile)}, std::popcount(profile.starts), profile.name);
    };
    const auto asked = size_of(*model.mig->profile_named(request.mig_profile));
    for (const MigProfile& profile : model.mig->profiles) {
      const auto size = size_of(profile);
      if (std::tie(std::get<0>(size), std::get<1>(size)) > std::tie(std::get<0>(asked), std::get<1>(asked)))
        smaller.insert(size);
    }
  }
  for (const auto& [negated, places, name] : smaller) {
    Remedy change;
    change.kind = RemedyKind::kProfile;
    change.group = index;
    change.from = request.gpu_milli;
    change.to = -negated;
    change.name = name;
    if (!starts(change)) continue;
    tell(std::move(change));
    return;
  }
}

// One unit at least, as much as possible; and more than that where elastic gangs give back what they have grown by.
void WhatIf::less_beside_growth(RemedyKind kind, std::size_t group, std::int64_t from, std::int64_t unit) {
  const auto alone = largest(kind, group, from, unit, unit);
  tell(alone);
  Remedy change;
  change.kind = kind;
  change.group = group;
  change.from = change.to = from;
  for (const JobId id : state_.elastic()) {
    const auto growth = all_growth_of(id);
    if (growth && change.shrinks.size() < kMostVictims) change.shrinks.push_back(*growth);
  }
  if (change.shrinks.empty() || starts(change)) return;  // it need not be less then
  auto beside = largest(std::move(change), alone ? alone->to + unit : unit, unit);
  if (!beside) return;
  spare(*beside);
  tell(std::move(beside));
}

std::vector<Remedy> smallest_remedies(State& state, JobId job, Timestamp now, const Effort& effort) {
  if (state.job(job) == nullptr) return {};
  return WhatIf(state, job, now, effort).run();
}

bool starts_with(State& state, JobId job, Timestamp now, const Remedy& change) {
  return WhatIf(state, job, now, {}).starts(change);
}

}  // namespace berth::explain
