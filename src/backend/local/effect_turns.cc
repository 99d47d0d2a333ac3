#include "backend/local/effect_turns.h"

#include <utility>
#include <variant>

namespace berth::backend {
namespace {

constexpr int kMostInARow = 16;

// A signal without a cause is one that a user sends.
bool is_users_signal(const Effect& effect) {
  const auto* signal = std::get_if<SignalTask>(&effect);
  return signal != nullptr && !signal->cause;
}

}  // namespace

void EffectTurns::push(Effect effect) {
  if (const auto* start = std::get_if<StartTask>(&effect)) return push_start(*start);
  const auto start = starts_.find(std::visit([](const auto& one) { return one.key; }, effect));
  if (start != starts_.end()) {
    if (is_users_signal(effect)) {
      start->second.behind.push_back(std::move(effect));
      return;
    }
    starts_.erase(start);
  }
  prompt_.push_back(std::move(effect));
}

void EffectTurns::push_start(const StartTask& start) {
  if (!starts_.try_emplace(start.key, Start{start, {}}).second) return;
  const JobId job = start.family.valid() ? start.family : start.key.job;
  const auto [user, new_user] = users_.try_emplace(start.user);
  if (new_user) turns_.push_back(start.user);
  const auto [family, new_family] = user->second.families.try_emplace(job);
  if (new_family) user->second.turns.push_back(job);
  family->second.push_back(start.key);
}

std::optional<Effect> EffectTurns::pop() {
  const bool is_turn_of_a_start = prompt_.empty() || prompt_in_a_row_ >= kMostInARow;
  if (is_turn_of_a_start && !starts_.empty()) {
    prompt_in_a_row_ = 0;
    return pop_start();
  }
  if (prompt_.empty()) return std::nullopt;
  ++prompt_in_a_row_;
  Effect effect = std::move(prompt_.front());
  prompt_.pop_front();
  return effect;
}

// Requires: a start waits.
std::optional<Effect> EffectTurns::pop_start() {
  auto start = starts_.extract(next_key());
  while (start.empty()) start = starts_.extract(next_key());
  std::vector<Effect>& behind = start.mapped().behind;
  prompt_.insert(prompt_.begin(), std::make_move_iterator(behind.begin()), std::make_move_iterator(behind.end()));
  return std::move(start.mapped().start);
}

// Takes the key whose turn it is out of users_. Requires: there is one.
TaskKey EffectTurns::next_key() {
  const std::string user = std::move(turns_.front());
  turns_.pop_front();
  Waiting& waiting = users_.at(user);
  const JobId family = waiting.turns.front();
  waiting.turns.pop_front();
  std::deque<TaskKey>& keys = waiting.families.at(family);
  const TaskKey key = keys.front();
  keys.pop_front();
  if (keys.empty()) {
    waiting.families.erase(family);
  } else {
    waiting.turns.push_back(family);
  }
  if (waiting.families.empty()) {
    users_.erase(user);
  } else {
    turns_.push_back(user);
  }
  return key;
}

}  // namespace berth::backend
