// Folds the events of the cluster, keeps the sums, and checks answers and the end of an iteration. checker_jobs.cc has
// the lives of jobs, checker_places.cc where jobs may start, checker_stops.cc which jobs may be evicted for which,
// checker_scratch.cc what is recomputed from nothing.

#include "sim/world/checker.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace berth::sim {

void Checker::breach(const char* promise, const std::string& what) {
  if (violation_) return;
  violation_ =
      std::string(promise) + ": " + what + " (event " + std::to_string(seq_) + ", " + std::to_string(now_.ms) + " ms)";
}

void Checker::on_records(std::span<const EventRecord> records, const state::State&) {
  for (const EventRecord& record : records) {
    if (violation_) return;
    require(record.seq == seq_ + 1, "P8", "sequence numbers leave a gap");
    seq_ = record.seq;
    require(record.time >= now_, "P7", "time goes back");
    check_time(record.time);
    pass_time(record.time);
    std::visit([this](const auto& event) { on(event); }, record.event);
  }
}

void Checker::pass_time(Timestamp now) {
  const std::int64_t passed = now - total_to_;
  total_integral_ += bound_milli_ * passed;
  for (FleetBook& one : fleet_books_) {
    one.there_ms += one.there * passed;
    one.down_ms += one.down * passed;
    one.foreign_ms += one.foreign * passed;
  }
  total_to_ = now_ = now;
}

Checker::JobView* Checker::live(JobId id, const char* what) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) {
    breach("P8", std::string(what) + " of " + text_of(id) + ", which is not live");
    return nullptr;
  }
  return &found->second;
}

Checker::JobView* Checker::live_attempt(JobId id, std::uint32_t attempt, const char* what) {
  JobView* job = live(id, what);
  if (job == nullptr) return nullptr;
  if (!job->running || job->attempts != attempt) {
    breach("P9", std::string(what) + " of attempt " + std::to_string(attempt) + " of " + text_of(id) +
                     ", which is at " + std::to_string(job->attempts) + (job->running ? "" : " and waits"));
    return nullptr;
  }
  return job;
}

// --- the cluster ---

std::uint32_t Checker::model_index(const std::string& name) {
  const auto found = std::find(models_.begin(), models_.end(), name);
  if (found != models_.end()) return static_cast<std::uint32_t>(found - models_.begin());
  models_.push_back(name);
  weights_.push_back(1000);
  fleet_books_.emplace_back();
  return static_cast<std::uint32_t>(models_.size() - 1);
}

QuotaAmounts Checker::guarantee_of(const ResourceAmounts& named) {
  QuotaAmounts guarantee;
  if (named.gpu_milli) guarantee.state(kDimGpu, *named.gpu_milli);
  if (named.cpu_milli) guarantee.state(kDimCpu, *named.cpu_milli);
  if (named.memory_mib) guarantee.state(kDimMemory, *named.memory_mib);
  for (const auto& [model, milli] : named.model_gpu_milli) guarantee.state(kDimFirstModel + model_index(model), milli);
  return guarantee;
}

namespace {

// Returns true if `holds` is true for a dimension that decides whether a guarantee is used: GPUs, or all dimensions if
// the guarantee states no GPUs.
template <class Holds>
bool any_judged(const QuotaAmounts& guaranteed, Holds&& holds) {
  bool of_gpus = false;
  for (std::size_t d = 0; d < kDims; ++d)
    of_gpus = of_gpus || (guaranteed.states(d) && d != kDimCpu && d != kDimMemory);
  for (std::size_t d = 0; d < kDims; ++d) {
    const bool judged = guaranteed.states(d) && of_gpus == (d != kDimCpu && d != kDimMemory);
    if (judged && holds(d)) return true;
  }
  return false;
}

}  // namespace

// Returns true if the queue uses more than half of its guarantee.
bool Checker::is_busy(const QueueView& queue) {
  return any_judged(queue.guaranteed, [&](std::size_t d) { return queue.usage[d] > queue.guaranteed.amounts[d] / 2; });
}

