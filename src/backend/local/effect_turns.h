#pragma once
// The effects that wait for the executor of this machine, and which one is next. A start costs the executor
// milliseconds, so a thousand elements of one array are seconds of work: they take turns with everything else.
//
// 1. A signal, a stop or a forget goes before all starts; after sixteen of them one start has its turn.
// 2. A stop or a forget of a task whose start still waits takes that start away: the task never begins. A user's signal
//    goes right behind the start.
// 3. Starts take turns by the user of their job, and within a user by job; replicas and elements count as their service
//    or array. So a start waits at most for one start of each other user, beside those of its own user.
// 4. A start of a task whose start waits already changes nothing.

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/effect.h"

namespace berth::backend {

class EffectTurns {
 public:
  void push(Effect effect);
  // Returns the next effect, or nothing if none waits.
  std::optional<Effect> pop();
  bool empty() const { return prompt_.empty() && starts_.empty(); }

 private:
  struct Start {
    StartTask start;
    std::vector<Effect> behind;
  };
  struct Waiting {
    std::map<JobId, std::deque<TaskKey>> families;
    std::deque<JobId> turns;  // the families, the next one first
  };

  void push_start(const StartTask& start);
  std::optional<Effect> pop_start();
  TaskKey next_key();

  std::deque<Effect> prompt_;
  int prompt_in_a_row_ = 0;
  std::map<std::string, Waiting> users_;
  std::deque<std::string> turns_;    // the users, the next one first
  std::map<TaskKey, Start> starts_;  // those that wait; users_ names some that do not any more
};

}  // namespace berth::backend
