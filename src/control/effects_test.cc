#include "control/effects.h"

#include <algorithm>
#include <map>

#include "control/hand_driven_fleet.h"
#include "control/iteration.h"

namespace berth::control {
namespace {

struct EffectsFleet : HandDrivenFleet {
  EffectsFleet() {
    configure({queue("research")});
    command(RegisterNode{node("n1")});
  }

  // Starts the job with two tasks of one GPU each, and returns what its tasks are started with.
  std::vector<StartTask> start_two(JobSpec spec, std::vector<std::string> words, std::int32_t least) {
    spec.groups.front().count = 2;
    spec.groups.front().min_count = least;
    spec.groups.front().launch = Launch::kTorchrun;
    spec.groups.front().command = std::move(words);
    const JobId id = submit(spec);
    decide(StartDecision{id, {place(id, "n1", 0), place(id, "n1", 1)}});
    return starts();
  }
  std::vector<StartTask> starts() const {
    std::vector<StartTask> found;
    for (const Effect& effect : all_effects(state)) {
      if (const auto* start = std::get_if<StartTask>(&effect)) found.push_back(*start);
    }
    return found;
  }
};

std::string after(const std::vector<std::string>& words, const std::string& option) {
  const auto found = std::find(words.begin(), words.end(), option);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

}  // namespace

TEST_CASE_FIXTURE(EffectsFleet,
                  "torchrun of a fixed gang is told its place, and an interpreter is left to the command") {
  const auto starts = start_two(job("research", 1), {"/opt/venv/bin/python3.11", "-u", "train.py"}, 2);
  REQUIRE(starts.size() == 2);
  const auto& words = starts[1].command;
  CHECK(words.front() == "torchrun");
  CHECK(after(words, "--nnodes") == "2");
  CHECK(after(words, "--node_rank") == "1");
  CHECK(after(words, "--nproc_per_node") == "1");
  CHECK(after(words, "--no_python") == "/opt/venv/bin/python3.11");
  CHECK(words.back() == "train.py");
  CHECK(starts[1].signal_workers);
}

TEST_CASE_FIXTURE(EffectsFleet, "a script of torchrun is left to torchrun's interpreter") {
  const auto starts = start_two(job("research", 1), {"pythonic.py"}, 2);
  CHECK(std::count(starts[0].command.begin(), starts[0].command.end(), "--no_python") == 0);
}

TEST_CASE_FIXTURE(EffectsFleet, "task 0 hosts the rendezvous of an elastic gang, which outlives tasks that leave") {
  const auto starts = start_two(job("research", 1), {"train.py"}, 1);
  REQUIRE(starts.size() == 2);
  CHECK(after(starts[0].command, "--nnodes") == "1:2");
  CHECK(after(starts[0].command, "--rdzv_conf") == "is_host=true");
  CHECK(after(starts[1].command, "--rdzv_conf") == "is_host=false");
  for (const auto& start : starts) CHECK(after(start.command, "--max_restarts") == "100");
}

TEST_CASE_FIXTURE(EffectsFleet, "an element of an array is told its index, its array and how large that is") {
  JobSpec spec = job("research", 1);
  spec.kind = JobKind::kArray;
  spec.array_size = 3;
  const JobId array = submit(spec);
  const auto children = state.children().at(array);
  REQUIRE(children.size() == 3);
  const JobId last = *children.rbegin();
  decide(StartDecision{last, {place(last, "n1", 0)}});
  const auto begun = starts();
  REQUIRE(begun.size() == 1);
  const std::map<std::string, std::string> env(begun[0].env.begin(), begun[0].env.end());
  CHECK(env.at("BERTH_ARRAY_INDEX") == "2");
  CHECK(env.at("ARRAY_INDEX") == "2");
  CHECK(env.at("BERTH_ARRAY_SIZE") == "3");
  CHECK(env.at("BERTH_PARENT") == std::to_string(array.value()));
}

TEST_CASE_FIXTURE(EffectsFleet, "a stop says why, as a signal and when it is forced") {
  const JobId id = submit(job("research", 1));
  decide(StartDecision{id, {place(id, "n1", 0)}});
  command(CancelJob{id, "ann"});
  const auto stop = [&] { return all_effects(state).back(); };
  const Effect asked = stop();
  REQUIRE(std::holds_alternative<SignalTask>(asked));
  CHECK(std::get<SignalTask>(asked).cause == StopCause::kUser);
  pass(3'600);
  const Effect forced = stop();
  REQUIRE(std::holds_alternative<KillTask>(forced));
  CHECK(std::get<KillTask>(forced).cause == StopCause::kUser);
}

TEST_CASE_FIXTURE(EffectsFleet, "a cancelled job is stopped by its user, also where it was to make room before") {
  const JobId id = submit(job("research", 1));
  decide(StartDecision{id, {place(id, "n1", 0)}});
  Batch batch(state, now);
  batch.emit(StopBegan{id, 1, StopCause::kPreempt, JobId::none(), now + 1000, 0});
  batch.emit(StopForced{id, 1});
  const auto made = [&](const Event& event) { return effects_of(state, std::vector<EventRecord>{{3, now, event}}); };
  REQUIRE_EQ(made(StopForced{id, 1}).size(), 1);
  CHECK(std::get<KillTask>(made(StopForced{id, 1}).front()).cause == StopCause::kPreempt);
  command(CancelJob{id, "ann"});
  REQUIRE_EQ(made(JobCancelRequested{id, "ann"}).size(), 1);
  CHECK(std::get<KillTask>(made(JobCancelRequested{id, "ann"}).front()).cause == StopCause::kUser);
}

TEST_CASE_FIXTURE(EffectsFleet, "a user's signal goes once to each task that runs, and changes nothing of the state") {
  const JobId id = submit(job("research", 1));
  IterationMemory memory;
  const std::vector<Command> commands{SignalJob{id, 10, "ann"}};
  const auto no_cycle = [](state::State&, Timestamp) { return Plan(); };
  const auto sent = [&] { return run_iteration(state, now, commands, memory, no_cycle); };
  const auto refused = sent();
  REQUIRE_FALSE(refused.replies.front());
  CHECK(refused.replies.front().error().code == ErrorCode::kConflict);
  CHECK(refused.records.empty());
  decide(StartDecision{id, {place(id, "n1", 0)}});
  const std::size_t in_force = all_effects(state).size();
  const auto iteration = sent();
  REQUIRE(iteration.replies.front());
  const auto made = effects_of(state, iteration.records);
  REQUIRE_EQ(made.size(), 1);
  const auto& signal = std::get<SignalTask>(made.front());
  CHECK(signal.key == TaskKey{id, 1, 0, 1});
  CHECK_EQ(signal.signal, 10);
  CHECK_FALSE(signal.cause);
  CHECK_EQ(all_effects(state).size(), in_force);
}

TEST_CASE_FIXTURE(EffectsFleet, "a stop that is cancelled is told as starts of what runs") {
  const JobId id = submit(job("research", 1));
  decide(StartDecision{id, {place(id, "n1", 0)}});
  const auto made = effects_of(state, std::vector<EventRecord>{{3, now, StopCancelled{id, 1}}});
  REQUIRE_EQ(made.size(), 1);
  CHECK(std::get<StartTask>(made.front()).key == TaskKey{id, 1, 0, 1});
}

}  // namespace berth::control
