#include "api/http/workers.h"

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

namespace berth::http {
namespace {

// One thread, which is busy until `go`: what is posted waits.
struct BusyWorkers {
  std::promise<void> begun;
  std::promise<void> go;
  Workers workers{1, 0};  // the last: ends first, and waits for what uses the others

  BusyWorkers() {
    workers.post([this] {
      begun.set_value();
      go.get_future().wait();
    });
    begun.get_future().wait();
  }
};

}  // namespace

TEST_CASE("clients take turns, however much one of them has posted") {
  std::string order;
  std::promise<void> done;
  BusyWorkers busy;
  Workers& workers = busy.workers;
  for (int i = 0; i < 4; ++i) workers.post([&] { order += 'm'; }, "many");
  for (int i = 0; i < 2; ++i) workers.post([&] { order += 'f'; }, "few");
  workers.post([&] { order += 'l'; }, "late");
  workers.post([&] { done.set_value(); }, "many");
  busy.go.set_value();
  done.get_future().wait();
  CHECK_EQ(order, "mflmfmm");
}

TEST_CASE("what waits when the workers stop is dropped, and nothing is taken after") {
  bool ran = false;
  BusyWorkers busy;
  Workers& workers = busy.workers;
  workers.post([&] { ran = true; }, "a");
  std::thread stop([&] { workers.stop(); });
  while (true) {  // until it has stopped taking: a post is then dropped at once
    std::weak_ptr<int> alive;
    {
      const auto held = std::make_shared<int>(0);
      alive = held;
      workers.post([held] {}, "b");
    }
    if (alive.expired()) break;
    std::this_thread::yield();
  }
  busy.go.set_value();
  stop.join();
  CHECK_FALSE(ran);
}

}  // namespace berth::http
