#include "sim/world/world.h"

#include <algorithm>
#include <utility>

#include "base/planted.h"
#include "control/effects.h"
#include "explain/move_refusal.h"
#include "sched/cycle.h"
#include "store/event_codec.h"

namespace berth::sim {

namespace {

EventRecord from_record(const store::Record& record) {
  auto event = store::to_event(record);
  BERTH_CHECK(event.has_value());
  return std::move(*event);
}

}  // namespace

World::World(std::uint64_t seed, backend::FakeBackend::ScriptFor script_for) : fleet_(seed, std::move(script_for)) {
  epoch_ = *log_.take_epoch();
}

void World::breach(std::string what) {
  if (!violation_) violation_ = std::move(what);
}

Timestamp World::clock() { return clock_.read({now_.ms * 1000, (now_.ms + wall_ahead_ms_) * 1000}); }

std::int64_t World::wall_offset_ms() {
  clock();
  return clock_.offset_ms();
}

// Returns when, in the time of the fleet, the control plane's clock may show that time. It may be too early where the
// clock goes slower, so the caller has to look again.
Timestamp World::due(Timestamp at) {
  return at.is_never() ? at : now_ + std::max<std::int64_t>(at > clock() ? 1 : 0, at - clock());
}

std::uint64_t World::send(Command command) {
  inbox_.push_back({next_ticket_, std::move(command)});
  return next_ticket_++;
}

void World::reconcile() {
  constexpr int kMostIterationsAtOnce = 1000;
  for (int iterations = 0; iterations < kMostIterationsAtOnce; ++iterations) {
    iteration();
    fleet_.advance(now_);
    if (!again_ && inbox_.empty() && !fleet_.has_reports() && wake_at_ > clock()) return;
  }
  breach("P13: the loop does not come to rest at " + std::to_string(now_.ms) + " ms");
}

void World::advance_to(Timestamp when) {
  while (true) {
    const Timestamp next = std::min(fleet_.next_due(), due(wake_at_));
    if (next > when || violation_) break;
    now_ = std::max(now_, next);
    fleet_.advance(now_);
    reconcile();
  }
  now_ = when;
}

bool World::append(std::span<const EventRecord> records) {
  std::vector<store::Record> rows;
  rows.reserve(records.size());
  for (const EventRecord& record : records) rows.push_back(store::to_record(record, epoch_));
  return log_.append(epoch_, records.front().seq, rows).has_value();
}

void World::make_durable(std::span<const EventRecord> records) {
  for (const EventRecord& record : records) {
    durable_.apply(record);
    meter_.apply(record);
    if (audits_) audit_after(record);
  }
  durable_.clear_unreconciled();
  durable_.clear_roomier();
  if (witness_ != nullptr) witness_->on_records(records, durable_);
}

void World::audit_after(const EventRecord& record) {
  ++audited_;
  auto wrong = durable_.audit();
  if (!wrong) wrong = meter_.check_from_scratch();
  if (wrong) breach("P10: after event " + std::to_string(record.seq) + ", " + *wrong);
}

void World::perform(std::span<const Effect> effects) {
  for (const Effect& effect : effects) {
    if (witness_ != nullptr) witness_->on_effect(effect, durable_);
    fleet_.perform(effect, now_);
  }
}

// An exit of a task that the state no longer knows is old; the fleet may forget it.
void World::forget_old_exits(std::span<const Letter> letters, std::span<const Result<control::Reply>> replies) {
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto* report = std::get_if<ReportTaskExited>(&letters[i].command);
    if (report == nullptr || !replies[i].has_value() || !replies[i].value().unchanged) continue;
    const TaskExited& exit = report->exit;
    fleet_.perform(ForgetTask{{exit.job, exit.attempt, exit.task, exit.incarnation}, {}}, now_);
  }
}