// Notes since when the queue uses more than its decayed guarantee. Only usage counts here; pending jobs are not
// counted.
void Checker::note_shortness(QueueView& queue) {
  const bool is_short = queue.guarantee_decay_ms > 0 && any_judged(queue.guaranteed, [&](std::size_t d) {
                          return queue.usage[d] > queue.guaranteed.amounts[d] &&
                                 queue.guaranteed.amounts[d] < queue.configured.amounts[d];
                        });
  if (!is_short)
    queue.short_since = Timestamp::never();
  else if (queue.short_since.is_never())
    queue.short_since = now_;
}

void Checker::check_restored(Timestamp now) {
  for (const QueueView& queue : queues_) {
    if (queue.short_since.is_never() || queue.removed) continue;
    require(now - queue.short_since < queue.guarantee_decay_ms, "P3",
            "the guarantee of '" + queue.path + "' is not given back though more than what is left is used");
  }
}

void Checker::on(const GuaranteeChanged& event) {
  count(event.restored ? "guarantee restored" : "guarantee decayed");
  const auto found = queue_of_.find(event.queue);
  if (found == queue_of_.end()) return breach("P3", "a guarantee of no queue changes");
  QueueView& queue = queues_[found->second];
  const QuotaAmounts left = guarantee_of(event.to);
  const std::string who = "the guarantee of '" + queue.path + "' ";
  require(guarantee_of(event.from) == queue.guaranteed, "P3", who + "was not what it is said to have been");
  require(queue.guarantee_decay_ms > 0 && now_ - queue.guarantee_since >= queue.guarantee_decay_ms, "P3",
          who + "changes before a window is over");
  for (std::size_t d = 0; d < kDims; ++d) {
    require(left.states(d) == queue.configured.states(d), "P3", who + "is of something else than it was");
    if (!left.states(d)) continue;
    const std::int64_t amount = left.amounts[d];
    const std::int64_t before = queue.guaranteed.amounts[d];
    const std::int64_t unit = d == kDimMemory ? 1 : kMilli;  // it shrinks to whole ones, so by less than one too much
    const bool right = event.restored ? amount == queue.configured.amounts[d]
                                      : amount <= before && amount >= std::min(queue.usage[d], before) &&
                                            2 * amount > before + queue.usage[d] - 2 * unit;
    require(right, "P3", who + "becomes less than is used and half of the rest, or not what is configured");
  }
  require(event.restored || (!is_busy(queue) && now_ - queue.busy_at >= queue.guarantee_decay_ms), "P3",
          who + "decays though more than half of it was used");
  queue.guaranteed = left;
  queue.guarantee_since = now_;
  note_shortness(queue);
  roomier_.insert(found->second);
}

void Checker::set_limits(QueueView& queue, const QueueConfig& config) {
  const auto resolve = [this](const ResourceAmounts& named, const auto& set) {
    if (named.gpu_milli) set(kDimGpu, *named.gpu_milli);
    if (named.cpu_milli) set(kDimCpu, *named.cpu_milli);
    if (named.memory_mib) set(kDimMemory, *named.memory_mib);
    for (const auto& [model, milli] : named.model_gpu_milli) set(kDimFirstModel + model_index(model), milli);
  };
  const QuotaAmounts configured = guarantee_of(config.guaranteed);
  if (!(configured == queue.configured) || config.guarantee_decay_s * 1000 != queue.guarantee_decay_ms) {
    queue.guaranteed = queue.configured = configured;
    queue.guarantee_decay_ms = config.guarantee_decay_s * 1000;
    queue.guarantee_since = now_;
  }
  queue.max = Amounts::unlimited();
  queue.lending = Amounts::unlimited();
  resolve(config.max, [&](std::size_t d, std::int64_t amount) { queue.max[d] = amount; });
  resolve(config.lending_limit, [&](std::size_t d, std::int64_t amount) { queue.lending[d] = amount; });
  queue.strict = config.policy == QueuePolicy::kStrict;
  set_budget(queue.budgets[static_cast<std::size_t>(BudgetKind::kBudget)], config.budget);
  set_budget(queue.budgets[static_cast<std::size_t>(BudgetKind::kGrant)], config.grant);
  queue.attained_service = config.attained_service;
  const QueueView& parent = queues_[queue.parent];
  queue.eviction = config.eviction;
  if (!queue.eviction.min_runtime_s) queue.eviction.min_runtime_s = parent.eviction.min_runtime_s;
  if (!queue.eviction.cooldown_s) queue.eviction.cooldown_s = parent.eviction.cooldown_s;
  if (!queue.eviction.grace_s) queue.eviction.grace_s = parent.eviction.grace_s;
  if (queue.eviction.evictions_per_hour == 0) queue.evictions.clear();
  queue.domain = config.trust_domain.empty() ? queues_[queue.parent].domain : config.trust_domain;
}

