#pragma once
// For tests: events that the control plane could have written, one after the other, for a ledger and a meter.

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "billing/ledger.h"
#include "billing/meter.h"

namespace berth::billing {

struct LedgerStory {
  explicit LedgerStory(std::int64_t until_ms = 1'000'000, std::vector<Timestamp> cuts = {})
      : ledger({Timestamp{0}, Timestamp{until_ms}, std::move(cuts)}) {}

  void at(std::int64_t ms, Event event) {
    events.push_back({events.size() + 1, Timestamp{ms}, std::move(event)});
    ledger.apply(events.back());
    meter.apply(events.back());
    CHECK_EQ(ledger.check().value_or(""), "");
  }
  // Queues with their guarantees, in GPUs of any model.
  void configure(std::int64_t ms, const std::vector<std::pair<std::string, std::int64_t>>& queues) {
    ClusterConfigured event;
    for (const auto& [path, gpus] : queues) {
      QueueConfig queue;
      queue.path = path;
      if (gpus > 0) queue.guaranteed.gpu_milli = gpus * kMilli;
      event.config.queues.push_back(queue);
    }
    at(ms, event);
  }
  void add_node(std::int64_t ms, std::uint32_t id, std::size_t gpus, const std::string& model = "H100") {
    NodeRegistered event;
    event.node = NodeId(id);
    event.spec.name = "n" + std::to_string(id);
    event.spec.gpus.resize(gpus);
    for (Gpu& gpu : event.spec.gpus) gpu.model = model;
    at(ms, event);
  }
  void submit(std::int64_t ms, std::uint64_t id, const std::string& queue, const std::string& user = "ann") {
    JobSubmitted event;
    event.job = JobId(id);
    event.spec.queue = queue;
    event.spec.user = user;
    event.spec.groups.emplace_back();
    at(ms, event);
  }
  void start(std::int64_t ms, std::uint64_t id, std::uint32_t node, std::vector<std::uint8_t> gpus, bool guaranteed) {
    AttemptStarted event;
    event.job = JobId(id);
    event.attempt = 1;
    event.guaranteed = guaranteed;
    TaskPlacement& task = event.placements.emplace_back();
    task.node = NodeId(node);
    task.gpus = std::move(gpus);
    task.cpu_milli = 2000;
    task.memory_mib = 4096;
    at(ms, event);
  }
  void end(std::int64_t ms, std::uint64_t id) { at(ms, AttemptEnded{JobId(id), 1, Outcome::kSucceeded, 0, ""}); }

  // What became of the floor of the queue, in whole GPU-seconds.
  std::int64_t floor(const std::string& queue, const std::string& borrower) const {
    std::int64_t sum = 0;
    for (const FloorUse& use : ledger.floors()) {
      if (use.queue == queue && use.borrower == borrower) sum += use.gpu_milli_ms;
    }
    return sum / 1'000'000;
  }

  Ledger ledger;
  Meter meter;
  std::vector<EventRecord> events;
};

}  // namespace berth::billing
