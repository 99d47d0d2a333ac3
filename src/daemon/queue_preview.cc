#include "daemon/queue_preview.h"

#include <algorithm>
#include <set>
#include <span>
#include <variant>
#include <vector>

#include "control/config_change.h"
#include "control/iteration.h"
#include "explain/move_refusal.h"
#include "sched/cycle.h"

namespace berth::daemon {
namespace {

using state::State;

constexpr int kMostIterationsTried = 16;  // a cycle of a full fleet may leave work for the next one

struct Turns {
  Result<control::Reply> reply = control::Reply();
  std::set<JobId> started;  // or nominated
  std::set<JobId> stopped;
};

// Runs iterations until there is nothing more to decide at `now`.
Turns run_turns(State& state, std::span<const Command> commands, Timestamp now) {
  control::IterationMemory memory;
  Turns turns;
  for (int done = 0; done < kMostIterationsTried; ++done) {
    const control::Iteration iteration =
        control::run_iteration(state, now, commands, memory, sched::run_cycle, explain::find_move_target);
    if (!commands.empty()) turns.reply = iteration.replies.front();
    commands = {};
    for (const EventRecord& record : iteration.records) {
      if (const auto* stop = std::get_if<StopBegan>(&record.event)) turns.stopped.insert(stop->job);
      if (const auto* start = std::get_if<AttemptStarted>(&record.event)) turns.started.insert(start->job);
      if (const auto* nominated = std::get_if<Nominated>(&record.event)) turns.started.insert(nominated->job);
    }
    if (!iteration.again) break;
  }
  return turns;
}

// The jobs of the first set that are not in the second one, as the viewer may see them.
template <class Jobs>
api::QueuePreview::Jobs shown(const State& state, const explain::Viewer& viewer, const Jobs& jobs,
                              const std::set<JobId>& without = {}) {
  api::QueuePreview::Jobs all;
  for (const JobId id : jobs) {
    if (without.contains(id)) continue;
    const state::JobState* job = state.job(id);
    if (job != nullptr && viewer.sees(state, *job)) {
      all.seen.push_back(id);
    } else {
      ++all.not_shown;
    }
  }
  return all;
}

std::string queue_of(const Command& command) {
  if (const auto* set = std::get_if<SetQueue>(&command)) return set->queue;
  return std::get<UndoQueueChange>(command).queue;
}

}  // namespace

Result<api::QueuePreview> preview_queue_change(State& without, State& with, const Command& command, Timestamp now,
                                               const explain::Viewer& viewer) {
  // What the limits mean for jobs that run is asked of the state before anything starts.
  ClusterConfig changed = without.config();
  const Turns after = run_turns(with, std::span(&command, 1), now);
  if (!after.reply) return after.reply.error();
  api::QueuePreview preview;
  preview.reply = *after.reply;
  if (after.reply->stale) return preview;
  const std::string path = queue_of(command);
  put_limits(changed, path, after.reply->limits);
  const control::ConfigConsequences consequences = control::consequences_of(without, changed);
  for (const control::QueueConsequence& one : consequences.queues) {
    if (without.queue(one.queue).path != path) continue;
    preview.become_borrowed = shown(without, viewer, one.borrowed);
    preview.become_guaranteed = shown(without, viewer, one.guaranteed);
    preview.above_max = one.above_max;
  }
  const Turns before = run_turns(without, {}, now);
  preview.start = shown(without, viewer, after.started, before.started);
  preview.wait = shown(without, viewer, before.started, after.started);
  preview.stop = shown(without, viewer, after.stopped, before.stopped);
  return preview;
}

}  // namespace berth::daemon
