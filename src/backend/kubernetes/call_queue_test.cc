#include "backend/kubernetes/call_queue.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace berth;
using namespace berth::backend;
using namespace std::chrono_literals;

namespace {

constexpr CallQueue::Time kStart{};

// Each differs from all others, unless it has a path.
kube::Request request(std::uint64_t id, bool urgent = false, std::string path = "") {
  kube::Request made;
  made.id = id;
  made.path = path.empty() ? "/x" + std::to_string(id) : std::move(path);
  made.urgent = urgent;
  return made;
}

// Sends and answers all that may be sent within one moment. Returns how many.
int drain(CallQueue& queue, CallQueue::Time now) {
  int count = 0;
  while (const auto next = queue.next(now)) {
    ++count;
    CHECK(queue.answered(next->id, 201, std::nullopt, now));
  }
  return count;
}

}  // namespace

TEST_CASE("at most 32 are in flight, urgent ones first, each kind in order") {
  CallQueue queue(kStart);
  for (std::uint64_t id = 1; id <= 40; ++id) queue.push(request(id, id > 30));
  std::vector<std::uint64_t> sent;
  while (const auto next = queue.next(kStart)) sent.push_back(next->id);
  REQUIRE(sent.size() == CallQueue::kMostInFlight);
  CHECK(sent.front() == 31);
  CHECK(sent[9] == 40);
  CHECK(sent[10] == 1);
  CHECK(!queue.ready_at());
  CHECK(queue.answered(31, 201, std::nullopt, kStart));
  CHECK(queue.next(kStart)->id == 23);
}

