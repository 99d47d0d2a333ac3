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

  void emit(Event event) {
    if (const auto* finished = std::get_if<JobFinished>(&event)) {
      finished_jobs_.push_back({*state_.job(finished->job), *finished, now_});
    }
    records_.push_back({state_.last_seq() + 1, now_, std::move(event)});
    state_.apply(records_.back());
  }
  const std::vector<EventRecord>& records() const { return records_; }
  std::vector<EventRecord> take_records() { return std::move(records_); }
  std::vector<FinishedJob> take_finished_jobs() { return std::move(finished_jobs_); }

 private:
  state::State& state_;
  Timestamp now_;
  std::vector<EventRecord> records_;
  std::vector<FinishedJob> finished_jobs_;
};

}  // namespace berth::control
