// The fold: who holds what from when on. What that makes of the floors is in ledger_shares.cc.

#include "billing/ledger.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "base/checked.h"

namespace berth::billing {
namespace {

bool same_kind(const JobUse& a, const JobUse& b) {
  return a.model == b.model && a.slice == b.slice && a.guaranteed == b.guaranteed;
}

// Returns a use of that kind that is zero.
JobUse kind_of_use(const JobUse& kind) {
  return {.job = kind.job, .part = kind.part, .model = kind.model, .slice = kind.slice, .guaranteed = kind.guaranteed};
}

// Returns the entry of the same kind, which is new and zero if there was none.
JobUse& entry_of(std::vector<JobUse>& uses, const JobUse& kind) {
  const auto found = std::find_if(uses.begin(), uses.end(), [&](const JobUse& one) { return same_kind(one, kind); });
  if (found != uses.end()) return *found;
  uses.push_back(kind_of_use(kind));
  return uses.back();
}

void add_use(JobUse& sum, const JobUse& rate, std::int64_t times) {
  sum.gpu_milli_ms = checked_add(sum.gpu_milli_ms, checked_multiply(rate.gpu_milli_ms, times));
  sum.units_milli_ms = checked_add(sum.units_milli_ms, checked_multiply(rate.units_milli_ms, times));
  sum.cpu_milli_ms = checked_add(sum.cpu_milli_ms, checked_multiply(rate.cpu_milli_ms, times));
  sum.memory_mib_ms = checked_add(sum.memory_mib_ms, checked_multiply(rate.memory_mib_ms, times));
}

bool is_nothing(const JobUse& use) {
  return use.gpu_milli_ms == 0 && use.units_milli_ms == 0 && use.cpu_milli_ms == 0 && use.memory_mib_ms == 0;
}

void add_accounts(FleetAccounts& sum, const FleetAccounts& rate, std::int64_t ms) {
  for (const auto account : {&FleetAccounts::floor_used, &FleetAccounts::floor_idle, &FleetAccounts::floor_lent,
                             &FleetAccounts::burst, &FleetAccounts::unowned, &FleetAccounts::drained,
                             &FleetAccounts::failed, &FleetAccounts::foreign, &FleetAccounts::capacity}) {
    sum.*account = checked_add(sum.*account, checked_multiply(rate.*account, ms));
  }
}

}  // namespace

Ledger::Ledger(Window window) : window_(std::move(window)), part_(window_.part_after(0)) { queue_index(""); }

void Ledger::apply(const EventRecord& record) {
  if (began_.is_never()) began_ = record.time;
  advance(record.time);
  seq_ = record.seq;
  const bool inside = record.time >= window_.from && record.time < window_.to;
  if (inside && first_seq_ == 0) first_seq_ = record.seq;
  if (inside) last_seq_ = record.seq;
  if (const auto* corrected = std::get_if<BillCorrected>(&record.event); corrected != nullptr && inside)
    corrections_.push_back({*corrected, record.seq, record.time});
  std::visit([this](const auto& event) { on(event); }, record.event);
}

void Ledger::add_report(const QuantityReported& report, Seq seq) {
  if (report.from >= window_.from && report.from < window_.to) reports_.push_back({report, seq});
}

Timestamp Ledger::next_edge() const {
  if (now_ < window_.from) return window_.from;
  return passed_ < window_.cuts.size() ? window_.cuts[passed_] : window_.to;
}

void Ledger::advance(Timestamp now) {
  while (now > now_) {
    const Timestamp edge = next_edge();
    const bool at_edge = edge > now_ && edge <= now;
    const Timestamp until = at_edge ? edge : now;
    if (counts()) {
      if (dirty_) share_out();
      flow(until - now_);
    }
    now_ = until;
    if (!at_edge) continue;
    at_edge_ = true;
    settle_all();
    at_edge_ = false;
    if (passed_ < window_.cuts.size() && edge == window_.cuts[passed_]) part_ = window_.part_after(++passed_);
  }
}

void Ledger::look_ahead(Timestamp until) {
  look_ = until;
  if (dirty_) share_out();
}

Timestamp Ledger::counted_until() const { return std::min(std::max({now_, look_, window_.from}), window_.to); }

// The window may have begun since the last event: what is looked ahead at then begins with it.
std::int64_t Ledger::ahead() const { return over() ? 0 : counted_until() - std::max(now_, window_.from); }

void Ledger::flow(std::int64_t ms) {
  for (auto& [index, model] : models_) add_accounts(model.sum, model.now, ms);
}

// Adds what the share has come to since it last changed. The edges of the window and the cuts settle every share, as
// they do every job.
void Ledger::settle_share(const HeldShare& held) {
  const Timestamp since = std::max(held.since, window_.from);
  const Timestamp until = std::min(now_, window_.to);
  const bool followed = follows(held.share);
  if (followed) add_stretch(since, until, {.gpu_milli_ms = held.rate});
  if (until <= since) return;
  auto& sum = floor_sums_[{held.share, part_}];
  sum = checked_add(sum, checked_multiply(held.rate, until - since));
}

void Ledger::settle_shares() {
  for (HeldShare& held : shares_) {
    settle_share(held);
    held.since = now_;
  }
}

// Takes the new shares in the place of the present ones, and settles only those that differ: at one instant a few of
// many hundreds do.
void Ledger::replace_shares() {
  std::sort(new_shares_.begin(), new_shares_.end(),
            [](const HeldShare& a, const HeldShare& b) { return a.share < b.share; });
  auto old = shares_.begin();
  for (HeldShare& fresh : new_shares_) {
    for (; old != shares_.end() && old->share < fresh.share; ++old) settle_share(*old);
    fresh.since = now_;
    if (old == shares_.end() || old->share != fresh.share) {
      if (follows(fresh.share)) following_->began = seq_;
      continue;
    }
    if (old->rate == fresh.rate)
      fresh.since = old->since;
    else
      settle_share(*old);
    ++old;
  }
  for (; old != shares_.end(); ++old) settle_share(*old);
  shares_.swap(new_shares_);
  new_shares_.clear();
}

// Moves what the job has used since it was last settled into its sums. The edges of the window and the cuts settle
// every job, so the time between lies in one part, or wholly outside.
void Ledger::settle(JobId id, Job& job) {
  const Timestamp since = std::max(job.since, window_.from);
  const Timestamp until = std::min(now_, window_.to);
  job.since = now_;
  if (following_ && following_->what.job == id) follow_job(id, job, since, until);
  if (until <= since) return;
  for (const JobUse& rate : job.rates) {
    if (is_nothing(rate)) continue;
    job.used = true;
    JobUse kind = rate;
    kind.job = id;
    kind.part = part_;
    add_use(entry_of(job.uses, kind), rate, until - since);
  }
}

void Ledger::settle_all() {
  settle_shares();
  for (auto& [id, job] : running_) {
    settle(id, *job);
    for (const JobUse& use : job->uses) done_.push_back(use);
    job->uses.clear();
  }
}

bool Ledger::follows(const Share& share) const {
  return following_ && !following_->what.job.valid() && following_->what.lender == share.lender &&
         following_->what.borrower == share.borrower && following_->what.idle == share.idle &&
         following_->what.own == share.own && following_->what.model == names_[share.model];
}

void Ledger::follow_job(JobId id, const Job& job, Timestamp from, Timestamp to) {
  const Followed& what = following_->what;
  JobUse rate;
  for (const JobUse& one : job.rates) {
    if (one.guaranteed == what.guaranteed && names_[one.model] == what.model && names_[one.slice] == what.slice)
      add_use(rate, one, 1);
  }
  rate.job = id;
  add_stretch(from, to, rate);
}

// Where nothing of it was used there is no stretch.
void Ledger::add_stretch(Timestamp from, Timestamp to, const JobUse& rate) {
  const Seq began = std::exchange(following_->began, cause());
  if (to <= from || is_nothing(rate)) return;
  std::vector<Stretch>& all = following_->stretches;
  const bool goes_on =
      !all.empty() && all.back().to == from && all.back().ended == began && began != 0 &&
      all.back().rate.gpu_milli_ms == rate.gpu_milli_ms && all.back().rate.units_milli_ms == rate.units_milli_ms &&
      all.back().rate.cpu_milli_ms == rate.cpu_milli_ms && all.back().rate.memory_mib_ms == rate.memory_mib_ms;
  if (!goes_on) all.push_back({from, to, rate, began, 0});
  all.back().to = to;
  all.back().ended = cause();
}

void Ledger::end_stretch() {
  if (dirty_) share_out();
  at_edge_ = true;
  settle_all();
  at_edge_ = false;
}

std::uint16_t Ledger::name_index(const std::string& name) {
  const auto [found, fresh] = name_indexes_.emplace(name, static_cast<std::uint16_t>(names_.size()));
  if (fresh) names_.push_back(name);
  return found->second;
}

std::uint32_t Ledger::queue_index(const std::string& path) {
  const auto found = queue_indexes_.find(path);
  if (found != queue_indexes_.end()) return found->second;
  Queue queue;
  queue.path = path;
  if (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    queue.parent = queue_index(slash == std::string::npos ? "" : path.substr(0, slash));
  }
  const auto index = static_cast<std::uint32_t>(queues_.size());
  queues_.push_back(std::move(queue));
  queue_indexes_.emplace(path, index);
  const auto place = std::lower_bound(queues_by_path_.begin(), queues_by_path_.end(), path,
                                      [&](std::uint32_t q, const std::string& p) { return queues_[q].path < p; });
  queues_by_path_.insert(place, index);
  dirty_ = true;
  return index;
}

Ledger::Model& Ledger::model(std::uint16_t index) {
  const auto [found, fresh] = models_.try_emplace(index);
  if (fresh) {
    found->second.now.model = found->second.sum.model = names_[index];
    const auto place = std::lower_bound(models_by_name_.begin(), models_by_name_.end(), names_[index],
                                        [&](std::uint16_t m, const std::string& name) { return names_[m] < name; });
    models_by_name_.insert(place, index);
  }
  return found->second;
}

Ledger::PerModel& Ledger::use_of(std::uint32_t queue, std::uint16_t index) {
  auto& use = queues_[queue].use;
  if (use.size() <= index) use.resize(index + 1U);
  return use[index];
}

// Accounts follow their queue: a bill names it as it is called at the end of the bill's time.
void Ledger::move_queues(const std::vector<QueueMove>& moves) {
  if (moves.empty()) return;
  queue_indexes_.clear();
  for (std::uint32_t i = 0; i < queues_.size(); ++i) {
    queues_[i].path = moved_path(queues_[i].path, moves);
    queue_indexes_.emplace(queues_[i].path, i);
  }
  for (auto& [id, job] : jobs_) job.facts.queue = queues_[job.queue].path;
  for (Report& report : reports_) report.queue = moved_path(report.queue, moves);
  for (Correction& one : corrections_) one.queue = moved_path(one.queue, moves);
  std::sort(queues_by_path_.begin(), queues_by_path_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return queues_[a].path < queues_[b].path; });
  dirty_ = true;
}

