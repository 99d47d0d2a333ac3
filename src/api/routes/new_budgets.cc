#include "api/routes/new_budgets.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/config_change.h"
#include "model/document/quantity.h"
#include "model/price_book.h"

namespace berth::api {
namespace {

struct NewBudget {
  std::string queue;  // as the configuration names it
  std::string now;    // as it is called now
  BudgetConfig budget;
  std::optional<BudgetConfig> known;  // in force
};

bool same_period(const BudgetConfig& one, const BudgetConfig& other) {
  return one.from == other.from && one.until == other.until;
}

// A looser budget may still be below what was used: so a used-up one is not the harder to give more.
bool is_stricter(const NewBudget& one) {
  return !one.known || one.known->is_money() != one.budget.is_money() || one.budget.limit() < one.known->limit() ||
         !same_period(*one.known, one.budget);
}

// The queues of the file in force, by the paths that they would have.
using QueuesBefore = std::map<std::string, const QueueConfig*, std::less<>>;

QueuesBefore queues_before(const View& view, const ClusterConfig& config) {
  const std::vector<QueueMove> moves = control::moves_of(view.state, config);
  QueuesBefore queues;
  for (const QueueConfig& before : view.state.file_config().queues) queues[moved_path(before.path, moves)] = &before;
  return queues;
}

std::vector<NewBudget> new_budgets(const View& view, const ClusterConfig& config) {
  const QueuesBefore queues = queues_before(view, config);
  std::vector<NewBudget> found;
  for (const QueueConfig& one : config.queues) {
    const auto before = queues.find(one.path);
    if (before == queues.end()) continue;
    const std::string& now = before->second->path;
    const state::QueueState* queue = view.state.queue_at(now);
    for (const std::optional<BudgetConfig>& budget : {one.budget, one.grant}) {
      if (!budget) continue;
      NewBudget is{one.path, now, *budget, {}};
      if (queue != nullptr && queue->budget(budget->kind())) is.known = queue->budget(budget->kind())->config;
      if (is_stricter(is)) found.push_back(std::move(is));
    }
  }
  return found;
}

Error refused(const NewBudget& one, const std::string& key, const std::string& why) {
  return invalid("queue '" + one.queue + "'." + std::string(name_of(one.budget.kind())) + "." + key + ": " + why);
}

// A queue that is not there yet may have such a grant no more than others.
Result<void> check_ends(const View& view, const ClusterConfig& config) {
  const QueuesBefore queues = queues_before(view, config);
  for (const QueueConfig& one : config.queues) {
    if (!one.grant || one.grant->until > view.now) continue;
    const auto before = queues.find(one.path);
    const bool in_force =
        before != queues.end() && before->second->grant && before->second->grant->until == one.grant->until;
    if (!in_force)
      return refused({one.path, "", *one.grant, {}}, "until",
                     "it has ended already, at " + to_iso8601(one.grant->until) +
                         ", and would stop the queue; give a later end, or leave the grant out");
  }
  return {};
}

}  // namespace

Result<void> check_new_budgets(Service& service, const ClusterConfig& config) {
  std::vector<NewBudget> budgets;
  Timestamp now;
  Result<void> ends;
  service.read([&](const View& view) {
    ends = check_ends(view, config);
    budgets = new_budgets(view, config);
    now = view.now;
  });
  if (!ends) return ends;
  std::erase_if(budgets, [&](const NewBudget& one) { return !one.budget.period_at(now); });
  if (budgets.empty()) return {};
  std::vector<Month> periods;
  for (const NewBudget& one : budgets) periods.push_back(*one.budget.period_at(now));
  const auto used = service.used_in(periods);
  if (!used) return {};  // it is not known, and the status says so
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    const billing::WatchedBudget watched{budgets[i].now, budgets[i].budget, {}};
    const auto mark = billing::mark_passed(watched, billing::known_use(watched, (*used)[i]), now);
    if (!mark || mark->used <= mark->limit) continue;
    const bool money = watched.budget.is_money();
    const auto text = [&](std::int64_t amount) { return money ? money_text(amount) : document::milli_text(amount); };
    return refused(budgets[i], money ? "money" : "gpu_hours",
                   text(mark->limit) + " is less than was used since " + to_iso8601(periods[i].begin).substr(0, 10) +
                       ", " + text(mark->used) + "; give more than that");
  }
  return {};
}

}  // namespace berth::api
