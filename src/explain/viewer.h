#pragma once
// Viewer: whose eyes an explanation is for. It says which jobs may be named; others are only counted.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "state/state.h"

namespace berth::explain {

class Viewer {
 public:
  static Viewer sees_all() {
    Viewer viewer;
    viewer.everything_ = true;
    return viewer;
  }
  // Sees the jobs of `top` and of all queues below it.
  static Viewer sees_below(QueueId top) {
    Viewer viewer;
    viewer.add(top, {});
    return viewer;
  }
  // Sees nothing until add() says what.
  static Viewer sees_nothing() { return {}; }
  // Also sees the jobs of `top` and of all queues below it; only those of the user `owner` if it is not empty.
  void add(QueueId top, std::string owner) { parts_.push_back({top, std::move(owner)}); }

  bool sees_everything() const { return everything_; }
  // Returns true if the job may be named.
  bool sees(const state::State& state, const state::JobState& job) const {
    return everything_ || std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
             return state.is_below(job.queue, part.top) && (part.owner.empty() || part.owner == job.spec.user);
           });
  }
  // Returns true if the queue may be named: a viewer also knows the ancestors of its own queues, whose limits bind it.
  bool knows(const state::State& state, QueueId queue) const {
    return everything_ || std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
             return state.is_below(queue, part.top) || state.is_below(part.top, queue);
           });
  }

 private:
  struct Part {
    QueueId top;
    std::string owner;
  };
  bool everything_ = false;
  std::vector<Part> parts_;
};

}  // namespace berth::explain
