#include "api/http/io_queue.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace berth::http {
namespace {

bool readable(const IoQueue& queue, int wait_ms) {
  pollfd poll{.fd = queue.descriptor(), .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, wait_ms) == 1;
}

TEST_CASE("io queue: work of other threads wakes the I/O thread and runs there, each thread's in its order") {
  IoQueue queue;
  queue.belongs_to_this_thread();
  std::vector<int> done[2];
  std::vector<std::thread> posters;
  for (int poster = 0; poster < 2; ++poster) {
    posters.emplace_back([&queue, &done, poster] {
      for (int i = 0; i < 1000; ++i) queue.dispatch([&done, poster, i] { done[poster].push_back(i); });
    });
  }
  while (done[0].size() + done[1].size() < 2000) {
    REQUIRE(readable(queue, 20'000));
    queue.note_wakes();
    queue.run_posted();
  }
  for (std::thread& poster : posters) poster.join();
  for (int i = 0; i < 1000; ++i)
    REQUIRE((done[0][static_cast<std::size_t>(i)] == i && done[1][static_cast<std::size_t>(i)] == i));
}

TEST_CASE("io queue: dispatch on the I/O thread runs at once, post runs later") {
  IoQueue queue;
  queue.belongs_to_this_thread();
  std::string order;
  queue.post([&] {
    order += 'p';
    queue.post([&] { order += 'q'; });
  });
  queue.dispatch([&] { order += 'd'; });
  CHECK(order == "d");
  queue.run_posted();
  CHECK(order == "dp");  // what is posted meanwhile waits for the next turn
  queue.run_posted();
  CHECK(order == "dpq");
}

TEST_CASE("io queue: what throws is not run again, and what is behind it stays") {
  IoQueue queue;
  int ran = 0;
  queue.post([] { throw std::runtime_error("x"); });
  queue.post([&] { ++ran; });
  CHECK_THROWS(queue.run_posted());
  CHECK(ran == 0);
  queue.run_posted();
  CHECK(ran == 1);
}

TEST_CASE("io queue: once closed it drops what it has and what comes") {
  IoQueue queue;
  int ran = 0;
  queue.post([&] { ++ran; });
  queue.close();
  queue.post([&] { ++ran; });
  queue.run_posted();
  CHECK(ran == 0);
}

}  // namespace
}  // namespace berth::http
