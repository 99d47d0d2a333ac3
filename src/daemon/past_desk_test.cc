#include "daemon/past_desk.h"

#include <doctest/doctest.h>

#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "api/routes/fake_service.h"
#include "store/event_codec.h"
#include "store/memory_log.h"

namespace berth::daemon {
namespace {

struct PastFixture {
  store::MemoryLog log;
  api::FakeService now;
  std::mutex mutex;
  std::vector<std::string> served;
  std::promise<void> gate;

  PastFixture() {
    const std::uint64_t epoch = *log.take_epoch();
    const store::Record record = store::to_record({.seq = 1, .time = Timestamp{1}, .event = CycleRan{}}, epoch);
    REQUIRE(log.append(epoch, 1, {&record, 1}, {}));
  }
};

}  // namespace

TEST_CASE("a subject that asks for many past states waits for itself, and another for one of them") {
  PastFixture fixture;
  std::promise<void> begun;
  std::promise<void> over;
  std::size_t refused = 0;
  {
    PastDesk desk(fixture.log, fixture.now);
    const auto served = [&](const std::string& who) {
      return [&fixture, &refused, who](const Result<api::Service*>& past) {
        if (!past) {
          ++refused;
          CHECK(past.error().code == ErrorCode::kUnavailable);
          return;
        }
        const std::lock_guard lock(fixture.mutex);
        fixture.served.push_back(who);
      };
    };
    desk.at({.seq = 1, .client = "user:mallory"}, [&](const Result<api::Service*>&) {
      begun.set_value();
      fixture.gate.get_future().wait();
    });
    begun.get_future().wait();
    for (std::size_t i = 0; i < PastDesk::kMostWaiting + 5; ++i)
      desk.at({.seq = 1, .client = "user:mallory"}, served("mallory"));
    CHECK(refused == 5);
    desk.at({.seq = 1, .client = "user:ann"}, served("ann"));
    CHECK(refused == 5);
    desk.at({.seq = 1, .client = "user:zoe"}, [&](const Result<api::Service*>&) { over.set_value(); });
    fixture.gate.set_value();
    over.get_future().wait();
    const std::lock_guard lock(fixture.mutex);
    REQUIRE(fixture.served.size() >= 2);
    CHECK(fixture.served[0] == "mallory");
    CHECK(fixture.served[1] == "ann");
  }
}

}  // namespace berth::daemon