TEST_CASE("a burst of 400, then 200 a second, which doubles while it is used, up to 2,000") {
  CallQueue queue(kStart);
  for (std::uint64_t id = 1; id <= 20'000; ++id) queue.push(request(id));
  CHECK(drain(queue, kStart) == 400);
  CHECK(queue.ready_at().value() > kStart);
  std::vector<int> per_second;
  for (int tenth = 1; tenth <= 60; ++tenth) {
    if ((tenth - 1) % 10 == 0) per_second.push_back(0);
    per_second.back() += drain(queue, kStart + tenth * 100ms);
  }
  CHECK(per_second[0] >= 200);
  CHECK(per_second[0] <= 240);
  CHECK(per_second[1] >= 390);
  CHECK(per_second[5] >= 1990);
  CHECK(per_second[5] <= 2010);
  CHECK(queue.rate() == CallQueue::kMostRate);
}

TEST_CASE("a rate that is not used does not grow") {
  CallQueue queue(kStart);
  for (int second = 0; second < 20; ++second) {
    queue.push(request(static_cast<std::uint64_t>(second + 1)));
    CHECK(drain(queue, kStart + second * 1s) == 1);
  }
  CHECK(queue.rate() == CallQueue::kFirstRate);
}

TEST_CASE("429 halves the rate once a second, its Retry-After is obeyed, and the request goes again, first") {
  CallQueue queue(kStart);
  for (std::uint64_t id = 1; id <= 100; ++id) queue.push(request(id));
  REQUIRE(queue.next(kStart)->id == 1);
  REQUIRE(queue.next(kStart)->id == 2);
  CHECK(!queue.answered(2, 429, 3, kStart));
  CHECK(!queue.answered(1, 429, std::nullopt, kStart));
  CHECK(queue.rate() == CallQueue::kFirstRate / 2);
  CHECK(!queue.next(kStart + 2999ms));
  CHECK(queue.ready_at().value() == kStart + 3s);
  CHECK(queue.next(kStart + 3s)->id == 1);
  CHECK(queue.next(kStart + 3s)->id == 2);
  CHECK(queue.refused() == 2);
}

TEST_CASE("after a 429 the rate grows again, step by step, and never falls below its least") {
  CallQueue queue(kStart);
  for (std::uint64_t id = 1; id <= 5000; ++id) queue.push(request(id));
  CallQueue::Time now = kStart;
  for (int i = 0; i < 20; ++i) {
    now += 2s;
    const auto next = queue.next(now);
    REQUIRE(next);
    CHECK(!queue.answered(next->id, 429, 1, now));
  }
  CHECK(queue.rate() == CallQueue::kLeastRate);
  for (int i = 0; i < 100; ++i) drain(queue, now += 100ms);
  CHECK(queue.rate() > 300);
  CHECK(queue.rate() <= CallQueue::kLeastRate + 11 * CallQueue::kRateStep);
}

TEST_CASE("a 429 for an eviction is the answer of a disruption budget") {
  CallQueue queue(kStart);
  queue.push(request(1, true, "/api/v1/namespaces/a/pods/b/eviction"));
  REQUIRE(queue.next(kStart));
  CHECK(queue.answered(1, 429, 10, kStart));
  CHECK(queue.rate() == CallQueue::kFirstRate);
}

TEST_CASE("a request that was refused for an old token goes again, at the old rate") {
  CallQueue queue(kStart);
  queue.push(request(1));
  REQUIRE(queue.next(kStart));
  CHECK(!queue.answered(1, 401, std::nullopt, kStart));
  CHECK(!queue.next(kStart));
  CHECK(queue.next(kStart + 1s)->id == 1);
  CHECK(queue.rate() == CallQueue::kFirstRate);
}

TEST_CASE("without an answer nothing is sent for a moment, which doubles until something is answered") {
  CallQueue queue(kStart);
  for (std::uint64_t id = 1; id <= 10; ++id) queue.push(request(id));
  REQUIRE(queue.next(kStart)->id == 1);
  CHECK(queue.answered(1, 0, std::nullopt, kStart));  // told: it may have happened
  CHECK(!queue.next(kStart + 99ms));
  REQUIRE(queue.next(kStart + 100ms)->id == 2);
  CHECK(queue.answered(2, 0, std::nullopt, kStart + 100ms));
  CHECK(!queue.next(kStart + 299ms));
  REQUIRE(queue.next(kStart + 300ms)->id == 3);
  CHECK(queue.answered(3, 404, std::nullopt, kStart + 300ms));
  CHECK(queue.next(kStart + 300ms)->id == 4);
}

TEST_CASE("while it is held, nothing is sent and nothing is lost") {
  CallQueue queue(kStart);
  queue.push(request(1));
  queue.hold(true);
  CHECK(!queue.next(kStart));
  CHECK(!queue.ready_at());
  queue.hold(false);
  CHECK(queue.next(kStart)->id == 1);
}

TEST_CASE("a request that waits can be withdrawn, and its like is taken again; one that is under way cannot") {
  CallQueue queue(kStart);
  queue.push(request(1, true, "/pod"));
  queue.push(request(2));
  CHECK(queue.withdraw(1));
  CHECK(!queue.withdraw(1));
  CHECK(queue.push(request(3, true, "/pod")));
  REQUIRE(queue.next(kStart)->id == 3);
  CHECK(!queue.withdraw(3));
  CHECK(queue.withdraw(2));
  CHECK(!queue.next(kStart));
  CHECK(queue.answered(3, 201, std::nullopt, kStart));
}

TEST_CASE("a request that waits already is not taken a second time; one that was sent is") {
  CallQueue queue(kStart);
  CHECK(queue.push(request(1, true, "/pod")));
  CHECK(!queue.push(request(2, true, "/pod")));
  kube::Request other = request(3, true, "/pod");
  other.body = "{}";
  CHECK(queue.push(other));
  REQUIRE(queue.next(kStart)->id == 1);
  CHECK(queue.push(request(4, true, "/pod")));
  CHECK(!queue.answered(1, 429, std::nullopt, kStart));  // both wait now, as one was under way
  CHECK(queue.waiting() == 3);
}