void Checker::follow_moves(const std::vector<QueueMove>& moves) {
  if (moves.empty()) return;
  count("queues renamed");
  for (auto& [id, job] : jobs_) {  // what ran until now is the old name's
    for (ChargeView& charge : job.charges) book(job, charge);
  }
  std::map<std::string, std::uint32_t> paths;
  for (const auto& [path, index] : queue_of_) {
    const auto [at, fresh] = paths.emplace(moved_path(path, moves), index);
    require(fresh, "P8", "two queues have one path after a rename");
    queues_[index].path = at->first;
  }
  queue_of_ = {paths.begin(), paths.end()};
  for (auto& [id, job] : jobs_) job.spec.queue = moved_path(job.spec.queue, moves);
}

void Checker::on(const ClusterConfigured& event) {
  count("configured");
  require(event.version == config_version_ + 1, "P8", "configuration versions do not follow each other");
  config_version_ = event.version;
  configure(config_after(event), event.moves);
}

// Takes the configuration that is in force from now on.
void Checker::configure(const ClusterConfig& config, const std::vector<QueueMove>& moves) {
  config_ = config;
  std::fill(weights_.begin(), weights_.end(), 1000);
  for (const GpuModelConfig& model : config.gpu_models) weights_[model_index(model.name)] = model.weight_permille;
  if (queues_.empty()) {
    queues_.emplace_back();
    queue_of_.emplace("", 0);
  }
  follow_moves(moves);
  for (QueueView& queue : queues_) {
    queue.removed = &queue != queues_.data();
    queue.children.clear();
  }
  const SchedulingConfig& rules = config.scheduling;
  queues_.front().eviction = {rules.min_runtime_s, rules.cooldown_s, rules.default_grace_s, 0};
  for (const QueueConfig& one : config.queues) {
    const std::size_t slash = one.path.rfind('/');
    const std::uint32_t parent = queue_of_.at(slash == std::string::npos ? "" : one.path.substr(0, slash));
    const auto [found, fresh] = queue_of_.try_emplace(one.path, static_cast<std::uint32_t>(queues_.size()));
    if (fresh) queues_.emplace_back();
    QueueView& queue = queues_[found->second];
    queue.path = one.path;
    queue.parent = parent;
    queue.depth = queues_[parent].depth + 1;
    queue.removed = false;
    queues_[parent].children.push_back(found->second);
    set_limits(queue, one);
    roomier_.insert(found->second);
  }
  for (QueueView& queue : queues_) {
    if (!queue.removed) continue;
    queue.guaranteed = queue.configured = {};
    queue.guarantee_decay_ms = 0;
    queue.evictions.clear();
    queue.budgets = {};
  }
  recount();
  for (QueueView& queue : queues_) note_shortness(queue);
}

