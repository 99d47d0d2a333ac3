#include "daemon/budget_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "policy/authorize.h"

namespace berth::daemon {
namespace {

constexpr std::array kMarks{100, 80, 50};
constexpr auto kPause = std::chrono::seconds(5);
constexpr int kRestPerWork = 20;  // it rests this many times as long as it has worked

constexpr std::int64_t kMsPerHour = 3'600'000;

// In micro units of money, or in milli-GPU-hours: what the jobs of the queue and below it have used.
std::int64_t used_of(const WatchedBudget& one, const billing::Invoice& invoice) {
  std::int64_t money = 0;
  std::int64_t gpu_milli_ms = 0;
  for (const billing::InvoiceLine& line : invoice.lines) {
    if (!policy::is_at_or_below(line.queue, one.queue)) continue;
    money += line.amount_micro;
    const bool by_job = line.kind == billing::LineKind::kFloorUsed || line.kind == billing::LineKind::kBurst;
    if (by_job) gpu_milli_ms += line.gpu_milli_ms;
  }
  return one.budget.money_micro != 0 ? money : gpu_milli_ms / kMsPerHour;
}

}  // namespace

std::vector<BudgetMarked> marks_passed(const std::vector<WatchedBudget>& budgets, const billing::Invoice& invoice,
                                       const Month& month) {
  std::vector<BudgetMarked> marks;
  for (const WatchedBudget& one : budgets) {
    const bool money = one.budget.money_micro != 0;
    if (money && !invoice.unpriced.empty()) continue;
    const std::int64_t limit = money ? one.budget.money_micro : one.budget.gpu_milli_hours;
    const std::int64_t used = used_of(one, invoice);
    const auto passed = std::find_if(kMarks.begin(), kMarks.end(),
                                     [&](int percent) { return Int128{used} * 100 >= Int128{limit} * percent; });
    const std::int32_t percent = passed == kMarks.end() ? 0 : *passed;
    const bool same = one.mark.percent == percent && (percent == 0 || one.mark.month == month.name);
    if (!same) marks.push_back({one.queue, percent, month.name, month.end, used, limit});
  }
  return marks;
}

BudgetWatch::BudgetWatch(Reader& reader, BillingDesk& desk, Inbox& inbox, ServerClock& clock)
    : reader_(reader), desk_(desk), inbox_(inbox), clock_(clock), thread_([this] { run(); }) {}

BudgetWatch::~BudgetWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

void BudgetWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto begin = std::chrono::steady_clock::now();
    look();
    const std::chrono::steady_clock::duration worked = std::chrono::steady_clock::now() - begin;
    lock.lock();
    const auto rest = std::max<std::chrono::steady_clock::duration>(kPause, kRestPerWork * worked);
    stopped_.wait_for(lock, rest, [this] { return stopping_; });
  }
}

void BudgetWatch::tell_unwatched(std::string why) {
  if (why == desk_.unwatched()) return;
  if (why.empty())
    spdlog::info("budgets are watched again");
  else
    spdlog::error("{}", why);
  desk_.set_unwatched(std::move(why));
}

void BudgetWatch::look() {
  std::vector<WatchedBudget> budgets;
  BillingFacts facts;
  reader_.read([&](state::State& state, const billing::Meter&) {
    for (const state::QueueState& queue : state.queues()) {
      // What costs money is not known without prices.
      if (!queue.budget || queue.removed || (queue.budget->money_micro != 0 && state.price_version() == 0)) continue;
      budgets.push_back({queue.path, *queue.budget, queue.budget_mark});
    }
    if (!budgets.empty()) facts = billing_facts(state, std::max(state.now(), clock_.now()));
  });
  if (budgets.empty()) {
    tell_unwatched("");
    return;
  }
  const auto invoice = desk_.of_now(facts);
  if (!invoice) {
    tell_unwatched("budgets are not watched: " + invoice.error().message);
    return;
  }
  const bool money =
      std::any_of(budgets.begin(), budgets.end(), [](const auto& one) { return one.budget.money_micro != 0; });
  tell_unwatched(invoice->unpriced.empty() || !money ? "" : "budgets in money are not watched: " + invoice->unpriced);
  for (BudgetMarked& mark : marks_passed(budgets, *invoice, month_at(facts.now))) {
    if (mark.percent > 0)
      spdlog::info("budget of queue '{}': {} % of {} are used", mark.queue, mark.percent, mark.month);
    inbox_.put({MarkBudget{std::move(mark)}, {}});
  }
}

}  // namespace berth::daemon
