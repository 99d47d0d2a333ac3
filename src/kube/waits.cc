#include "kube/waits.h"

#include <initializer_list>

#include "base/check.h"

namespace berth::kube {

Waits Waits::shortened(std::int64_t times) const {
  BERTH_CHECK(times > 0);
  Waits all = *this;
  for (std::int64_t* wait : {&all.look_again_ms,
                             &all.delete_again_ms,
                             &all.make_again_ms,
                             &all.select_again_ms,
                             &all.suspend_again_ms,
                             &all.unanswered_eviction_ms,
                             &all.first_refused_eviction_ms,
                             &all.longest_refused_eviction_ms,
                             &all.submit_again_ms,
                             &all.refused_suspension_ms,
                             &all.renew_again_ms,
                             &all.tell_exit_again_ms,
                             &all.list_queues_ms,
                             &all.no_queues_ms,
                             &all.tell_volumes_ms,
                             &all.unknown_owner_ms,
                             &all.denial_ms,
                             &all.denial_forgotten_ms,
                             &all.broken_eviction_ms,
                             &all.hopeless_ms})
    *wait /= times;
  return all;
}

}  // namespace berth::kube