void Checker::change(const std::string& queue, const std::vector<LimitChange>& limits, std::uint64_t version) {
  require(version == config_version_ + 1, "P8", "configuration versions do not follow each other");
  config_version_ = version;
  ClusterConfig config = config_;
  put_limits(config, queue, limits);
  configure(config, {});
}

void Checker::on(const QueueChanged& event) {
  count("queue changed");
  change(event.queue, event.limits, event.version);
}

void Checker::on(const QueueChangeEnded& event) {
  count(event.undone ? "queue change undone" : "lease of a queue change ended");
  change(event.queue, event.limits, event.version);
}

// Recounts all charges after GPU weights have changed. No job is evicted for it.
void Checker::recount() {
  for (QueueView& queue : queues_) {
    integrate(queue);
    queue.usage = queue.within = queue.nominated = queue.nominated_within = {};
    queue.borrowed.clear();
  }
  for (auto& [id, job] : jobs_) {
    for (std::uint32_t c = 0; c < job.charges.size(); ++c) {
      ChargeView& one = job.charges[c];
      const std::vector<TaskPlacement> tasks{job.placements.begin() + one.first,
                                             job.placements.begin() + one.first + one.tasks};
      one.amounts = amounts_of(tasks);
      one.burst = in_burst(tasks);
      charge(job, one, c, +1);
    }
    if (!job.nomination) continue;
    job.nomination->amounts = amounts_of(job.nomination->placements);
    promise_of_queues(job, +1);
  }
}

void Checker::install(NodeView& node) {
  node.cpu = node.memory = node.nominated_cpu = node.nominated_memory = 0;
  node.exclusive = 0;
  node.counted.clear();
  node.nominated_counted.clear();
  for (const GpuView& gpu : node.gpus) bound_milli_ -= gpu.bound;
  node.gpus.clear();
  for (const Gpu& gpu : node.spec.gpus) {
    GpuView view;
    view.model = model_index(gpu.model);
    view.healthy = gpu.healthy;
    node.gpus.push_back(view);
  }
}

// --- sums ---

Amounts Checker::amounts_of(const std::vector<TaskPlacement>& placements) const {
  Amounts amounts;
  for (const TaskPlacement& placement : placements) {
    amounts[kDimCpu] += placement.cpu_milli;
    amounts[kDimMemory] += placement.memory_mib;
    for (const std::uint8_t gpu : placement.gpus) {
      const std::uint32_t model = nodes_[placement.node.index()].gpus[gpu].model;
      amounts[kDimGpu] += placement.gpu_milli;
      amounts[kDimGpuEquivalent] += placement.gpu_milli * weights_[model];
      amounts[kDimFirstModel + model] += placement.gpu_milli;
    }
  }
  return amounts;
}

void Checker::integrate(QueueView& queue) {
  queue.integral += queue.usage[kDimGpu] * (now_ - queue.integrated_to);
  queue.integrated_to = now_;
  keep_history(queue);
}

// Adds to the accounts what the charge used since it was last added.
void Checker::book(JobView& job, ChargeView& one) {
  const std::int64_t passed = now_ - one.since;
  one.since = now_;
  if (passed == 0) return;
  queues_[job.queue].billed += one.amounts[kDimGpu] * passed;
  job.past_service += one.amounts[kDimGpu] * passed;
  for (std::uint32_t t = one.first; t < one.first + one.tasks; ++t) {
    const TaskPlacement& task = job.placements[t];
    const auto account = [&](std::uint32_t model) -> Book& {
      return books_[{job.spec.queue, job.spec.user, model, !one.guaranteed}];
    };
    const auto model_of = [&](std::uint8_t gpu) { return nodes_[task.node.index()].gpus[gpu].model + 1; };
    for (const std::uint8_t gpu : task.gpus) account(model_of(gpu)).gpu += task.gpu_milli * passed;
    Book& rest = account(task.gpus.empty() ? 0 : model_of(task.gpus.front()));
    rest.cpu += task.cpu_milli * passed;
    rest.memory += task.memory_mib * passed;
  }
}