void Ledger::on(const ClusterConfigured& event) {
  cluster_ = event.config.name;
  move_queues(event.moves);
  std::vector<bool> configured(queues_.size());
  const ClusterConfig config = config_after(event);
  for (const QueueConfig& one : config.queues) {
    const std::uint32_t index = queue_index(one.path);
    configured.resize(queues_.size());
    configured[index] = true;
    Queue& queue = queues_[index];
    // A decayed guarantee stays decayed until it or its window is changed.
    if (queue.configured != one.guaranteed || queue.decay_s != one.guarantee_decay_s) queue.guaranteed = one.guaranteed;
    queue.configured = one.guaranteed;
    queue.decay_s = one.guarantee_decay_s;
  }
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (configured[i]) continue;
    queues_[i].configured = queues_[i].guaranteed = {};
    queues_[i].decay_s = 0;
  }
  burst_pools_.clear();
  for (const PoolConfig& pool : event.config.pools) {
    if (pool.burst) burst_pools_.push_back(pool.name);
  }
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    change_node(NodeId(n), [&](Node& node) {
      node.burst = std::find(burst_pools_.begin(), burst_pools_.end(), node.pool) != burst_pools_.end();
    });
  }
  configure_floors();
}

// A guarantee that was set by command is in force as it is, also where the former one had decayed.
void Ledger::change_guarantee(const std::string& path, const std::vector<LimitChange>& limits) {
  Queue& queue = queues_[queue_index(path)];
  QueueConfig changed;
  changed.guaranteed = queue.configured;
  for (const LimitChange& limit : limits) set_limit(changed, limit.key, limit.value);
  if (changed.guaranteed == queue.configured) return;
  queue.guaranteed = queue.configured = changed.guaranteed;
  configure_floors();
}

