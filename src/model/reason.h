#pragma once
// A Reason: why a job does not run. It names the constraint that blocks the job, with numbers, and tells if waiting can
// help.

#include <cstdint>
#include <string>

#include "base/fields.h"
#include "model/ids.h"

namespace berth {

enum class ReasonCode {
  kNone,                   // nothing blocks it: it starts in the next cycle
  kHeld,                   // held by a user or an operator
  kEarliestStart,          // not before its earliest start or the end of its back-off
  kDependency,             // another job must start or end first
  kDependencyNever,        // the job that it depends on ended in a way that rules it out
  kQuotaMax,               // a max on the path to the root
  kQuotaLentOut,           // a lending limit keeps back what is idle
  kNoEligibleNode,         // it may use no pool with nodes
  kInsufficientResources,  // it fits the fleet, but not what is free now
  kFragmented,             // enough is free in total, but not together on nodes as its tasks need it
  kTopology,               // enough is free, but not in one domain of the required level
  kNeverFits,              // this fleet could not hold it even if it were empty
  kWaitsForVictims,        // nominated; its victims have not exited yet
  kWouldDelayReservation,  // it would delay a job with a backfill reservation
  kBehindQueueHead,        // strict queue: the first job goes first
  kArrayLimit,             // the array's limit on running elements
  kUserLimit,              // a limit per user of a queue on the path to the root
  kParent,                 // a service or an array: its replicas or elements run instead
  kTrustDomain,            // trust domain isolation: another trust domain runs there
  kAffinity,               // no free place satisfies its affinity or anti-affinity
  kMaintenance,            // a maintenance window would begin before it exits
  kNuma,                   // it would fit without the NUMA policy of its tasks
  // It has an image. The nodes that run containers can never hold it; other nodes could.
  kContainers,
  kPorts,  // it would fit, but another job uses its port there
};
BERTH_ENUM_NAMES(ReasonCode, "none", "held", "earliest-start", "dependency", "dependency-never", "queue-max",
                 "queue-lending", "pool-closed", "gpus-busy", "fragmented", "topology", "never-fits",
                 "waits-for-victims", "behind-hold", "behind-head", "array-limit", "user-limit", "parent", "apart",
                 "affinity", "maintenance", "numa", "containers", "ports");

// Returns true if waiting cannot help, so that something must be changed.
constexpr bool is_never(ReasonCode code) {
  return code == ReasonCode::kNeverFits || code == ReasonCode::kDependencyNever ||
         code == ReasonCode::kNoEligibleNode || code == ReasonCode::kContainers;
}

// The rule of placement that refuses, for codes that have several.
enum class PlaceRule {
  kJob,       // topology: the constraint of the whole job
  kGroup,     // topology: the constraint of one group
  kGroups,    // topology: each group fits into a domain, but not all beside each other
  kAway,      // affinity: its own anti-affinity to a job there
  kExcluded,  // affinity: the anti-affinity of a job there
  kNear,      // affinity: it must be near a job, but no such job runs where it fits
  kAlone,     // affinity, ports: its own tasks exclude each other
  kTogether,  // affinity: its own tasks must be near each other
  kNuma,      // never-fits: the empty fleet would hold it without its NUMA policy
};

struct Reason {
  ReasonCode code = ReasonCode::kNone;
  QueueId queue;          // quota reasons: the queue whose limit refuses it
  std::uint32_t dim = 0;  // quota reasons: the dimension of amounts
  std::int64_t asked = 0;
  std::int64_t used = 0;
  std::int64_t limit = 0;
  JobId job;               // the job that it waits for
  std::int32_t group = 0;  // the task group that does not fit
  // Topology: the domain that comes closest; or `node`, if one node is required.
  DomainId domain;
  // trust-domain, affinity, ports: a node where it would fit without `job`.
  // maintenance: a node that it may not use; `limit` and `used` are the begin and end of the window.
  // numa: `asked` GPUs (0: all of a node) are idle on each of `limit` nodes, but not as the policy requires.
  // containers: of the `used` nodes that could hold a task, `limit` run containers.
  NodeId node;
  PlaceRule rule = PlaceRule::kJob;
  std::string wish;  // the rule as text, such as "group worker" or "app=web within one rack"
  bool operator==(const Reason&) const = default;
};

}  // namespace berth
