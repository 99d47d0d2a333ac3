#pragma once
// QuotaPath: what a queue sees on its way to the root. To a job of one shape quota answers the same, whatever queue of
// one standpoint it waits in, and so does the search for places: above `rules_from` the queues have the same limits and
// guarantees to meet, and below it there are none. An index of the configuration.

#include <cstdint>

#include "model/ids.h"

namespace berth::state {

struct QuotaPath {
  // The first queue on the way to the root, itself included, that states a ceiling or a guarantee or limits its users,
  // or some of whose siblings keep back what they would lend; the root if there is none.
  QueueId rules_from;
  std::uint32_t asker = 0;    // equal where the same pools are open and tasks share GPUs with the same others
  bool limits_users = false;  // somebody on the way does
};

}  // namespace berth::state
