#include "daemon/gpu_utilization_sampler.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace berth::daemon {

namespace {

constexpr std::chrono::seconds kPatience{2};  // how long the end of the process waits for the driver

}  // namespace

struct GpuUtilizationSampler::Work {
  std::unique_ptr<telemetry::Nvml> nvml;
  std::string node;
  Reader& reader;
  ServerClock& clock;
  std::chrono::milliseconds every;

  std::mutex mutex = {};  // held while reader and clock are used, never during a call of the driver
  std::condition_variable changed = {};
  bool stopping = false;
  bool ended = false;

  std::mutex use_mutex = {};  // may be taken while the reader is held, so it is never held while waiting for the reader
  GpuUtilizationUse use = {};

  void run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      lock.unlock();
      const auto readings = nvml->read();
      lock.lock();
      if (stopping) break;
      take(readings);
      changed.wait_for(lock, every, [this] { return stopping; });
    }
    ended = true;
    changed.notify_all();
  }

  void take(const std::vector<telemetry::GpuReading>& readings) {
    GpuHolders holders;
    reader.read([&](state::State& state, const billing::Meter&) { holders = gpu_holders(state, node); });
    const std::lock_guard guard(use_mutex);
    use.sample(clock.now(), readings, holders);
  }
};

GpuUtilizationSampler::GpuUtilizationSampler(std::unique_ptr<telemetry::Nvml> nvml, std::string node, Reader& reader,
                                             ServerClock& clock, std::chrono::milliseconds every)
    : work_(new Work{std::move(nvml), std::move(node), reader, clock, every}),
      thread_([work = work_] { work->run(); }) {}

GpuUtilizationSampler::~GpuUtilizationSampler() {
  std::unique_lock lock(work_->mutex);
  work_->stopping = true;
  work_->changed.notify_all();
  const bool ended = work_->changed.wait_for(lock, kPatience, [this] { return work_->ended; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

GpuUtilization GpuUtilizationSampler::of_last_hour() const {
  const Timestamp now = work_->clock.now();
  const std::lock_guard guard(work_->use_mutex);
  return work_->use.of_last_hour(now);
}

}  // namespace berth::daemon
