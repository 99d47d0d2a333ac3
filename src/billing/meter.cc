#include "billing/meter.h"

#include <algorithm>
#include <variant>

#include "base/codec.h"
#include "base/planted.h"

namespace berth::billing {
namespace {

constexpr std::uint32_t kFormat = 1;

// The events that change usage.
template <class T>
concept Metered = std::is_same_v<T, NodeRegistered> || std::is_same_v<T, NodeStatusChanged> ||
    std::is_same_v<T, NodeRemoved> || std::is_same_v<T, GpuHealthChanged> || std::is_same_v<T, ForeignUseChanged> ||
    std::is_same_v<T, JobSubmitted> || std::is_same_v<T, AttemptStarted> || std::is_same_v<T, AttemptGrown> ||
    std::is_same_v<T, ChargePromoted> || std::is_same_v<T, AttemptEnded> || std::is_same_v<T, JobFinished> ||
    std::is_same_v<T, AttemptShrunk> || std::is_same_v<T, ClusterConfigured>;

Rates gpus(std::int64_t milli) { return {milli, 0, 0}; }

std::int64_t narrowed(Int128 amount) {
  BERTH_CHECK(amount <= std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(amount);
}

}  // namespace

void Meter::apply(const EventRecord& record) {
  const Timestamp now = std::max(now_, record.time);
  if (hour_of(now) != hour_of(now_)) begin_hour(now);
  if (last_seq_ == 0) first_ = now;
  now_ = now;
  last_seq_ = record.seq;
  std::visit(
      [this](const auto& event) {
        if constexpr (Metered<std::decay_t<decltype(event)>>) on(event);
      },
      record.event);
}

void Meter::begin_hour(Timestamp now) {
  const std::int64_t horizon = hour_of(now) - kRecentHours;
  for (auto& [key, row] : rows_) row.forget_intervals_before(horizon);
  for (auto& [model, fleet] : fleet_) {
    for (Series* series :
         {&fleet.capacity, &fleet.used_guaranteed, &fleet.used_borrowed, &fleet.idle, &fleet.down, &fleet.foreign}) {
      series->forget_intervals_before(horizon);
    }
  }
}

void Meter::on(const NodeRegistered& event) {
  if (event.node.index() >= nodes_.size()) nodes_.resize(event.node.index() + 1);
  // A node may come back with other GPUs. The tasks on it are taken off the old GPUs and counted on the new ones.
  for_each_charge_on(event.node, [this](const Job& job, bool guaranteed, const TaskPlacement& task) {
    count_task(job, guaranteed, task, -1);
  });
  NodeCount& node = nodes_[event.node.index()];
  for (const GpuCount& gpu : node.gpus) count_gpu(node, gpu, -1);
  node.status = NodeStatus::kReady;
  node.gpus.resize(std::max(node.gpus.size(), event.spec.gpus.size()));
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    GpuCount& gpu = node.gpus[i];
    gpu.capacity_milli = i < event.spec.gpus.size() ? kMilli : 0;
    if (i >= event.spec.gpus.size()) continue;
    gpu.model = event.spec.gpus[i].model;
    gpu.healthy = event.spec.gpus[i].healthy;
  }
  for (GpuCount& gpu : node.gpus) gpu.foreign = false;
  for (const std::uint8_t index : event.foreign.gpus) node.gpus.at(index).foreign = true;
  for (const GpuCount& gpu : node.gpus) count_gpu(node, gpu, +1);
  for_each_charge_on(event.node, [this](const Job& job, bool guaranteed, const TaskPlacement& task) {
    count_task(job, guaranteed, task, +1);
  });
}

void Meter::on(const NodeStatusChanged& event) {
  NodeCount& node = nodes_.at(event.node.index());
  for (const GpuCount& gpu : node.gpus) count_gpu(node, gpu, -1);
  node.status = event.status;
  for (const GpuCount& gpu : node.gpus) count_gpu(node, gpu, +1);
}

void Meter::on(const NodeRemoved& event) {
  NodeCount& node = nodes_.at(event.node.index());
  for (GpuCount& gpu : node.gpus) {
    count_gpu(node, gpu, -1);
    gpu.capacity_milli = 0;
    count_gpu(node, gpu, +1);
  }
}

void Meter::on(const GpuHealthChanged& event) {
  NodeCount& node = nodes_.at(event.node.index());
  GpuCount& gpu = node.gpus.at(event.gpu);
  count_gpu(node, gpu, -1);
  gpu.healthy = event.healthy;
  count_gpu(node, gpu, +1);
}

void Meter::on(const ForeignUseChanged& event) {
  NodeCount& node = nodes_.at(event.node.index());
  for (const GpuCount& gpu : node.gpus) count_gpu(node, gpu, -1);
  for (GpuCount& gpu : node.gpus) gpu.foreign = false;
  for (const std::uint8_t index : event.use.gpus) node.gpus.at(index).foreign = true;
  for (const GpuCount& gpu : node.gpus) count_gpu(node, gpu, +1);
}

// What runs in a renamed queue is charged to the new name from now on; what was charged stays where it is.
void Meter::on(const ClusterConfigured& event) {
  for (auto& [id, owner] : jobs_) {
    std::string path = moved_path(owner.queue, event.moves);
    if (path == owner.queue) continue;
    for (const Charge& charge : owner.charges) count_charge(owner, charge, -1);
    owner.queue = std::move(path);
    for (const Charge& charge : owner.charges) count_charge(owner, charge, +1);
  }
}

void Meter::on(const JobSubmitted& event) { jobs_[event.job] = {event.spec.queue, event.spec.user, {}}; }

void Meter::on(const AttemptStarted& event) {
  Job& owner = job(event.job);
  BERTH_CHECK(owner.charges.empty());
  owner.charges.push_back({event.guaranteed, event.placements});
  count_charge(owner, owner.charges.back(), +1);
}

void Meter::on(const AttemptGrown& event) {
  Job& owner = job(event.job);
  owner.charges.push_back({event.guaranteed, event.placements});
  count_charge(owner, owner.charges.back(), +1);
}

void Meter::on(const ChargePromoted& event) {
  Job& owner = job(event.job);
  Charge& charge = owner.charges.at(event.charge);
  count_charge(owner, charge, -1);
  if (!planted(Bug::kPromotionNotBilled)) charge.guaranteed = event.guaranteed;
  count_charge(owner, charge, +1);
}

// Requires: the tasks from index `keep` on were the last to be charged.
void Meter::on(const AttemptShrunk& event) {
  Job& owner = job(event.job);
  std::size_t tasks = 0;
  for (const Charge& charge : owner.charges) tasks += charge.placements.size();
  for (; tasks > event.keep; --tasks) {
    while (owner.charges.back().placements.empty()) owner.charges.pop_back();
    Charge& last = owner.charges.back();
    count_task(owner, last.guaranteed, last.placements.back(), -1);
    last.placements.pop_back();
  }
  while (owner.charges.back().placements.empty()) owner.charges.pop_back();
}

void Meter::on(const AttemptEnded& event) {
  Job& owner = job(event.job);
  for (const Charge& charge : owner.charges) count_charge(owner, charge, -1);
  owner.charges.clear();
}

void Meter::on(const JobFinished& event) {
  BERTH_CHECK(job(event.job).charges.empty());
  jobs_.erase(event.job);
}

Meter::Job& Meter::job(JobId id) {
  const auto found = jobs_.find(id);
  BERTH_CHECK(found != jobs_.end());
  return found->second;
}

template <class Visitor>
void Meter::for_each_charge_on(NodeId node, Visitor&& visit) {
  for (const auto& [id, owner] : jobs_) {
    for (const Charge& charge : owner.charges) {
      for (const TaskPlacement& task : charge.placements) {
        if (task.node == node) visit(owner, charge.guaranteed, task);
      }
    }
  }
}

void Meter::count_charge(const Job& owner, const Charge& charge, int sign) {
  for (const TaskPlacement& task : charge.placements) count_task(owner, charge.guaranteed, task, sign);
}

void Meter::count_task(const Job& owner, bool guaranteed, const TaskPlacement& task, int sign) {
  NodeCount& node = nodes_.at(task.node.index());
  const auto model_of = [&](std::uint8_t gpu) -> const std::string& { return node.gpus.at(gpu).model; };
  const auto row = [&](const std::string& model) -> Series& {
    return rows_[{owner.queue, owner.user, model, !guaranteed}];
  };
  for (const std::uint8_t index : task.gpus) {
    GpuCount& gpu = node.gpus.at(index);
    row(gpu.model).change(gpus(sign * task.gpu_milli), now_);
    Fleet& fleet = fleet_[gpu.model];
    (guaranteed ? fleet.used_guaranteed : fleet.used_borrowed).change(gpus(sign * task.gpu_milli), now_);
    count_gpu(node, gpu, -1);
    gpu.used_milli += sign * task.gpu_milli;
    count_gpu(node, gpu, +1);
  }
  row(task.gpus.empty() ? std::string() : model_of(task.gpus.front()))
      .change({0, sign * task.cpu_milli, sign * task.memory_mib}, now_);
}

// Counts the capacity of the GPU, and its unused part as idle or down.
void Meter::count_gpu(const NodeCount& node, const GpuCount& gpu, int sign) {
  Fleet& fleet = fleet_[gpu.model];
  if (gpu.capacity_milli != 0) fleet.capacity.change(gpus(sign * gpu.capacity_milli), now_);
  const bool up = gpu.healthy && (node.status == NodeStatus::kReady || planted(Bug::kLostIsIdle));
  const std::int64_t unused = gpu.capacity_milli - gpu.used_milli;
  if (unused != 0) (!up ? fleet.down : gpu.foreign ? fleet.foreign : fleet.idle).change(gpus(sign * unused), now_);
}

Timestamp Meter::exact_edge(Timestamp edge) const {
  const std::int64_t hour = hour_of(edge);
  const bool exact = edge >= now_ || hour >= hour_of(now_) - kRecentHours;
  return exact ? edge : Timestamp{hour * kHourMs};
}

Usage Meter::usage(Timestamp from, Timestamp to) const {
  Usage usage{exact_edge(from), exact_edge(std::max(from, to)), {}, {}, 0, 0, 0, 0};
  for (const auto& [account, series] : rows_) {
    const Amounts amounts = series.between(usage.from, usage.to);
    if (amounts == Amounts{}) continue;
    usage.rows.push_back({account, narrowed(amounts[kGpu]), amounts[kCpu], amounts[kMemory]});
  }
  for (const auto& [model, fleet] : fleet_) {
    const auto gpu = [&](const Series& series) { return narrowed(series.between(usage.from, usage.to)[kGpu]); };
    usage.fleet.push_back({model, gpu(fleet.capacity), gpu(fleet.used_guaranteed), gpu(fleet.used_borrowed),
                           gpu(fleet.idle), gpu(fleet.down), gpu(fleet.foreign)});
    usage.idle = checked_add(usage.idle, usage.fleet.back().idle);
    usage.foreign = checked_add(usage.foreign, usage.fleet.back().foreign);
    usage.down = checked_add(usage.down, usage.fleet.back().down);
    usage.capacity = checked_add(usage.capacity, usage.fleet.back().capacity);
  }
  return usage;
}

std::optional<std::string> Meter::check() const {
  for (const auto& [model, fleet] : fleet_) {
    for (const Series* part :
         {&fleet.capacity, &fleet.used_guaranteed, &fleet.used_borrowed, &fleet.idle, &fleet.down, &fleet.foreign}) {
      if (part->rates()[kGpu] < 0) return "an account of GPU model '" + model + "' flows backwards";
    }
    const std::int64_t parts = fleet.used_guaranteed.rates()[kGpu] + fleet.used_borrowed.rates()[kGpu] +
                               fleet.idle.rates()[kGpu] + fleet.down.rates()[kGpu] + fleet.foreign.rates()[kGpu];
    if (parts != fleet.capacity.rates()[kGpu]) {
      return "GPU model '" + model + "': used, idle and down are " + std::to_string(parts) + " milli-GPUs of " +
             std::to_string(fleet.capacity.rates()[kGpu]);
    }
  }
  return std::nullopt;
}

std::optional<std::string> Meter::check_from_scratch() const {
  if (auto wrong = check()) return wrong;
  std::map<std::string, Int128> used;
  for (const auto& [key, series] : rows_) used[key.gpu_model] += series.total(now_)[kGpu];
  for (const auto& [model, fleet] : fleet_) {
    const auto total = [&](const Series& series) { return series.total(now_)[kGpu]; };
    const Int128 of_fleet = total(fleet.used_guaranteed) + total(fleet.used_borrowed);
    if (used[model] != of_fleet) {
      return "GPU model '" + model + "': the rows add up to " + micro_text(used[model]) +
             " GPU-seconds and the fleet to " + micro_text(of_fleet);
    }
    if (of_fleet + total(fleet.idle) + total(fleet.down) + total(fleet.foreign) != total(fleet.capacity)) {
      return "GPU model '" + model + "': used, idle and down add up to " +
             micro_text(of_fleet + total(fleet.idle) + total(fleet.down) + total(fleet.foreign)) + " GPU-seconds of " +
             micro_text(total(fleet.capacity));
    }
  }
  std::map<Account, std::int64_t> held;
  for (const auto& [id, owner] : jobs_) {
    for (const Charge& charge : owner.charges) {
      for (const TaskPlacement& task : charge.placements) {
        for (const std::uint8_t gpu : task.gpus) {
          held[{owner.queue, owner.user, nodes_.at(task.node.index()).gpus.at(gpu).model, !charge.guaranteed}] +=
              task.gpu_milli;
        }
      }
    }
  }
  for (const auto& [key, series] : rows_) {
    if (series.rates()[kGpu] != held[key]) {
      return "queue '" + key.queue + "', user '" + key.user + "': metered at " + std::to_string(series.rates()[kGpu]) +
             " milli-GPUs and holds " + std::to_string(held[key]);
    }
  }
  return std::nullopt;
}

std::string Meter::save() const {
  Encoder out;
  out.put(kFormat);
  out.put(now_);
  out.put(first_);
  out.put(last_seq_);
  out.put(nodes_);
  out.put(std::vector<std::pair<JobId, Job>>(jobs_.begin(), jobs_.end()));
  out.put(std::vector<std::pair<Account, Series>>(rows_.begin(), rows_.end()));
  out.put(std::vector<std::pair<std::string, Fleet>>(fleet_.begin(), fleet_.end()));
  return out.take();
}

Result<Meter> Meter::load(std::string_view bytes) {
  Decoder in(bytes);
  std::uint32_t format = 0;
  in.get(format);
  if (in.ok() && format != kFormat) {
    return Error{ErrorCode::kCorrupt, "the meter has format " + std::to_string(format) + "; this berth reads format " +
                                          std::to_string(kFormat)};
  }
  Meter meter;
  std::vector<std::pair<JobId, Job>> jobs;
  std::vector<std::pair<Account, Series>> rows;
  std::vector<std::pair<std::string, Fleet>> fleet;
  in.get(meter.now_);
  in.get(meter.first_);
  in.get(meter.last_seq_);
  in.get(meter.nodes_);
  in.get(jobs);
  in.get(rows);
  in.get(fleet);
  if (!in.ok() || !in.at_end())
    return Error{ErrorCode::kCorrupt, "the saved meter is damaged: its fields do not decode"};
  meter.jobs_.insert(std::make_move_iterator(jobs.begin()), std::make_move_iterator(jobs.end()));
  meter.rows_.insert(std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  meter.fleet_.insert(std::make_move_iterator(fleet.begin()), std::make_move_iterator(fleet.end()));
  return meter;
}

std::string micro_text(Int128 micro) {
  const bool negative = micro < 0;
  if (negative) micro = -micro;
  std::string digits;
  for (int i = 0; i < 7 || micro > 0; ++i) {
    if (i == 6) digits.push_back('.');
    digits.push_back(static_cast<char>('0' + static_cast<int>(micro % 10)));
    micro /= 10;
  }
  if (negative) digits.push_back('-');
  return {digits.rbegin(), digits.rend()};
}

}  // namespace berth::billing
