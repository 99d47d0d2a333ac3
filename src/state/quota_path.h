#pragma once
// QuotaPath: the quota rules that apply between a queue and the root. Quota and the search for places give the same
// answer to pending jobs with equal requests in all queues of one quota path. These queues share every limit and
// guarantee from `rules_from` up, and have none below it. It is an index, computed from the configuration.

#include <cstdint>

#include "model/ids.h"

namespace berth::state {

struct QuotaPath {
  // The nearest queue, from the queue itself up to the root, that has quota rules: a ceiling, a guarantee, user limits,
  // or a parent with children that limit lending. The root if no other queue has any.
  QueueId rules_from;
  std::uint32_t asker = 0;    // equal for queues with the same open pools and trust domain
  bool limits_users = false;  // a queue on the path limits its users
};

}  // namespace berth::state