void Ledger::on(const GuaranteeChanged& event) {
  queues_[queue_index(event.queue)].guaranteed = event.to;
  configure_floors();
}

// Calls `change` with the node while nothing of it and of its tasks is counted.
template <class Change>
void Ledger::change_node(NodeId id, Change&& change) {
  Node& node = nodes_[id.index()];
  const auto count_tasks = [&](int sign) {
    for (auto& [job_id, job] : running_) {
      for (const Charge& charge : job->charges) {
        for (const TaskPlacement& task : charge.placements) {
          if (task.node != id) continue;
          settle(job_id, *job);
          count_task(*job, charge.guaranteed, task, sign);
        }
      }
    }
  };
  count_tasks(-1);
  for (const Gpu& gpu : node.gpus) count_gpu(node, gpu, -1);
  change(node);
  for (const Gpu& gpu : node.gpus) count_gpu(node, gpu, +1);
  count_tasks(+1);
}

void Ledger::on(const NodeRegistered& event) {
  if (event.node.index() >= nodes_.size()) nodes_.resize(event.node.index() + 1);
  change_node(event.node, [&](Node& node) {
    node.pool = event.spec.pool;
    node.burst = std::find(burst_pools_.begin(), burst_pools_.end(), node.pool) != burst_pools_.end();
    node.status = NodeStatus::kReady;
    node.registrations.push_back(seq_);
    node.gpus.resize(std::max(node.gpus.size(), event.spec.gpus.size()));
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
      node.gpus[i].capacity = i < event.spec.gpus.size() ? std::int32_t{kMilli} : 0;
      if (i >= event.spec.gpus.size()) continue;
      node.gpus[i].model = name_index(event.spec.gpus[i].model);
      node.gpus[i].healthy = event.spec.gpus[i].healthy;
      simulated_ = simulated_ || event.spec.gpus[i].simulated;
    }
    mark_foreign(node, event.foreign);
  });
}