std::int64_t* Checker::account_of_unused(const NodeView& node, const GpuView& gpu) {
  FleetBook& book = fleet_books_[gpu.model];
  return is_down(node, gpu) ? &book.down : gpu.foreign ? &book.foreign : nullptr;
}

void Checker::count_countables(std::map<std::string, std::int64_t>& sums, const TaskPlacement& placement, int sign) {
  sums["pods"] += sign;
  for (const auto& [name, amount] : placement.countables) sums[name] += sign * amount;
}

void Checker::count_fleet(const NodeView& node, int sign) {
  for (const GpuView& gpu : node.gpus) {
    FleetBook& one = fleet_books_[gpu.model];
    one.there += sign * kMilli;
    if (std::int64_t* unused = account_of_unused(node, gpu)) *unused += sign * (kMilli - gpu.bound);
  }
}

void Checker::bind(const JobView& job, const TaskPlacement& placement, int sign) {
  NodeView& node = nodes_[placement.node.index()];
  node.cpu += sign * placement.cpu_milli;
  node.memory += sign * placement.memory_mib;
  count_countables(node.counted, placement, sign);
  if (job.spec.exclusive) node.exclusive += sign;
  for (const std::uint8_t index : placement.gpus) {
    GpuView& gpu = node.gpus[index];
    gpu.bound += sign * placement.gpu_milli;
    bound_milli_ += sign * placement.gpu_milli;
    if (std::int64_t* unused = account_of_unused(node, gpu)) *unused -= sign * placement.gpu_milli;
    if (const MigGeometry* mig = geometry_of(gpu.model)) {
      const std::uint32_t slices = placement.slices == 0 ? mig->all() : placement.slices;
      for (std::uint32_t s = 0; s < 8; ++s) gpu.slices[s] += (slices >> s & 1U) != 0 ? sign : 0;
      continue;
    }
    if (placement.gpu_milli == kMilli) continue;
    gpu.sharers += sign;
    if (sign > 0 && gpu.sharers == 1) gpu.domain = queues_[job.queue].domain;
  }
}

void Checker::promise(const TaskPlacement& placement, int sign) {
  NodeView& node = nodes_[placement.node.index()];
  node.nominated_cpu += sign * placement.cpu_milli;
  node.nominated_memory += sign * placement.memory_mib;
  count_countables(node.nominated_counted, placement, sign);
  for (const std::uint8_t gpu : placement.gpus) node.gpus[gpu].nominated += sign * placement.gpu_milli;
}

void Checker::charge(const JobView& job, const ChargeView& one, std::uint32_t index, int sign) {
  for (std::uint32_t q = job.queue;; q = queues_[q].parent) {
    QueueView& queue = queues_[q];
    integrate(queue);
    if (is_busy(queue)) queue.busy_at = now_;
    const bool within = (one.within >> queue.depth & 1U) != 0;
    if (sign > 0) {
      queue.usage += one.amounts;
      if (within)
        queue.within += one.amounts;
      else
        queue.borrowed.emplace(one.order, job.id, index);
    } else {
      queue.usage -= one.amounts;
      if (within)
        queue.within -= one.amounts;
      else
        queue.borrowed.erase({one.order, job.id, index});
      roomier_.insert(q);
    }
    if (is_busy(queue)) queue.busy_at = now_;
    note_shortness(queue);
    if (q == 0) break;
  }
}

void Checker::drop_nomination(JobView& job) {
  if (!job.nomination) return;
  for (const TaskPlacement& placement : job.nomination->placements) promise(placement, -1);
  promise_of_queues(job, -1);
  for (std::uint32_t q = job.queue;; q = queues_[q].parent) {
    roomier_.insert(q);
    if (q == 0) break;
  }
  job.nomination.reset();
  less_is_kept_ = true;
}

