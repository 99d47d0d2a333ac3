#pragma once
// The whole control plane in virtual time: the same iteration as the daemon's, with the log in memory and the fake
// fleet.
//
// One iteration, in this order: the reports and commands that have arrived -> control::run_iteration -> append -> the
// durable state folds the records -> replies and effects. The process can be made to die at each arrow. A restart
// throws the working state away, folds the log again (from its checkpoint, if there is one) and computes the effects
// again. The durable state survives, like a reader in another process, and must equal the state that the restart folded
// (P10).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/fake/fake_backend.h"
#include "base/clock_discipline.h"
#include "billing/meter.h"
#include "control/handle.h"
#include "control/iteration.h"
#include "model/command.h"
#include "model/effect.h"
#include "model/event.h"
#include "state/state.h"
#include "store/memory_log.h"

namespace berth::sim {

// Where the process dies in its next iteration.
enum class Death { kNone, kBeforeAppend, kInAppendNothingKept, kInAppendAllKept, kAfterAppend, kAmongEffects };

struct Answer {
  std::uint64_t ticket = 0;
  Result<control::Reply> reply;
};

// A Witness sees what is durable and the effects that are sent to the fleet, and nothing else.
class Witness {
 public:
  virtual ~Witness() = default;
  // Called at the begin of each iteration with the time that has really passed, whatever the wall clock says.
  virtual void on_real_time(Timestamp) {}
  // `durable` is the state after the records.
  virtual void on_records(std::span<const EventRecord> records, const state::State& durable) = 0;
  virtual void on_effect(const Effect& effect, const state::State& durable) = 0;
  virtual void on_answer(const Answer& answer) = 0;
  // Called after each iteration that no death cut short. `quiet`: no job could start now without a new event.
  virtual void on_iteration_end(const state::State& durable, Timestamp now, bool quiet) = 0;
};

class World {
 public:
  World(std::uint64_t seed, backend::FakeBackend::ScriptFor script_for);

  void set_witness(Witness* witness) { witness_ = witness; }
  // Recomputes state and meter from nothing after each event from now on, which is slow.
  void audit_every_event() { audits_ = true; }
  std::uint64_t audited() const { return audited_; }  // audited events

  Timestamp now() const { return now_; }  // the time of the fleet, which is the boot clock of the control plane
  // The time by which the control plane decides. It differs from now() only after the wall clock was set.
  Timestamp clock();
  // Sets the wall clock of the control plane, to so much ahead of now(). A process that restarts keeps its time.
  void set_wall_clock(std::int64_t ahead_ms) { wall_ahead_ms_ = ahead_ms; }
  // Returns how much the wall clock is ahead of clock().
  std::int64_t wall_offset_ms();
  const state::State& durable() const { return durable_; }
  const billing::Meter& meter() const { return meter_; }  // the meter of the durable events
  // The working state, for explain, which changes it during a search and restores it.
  state::State& working() { return working_; }
  backend::FakeBackend& fleet() { return fleet_; }
  const backend::FakeBackend& fleet() const { return fleet_; }
  store::MemoryLog& log() { return log_; }

  // Puts a command into the inbox. Returns the ticket that its answer carries.
  std::uint64_t send(Command command);
  // Runs iterations at the present time until nothing more follows.
  void reconcile();
  // Moves time forward and runs an iteration whenever something is due.
  void advance_to(Timestamp when);

  void die_next(Death death) { death_ = death; }
  void restart();
  void save_checkpoint();
  // Compares working and durable state. It is slow: both are written out.
  void compare_states();

  // Returns the first invariant that was broken here (P8, P9, P10), or nothing.
  const std::optional<std::string>& violation() const { return violation_; }
  std::uint64_t events() const { return durable_.last_seq(); }
  std::uint64_t restarts() const { return restarts_; }
  std::uint64_t iterations() const { return iterations_; }
  const Plan& last_plan() const { return last_plan_; }

 private:
  struct Letter {
    std::uint64_t ticket = 0;  // 0 for a report of the fleet
    Command command;
  };
  void iteration();
  Timestamp due(Timestamp at);
  bool append(std::span<const EventRecord> records);
  void make_durable(std::span<const EventRecord> records);
  void audit_after(const EventRecord& record);
  void perform(std::span<const Effect> effects);
  void forget_old_exits(std::span<const Letter> letters, std::span<const Result<control::Reply>> replies);
  void read_what_was_missed();
  void breach(std::string what);

  state::State working_;
  state::State durable_;
  billing::Meter meter_;
  store::MemoryLog log_;
  std::uint64_t epoch_ = 0;
  backend::FakeBackend fleet_;
  control::IterationMemory memory_;
  Timestamp now_{0};
  ClockDiscipline clock_{{}, {}};
  std::int64_t wall_ahead_ms_ = 0;
  Timestamp wake_at_ = Timestamp::never();
  bool again_ = true;
  std::vector<Letter> inbox_;
  std::uint64_t next_ticket_ = 1;
  Death death_ = Death::kNone;
  Witness* witness_ = nullptr;
  bool audits_ = false;
  std::uint64_t audited_ = 0;
  Plan last_plan_;
  std::uint64_t restarts_ = 0;
  std::uint64_t iterations_ = 0;
  std::optional<std::string> violation_;
};

}  // namespace berth::sim