void Ledger::mark_foreign(Node& node, const ForeignUse& use) {
  for (Gpu& gpu : node.gpus) gpu.foreign = false;
  for (const std::uint8_t index : use.gpus) node.gpus.at(index).foreign = true;
}

void Ledger::on(const ForeignUseChanged& event) {
  Node& node = nodes_.at(event.node.index());
  for (const Gpu& gpu : node.gpus) count_gpu(node, gpu, -1);
  mark_foreign(node, event.use);
  for (const Gpu& gpu : node.gpus) count_gpu(node, gpu, +1);
}

void Ledger::on(const NodeStatusChanged& event) {
  change_node(event.node, [&](Node& node) { node.status = event.status; });
}

void Ledger::on(const NodeRemoved& event) {
  change_node(event.node, [](Node& node) {
    node.cordoned = false;
    for (Gpu& gpu : node.gpus) gpu.capacity = 0;
  });
}

void Ledger::on(const NodeCordoned& event) {
  change_node(event.node, [&](Node& node) { node.cordoned = event.cordoned; });
}

void Ledger::on(const GpuHealthChanged& event) {
  Node& node = nodes_.at(event.node.index());
  Gpu& gpu = node.gpus.at(event.gpu);
  count_gpu(node, gpu, -1);
  gpu.healthy = event.healthy;
  count_gpu(node, gpu, +1);
}

