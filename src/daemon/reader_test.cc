#include "daemon/reader.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "store/event_codec.h"
#include "store/memory_log.h"

namespace berth::daemon {
namespace {

constexpr std::chrono::seconds kPatience{20};

EventRecord event(Seq seq) {
  return {.seq = seq, .time = Timestamp{static_cast<std::int64_t>(seq)}, .event = CycleRan{}};
}

struct Fixture {
  store::MemoryLog log;
  Reader reader{state::State(), billing::Meter(), log, 1'000'000};

  // The answer to the batch, once it is given.
  std::future<void> push(Seq seq) {
    auto answered = std::make_shared<std::promise<void>>();
    DurableBatch batch;
    batch.records.push_back(event(seq));
    batch.answers.emplace_back([answered](const Result<control::Reply>&) { answered->set_value(); }, control::Reply{});
    reader.push(std::move(batch));
    return answered->get_future();
  }
  Seq last_seen() {
    Seq seq = 0;
    reader.read([&](const state::State& state, const billing::Meter&) { seq = state.last_seq(); });
    return seq;
  }
};

}  // namespace

TEST_CASE("an answer waits for no read, and watchers are told meanwhile") {
  Fixture fixture;
  std::promise<void> told;
  fixture.reader.watch([&](const api::LiveEvent& live) {
    if (live.record.seq == 3) told.set_value();
  });
  std::promise<void> begun;
  std::promise<void> go_on;
  std::thread long_read([&] {
    fixture.reader.read([&](const state::State& state, const billing::Meter&) {
      CHECK_EQ(state.last_seq(), 0);
      begun.set_value();
      go_on.get_future().wait();
      CHECK_EQ(state.last_seq(), 0);  // what it looks at stays as it is
    });
  });
  begun.get_future().wait();
  for (Seq seq = 1; seq <= 3; ++seq) CHECK(fixture.push(seq).wait_for(kPatience) == std::future_status::ready);
  CHECK(told.get_future().wait_for(kPatience) == std::future_status::ready);
  go_on.set_value();
  long_read.join();
  CHECK_EQ(fixture.last_seen(), 3);
}

TEST_CASE("a read sees every event that was answered before it began") {
  Fixture fixture;
  for (Seq seq = 1; seq <= 500; ++seq) {
    const auto answered = fixture.push(seq);
    answered.wait();
    CHECK_GE(fixture.last_seen(), seq);
  }
}

TEST_CASE("a reader that stops gives the answers that are left and saves what it has folded") {
  store::MemoryLog log;
  const auto epoch = log.take_epoch();
  REQUIRE(epoch);
  int answered = 0;
  {
    Reader reader(state::State(), billing::Meter(), log, 1'000'000);
    for (Seq seq = 1; seq <= 100; ++seq) {
      DurableBatch batch;
      batch.records.push_back(event(seq));
      batch.answers.emplace_back([&](const Result<control::Reply>&) { ++answered; }, control::Reply{});
      const std::vector<store::Record> records{store::to_record(event(seq), *epoch)};
      REQUIRE(log.append(*epoch, seq, records));
      reader.push(std::move(batch));
    }
  }
  CHECK_EQ(answered, 100);
  const auto checkpoint = log.load_checkpoint();
  REQUIRE(checkpoint);
  REQUIRE(checkpoint->has_value());
  CHECK_EQ((*checkpoint)->seq, 100);
}

}  // namespace berth::daemon
