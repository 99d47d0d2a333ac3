// Changes of limits by command in a random life.

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

}  // namespace berth::sim