void Ledger::on(const JobSubmitted& event) {
  const JobSpec& spec = event.spec;
  Job& job = jobs_[event.job];
  job.facts = billed_job(spec);
  job.queue = queue_index(spec.queue);
  job.events.push_back(seq_);
  for (const TaskGroup& group : spec.groups) job.slices.push_back(name_index(group.request.mig_profile));
}

void Ledger::on(const AttemptStarted& event) {
  Job& job = jobs_.at(event.job);
  job.events.push_back(seq_);
  BERTH_CHECK(job.charges.empty());
  job.since = now_;
  running_.emplace(event.job, &job);
  job.charges.push_back({event.guaranteed, event.placements});
  count_charge(event.job, job, job.charges.back(), +1);
}

void Ledger::on(const AttemptGrown& event) {
  Job& job = jobs_.at(event.job);
  job.events.push_back(seq_);
  job.charges.push_back({event.guaranteed, event.placements});
  count_charge(event.job, job, job.charges.back(), +1);
}

void Ledger::on(const ChargePromoted& event) {
  Job& job = jobs_.at(event.job);
  job.events.push_back(seq_);
  Charge& charge = job.charges.at(event.charge);
  count_charge(event.job, job, charge, -1);
  charge.guaranteed = event.guaranteed;
  count_charge(event.job, job, charge, +1);
}

// Requires: the tasks from index `keep` on were the last to be charged.
void Ledger::on(const AttemptShrunk& event) {
  Job& job = jobs_.at(event.job);
  job.events.push_back(seq_);
  settle(event.job, job);
  std::size_t tasks = 0;
  for (const Charge& charge : job.charges) tasks += charge.placements.size();
  for (; tasks > event.keep; --tasks) {
    while (job.charges.back().placements.empty()) job.charges.pop_back();
    Charge& last = job.charges.back();
    count_task(job, last.guaranteed, last.placements.back(), -1);
    last.placements.pop_back();
  }
  while (job.charges.back().placements.empty()) job.charges.pop_back();
}

void Ledger::on(const AttemptEnded& event) {
  Job& job = jobs_.at(event.job);
  job.events.push_back(seq_);
  for (const Charge& charge : job.charges) count_charge(event.job, job, charge, -1);
  for (const JobUse& use : job.uses) done_.push_back(use);
  job.uses.clear();
  job.charges.clear();
  job.rates.clear();
  running_.erase(event.job);
}

void Ledger::on(const JobFinished& event) {
  const auto job = jobs_.find(event.job);
  BERTH_CHECK(job != jobs_.end() && job->second.charges.empty());
  job->second.finished = true;
  if (!job->second.used) jobs_.erase(job);
}

void Ledger::count_charge(JobId id, Job& job, const Charge& charge, int sign) {
  settle(id, job);
  for (const TaskPlacement& task : charge.placements) count_task(job, charge.guaranteed, task, sign);
}

