#include "daemon/inbox.h"

#include <doctest/doctest.h>

#include <thread>

namespace berth::daemon {
namespace {

using Clock = std::chrono::steady_clock;

QueuedRequest queued() {
  return {CancelJob{}, [](const Result<control::Reply>&) {}};
}

// Far more than a loaded machine delays a thread; no test waits for it.
constexpr std::chrono::minutes kLong{5};

TEST_CASE("who writes whenever he is answered shares the next write with those who waited meanwhile") {
  Inbox inbox;
  inbox.put(queued());
  inbox.put(queued());
  CHECK(inbox.take(Clock::now(), kLong).size() == 2);
  inbox.put(queued());  // these came while those two were written
  inbox.put(queued());
  std::thread answered([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that a take that does not wait is caught
    inbox.put(queued());
    inbox.put(queued());
  });
  CHECK(inbox.take(Clock::now() + kLong, kLong).size() == 4);
  answered.join();
}

TEST_CASE("those who do not come are waited for no longer than a linger, and not again") {
  Inbox inbox;
  for (int i = 0; i < 3; ++i) inbox.put(queued());
  CHECK(inbox.take(Clock::now(), Clock::duration::zero()).size() == 3);
  inbox.put(queued());
  CHECK(inbox.take(Clock::now(), std::chrono::milliseconds(1)).size() == 1);
  inbox.put(queued());
  CHECK(inbox.take(Clock::now(), kLong).size() == 1);  // one came last time, so one is enough
}

TEST_CASE("a close ends the waiting, and nothing comes in after it") {
  Inbox inbox;
  for (int i = 0; i < 2; ++i) inbox.put(queued());
  CHECK(inbox.take(Clock::now(), kLong).size() == 2);
  inbox.put(queued());
  std::thread closing([&] { inbox.close(); });
  CHECK(inbox.take(Clock::now() + kLong, kLong).size() == 1);
  closing.join();
  CHECK_FALSE(inbox.put(queued()));
}

TEST_CASE("requests are refused when there is no room; reports never are") {
  Inbox inbox;
  for (std::size_t i = 0; i < Inbox::kMost; ++i) REQUIRE(inbox.put(queued()));
  CHECK_FALSE(inbox.put(queued()));
  QueuedRequest report = queued();
  report.report = true;
  CHECK(inbox.put(std::move(report)));
  CHECK(inbox.put({CancelJob{}, {}}));
}

}  // namespace
}  // namespace berth::daemon
