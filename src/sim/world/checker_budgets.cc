// Budgets and grants: each mark is told once, by what the checker itself has seen used; what is used up stops what it
// says from then on, and a new period sets it back. That nothing is stopped for money follows from P5: every stop has
// one of the causes that are checked there, and none of them is money.

#include <algorithm>

#include "model/month.h"
#include "sim/world/checker.h"

namespace berth::sim {

namespace {

constexpr std::int64_t kMsOfGpuHour = 3'600'000;

std::int32_t mark_of(std::int64_t used, std::int64_t limit) {
  std::int32_t last = 0;
  for (const std::int32_t percent : {50, 80, 100}) {
    if (Int128{used} * 100 >= Int128{limit} * percent) last = percent;
  }
  return last;
}

}  // namespace

void Checker::set_budget(BudgetView& view, const std::optional<BudgetConfig>& config) {
  if (view.config != config) view = {config, 0, {}, false};
}

// Returns the milli-GPUs times milliseconds that the queue had used by then. Requires: it is not in the future.
Int128 Checker::integral_at(const QueueView& queue, Timestamp time) const {
  const auto next = std::upper_bound(queue.history.begin(), queue.history.end(), std::pair(time, Int128{0}),
                                     [](const auto& a, const auto& b) { return a.first < b.first; });
  if (next == queue.history.begin()) return 0;
  const auto& [since, sum] = *std::prev(next);
  if (next == queue.history.end()) return sum + Int128{queue.usage[kDimGpu]} * (time - since);
  return sum + (next->second - sum) / (next->first - since) * (time - since);
}

void Checker::keep_history(QueueView& queue) {
  if (!has_prices_) return;  // lives without budgets
  const std::pair<Timestamp, Int128> point(queue.integrated_to, queue.integral);
  if (!queue.history.empty() && queue.history.back().first == point.first)
    queue.history.back() = point;
  else
    queue.history.push_back(point);
}

// Returns the period of the budget at that time; or nothing, of a grant that has not begun.
std::optional<std::pair<Timestamp, Timestamp>> Checker::period_of(const BudgetConfig& config, Timestamp now) {
  if (config.kind() == BudgetKind::kGrant)
    return now < config.from ? std::nullopt : std::optional(std::pair(config.from, config.until));
  const Month month = month_at(now);
  return std::pair(month.begin, month.end);
}

// In milli-GPU-hours.
std::int64_t Checker::used_in(const QueueView& queue, std::pair<Timestamp, Timestamp> period, Timestamp now) const {
  const Timestamp until = std::min(now, period.second);
  return static_cast<std::int64_t>((integral_at(queue, until) - integral_at(queue, period.first)) / kMsOfGpuHour);
}

void Checker::on(const BudgetMarked& event) {
  const auto found = queue_of_.find(event.queue);
  if (found == queue_of_.end() || queues_[found->second].removed)
    return breach("budget", "a mark of queue '" + event.queue + "', which is not there");
  const QueueView& queue = queues_[found->second];
  BudgetView& view = queues_[found->second].budgets[static_cast<std::size_t>(event.of)];
  const std::string name = std::string(name_of(event.of)) + " of " + event.queue;
  if (!view.config) return breach("budget", "a mark of the " + name + ", which has none");
  const auto period = period_of(*view.config, now_);
  if (!period) return breach("budget", "a mark of the " + name + ", which has not begun");
  const bool fresh = view.until != period->second;
  require(!view.ended, "budget", "a mark of the " + name + " after its end");
  require(event.ended == (event.of == BudgetKind::kGrant && now_ >= period->second), "budget",
          "the " + name + " ends too early, or has a mark beyond its end");
  require(event.until == period->second, "budget", "the mark of the " + name + " is of another period");
  require(event.ended || event.percent != view.percent || (fresh && event.percent != 0), "budget",
          "the mark " + std::to_string(event.percent) + " of the " + name + " is told twice");
  if (!view.config->is_money()) {
    const std::int64_t used = used_in(queue, *period, now_);
    require(event.used == used, "budget",
            "the " + name + " is marked with " + std::to_string(event.used) + " milli-GPU-hours, and " +
                std::to_string(used) + " were used");
    require(event.percent == mark_of(used, event.limit), "budget", "the " + name + " has another mark than it passed");
    require(fresh || event.ended || event.percent > view.percent, "budget", "a mark of the " + name + " goes down");
  }
  if (event.percent < view.percent) count("budget set back");
  if (event.percent > 0) count(std::string(name_of(event.of)) + " marked " + std::to_string(event.percent));
  if (event.ended) count("grant ended");
  view.percent = event.percent;
  view.until = period->second;
  view.ended = event.ended;
}

bool Checker::budget_stops(const QueueView& queue, BudgetAction what) {
  return std::any_of(queue.budgets.begin(), queue.budgets.end(), [&](const BudgetView& one) {
    return one.config && one.config->when_used_up == what && (one.percent == 100 || one.ended);
  });
}

// Returns true if the job is not within all guarantees at once. Where there are burst pools, any job might be in one;
// the scenarios test whether it is.
bool Checker::might_borrow(const JobView& job, const Amounts& asked) const {
  if (std::any_of(config_.pools.begin(), config_.pools.end(), [](const PoolConfig& pool) { return pool.burst; }))
    return true;
  for (std::uint32_t q = job.queue; q != 0; q = queues_[q].parent) {
    if (!fits_guarantee(queues_[q], queues_[q].within + queues_[q].nominated_within, asked)) return true;
  }
  return false;
}

// A job starts or grows, and its charge is not counted yet. The marks are events before the cycle, so not even one turn
// passes them.
void Checker::check_budgets_allow(const JobView& job, bool guaranteed) {
  for (std::uint32_t q = job.queue; q != 0; q = queues_[q].parent) {
    require(!budget_stops(queues_[q], BudgetAction::kStopStarting), "budget",
            text_of(job.id) + " starts or grows though a budget or grant of " + queues_[q].path + " is used up");
    // A start that displaces idle use is within as soon as that is borrowed, in the same iteration. A job for which
    // others were stopped has its room kept, and is within when the victims of other jobs have left too.
    if (!guaranteed && budget_stops(queues_[q], BudgetAction::kStopBorrowing))
      may_not_borrow_.emplace(job.id, job.charges.size());
  }
}

void Checker::check_borrows_nothing() {
  for (const auto& [id, index] : may_not_borrow_) {
    const auto job = jobs_.find(id);
    const bool runs = job != jobs_.end() && job->second.running && index < job->second.charges.size();
    require(!runs || job->second.charges[index].guaranteed, "budget",
            text_of(id) + " borrows though a budget or grant of its queue or one above it is used up");
  }
  may_not_borrow_.clear();
}

void Checker::check_marks(Timestamp now) {
  if (violation_) return;
  for (const QueueView& queue : queues_) {
    for (const BudgetView& one : queue.budgets) {
      if (queue.removed || !one.config || one.ended) continue;
      const std::string name = std::string(name_of(one.config->kind())) + " of " + queue.path;
      const auto period = period_of(*one.config, now);
      if (!period) continue;
      count("marks checked");
      const bool grant = one.config->kind() == BudgetKind::kGrant;
      require(!grant || now < period->second, "budget", "the " + name + " is over, and not ended");
      if (one.config->is_money()) continue;
      const std::int32_t due = mark_of(used_in(queue, *period, now), one.config->limit());
      require(
          one.percent == due && (due == 0 || one.until == period->second), "budget",
          "the " + name + " has the mark " + std::to_string(one.percent) + ", and " + std::to_string(due) + " is due");
    }
  }
}

}  // namespace berth::sim
