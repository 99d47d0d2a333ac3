#include "daemon/forecast.h"

#include <algorithm>
#include <set>
#include <span>
#include <variant>
#include <vector>

#include "api/routes/views.h"
#include "control/drain.h"
#include "control/iteration.h"
#include "explain/move_refusal.h"
#include "sched/cycle.h"
#include "state/within.h"

namespace berth::daemon {
namespace {

using state::JobState;
using state::State;

constexpr int kMostIterations = 16;  // a cycle of a full fleet may leave work for the next one

// The job itself and, of a service or an array, its replicas or elements.
std::set<JobId> family_of(const State& state, JobId id) {
  std::set<JobId> family{id};
  const auto children = state.children().find(id);
  if (children != state.children().end()) family.insert(children->second.begin(), children->second.end());
  return family;
}

void add_place(const State& state, const TaskPlacement& placement, std::vector<api::Forecast::Place>& places) {
  const std::string& node = state.node(placement.node).spec.name;
  auto place = std::find_if(places.begin(), places.end(), [&](const auto& one) { return one.node == node; });
  if (place == places.end()) place = places.insert(places.end(), {node, 0, 0});
  ++place->tasks;
  place->gpu_milli += static_cast<std::int64_t>(placement.gpus.size()) * placement.gpu_milli;
}

api::Forecast::Victim victim_of(const State& state, const StopBegan& stop, Timestamp now) {
  const JobState& job = *state.job(stop.job);
  const state::RunningRow& row = state.running_table().rows()[job.running_row];
  const bool loses = stop.keep == 0 && control::loses_work(state, job);
  return {.job = job.id,
          .user = job.spec.user,
          .queue = job.spec.queue,
          .cause = stop.cause,
          .keep = stop.keep,
          .gpu_milli = row.gpu_milli,
          .unsaved_s = loses ? std::max<std::int64_t>(0, now - row.saved) / 1000 : 0};
}

// Adds what the job has got: places where it started, or the places nominated to it. A job that ran before has got
// nothing.
void add_start(const State& state, const JobState& job, bool started, api::Forecast& forecast) {
  if (job.attempt && !started) return;
  if (job.attempt) {
    ++forecast.started;
    for (const state::TaskState& task : job.attempt->tasks) add_place(state, task.placement, forecast.places);
    const auto& charges = job.attempt->charges;
    const bool within = std::all_of(charges.begin(), charges.end(), [&](const state::Charge& charge) {
      return state::is_within_all(state, job.queue, charge.within);
    });
    forecast.within = forecast.within.value_or(true) && within;
  } else if (job.nomination) {
    for (const TaskPlacement& placement : job.nomination->placements) add_place(state, placement, forecast.places);
  }
  if (job.reservation && !job.attempt) forecast.start = job.reservation->start;
}

}  // namespace

Result<api::Forecast> forecast(State& state, const Command& command, Timestamp now) {
  control::IterationMemory memory;
  const auto iterate = [&](std::span<const Command> commands) {
    return control::run_iteration(state, now, commands, memory, sched::run_cycle, explain::find_move_target);
  };
  control::Iteration iteration = iterate(std::span(&command, 1));
  const Result<control::Reply> reply = iteration.replies.front();
  if (!reply) return reply.error();
  std::vector<StopBegan> stops;
  std::set<JobId> started;
  for (int done = 1;; ++done) {
    for (const EventRecord& record : iteration.records) {
      if (const auto* stop = std::get_if<StopBegan>(&record.event)) stops.push_back(*stop);
      if (const auto* start = std::get_if<AttemptStarted>(&record.event)) started.insert(start->job);
    }
    if (!iteration.again || done == kMostIterations) break;
    iteration = iterate({});
  }
  api::Forecast forecast;
  if (const JobState* job = state.job(reply->job)) forecast.phase = api::phase_of(state, *job);
  forecast.job = reply->job;
  forecast.repeated = reply->repeated;
  forecast.warnings = reply->warnings;
  const std::set<JobId> family = family_of(state, reply->job);
  for (const JobId id : family) {
    const JobState* job = state.job(id);
    if (job != nullptr && !(job->is_parent() && family.size() > 1))
      add_start(state, *job, started.contains(id), forecast);
  }
  for (const StopBegan& stop : stops) {
    const JobState* victim = state.job(stop.job);
    if (family.contains(stop.preemptor) && victim != nullptr && victim->attempt)
      forecast.victims.push_back(victim_of(state, stop, now));
  }
  return forecast;
}

}  // namespace berth::daemon
