#pragma once
// How long berth waits for what may still come in a cluster, before it asks again, says so, or gives up. One table, so
// that a test on a real API server can shorten all of them. Cluster::tick comes every second, so less is a second.

#include <cstdint>

namespace berth::kube {

struct Waits {
  // Asked again:
  std::int64_t look_again_ms = 5'000;                 // a request about a task that had no answer
  std::int64_t delete_again_ms = 5'000;               // a pod that is bound as a task which does not run
  std::int64_t make_again_ms = 5'000;                 // a pod of a job of berth's own, and the Service of a gang
  std::int64_t select_again_ms = 5'000;               // a node that was written into a claim and is not seen there yet
  std::int64_t suspend_again_ms = 5'000;              // `suspend` that was written into a Job and is not seen there yet
  std::int64_t unanswered_eviction_ms = 5'000;        // an eviction that had no answer
  std::int64_t first_refused_eviction_ms = 10'000;    // an eviction that a budget refused; doubled each time,
  std::int64_t longest_refused_eviction_ms = 60'000;  // up to this
  std::int64_t submit_again_ms = 60'000;              // a group that the core refused
  std::int64_t refused_suspension_ms = 60'000;        // a Job that the core refused
  std::int64_t renew_again_ms = 60'000;               // a job of a group whose pods were changed
  std::int64_t tell_exit_again_ms = 30'000;           // an exit that the core has not taken
  std::int64_t list_queues_ms = 60'000;               // the objects of queues
  std::int64_t no_queues_ms = 300'000;                // likewise, where the kind is not served or not allowed
  // Said:
  std::int64_t tell_volumes_ms = 10'000;   // what the volumes of a gang wait for
  std::int64_t unknown_owner_ms = 10'000;  // that the owner of a pod is not known
  // Believed, or given up:
  std::int64_t denial_ms = 60'000;               // a refusal that may be over in a moment (denial.h)
  std::int64_t denial_forgotten_ms = 3'600'000;  // a denial since which none came
  std::int64_t broken_eviction_ms = 60'000;      // evictions that fail for another reason than a budget
  std::int64_t hopeless_ms = 30'000;             // a container of an own pod, which the kubelet does not try to start

  // All of them, divided.
  Waits shortened(std::int64_t times) const;
};

}  // namespace berth::kube