// Requires: the job is settled.
void Ledger::count_task(Job& job, bool guaranteed, const TaskPlacement& task, int sign) {
  Node& node = nodes_.at(task.node.index());
  const std::int64_t milli = sign * std::int64_t{task.gpu_milli};
  const std::uint16_t slice = task.slices == 0 ? std::uint16_t{0} : job.slices.at(task.group);
  for (const std::uint8_t index : task.gpus) {
    Gpu& gpu = node.gpus.at(index);
    const JobUse rate{.model = gpu.model,
                      .slice = slice,
                      .guaranteed = guaranteed,
                      .gpu_milli_ms = milli,
                      .units_milli_ms = slice == 0 ? milli : sign * kMilli};
    add_use(entry_of(job.rates, rate), rate, 1);
    count_gpu(node, gpu, -1);
    gpu.used += static_cast<std::int32_t>(milli);
    count_gpu(node, gpu, +1);
    PerModel& use = use_of(job.queue, gpu.model);
    (guaranteed ? use.within : node.burst ? use.borrowed_in_burst : use.borrowed) += milli;
    if (guaranteed) model(gpu.model).within += milli;
  }
  const JobUse rate{.cpu_milli_ms = sign * task.cpu_milli, .memory_mib_ms = sign * task.memory_mib};
  if (!is_nothing(rate)) add_use(entry_of(job.rates, rate), rate, 1);
}

// Counts the capacity of the GPU, and the unused part of it.
void Ledger::count_gpu(const Node& node, const Gpu& gpu, int sign) {
  Model& sums = model(gpu.model);
  sums.capacity += sign * gpu.capacity;
  const bool up = gpu.healthy && node.status == NodeStatus::kReady;
  const std::int64_t unused = sign * (gpu.capacity - gpu.used);
  (!up             ? sums.failed
   : gpu.foreign   ? sums.foreign
   : node.cordoned ? sums.drained
   : node.burst    ? sums.idle_in_burst
                   : sums.idle) += unused;
  dirty_ = true;
}

std::vector<Seq> Ledger::events_of(JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::vector<Seq>() : found->second.events;
}

std::optional<std::uint32_t> Ledger::queue(const std::string& path) const {
  const auto found = queue_indexes_.find(path);
  if (found == queue_indexes_.end()) return std::nullopt;
  return found->second;
}

Ledger Ledger::resumed() const {
  Ledger next(window_);
  next.now_ = now_;
  next.passed_ = passed_;
  next.part_ = part_;
  next.seq_ = seq_;
  next.dirty_ = dirty_;
  next.names_ = names_;
  next.name_indexes_ = name_indexes_;
  next.models_by_name_ = models_by_name_;
  next.queues_by_path_ = queues_by_path_;
  next.queues_ = queues_;
  next.queue_indexes_ = queue_indexes_;
  next.burst_pools_ = burst_pools_;
  next.nodes_ = nodes_;
  for (Node& node : next.nodes_) node.registrations.clear();
  for (const auto& [id, job] : jobs_) {
    if (job.finished) continue;
    Job& copy = next.jobs_[id];
    copy.queue = job.queue;
    copy.slices = job.slices;
    copy.charges = job.charges;
    copy.rates = job.rates;
    copy.since = now_;
    if (!job.charges.empty()) next.running_.emplace(id, &copy);
  }
  next.models_ = models_;
  for (auto& [index, model] : next.models_) {
    model.sum = {};
    model.sum.model = model.now.model;
  }
  next.shares_ = shares_;
  for (HeldShare& held : next.shares_) held.since = now_;
  return next;
}

// Visits the parts between `since` and the time that is looked ahead to, with the milliseconds in each. Requires: no
// cut lies between `since` and the last event.
template <class Visit>
void Ledger::each_part_ahead(Timestamp since, Visit&& visit) const {
  const Timestamp until = counted_until();
  for (std::size_t passed = passed_; since < until; ++passed) {
    const Timestamp end = passed < window_.cuts.size() ? std::min(until, window_.cuts[passed]) : until;
    if (end > since) visit(window_.part_after(passed), end - since);
    since = std::max(since, end);
  }
}

std::vector<JobUse> Ledger::jobs() const {
  return uses([](JobId) { return true; });
}

std::vector<JobUse> Ledger::uses_of(JobId id) const {
  return uses([id](JobId one) { return one == id; });
}

