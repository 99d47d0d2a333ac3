#include "billing/meter.h"

#include <variant>

#include "base/check.h"
#include "base/checked.h"
#include "base/codec.h"
#include "model/resources.h"

namespace berth::billing {

void Meter::apply(const EventRecord& record) {
  now_ = std::max(now_, record.time);
  if (!any_) first_ = now_;
  any_ = true;
  std::visit([this](const auto& event) { on(event); }, record.event);
}

Meter::MeteredJob& Meter::job(JobId id) {
  const auto found = jobs_.find(id.value());
  BERTH_CHECK(found != jobs_.end());
  return found->second;
}

// What of the GPU is not bound is idle, or down where nobody can use it.
void Meter::count_gpu(const MeteredNode& node, const MeteredGpu& gpu, int sign) {
  StepSeries& unused = node.lost || !gpu.healthy ? down_ : idle_;
  unused.add(now_, sign * (kMilli - gpu.bound_milli));
}

void Meter::on(const NodeRegistered& event) {
  if (nodes_.size() <= event.node.index()) nodes_.resize(event.node.index() + 1);
  MeteredNode& node = nodes_[event.node.index()];
  for (const MeteredGpu& gpu : node.gpus) count_gpu(node, gpu, -1);
  const auto before = static_cast<std::int64_t>(node.gpus.size());
  node.lost = false;
  node.gpus.resize(event.spec.gpus.size());
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    node.gpus[i].model = event.spec.gpus[i].model;
    node.gpus[i].healthy = event.spec.gpus[i].healthy;
  }
  for (const MeteredGpu& gpu : node.gpus) count_gpu(node, gpu, +1);
  capacity_.add(now_, (static_cast<std::int64_t>(node.gpus.size()) - before) * kMilli);
}

void Meter::on(const NodeStatusChanged& event) {
  MeteredNode& node = nodes_[event.node.index()];
  for (const MeteredGpu& gpu : node.gpus) count_gpu(node, gpu, -1);
  node.lost = event.status == NodeStatus::kLost;
  for (const MeteredGpu& gpu : node.gpus) count_gpu(node, gpu, +1);
}

void Meter::on(const GpuHealthChanged& event) {
  MeteredNode& node = nodes_[event.node.index()];
  MeteredGpu& gpu = node.gpus[event.gpu];
  count_gpu(node, gpu, -1);
  gpu.healthy = event.healthy;
  count_gpu(node, gpu, +1);
}

void Meter::on(const JobSubmitted& event) {
  jobs_[event.job.value()] = {event.job.value(), event.spec.queue, event.spec.user, {}};
}

void Meter::count_used(const MeteredJob& job, const MeteredCharge& charge, int sign) {
  for (const TaskPlacement& placement : charge.placements) {
    for (const std::uint8_t index : placement.gpus) {
      const MeteredGpu& gpu = nodes_[placement.node.index()].gpus[index];
      accounts_[{job.queue, job.user, gpu.model, !charge.guaranteed}].add(now_, sign * placement.gpu_milli);
    }
  }
}

void Meter::bind(const MeteredJob& job, const MeteredCharge& charge, int sign) {
  count_used(job, charge, sign);
  for (const TaskPlacement& placement : charge.placements) {
    MeteredNode& node = nodes_[placement.node.index()];
    for (const std::uint8_t index : placement.gpus) {
      MeteredGpu& gpu = node.gpus[index];
      count_gpu(node, gpu, -1);
      gpu.bound_milli += sign * placement.gpu_milli;
      BERTH_CHECK(gpu.bound_milli >= 0);
      BERTH_CHECK(gpu.bound_milli <= kMilli);
      count_gpu(node, gpu, +1);
    }
  }
}

void Meter::on(const AttemptStarted& event) {
  MeteredJob& metered = job(event.job);
  metered.charges = {{event.placements, event.guaranteed}};
  bind(metered, metered.charges.back(), +1);
}

void Meter::on(const AttemptGrown& event) {
  MeteredJob& metered = job(event.job);
  metered.charges.push_back({event.placements, event.guaranteed});
  bind(metered, metered.charges.back(), +1);
}

void Meter::on(const ChargePromoted& event) {
  MeteredJob& metered = job(event.job);
  MeteredCharge& charge = metered.charges[event.charge];
  count_used(metered, charge, -1);
  charge.guaranteed = event.guaranteed;
  count_used(metered, charge, +1);
}

void Meter::on(const AttemptEnded& event) {
  MeteredJob& metered = job(event.job);
  for (const MeteredCharge& charge : metered.charges) bind(metered, charge, -1);
  metered.charges.clear();
}

void Meter::on(const JobFinished& event) { jobs_.erase(event.job.value()); }

Usage Meter::usage(Timestamp from, Timestamp to) const {
  Usage usage{from, to, {}, idle_.integral(from, to), down_.integral(from, to), capacity_.integral(from, to)};
  for (const auto& [account, series] : accounts_) {
    const std::int64_t amount = series.integral(from, to);
    if (amount != 0) usage.rows.push_back({account, amount});
  }
  return usage;
}

std::optional<std::string> Meter::check() const {
  std::int64_t used = 0;
  for (const auto& [account, series] : accounts_) {
    if (series.rate() < 0) return "account of queue " + account.queue + " and user " + account.user + " is below zero";
    used = checked_add(used, series.rate());
  }
  if (idle_.rate() < 0 || down_.rate() < 0) return "idle or down is below zero";
  if (used + idle_.rate() + down_.rate() != capacity_.rate()) {
    return "used " + std::to_string(used) + ", idle " + std::to_string(idle_.rate()) + " and down " +
           std::to_string(down_.rate()) + " thousandths of GPUs do not add up to " + std::to_string(capacity_.rate());
  }
  const Usage all = usage(first_, now_);
  std::int64_t sum = checked_add(all.idle, all.down);
  for (const UsageRow& row : all.rows) sum = checked_add(sum, row.gpu_milli_ms);
  if (sum != all.capacity)
    return "the integrals add up to " + std::to_string(sum) + ", not to " + std::to_string(all.capacity);
  return std::nullopt;
}

std::string Meter::save() const {
  Encoder out;
  out.put(now_);
  out.put(first_);
  out.put(any_);
  out.put(nodes_);
  out.put_varint(jobs_.size());
  for (const auto& [id, metered] : jobs_) out.put(metered);
  out.put_varint(accounts_.size());
  for (const auto& [account, series] : accounts_) out.put(std::pair(account, series));
  out.put(idle_);
  out.put(down_);
  out.put(capacity_);
  return out.take();
}

Result<Meter> Meter::load(std::string_view bytes) {
  Decoder in(bytes);
  Meter meter;
  in.get(meter.now_);
  in.get(meter.first_);
  in.get(meter.any_);
  in.get(meter.nodes_);
  std::vector<MeteredJob> jobs;
  in.get(jobs);
  std::vector<std::pair<Account, StepSeries>> accounts;
  in.get(accounts);
  in.get(meter.idle_);
  in.get(meter.down_);
  in.get(meter.capacity_);
  if (!in.ok() || !in.at_end()) return Error{ErrorCode::kCorrupt, "the meter's part of the checkpoint does not decode"};
  for (MeteredJob& metered : jobs) meter.jobs_.emplace(metered.id, std::move(metered));
  for (auto& [account, series] : accounts) meter.accounts_.emplace(account, std::move(series));
  return meter;
}

}  // namespace berth::billing
