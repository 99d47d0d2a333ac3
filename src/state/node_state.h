#pragma once
// A node as the state holds it. `free_*` is capacity less everything bound, terminating and unknown included (P1);
// `nominated_*` is promised to claimants whose victims are still leaving. What anybody else may take is free -
// nominated.

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/planted.h"
#include "base/timestamp.h"
#include "model/ids.h"
#include "model/mig.h"
#include "model/node.h"
#include "model/resources.h"

namespace berth::state {

struct GpuSlot {
  GpuModelId model;
  std::int16_t free_milli = 1000;
  std::int16_t nominated_milli = 0;
  std::int16_t sharers = 0;        // bound shares
  TrustDomainId share_domain;      // of the sharers, while there are any (P11)
  TrustDomainId nominated_domain;  // of those who are promised shares of it, while there are any; of several the first
  bool promised_to_several = false;  // trust domains: it takes shares of none of them
  bool healthy = true;
  MigSlices slices = 0;                // bound, of a GPU that is cut
  std::uint64_t nominated_slices = 0;  // byte s: how often slice s is promised or set aside

  MigSlices unavailable_slices() const {
    MigSlices promised = 0;
    for (std::uint32_t s = 0; s < 8 && nominated_slices >> 8 * s != 0; ++s) {
      if ((nominated_slices >> 8 * s & 0xFFU) != 0) promised |= static_cast<MigSlices>(1U << s);
    }
    return slices | (planted(Bug::kNominationIgnored) ? MigSlices{0} : promised);
  }
  void promise_slices(MigSlices which, int sign) {
    const std::uint32_t bits = which;
    for (std::uint32_t s = 0; s < 8; ++s) {
      if ((bits >> s & 1U) == 0) continue;
      const std::uint64_t one = std::uint64_t{1} << 8 * s;
      nominated_slices = sign > 0 ? nominated_slices + one : nominated_slices - one;
    }
  }

  // Whether shares of the domain may stand beside those that are bound and promised.
  bool takes_shares_of(TrustDomainId domain) const {
    if (planted(Bug::kShareAcrossDomains)) return true;
    return (sharers == 0 || share_domain == domain) && !promised_away_from(domain);
  }

  // Whether shares of it are promised to others than the domain.
  bool promised_away_from(TrustDomainId domain) const {
    return nominated_domain.valid() && (nominated_domain != domain || promised_to_several);
  }

  std::int32_t available_milli() const {
    const std::int32_t promised = planted(Bug::kNominationIgnored) ? 0 : nominated_milli;
    return healthy ? std::max(0, static_cast<std::int32_t>(free_milli) - promised) : 0;
  }
};

// A maintenance window as one of its nodes sees it.
struct ClosedSpan {
  Timestamp from;
  Timestamp to;
  auto operator<=>(const ClosedSpan&) const = default;
};

struct NodeState {
  NodeId id;
  NodeSpec spec;
  NodeStatus status = NodeStatus::kReady;
  bool cordoned = false;
  bool draining = false;
  std::string cordon_why;                 // what berth cordoned it for, or what an operator said
  Timestamp gone_at;                      // it goes away then, by notice; 0: it stays
  std::vector<Timestamp> contact_losses;  // the latest
  bool loss_deferred = false;             // unknown, and not given up while so many are silent
  std::uint64_t lease = 0;
  std::uint32_t pool = 0;  // index into State::pools()
  std::int64_t free_cpu_milli = 0;
  std::int64_t free_memory_mib = 0;
  std::int64_t nominated_cpu_milli = 0;
  std::int64_t nominated_memory_mib = 0;
  std::vector<GpuSlot> gpus;
  std::set<std::int32_t> ports;                     // master ports in use
  std::set<std::pair<JobId, std::uint32_t>> tasks;  // bound here and not over
  std::multiset<ClosedSpan> maintenance;            // windows that are not over, the first to begin first
  std::int32_t maintained = 0;                      // so many of them have begun
  std::int32_t holders = 0;  // tasks that hold something here: one that is over holds it until its attempt is
  Timestamp idle_since;      // nothing has held anything here since then, where nothing does
  std::vector<std::pair<QueueId, std::int32_t>> tenants;  // those tasks, and those that are promised, by their queue

  bool takes_tasks() const {
    return status == NodeStatus::kReady && maintained == 0 && (!cordoned || planted(Bug::kCordonIgnored));
  }
  std::int64_t available_cpu_milli() const { return std::max<std::int64_t>(0, free_cpu_milli - nominated_cpu_milli); }
  std::int64_t available_memory_mib() const {
    return std::max<std::int64_t>(0, free_memory_mib - nominated_memory_mib);
  }
};

}  // namespace berth::state
