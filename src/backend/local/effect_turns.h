#pragma once
// The effects that wait for the executor of this machine, and which one is next. A start costs the executor
// milliseconds, so a thousand elements of one array are seconds of work: they take turns with everything else.
//
// 1. Effects of one task keep their order.
// 2. A signal, a stop or a forget goes before all starts, unless the start of its task still waits.
// 3. Starts take turns by the user of their job, and within a user by job; replicas and elements count as their service
//    or array. So a start waits at most for one start of each other user, beside those of its own user.

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "model/effect.h"

namespace berth::backend {

class EffectTurns {
 public:
  void push(Effect effect);
  // Returns the next effect, or nothing if none waits.
  std::optional<Effect> pop();
  bool empty() const { return prompt_.empty() && users_.empty(); }

 private:
  struct Place {
    std::string user;
    JobId family;
  };
  struct Waiting {
    std::map<JobId, std::deque<Effect>> families;
    std::deque<JobId> turns;  // the families, the next one first
  };

  void push(const Place& place, Effect effect);

  std::deque<Effect> prompt_;
  std::map<std::string, Waiting> users_;
  std::deque<std::string> turns_;    // the users, the next one first
  std::map<TaskKey, Place> starts_;  // those that wait
};

}  // namespace berth::backend
