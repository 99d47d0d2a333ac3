#include "daemon/gpu_look.h"

#include <memory>
#include <mutex>
#include <utility>

#include "telemetry/nvml.h"

namespace berth::daemon {

namespace {

struct GpuDriver {
  std::mutex mutex;  // never held during a look
  std::shared_ptr<telemetry::Nvml> nvml;
};

Result<std::shared_ptr<telemetry::Nvml>> load_once(GpuDriver& driver) {
  const std::lock_guard guard(driver.mutex);
  if (driver.nvml) return driver.nvml;
  auto nvml = telemetry::Nvml::load();
  if (!nvml) return nvml.error();
  driver.nvml = std::move(*nvml);
  return driver.nvml;
}

backend::GpuLook look_at(GpuDriver& driver, const std::string& gpu) {
  backend::GpuLook seen;
  const auto nvml = load_once(driver);
  if (!nvml) {
    seen.fault = nvml.error().message;
    return seen;
  }
  telemetry::GpuReading reading = (*nvml)->look(gpu);
  seen.fault = std::move(reading.fault);
  seen.memory_used_mib = reading.memory_used_mib;
  if (reading.processes) {
    seen.processes.emplace();
    for (const auto& process : *reading.processes) seen.processes->push_back({process.pid, process.memory_mib});
  }
  if (!seen.fault.empty() || !seen.processes) {
    const std::lock_guard guard(driver.mutex);
    if (driver.nvml == *nvml) driver.nvml.reset();
  }
  return seen;
}

}  // namespace

std::function<backend::GpuLook(const std::string& gpu)> gpu_look() {
  const auto driver = std::make_shared<GpuDriver>();
  return [driver](const std::string& gpu) { return look_at(*driver, gpu); };
}

}  // namespace berth::daemon
