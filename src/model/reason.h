#pragma once
// A Reason says why a job does not run: which constraint blocks it, with the numbers, and whether waiting can help.

#include <cstdint>
#include <string>

#include "base/fields.h"
#include "model/ids.h"

namespace berth {

enum class ReasonCode {
  kNone,                   // nothing blocks it; it starts in the next cycle
  kHeld,                   // held by a user
  kEarliestStart,          // not before a time it asked for, or its back-off
  kDependency,             // waits for another job
  kDependencyNever,        // the job it depends on ended in a way that rules it out
  kQuotaMax,               // a ceiling on the way to the root
  kQuotaLentOut,           // what is idle is not lent to this queue
  kNoEligibleNode,         // no pool it may use
  kInsufficientResources,  // fits the fleet, not what is free now
  kFragmented,             // enough is free in total, not where a gang or a node's worth is needed
  kTopology,               // enough is free, not within the required domain
  kNeverFits,              // no node or fleet like this can ever hold it
  kWaitsForVictims,        // nominated; victims are leaving
  kWouldDelayReservation,  // would delay a job that is promised a start
  kBehindQueueHead,        // strict queue: the head of the queue goes first
  kArrayLimit,             // the array's own concurrency limit
  kUserLimit,              // a per-user limit
  kParent,                 // runs through its replicas or elements
  kTrustDomain,            // another trust domain runs where its pool keeps them apart
  kAffinity,               // it has to be near jobs, or away from jobs, and no free place is
  kMaintenance,            // a maintenance window begins before it would be gone
  kNuma,                   // it would fit, were it not for the NUMA policy of its tasks
  kContainers,             // it has an image, and the nodes that run containers can never hold it; others could
  kPorts,                  // it would fit, but somebody there has a port that it listens on
};
BERTH_ENUM_NAMES(ReasonCode, "none", "held", "earliest-start", "dependency", "dependency-never", "quota-max",
                 "quota-lent-out", "no-eligible-node", "insufficient-resources", "fragmented", "topology", "never-fits",
                 "waits-for-victims", "would-delay-reservation", "behind-queue-head", "array-limit", "user-limit",
                 "parent", "trust-domain", "affinity", "maintenance", "numa", "containers", "ports");

// later: waiting can help. never: it cannot, something must be changed.
constexpr bool is_never(ReasonCode code) {
  return code == ReasonCode::kNeverFits || code == ReasonCode::kDependencyNever ||
         code == ReasonCode::kNoEligibleNode || code == ReasonCode::kContainers;
}

// Which of the rules about places it is that refuses, where a code has several.
enum class PlaceRule {
  kJob,       // topology: of the whole job
  kGroup,     // topology: of one group
  kGroups,    // topology: each group has its domain, but not beside the others
  kAway,      // affinity: it keeps away from what runs there
  kExcluded,  // affinity: what runs there keeps it away
  kNear,      // affinity: nothing it has to be near runs where it fits
  kAlone,     // affinity, ports: its own tasks keep away from each other, or have the same ports
  kTogether,  // affinity: its own tasks have to be near each other
  kNuma,      // never-fits: but for the NUMA policy of the group the fleet, were it empty, would hold it
};

struct Reason {
  ReasonCode code = ReasonCode::kNone;
  QueueId queue;          // quota reasons: the queue whose limit ends it
  std::uint32_t dim = 0;  // quota reasons: the dimension
  std::int64_t asked = 0;
  std::int64_t used = 0;
  std::int64_t limit = 0;
  JobId job;               // whom it waits for
  std::int32_t group = 0;  // the task group that does not fit
  DomainId domain;         // topology: the domain that comes closest, or `node` where one node is required;
  NodeId node;  // trust-domain, affinity, ports: where it would fit but for `job`; maintenance: a node that it may not
                // use, `limit` and `used` are the window's times; numa: `asked` GPUs, or all of a node where that is 0,
                // `limit` nodes have them idle in vain; containers: `limit` of the `used` nodes that could hold a
                // task run containers
  PlaceRule rule = PlaceRule::kJob;
  std::string wish;  // the rule in words: "group worker", "app=web within one rack"
  bool operator==(const Reason&) const = default;
};

}  // namespace berth
