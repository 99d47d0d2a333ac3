#include "api/http/workers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace berth::http {

Workers::Workers(std::size_t threads, int nice) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this, nice] { run(nice); });
}

Workers::~Workers() { stop(); }

void Workers::post(std::function<void()> work, const std::string& client) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    waiting_.add(client, std::move(work));
  }
  ready_.notify_one();
}

void Workers::stop() {
  Turns<std::function<void()>> dropped;  // destroyed without the lock: it may post
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    std::swap(dropped, waiting_);
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Workers::run(int nice) {
  // On Linux a priority belongs to a thread. Without it reads are as quick as everything else, so a failure is no
  // error.
  if (nice != 0) ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      work = waiting_.take();
    }
    work();
  }
}

}  // namespace berth::http
