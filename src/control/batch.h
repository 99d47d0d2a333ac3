#pragma once
// A Batch is one turn of the loop: the events that commands and the cycle give rise to, applied to the working state at
// once, so that what comes later in the batch sees what came before. Only when the whole batch is durable may anything
// of it be seen outside.

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/timestamp.h"
#include "model/event.h"
#include "state/state.h"

namespace berth::control {

// A job that left the state in this batch, as it was at the end; it goes to history.
struct Retired {
  state::JobState job;
  JobFinished how;
  Timestamp finished;
};

class Batch {
 public:
  // `now` is the batch's only time; it never lies before the state's.
  Batch(state::State& state, Timestamp now) : state_(state), now_(std::max(now, state.now())) {}

  const state::State& state() const { return state_; }
  state::State& working_state() { return state_; }
  Timestamp now() const { return now_; }

  void emit(Event event) {
    if (const auto* finished = std::get_if<JobFinished>(&event)) {
      retired_.push_back({*state_.job(finished->job), *finished, now_});
    }
    records_.push_back({state_.last_seq() + 1, now_, std::move(event)});
    state_.apply(records_.back());
  }
  const std::vector<EventRecord>& records() const { return records_; }
  std::vector<EventRecord> take_records() { return std::move(records_); }
  std::vector<Retired> take_retired() { return std::move(retired_); }

 private:
  state::State& state_;
  Timestamp now_;
  std::vector<EventRecord> records_;
  std::vector<Retired> retired_;
};

}  // namespace berth::control
