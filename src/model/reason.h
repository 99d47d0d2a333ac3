#pragma once
// A Reason: why a job does not run. It names the constraint that blocks the job, with numbers, and tells if waiting can
// help.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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
  kPorts,      // it would fit, but another job uses its port there
  kBudget,     // the budget of a queue on the path to the root is used up, and stops it
  kGrant,      // the grant of a queue on the path to the root is used up or has ended, and stops it
  kCountable,  // it would fit, but too little of a countable is free on these nodes
};

// What holds of a reason code whatever the numbers are. One row per code, in the order of the enum.
//   word          how the code is written: in the API, the command line, metrics and scenarios
//   never         waiting cannot help: the job, the configuration or the fleet has to change
//   about_places  no places were found, or none that the rules allow; the two kinds are
//     kRoom       there is not enough free where the job may run
//     kRule       a rule about places refuses, or no node is eligible
//   about_quota   a limit of a queue or of a user refuses
//   may_park      what ends the refusal leaves a mark in the state, so that the job need not be tried before: of any
//                 job, or of a job with one task group
struct ReasonInfo {
  enum class Places : std::uint8_t { kNot, kRoom, kRule };
  enum class Park : std::uint8_t { kNot, kAnyJob, kOneGroup };

  ReasonCode code = ReasonCode::kNone;
  std::string_view word;
  bool never = false;
  Places about_places = Places::kNot;
  bool about_quota = false;
  Park may_park = Park::kNot;
};

namespace reason_table {

using Code = ReasonCode;
using Places = ReasonInfo::Places;
using Park = ReasonInfo::Park;

constexpr bool kNever = true;
constexpr bool kQuota = true;

// clang-format off
inline constexpr auto kRows = std::to_array<ReasonInfo>({
    // code                          word                       never    about_places   about_quota  may_park
    {Code::kNone,                    "none",                    false,   Places::kNot,  false,   Park::kNot},
    {Code::kHeld,                    "held",                    false,   Places::kNot,  false,   Park::kNot},
    {Code::kEarliestStart,           "earliest-start",          false,   Places::kNot,  false,   Park::kNot},
    {Code::kDependency,              "dependency",              false,   Places::kNot,  false,   Park::kNot},
    {Code::kDependencyNever,         "dependency-never",        kNever,  Places::kNot,  false,   Park::kNot},
    {Code::kQuotaMax,                "quota-max",               false,   Places::kNot,  kQuota,  Park::kAnyJob},
    {Code::kQuotaLentOut,            "quota-lent-out",          false,   Places::kNot,  kQuota,  Park::kNot},
    {Code::kNoEligibleNode,          "no-eligible-node",        kNever,  Places::kRule, false,   Park::kOneGroup},
    {Code::kInsufficientResources,   "insufficient-resources",  false,   Places::kRoom, false,   Park::kOneGroup},
    {Code::kFragmented,              "fragmented",              false,   Places::kRoom, false,   Park::kOneGroup},
    {Code::kTopology,                "topology",                false,   Places::kRoom, false,   Park::kOneGroup},
    {Code::kNeverFits,               "never-fits",              kNever,  Places::kRule, false,   Park::kOneGroup},
    {Code::kWaitsForVictims,         "waits-for-victims",       false,   Places::kNot,  false,   Park::kNot},
    {Code::kWouldDelayReservation,   "would-delay-reservation", false,   Places::kNot,  false,   Park::kOneGroup},
    {Code::kBehindQueueHead,         "behind-queue-head",       false,   Places::kNot,  false,   Park::kNot},
    {Code::kArrayLimit,              "array-limit",             false,   Places::kNot,  false,   Park::kNot},
    {Code::kUserLimit,               "user-limit",              false,   Places::kNot,  kQuota,  Park::kAnyJob},
    {Code::kParent,                  "parent",                  false,   Places::kNot,  false,   Park::kNot},
    {Code::kTrustDomain,             "trust-domain",            false,   Places::kRule, false,   Park::kOneGroup},
    {Code::kAffinity,                "affinity",                false,   Places::kRule, false,   Park::kNot},
    {Code::kMaintenance,             "maintenance",             false,   Places::kRule, false,   Park::kOneGroup},
    {Code::kNuma,                    "numa",                    false,   Places::kRule, false,   Park::kOneGroup},
    {Code::kContainers,              "containers",              kNever,  Places::kRule, false,   Park::kOneGroup},
    {Code::kPorts,                   "ports",                   false,   Places::kRule, false,   Park::kNot},
    {Code::kBudget,                  "budget",                  false,   Places::kNot,  false,   Park::kNot},
    {Code::kGrant,                   "grant",                   false,   Places::kNot,  false,   Park::kNot},
    {Code::kCountable,               "countable",               false,   Places::kRoom, false,   Park::kOneGroup},
});
// clang-format on

// True if the value has a name in its enum: the compiler writes one that has none as a cast, "(berth::ReasonCode)24".
template <auto kValue>
constexpr bool is_named() {
  return std::string_view(__PRETTY_FUNCTION__).find("= (") == std::string_view::npos;
}

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].code != static_cast<Code>(i) || kRows[i].word.empty()) return false;
  }
  return true;
}
static_assert(is_in_order(), "the rows of the reason codes are not in the order of ReasonCode");
static_assert(is_named<static_cast<Code>(kRows.size() - 1)>(), "a row has no reason code");
static_assert(!is_named<static_cast<Code>(kRows.size())>(), "a reason code has no row");

constexpr auto words() {
  std::array<std::string_view, kRows.size()> all;
  for (std::size_t i = 0; i < kRows.size(); ++i) all[i] = kRows[i].word;
  return all;
}

}  // namespace reason_table

template <>
struct EnumNames<ReasonCode> {
  static constexpr auto kNames = reason_table::words();
};

constexpr const ReasonInfo& info_of(ReasonCode code) { return reason_table::kRows[static_cast<std::size_t>(code)]; }

// Waiting cannot help: something has to change.
constexpr bool is_never(ReasonCode code) { return info_of(code).never; }
// Not enough is free where the job may run.
constexpr bool is_room_reason(ReasonCode code) { return info_of(code).about_places == ReasonInfo::Places::kRoom; }
// No places were found, for lack of room or by a rule.
constexpr bool is_placement_reason(ReasonCode code) { return info_of(code).about_places != ReasonInfo::Places::kNot; }
// The same, but other jobs may leave some.
constexpr bool lacks_places(ReasonCode code) { return is_placement_reason(code) && !is_never(code); }
// A limit of a queue or of a user refuses, with any places or with those that were found.
constexpr bool is_quota_reason(ReasonCode code) { return info_of(code).about_quota; }

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
  std::uint32_t dim = 0;  // quota reasons, and never-fits within a level: the dimension of amounts
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
  // countable: a task asks for `asked` of `wish`. Of the nodes with room for one but for it, `node` has the most free,
  // `limit`; on all of them it is enough for `used` tasks.
  // containers: of the `used` nodes that could hold a task, `limit` run containers.
  NodeId node;
  PlaceRule rule = PlaceRule::kJob;
  std::string wish;  // the rule as text, such as "group worker" or "app=web within one rack"
  bool operator==(const Reason&) const = default;
};

}  // namespace berth