void World::iteration() {
  ++iterations_;
  std::vector<Letter> letters;
  for (Command& report : fleet_.take_reports()) letters.push_back({0, std::move(report)});
  std::move(inbox_.begin(), inbox_.end(), std::back_inserter(letters));
  inbox_.clear();
  std::vector<Command> commands;
  commands.reserve(letters.size());
  for (const Letter& letter : letters) commands.push_back(letter.command);

  const Timestamp now = clock();
  if (witness_ != nullptr) witness_->on_real_time(now_);
  control::Iteration iteration =
      control::run_iteration(working_, now, commands, memory_, sched::run_cycle, explain::find_move_target);
  again_ = iteration.again;
  wake_at_ = iteration.wake_at;
  if (iteration.cycle_ran) last_plan_ = std::move(iteration.plan);

  const Death death = std::exchange(death_, Death::kNone);
  if (planted(Bug::kEffectsBeforeAppend)) perform(control::effects_of(working_, iteration.records));
  if (!iteration.records.empty()) {
    if (death == Death::kBeforeAppend) return restart();
    if (death == Death::kInAppendNothingKept) log_.fail_append(1, store::FailedAppend::kNothingKept);
    if (death == Death::kInAppendAllKept) log_.fail_append(1, store::FailedAppend::kAllKept);
    if (!append(iteration.records)) return restart();
    if (death == Death::kAfterAppend) return restart();
    make_durable(iteration.records);
    for (const EventRecord& record : iteration.records) {
      if (const auto* confirmed = std::get_if<ClockConfirmed>(&record.event)) clock_.confirm(confirmed->offset_ms);
    }
  }
  std::vector<Effect> effects = control::effects_of(working_, iteration.records);
  if (death == Death::kAmongEffects) effects.resize(effects.size() / 2);
  perform(effects);
  if (death == Death::kAmongEffects) return restart();
  forget_old_exits(letters, iteration.replies);
  if (witness_ != nullptr) {
    for (std::size_t i = 0; i < letters.size(); ++i) {
      if (letters[i].ticket != 0) witness_->on_answer({letters[i].ticket, iteration.replies[i]});
    }
    witness_->on_iteration_end(durable_, now, !again_ && wake_at_ > now);
  }
}

void World::read_what_was_missed() {
  std::vector<EventRecord> missed;
  const auto read = log_.read(durable_.last_seq() + 1, [&](const store::Record& record) -> Result<bool> {
    missed.push_back(from_record(record));
    return true;
  });
  BERTH_CHECK(read.has_value());
  if (!missed.empty()) make_durable(missed);
}

void World::restart() {
  ++restarts_;
  log_.reopen();
  epoch_ = *log_.take_epoch();
  inbox_.clear();
  memory_ = {};
  working_ = state::State();
  const auto checkpoint = log_.load_checkpoint();
  BERTH_CHECK(checkpoint.has_value());
  if (*checkpoint) {
    auto loaded = state::State::load((*checkpoint)->bytes);
    BERTH_CHECK(loaded.has_value());
    working_ = std::move(*loaded);
  }
  const auto folded = log_.read(working_.last_seq() + 1, [&](const store::Record& record) -> Result<bool> {
    working_.apply(from_record(record));
    return true;
  });
  BERTH_CHECK(folded.has_value());
  auto meter = billing::Meter::load(meter_.save());
  BERTH_CHECK(meter.has_value());
  meter_ = std::move(*meter);
  read_what_was_missed();
  if (working_.digest() != durable_.digest()) breach("P10: the state folded by a restart differs from the durable one");
  if (const auto wrong = working_.audit()) breach("P10: after a restart, " + *wrong);
  perform(control::all_effects(working_));
  fleet_.reconnect(now_);
  again_ = true;
}

void World::save_checkpoint() {
  if (durable_.last_seq() == 0) return;
  BERTH_CHECK(log_.save_checkpoint(durable_.last_seq(), durable_.save()).has_value());
}

void World::compare_states() {
  if (working_.digest() != durable_.digest())
    breach("P10: the working state differs from the durable one after a turn");
}

}  // namespace berth::sim
