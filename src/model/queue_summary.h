#pragma once
// QueueSummary: what of a queue is shown outside berth's own API, such as in custom resources of Kubernetes. Amounts
// are thousandths of GPUs.

#include <cstdint>
#include <optional>
#include <string>

namespace berth {

struct QueueSummary {
  std::string path;
  std::int64_t weight = 1;
  std::optional<std::int64_t> guaranteed_milli = {};  // as configured; absent: not stated
  std::optional<std::int64_t> max_milli = {};
  std::optional<std::int64_t> lending_limit_milli = {};
  std::string trust_domain = {};
  std::int64_t used_milli = 0;
  std::int64_t borrowed_milli = 0;  // used outside the guarantees
  std::int64_t lent_milli = 0;      // unused part of its guarantee, as far as queues outside it borrow as much
  std::int64_t pending = 0;         // jobs below it
  std::int64_t running = 0;
  std::string why = {};  // leaves: why the first pending job waits; empty: none does
  bool operator==(const QueueSummary&) const = default;
};

}  // namespace berth