void Checker::promise_of_queues(const JobView& job, int sign) {
  Amounts amounts = job.nomination->amounts;
  if (sign < 0) amounts = Amounts() - amounts;
  for (std::uint32_t q = job.queue;; q = queues_[q].parent) {
    queues_[q].nominated += amounts;
    if ((job.nomination->within >> queues_[q].depth & 1U) != 0) queues_[q].nominated_within += amounts;
    if (q == 0) break;
  }
}

// Returns true if the guarantee covers the request: its GPUs, or, for a request without GPUs, its CPU or memory.
bool Checker::is_of(const QuotaAmounts& floor, const Amounts& asked) {
  bool of_gpus = floor.states(kDimGpu);
  bool other_model = false;
  for (std::size_t d = kDimFirstModel; d < kDims; ++d) {
    of_gpus = of_gpus || floor.states(d);
    other_model = other_model || (asked[d] > 0 && !floor.states(d) && !floor.states(kDimGpu));
  }
  const bool of_the_rest =
      (floor.states(kDimCpu) && asked[kDimCpu] > 0) || (floor.states(kDimMemory) && asked[kDimMemory] > 0);
  return asked[kDimGpu] > 0 ? of_gpus && !other_model : of_the_rest;
}

bool Checker::fits_guarantee(const QueueView& queue, const Amounts& used, const Amounts& asked) const {
  if (!is_of(queue.guaranteed, asked)) return false;
  for (std::size_t d = 0; d < kDims; ++d) {
    if (queue.guaranteed.states(d) && asked[d] > 0 && used[d] + asked[d] > queue.guaranteed.amounts[d]) return false;
  }
  return true;
}

// Returns the mask of guarantees that the charge is within. A charge in burst pools is within none. For a move, `stood`
// is the mask before it: there the charge stays within, whatever is nominated to other jobs.
std::uint64_t Checker::within_of(const JobView& job, const ChargeView& charge, std::uint64_t stood) const {
  std::uint64_t mask = 1;
  for (std::uint32_t q = job.queue; q != 0 && !charge.burst; q = queues_[q].parent) {
    const bool stands = (stood >> queues_[q].depth & 1U) != 0;
    const Amounts used = stands ? queues_[q].within : queues_[q].within + queues_[q].nominated_within;
    if (fits_guarantee(queues_[q], used, charge.amounts)) mask |= std::uint64_t{1} << queues_[q].depth;
  }
  return mask;
}

bool Checker::guaranteed(std::uint32_t queue, std::uint64_t within) const {
  for (std::uint32_t q = queue; q != 0; q = queues_[q].parent) {
    if ((within >> queues_[q].depth & 1U) == 0) return false;
  }
  return true;
}

// Returns the children of the lowest common ancestor on the paths to both queues; they are equal if one queue is below
// the other.
std::pair<std::uint32_t, std::uint32_t> Checker::siblings(std::uint32_t a, std::uint32_t b) const {
  std::pair<std::uint32_t, std::uint32_t> below{a, b};
  while (a != b) {
    if (queues_[a].depth >= queues_[b].depth) {
      below.first = a;
      a = queues_[a].parent;
    } else {
      below.second = b;
      b = queues_[b].parent;
    }
  }
  return below;
}

// --- what is seen outside ---

void Checker::expect_submission(std::uint64_t ticket, const std::string& user, const std::string& key) {
  expected_.emplace(ticket, Submission{user, key});
}

void Checker::on_answer(const Answer& answer) {
  const auto found = expected_.find(answer.ticket);
  if (found == expected_.end()) return;
  if (answer.reply) {
    const JobId job = answer.reply.value().job;
    require(jobs_.contains(job) || finished_.contains(job), "P8",
            "a submission was answered with " + text_of(job) + ", which is not durable");
    const auto known = answered_.find({found->second.user, found->second.key});
    require(found->second.key.empty() || (known != answered_.end() && known->second == job), "P8",
            "key '" + found->second.key + "' was answered with " + text_of(job) + ", which it did not make");
  }
  expected_.erase(found);
}

