#include "daemon/budget_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "billing/budget_marks.h"

namespace berth::daemon {
namespace {

using billing::WatchedBudget;

constexpr auto kPause = std::chrono::seconds(5);
constexpr int kRestPerWork = 20;  // it rests this many times as long as it has worked
constexpr auto kLeastRest = std::chrono::milliseconds(20);
constexpr std::size_t kNotBegun = std::numeric_limits<std::size_t>::max();

// Returns the budgets and grants whose mark can change.
std::vector<WatchedBudget> watched_in(const state::State& state) {
  std::vector<WatchedBudget> watched;
  for (const state::QueueState& queue : state.queues()) {
    for (const auto& budget : queue.budgets) {
      if (queue.removed || !budget || budget->mark.ended) continue;
      // What costs money is not known without prices.
      if (budget->config.is_money() && state.price_version() == 0) continue;
      watched.push_back({queue.path, budget->config, budget->mark});
    }
  }
  return watched;
}

void tell(const BudgetMarked& mark) {
  const std::string of(name_of(mark.of));
  if (mark.ended)
    spdlog::info("{} of queue '{}': it has ended", of, mark.queue);
  else if (mark.percent > 0)
    spdlog::info("{} of queue '{}': {} % are used", of, mark.queue, mark.percent);
}

}  // namespace

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
  using Duration = std::chrono::steady_clock::duration;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto begin = std::chrono::steady_clock::now();
    const Timestamp edge = look();
    const Duration worked = std::chrono::steady_clock::now() - begin;
    lock.lock();
    Duration rest = std::max<Duration>(kPause, kRestPerWork * worked);
    if (const Timestamp now = clock_.now(); !edge.is_never() && edge - now < rest / std::chrono::milliseconds(1))
      rest = std::max<Duration>(kLeastRest, std::chrono::milliseconds(edge - now));
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

Timestamp BudgetWatch::look() {
  std::vector<WatchedBudget> watched;
  BillingFacts facts;
  reader_.read([&](state::State& state, const billing::Meter&) {
    watched = watched_in(state);
    if (watched.empty()) return;
    facts = billing_facts(state, std::max(state.now(), clock_.now()));
    facts.past_reports = reports_before(state, month_at(facts.now).begin);
  });
  Timestamp edge = Timestamp::never();
  std::vector<Month> periods;
  std::vector<std::size_t> period_of(watched.size(), kNotBegun);  // indexes of `periods`
  for (std::size_t i = 0; i < watched.size(); ++i) {
    const auto period = watched[i].budget.period_at(facts.now);
    edge = std::min(edge, !period ? watched[i].budget.from : period->end > facts.now ? period->end : edge);
    if (!period) continue;
    const auto same = std::find_if(periods.begin(), periods.end(), [&](const Month& known) {
      return known.begin == period->begin && known.end == period->end;
    });
    period_of[i] = static_cast<std::size_t>(same - periods.begin());
    if (same == periods.end()) periods.push_back(*period);
  }
  if (periods.empty()) {
    tell_unwatched("");
    return edge;
  }
  const auto used = desk_.used_in(periods, facts);
  std::string unwatched = used ? std::string() : "budgets are not watched: " + used.error().message;
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (period_of[i] == kNotBegun) continue;
    const billing::QueueUses* uses = used ? billing::known_use(watched[i], (*used)[period_of[i]]) : nullptr;
    if (used && uses == nullptr) unwatched = "budgets in money are not watched: " + (*used)[period_of[i]].unpriced;
    auto mark = billing::mark_passed(watched[i], uses, facts.now);
    if (!mark) continue;
    tell(*mark);
    inbox_.put({MarkBudget{std::move(*mark)}, {}});
  }
  tell_unwatched(std::move(unwatched));
  return edge;
}

}  // namespace berth::daemon
