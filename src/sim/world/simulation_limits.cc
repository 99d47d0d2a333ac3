// Changes of limits by command in a random life; budgets and grants.

#include "sim/world/simulation.h"

namespace berth::sim {

// Changes limits of a queue: many are refused, because they do not fit into what is above or below. Some are leased,
// and some undone.
void Simulation::change_limits(Random& apart) {
  const std::string& queue = apart.pick(config_.queues).path;
  if (apart.chance(200)) {
    world_.send(UndoQueueChange{queue, "operator", {}});
    return;
  }
  SetQueue change;
  change.queue = queue;
  change.user = "operator";
  change.operates = true;
  const std::vector<std::string> keys{"guaranteed.gpus", "max.gpus", "lending_limit.gpus", "weight", "eviction.grace"};
  LimitSetting setting;
  setting.key = apart.pick(keys);
  const bool gpus = setting.key.ends_with(".gpus");
  if (gpus && apart.chance(700)) {
    setting.how = LimitSetting::How::kBy;
    setting.amount = apart.between(-4, 4) * kMilli;
  } else if (apart.chance(200)) {
    setting.how = LimitSetting::How::kUnset;
  } else {
    setting.amount = apart.between(0, 12) * (gpus ? kMilli : 1);
  }
  change.settings.push_back(setting);
  if (apart.chance(400)) change.until = world_.clock() + apart.between(1, 7200) * 1000;
  world_.send(change);
}

// Gives queues budgets and grants, with random numbers of their own.
void Simulation::choose_budgets(ClusterConfig& config) {
  if (!has_budgets()) return;
  Random purse(seed_ ^ 0xb4d6eULL ^ (steps_ << 20U));
  constexpr std::int64_t kMinute = 60'000;
  const auto some = [&] {
    BudgetConfig budget;
    if (purse.chance(150))
      budget.money_micro = purse.between(1, 40'000) * 1000;
    else
      budget.gpu_milli_hours = purse.between(1, 200) * purse.between(1, 200);
    budget.when_used_up = static_cast<BudgetAction>(purse.below(3));
    return budget;
  };
  const Timestamp begun = world_.clock();
  for (QueueConfig& queue : config.queues) {
    if (purse.chance(250)) queue.budget = some();
    if (!purse.chance(250)) continue;
    queue.grant = some();
    queue.grant->from = begun + purse.between(-60, 60) * kMinute;
    queue.grant->until = queue.grant->from + purse.between(61, 400) * kMinute;
  }
}

// What the daemon does all the time. A process may die before a mark is stored; then the next look tells it.
void Simulation::look_at_budgets() {
  if (!has_budgets()) return;
  world_.reconcile();
  Random apart(seed_ ^ (steps_ << 12U));
  for (int looks = 0; looks < 8 && !violation(); ++looks) {
    auto marks = budgets_.look(world_.durable(), world_.log(), world_.clock());
    BERTH_CHECK(marks.has_value());
    if (marks->empty()) return checker_.check_marks(world_.clock());
    for (BudgetMarked& mark : *marks) {
      if (apart.chance(100)) world_.send(MarkBudget{mark});  // told twice, as after a reply that was lost
      world_.send(MarkBudget{std::move(mark)});
    }
    world_.reconcile();
  }
}

}  // namespace berth::sim
