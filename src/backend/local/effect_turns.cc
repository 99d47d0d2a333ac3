#include "backend/local/effect_turns.h"

#include <utility>
#include <variant>

namespace berth::backend {

void EffectTurns::push(Effect effect) {
  if (const auto* start = std::get_if<StartTask>(&effect)) {
    const Place place{start->user, start->family.valid() ? start->family : start->key.job};
    starts_.insert_or_assign(start->key, place);
    push(place, std::move(effect));
    return;
  }
  const auto behind = starts_.find(std::visit([](const auto& one) { return one.key; }, effect));
  if (behind == starts_.end()) {
    prompt_.push_back(std::move(effect));
  } else {
    push(behind->second, std::move(effect));
  }
}

void EffectTurns::push(const Place& place, Effect effect) {
  const auto [user, new_user] = users_.try_emplace(place.user);
  if (new_user) turns_.push_back(place.user);
  const auto [family, new_family] = user->second.families.try_emplace(place.family);
  if (new_family) user->second.turns.push_back(place.family);
  family->second.push_back(std::move(effect));
}

std::optional<Effect> EffectTurns::pop() {
  if (!prompt_.empty()) {
    Effect effect = std::move(prompt_.front());
    prompt_.pop_front();
    return effect;
  }
  if (users_.empty()) return std::nullopt;
  const std::string user = std::move(turns_.front());
  turns_.pop_front();
  Waiting& waiting = users_.at(user);
  const JobId family = waiting.turns.front();
  waiting.turns.pop_front();
  std::deque<Effect>& effects = waiting.families.at(family);
  Effect effect = std::move(effects.front());
  effects.pop_front();
  if (effects.empty()) {
    waiting.families.erase(family);
  } else {
    waiting.turns.push_back(family);
  }
  if (waiting.families.empty()) {
    users_.erase(user);
  } else {
    turns_.push_back(user);
  }
  if (const auto* start = std::get_if<StartTask>(&effect)) starts_.erase(start->key);
  return effect;
}

}  // namespace berth::backend
