// Each cycle of a log, run again on the state that was.

#include "sim/simulate/replay_log.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "sim/world/simulation.h"
#include "store/event_codec.h"
#include "store/sqlite_log.h"
#include "store/temporary_directory.h"

namespace berth::sim {
namespace {

enum class Hashes { kKept, kOneChanged };

// Writes the log of some moments of a simulated cluster, with jobs of all kinds of wishes, into a data directory.
void write_log(const store::TemporaryDirectory& directory, Hashes hashes) {
  SimulationShape shape;
  shape.faults = false;
  Simulation simulation(1, shape);
  for (int i = 0; i < 300 && !simulation.violation(); ++i) simulation.step();
  auto log = store::SqliteLog::open(directory.path());
  REQUIRE(log.has_value());
  const auto epoch = (*log)->take_epoch();
  REQUIRE(epoch.has_value());
  bool changes = hashes == Hashes::kOneChanged;
  std::vector<store::Record> records;
  const auto read = simulation.world().log().read(1, [&](const store::Record& record) -> Result<bool> {
    auto event = store::to_event(record);
    REQUIRE(event.has_value());
    if (auto* ran = std::get_if<CycleRan>(&event->event); ran != nullptr && changes) {
      ++ran->plan_hash;
      changes = false;
    }
    records.push_back(store::to_record(*event, *epoch));
    return true;
  });
  REQUIRE(read.has_value());
  REQUIRE((*log)->append(*epoch, 1, records).has_value());
}

TEST_CASE("a log that is replayed unchanged gives the same decision hash") {
  const store::TemporaryDirectory directory;
  write_log(directory, Hashes::kKept);
  const auto text = replay_directory(directory.path().string(), "");
  REQUIRE_MESSAGE(text.has_value(), (text ? "" : text.error().message));
  CHECK(text->find("The decisions are the same.") != std::string::npos);
  const std::size_t logged = text->find("decided   ");
  const std::size_t again = text->find("decided   ", logged + 1);
  REQUIRE(again != std::string::npos);
  CHECK(text->substr(logged, 26) == text->substr(again, 26));
}

TEST_CASE("under other knobs a replay tells how many cycles decide something else") {
  const store::TemporaryDirectory directory;
  write_log(directory, Hashes::kKept);
  const std::string file = (directory.path() / "calm.yaml").string();
  std::ofstream(file) << "queues: {default: {}}\nscheduling: {score: best-fit, reclaim: false, preempt: false}\n";
  const auto text = replay_directory(directory.path().string(), file);
  REQUIRE_MESSAGE(text.has_value(), (text ? "" : text.error().message));
  CHECK(text->find("something else; the first: the cycle of record") != std::string::npos);
}

TEST_CASE("a log whose decisions cannot be made again is refused") {
  const store::TemporaryDirectory directory;
  write_log(directory, Hashes::kOneChanged);
  const auto text = replay_directory(directory.path().string(), "");
  REQUIRE_FALSE(text.has_value());
  CHECK(text.error().code == ErrorCode::kCorrupt);
  CHECK(text.error().message.find("decides something else in a replay") != std::string::npos);
}

}  // namespace
}  // namespace berth::sim