std::vector<JobUse> Ledger::uses_in(const std::string& path) const {
  const std::optional<std::uint32_t> index = queue(path);
  return uses([&](JobId one) { return jobs_.at(one).queue == index; });
}

template <class Wanted>
std::vector<JobUse> Ledger::uses(Wanted&& wanted) const {
  std::vector<JobUse> uses;
  std::copy_if(done_.begin(), done_.end(), std::back_inserter(uses),
               [&](const JobUse& use) { return wanted(use.job); });
  for (const auto& [id, job] : running_) {
    if (!wanted(id)) continue;
    uses.insert(uses.end(), job->uses.begin(), job->uses.end());
    const Timestamp since = std::max(job->since, window_.from);
    for (const JobUse& rate : job->rates) {
      if (is_nothing(rate) || over()) continue;
      each_part_ahead(since, [&, job_id = id](std::uint32_t part, std::int64_t ms) {
        JobUse kind = rate;
        kind.job = job_id;
        kind.part = part;
        uses.push_back(kind_of_use(kind));
        add_use(uses.back(), rate, ms);
      });
    }
  }
  std::erase_if(uses, is_nothing);
  const auto key = [](const JobUse& use) {
    return std::tuple(use.job, use.part, use.model, use.slice, use.guaranteed);
  };
  std::sort(uses.begin(), uses.end(), [&](const JobUse& a, const JobUse& b) { return key(a) < key(b); });
  std::vector<JobUse> merged;
  for (const JobUse& use : uses) {
    if (merged.empty() || key(merged.back()) != key(use))
      merged.push_back(use);
    else
      add_use(merged.back(), use, 1);
  }
  return merged;
}

std::vector<FloorUse> Ledger::floors() const {
  auto sums = floor_sums_;
  for (const HeldShare& held : shares_) {
    const Timestamp since = std::max(held.since, window_.from);
    if (over()) continue;
    each_part_ahead(since, [&](std::uint32_t part, std::int64_t ms) {
      sums[{held.share, part}] += checked_multiply(held.rate, ms);
    });
  }
  std::vector<FloorUse> uses;
  for (const auto& [key, amount] : sums) {
    const auto& [share, part] = key;
    if (amount == 0) continue;
    uses.push_back({queues_[share.lender].path, part, names_[share.model],
                    share.idle ? std::string() : queues_[share.borrower].path, share.own, amount});
  }
  std::sort(uses.begin(), uses.end(), [](const FloorUse& a, const FloorUse& b) {
    return std::tie(a.queue, a.part, a.model, a.borrower, a.own) <
           std::tie(b.queue, b.part, b.model, b.borrower, b.own);
  });
  return uses;
}

std::vector<FleetAccounts> Ledger::fleet() const {
  std::vector<FleetAccounts> all;
  for (const std::uint16_t index : models_by_name_) {
    FleetAccounts sum = models_.at(index).sum;
    add_accounts(sum, models_.at(index).now, ahead());
    if (sum.capacity != 0) all.push_back(std::move(sum));
  }
  return all;
}

std::optional<std::string> Ledger::check() const {
  for (const auto& [index, model] : models_) {
    const auto parts = [](const FleetAccounts& a) {
      return a.floor_used + a.floor_idle + a.floor_lent + a.burst + a.unowned + a.drained + a.failed + a.foreign;
    };
    if (parts(model.sum) != model.sum.capacity) return "GPU model '" + names_[index] + "': accounts differ in sum";
    if (!dirty_ && parts(model.now) != model.now.capacity) return "GPU model '" + names_[index] + "': accounts differ";
    for (const std::int64_t part : {model.now.floor_used, model.now.floor_idle, model.now.floor_lent, model.now.burst,
                                    model.now.unowned, model.now.drained, model.now.failed, model.now.foreign}) {
      if (!dirty_ && part < 0) return "GPU model '" + names_[index] + "': an account flows backwards";
    }
  }
  return std::nullopt;
}

}  // namespace berth::billing
