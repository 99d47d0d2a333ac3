#include "daemon/loop.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "control/effects.h"
#include "daemon/exit_code.h"
#include "daemon/history_codec.h"
#include "explain/move_refusal.h"
#include "sched/cycle.h"
#include "store/event_codec.h"

namespace berth::daemon {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLongestWait{1000};
// The loop waits for more requests at most half of the time of an append, and never longer than this.
constexpr Clock::duration kLongestLinger = std::chrono::milliseconds(2);
// After a cycle that took longer than kCheapCycle, the next one waits for kPausePerCycle times that duration. So
// commands keep their share of the loop.
constexpr int kPausePerCycle = 3;
constexpr std::chrono::milliseconds kCheapCycle{2};

std::int64_t microseconds(Clock::duration took) {
  return std::chrono::duration_cast<std::chrono::microseconds>(took).count();
}

}  // namespace

Loop::Loop(state::State state, std::uint64_t epoch, store::Log& log, Inbox& inbox, Reader& reader,
           backend::Backend& backend, ServerClock& clock)
    : state_(std::move(state)),
      epoch_(epoch),
      log_(log),
      inbox_(inbox),
      reader_(reader),
      backend_(backend),
      clock_(clock) {}

Loop::~Loop() { stop(); }

void Loop::start() {
  // Sends all effects in force, because the backend may have missed some while the server was down. All are idempotent.
  backend_.perform(control::all_effects(state_));
  thread_ = std::thread([this] { run(); });
}

void Loop::stop() {
  stopping_ = true;
  inbox_.close();
  if (thread_.joinable()) thread_.join();
}

void Loop::run() {
  while (!stopping_) {
    Clock::time_point until = Clock::now() + kLongestWait;
    if (again_) until = std::max(Clock::now(), next_cycle_);
    if (!wake_at_.is_never()) {
      const std::int64_t due_in = std::clamp<std::int64_t>(wake_at_ - read_clock(), 0, kLongestWait.count());
      until = std::min(until, Clock::now() + std::chrono::milliseconds(due_in));
    }
    iteration(inbox_.take(until, std::min(append_took_ / 2, kLongestLinger)));
  }
}

void Loop::iteration(std::vector<QueuedRequest> requests) {
  std::vector<Command> commands;
  std::vector<Origin> origins;
  commands.reserve(requests.size());
  origins.reserve(requests.size());
  for (QueuedRequest& queued : requests) {
    commands.push_back(std::move(queued.command));
    origins.push_back(std::move(queued.by));
  }
  const Clock::time_point began = Clock::now();
  memory_.skip_cycle = began < next_cycle_;
  Clock::duration cycle_took{};
  const auto cycle = [&](state::State& state, Timestamp now) {
    const Clock::time_point cycle_began = Clock::now();
    Plan plan = sched::run_cycle(state, now);
    cycle_took = Clock::now() - cycle_began;
    return plan;
  };
  control::Iteration iteration =
      control::run_iteration(state_, read_clock(), commands, memory_, cycle, explain::find_move_target, origins);
  if (cycle_took > kCheapCycle) next_cycle_ = Clock::now() + kPausePerCycle * cycle_took;
  again_ = iteration.again;
  wake_at_ = iteration.wake_at;
  DurableBatch batch;
  if (iteration.cycle_ran) batch.work.cycle = work_of(iteration.plan, microseconds(cycle_took));
  if (!iteration.records.empty()) {
    const Clock::time_point append_began = Clock::now();
    append(iteration);
    append_took_ = Clock::now() - append_began;
    batch.work.append_us = microseconds(append_took_);
  }
  for (const EventRecord& record : iteration.records) {
    if (const auto* confirmed = std::get_if<ClockConfirmed>(&record.event)) clock_.confirm(confirmed->offset_ms);
  }
  std::vector<Effect> effects = control::effects_of(state_, iteration.records);
  batch.vital_signs = vital_signs(state_);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].answer) batch.answers.emplace_back(std::move(requests[i].answer), std::move(iteration.replies[i]));
  }
  batch.records = std::move(iteration.records);
  if (!batch.records.empty() || !batch.answers.empty() || batch.work.cycle) reader_.push(std::move(batch));
  backend_.perform(effects);
}

void Loop::append(const control::Iteration& iteration) {
  std::vector<store::Record> records;
  records.reserve(iteration.records.size());
  for (const EventRecord& record : iteration.records) records.push_back(store::to_record(record, epoch_));
  std::vector<store::HistoryRow> finished_jobs;
  for (const control::FinishedJob& one : iteration.finished_jobs) finished_jobs.push_back(to_history(one));
  const auto appended = log_.append(epoch_, records.front().seq, records, finished_jobs);
  if (appended) return;
  spdlog::critical("the event log cannot be written: {}. Nothing acknowledged is lost; jobs go on running. Ending.",
                   appended.error().message);
  spdlog::shutdown();
  // What became of a commit whose answer is missing is found out by the next start.
  ::_exit(appended.error().code == ErrorCode::kUnavailable ? exit_code_of(appended.error().code) : kExitIoError);
}

}  // namespace berth::daemon
