#pragma once
// A Reason says why a job does not run: which constraint blocks it, with the numbers, and whether waiting can help.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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
    // code                         word                  never    about_places   about_quota  may_park
    {Code::kNone,                   "none",               false,   Places::kNot,  false,   Park::kNot},
    {Code::kHeld,                   "held",               false,   Places::kNot,  false,   Park::kNot},
    {Code::kEarliestStart,          "earliest-start",     false,   Places::kNot,  false,   Park::kNot},
    {Code::kDependency,             "dependency",         false,   Places::kNot,  false,   Park::kNot},
    {Code::kDependencyNever,        "dependency-never",   kNever,  Places::kNot,  false,   Park::kNot},
    {Code::kQuotaMax,               "queue-max",          false,   Places::kNot,  kQuota,  Park::kAnyJob},
    {Code::kQuotaLentOut,           "queue-lending",      false,   Places::kNot,  kQuota,  Park::kNot},
    {Code::kNoEligibleNode,         "pool-closed",        kNever,  Places::kRule, false,   Park::kOneGroup},
    {Code::kInsufficientResources,  "gpus-busy",          false,   Places::kRoom, false,   Park::kOneGroup},
    {Code::kFragmented,             "fragmented",         false,   Places::kRoom, false,   Park::kOneGroup},
    {Code::kTopology,               "topology",           false,   Places::kRoom, false,   Park::kOneGroup},
    {Code::kNeverFits,              "never-fits",         kNever,  Places::kRule, false,   Park::kOneGroup},
    {Code::kWaitsForVictims,        "waits-for-victims",  false,   Places::kNot,  false,   Park::kNot},
    {Code::kWouldDelayReservation,  "behind-hold",        false,   Places::kNot,  false,   Park::kOneGroup},
    {Code::kBehindQueueHead,        "behind-head",        false,   Places::kNot,  false,   Park::kNot},
    {Code::kArrayLimit,             "array-limit",        false,   Places::kNot,  false,   Park::kNot},
    {Code::kUserLimit,              "user-limit",         false,   Places::kNot,  kQuota,  Park::kAnyJob},
    {Code::kParent,                 "parent",             false,   Places::kNot,  false,   Park::kNot},
    {Code::kTrustDomain,            "apart",              false,   Places::kRule, false,   Park::kOneGroup},
    {Code::kAffinity,               "affinity",           false,   Places::kRule, false,   Park::kNot},
    {Code::kMaintenance,            "maintenance",        false,   Places::kRule, false,   Park::kOneGroup},
    {Code::kNuma,                   "numa",               false,   Places::kRule, false,   Park::kOneGroup},
    {Code::kContainers,             "containers",         kNever,  Places::kRule, false,   Park::kOneGroup},
    {Code::kPorts,                  "ports",              false,   Places::kRule, false,   Park::kNot},
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
  NodeId node;  // apart, affinity, ports: where it would fit but for `job`; maintenance: a node that it may not use,
                // `limit` and `used` are the window's times; numa: `asked` GPUs, or all of a node where that is 0,
                // `limit` nodes have them idle in vain; containers: `limit` of the `used` nodes that could hold a
                // task run containers
  PlaceRule rule = PlaceRule::kJob;
  std::string wish;  // the rule in words: "group worker", "app=web within one rack"
  bool operator==(const Reason&) const = default;
};

}  // namespace berth
