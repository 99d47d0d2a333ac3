#pragma once
// A Batch collects the events of one iteration of the loop. `emit` applies each event to the working state at once, so
// a later command of the batch sees the effect of an earlier one. The caller makes the whole batch durable before it
// shows anything of it to clients or backends.

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/timestamp.h"
#include "model/event.h"
#include "state/state.h"

namespace berth::control {

// A job that finished in this batch: its last state, for the history.
struct FinishedJob {
  state::JobState job;
  JobFinished how;
  Timestamp finished;
};

class Batch {
 public:
  // `now` is the time of all events of the batch. If it is earlier than the state's time, the state's time is used.
  Batch(state::State& state, Timestamp now) : state_(state), now_(std::max(now, state.now())) {}

  const state::State& state() const { return state_; }
  state::State& working_state() { return state_; }
  Timestamp now() const { return now_; }

  // The next event is what this request asks for. What follows from it has no origin of its own.
  void asked_by(const Origin& by) { by_ = by; }
  // Returns that origin, for a command whose first event is not what was asked for; it is asked_by() again then.
  Origin take_origin() { return std::exchange(by_, Origin()); }

  void emit(Event event) {
    if (const auto* finished = std::get_if<JobFinished>(&event)) {
      finished_jobs_.push_back({*state_.job(finished->job), *finished, now_});
    }
    name_objects(event);
    records_.push_back({state_.last_seq() + 1, now_, std::move(event), std::exchange(by_, Origin())});
    state_.apply(records_.back());
  }
  const std::vector<EventRecord>& records() const { return records_; }
  std::vector<EventRecord> take_records() { return std::move(records_); }
  std::vector<FinishedJob> take_finished_jobs() { return std::move(finished_jobs_); }

 private:
  void name_objects(const Event& event) {
    if (by_.empty()) return;
    if (const state::JobState* job = state_.job(job_of(event))) by_.queue = state_.queue(job->queue).path;
    const NodeId node = node_of(event);
    if (node.valid() && node.index() < state_.nodes().size()) by_.node = state_.node(node).spec.name;
  }

  state::State& state_;
  Timestamp now_;
  Origin by_;
  std::vector<EventRecord> records_;
  std::vector<FinishedJob> finished_jobs_;
};

}  // namespace berth::control