void Checker::on_effect(const Effect& effect, const state::State&) {
  if (const auto* start = std::get_if<StartTask>(&effect)) {
    const auto job = jobs_.find(start->key.job);
    const bool due = job != jobs_.end() && job->second.running && job->second.attempts == start->key.attempt &&
                     start->key.task < job->second.over.size() && !job->second.over[start->key.task] &&
                     job->second.incarnations[start->key.task] == start->key.incarnation;
    require(due, "P9", "a task of " + text_of(start->key.job) + " is started that no durable event asks for");
  } else if (const auto* forget = std::get_if<ForgetTask>(&effect)) {
    const auto job = jobs_.find(forget->key.job);
    const bool current = job != jobs_.end() && job->second.running && job->second.attempts == forget->key.attempt;
    const bool known = current && forget->key.task < job->second.over.size() &&
                       job->second.incarnations[forget->key.task] == forget->key.incarnation;
    require(!known || job->second.over[forget->key.task], "P8", "an exit is forgotten that is not durable");
  }
}

void Checker::check_promotions(const QueueView& queue) {
  for (const auto& [order, id, index] : queue.borrowed) {
    const ChargeView& one = jobs_.at(id).charges[index];
    require(one.burst || !fits_guarantee(queue, queue.within + queue.nominated_within, one.amounts), "P3",
            text_of(id) + " stays borrowed in '" + queue.path + "' though there is room");
  }
}

void Checker::check_deadlines(Timestamp now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto [when, id] = *deadlines_.begin();
    deadlines_.erase(deadlines_.begin());
    const auto job = jobs_.find(id);
    if (job == jobs_.end() || !job->second.running) continue;
    const auto& stop = job->second.stop;
    if (stop && stop->deadline <= now)
      require(stop->forced, "P13", text_of(id) + " is not killed though its grace is over");
    const std::int64_t limit = job->second.spec.time_limit_s;
    if (!job->second.stopping() && limit > 0) {
      require(job->second.started + limit * 1000 > now, "P13", text_of(id) + " runs on after its time limit");
    }
  }
}

void Checker::on_iteration_end(const state::State&, Timestamp now, bool quiet) {
  check_deadlines(now);
  check_windows(now);
  check_restored(now);
  for (const std::uint32_t queue : roomier_) check_promotions(queues_[queue]);
  roomier_.clear();
  for (const std::uint32_t q : contended_) breach("P3", "room in '" + queues_[q].path + "' was taken for nobody");
  check_borrows_nothing();
  for (const JobId id : complete_) breach("P13", text_of(id) + " has no task left and does not end");
  for (const JobId id : failing_) {
    const auto job = jobs_.find(id);
    require(job == jobs_.end() || !job->second.running || job->second.stopping(), "P2",
            text_of(id) + " runs on with a task that failed");
  }
  failing_.clear();
  for (const JobId id : shrinking_) {
    const JobView& job = jobs_.at(id);
    require(std::find(job.over.begin() + job.stop->keep, job.over.end(), false) != job.over.end(), "P13",
            text_of(id) + " has given its tasks back and they stay on the books");
  }
  for (const JobId id : on_notice_) {
    require(nominated_elsewhere(id, jobs_.at(id).stop->preemptor), "P5",
            text_of(id) + " is not let off though its claimant is gone");
  }
  for (const JobId id : cancelling_) {
    const auto job = jobs_.find(id);
    const bool handled = job == jobs_.end() || job->second.stopping() || job->second.spec.kind == JobKind::kArray ||
                         job->second.spec.kind == JobKind::kService;
    require(handled, "P13", text_of(id) + " was cancelled and goes on");
  }
  cancelling_.clear();
  for (const std::size_t node : flapping_) {
    breach("P9", "node " + nodes_[node].spec.name + " came and went too often and is not kept out");
  }
  flapping_.clear();
  if (quiet && std::exchange(less_is_kept_, false)) check_waiting(now);
}

}  // namespace berth::sim
