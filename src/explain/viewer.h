#pragma once
// Viewer: whose eyes an explanation is for. It says which queues' jobs may be named; others are only counted.

#include <optional>

#include "state/state.h"

namespace berth::explain {

class Viewer {
 public:
  static Viewer sees_all() { return {}; }
  // Sees the jobs of `top` and of all queues below it.
  static Viewer sees_below(QueueId top) {
    Viewer viewer;
    viewer.top_ = top;
    return viewer;
  }

  bool sees_everything() const { return !top_; }
  // Returns true if the jobs of the queue may be named.
  bool sees(const state::State& state, QueueId queue) const { return !top_ || state.is_below(queue, *top_); }
  // Returns true if the queue may be named: a viewer also knows the ancestors of its own queue, whose limits bind it.
  bool knows(const state::State& state, QueueId queue) const {
    return sees(state, queue) || state.is_below(*top_, queue);
  }

 private:
  std::optional<QueueId> top_;
};

}  // namespace berth::explain
