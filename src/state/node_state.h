#pragma once
// A node as the state holds it. `free_*` is the capacity minus all that is bound; tasks that are stopping or out of
// contact count as bound (P1). `nominated_*` is reserved for nominated jobs until their victims have exited. Other jobs
// may use free minus nominated.

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

// One GPU of a node: what is bound and nominated on it.
struct GpuSlot {
  GpuModelId model;
  std::int16_t free_milli = 1000;
  std::int16_t nominated_milli = 0;
  std::int16_t sharers = 0;    // bound shares
  TrustDomainId share_domain;  // of the bound shares, if any (P11)
  // Trust domain of the nominated shares, if any; the first one if there are several.
  TrustDomainId nominated_domain;
  // Shares are nominated to several trust domains: the GPU takes no further shares of any.
  bool nominated_to_several = false;
  bool healthy = true;
  bool foreign = false;                // others use it (ForeignUse)
  bool kept = false;                   // an exclusive job has the node, and others used this when it started
  MigSlices slices = 0;                // MIG: bound slices
  std::uint64_t nominated_slices = 0;  // MIG, byte s: how often slice s is nominated or reserved

  MigSlices unavailable_slices() const {
    MigSlices nominated = 0;
    for (std::uint32_t s = 0; s < 8 && nominated_slices >> 8 * s != 0; ++s) {
      if ((nominated_slices >> 8 * s & 0xFFU) != 0) nominated |= static_cast<MigSlices>(1U << s);
    }
    return slices | (planted(Bug::kNominationIgnored) ? MigSlices{0} : nominated);
  }
  void nominate_slices(MigSlices which, int sign) {
    const std::uint32_t bits = which;
    for (std::uint32_t s = 0; s < 8; ++s) {
      if ((bits >> s & 1U) == 0) continue;
      const std::uint64_t one = std::uint64_t{1} << 8 * s;
      nominated_slices = sign > 0 ? nominated_slices + one : nominated_slices - one;
    }
  }

  // Returns true if shares of `domain` may run beside the shares that are bound and nominated on this GPU.
  bool takes_shares_of(TrustDomainId domain) const {
    if (planted(Bug::kShareAcrossDomains)) return true;
    return (sharers == 0 || share_domain == domain) && !nominated_away_from(domain);
  }

  // Returns true if shares of this GPU are nominated to jobs of another trust domain than `domain`.
  bool nominated_away_from(TrustDomainId domain) const {
    return nominated_domain.valid() && (nominated_domain != domain || nominated_to_several);
  }

  // Returns true if a task may have it once nothing is bound on it.
  bool usable() const { return healthy && (!foreign || planted(Bug::kForeignIgnored)); }

  std::int32_t available_milli() const {
    const std::int32_t nominated = planted(Bug::kNominationIgnored) ? 0 : nominated_milli;
    return usable() && !kept ? std::max(0, static_cast<std::int32_t>(free_milli) - nominated) : 0;
  }
};

// One countable of a node: what of it is bound, nominated, and used by others.
struct CountableUse {
  std::int64_t bound = 0;
  std::int64_t nominated = 0;
  std::int64_t foreign = 0;
  bool operator==(const CountableUse&) const = default;
};

// The time span of a maintenance window, as each of its nodes stores it.
struct ClosedSpan {
  Timestamp from;
  Timestamp to;
  auto operator<=>(const ClosedSpan&) const = default;
};

// A failure for which a job blames the node.
struct Blame {
  std::string user;  // of the job
  JobId job;
  Timestamp at;
  bool operator==(const Blame&) const = default;
  static constexpr auto fields() {
    return field_list(field("user", &Blame::user), field("job", &Blame::job), field("at", &Blame::at));
  }
};

struct NodeState {
  NodeId id;
  NodeSpec spec;
  NodeStatus status = NodeStatus::kReady;
  bool cordoned = false;
  bool draining = false;
  std::string cordon_why;                 // reason of the cordon, from berth or from the operator
  Timestamp gone_at;                      // announced time of its shutdown; 0: none
  std::vector<Timestamp> contact_losses;  // times of the latest losses of contact
  std::vector<Blame> blames;              // the latest of each user, since it was last uncordoned
  bool loss_deferred = false;             // silent, but not declared lost while too many nodes are silent
  bool removed = false;                   // lost, and no more part of the fleet: only the name is left (NodeRemoved)
  std::uint64_t lease = 0;
  std::uint32_t pool = 0;  // index into State::pools()
  std::int64_t free_cpu_milli = 0;
  std::int64_t free_memory_mib = 0;
  std::int64_t nominated_cpu_milli = 0;
  std::int64_t nominated_memory_mib = 0;
  std::vector<GpuSlot> gpus;
  std::vector<CountableUse> countables;             // of spec.countables, in their order
  ForeignUse foreign;                               // what others use of it
  std::set<std::int32_t> ports;                     // master ports in use
  std::set<std::pair<JobId, std::uint32_t>> tasks;  // bound here and not exited
  std::multiset<ClosedSpan> maintenance;            // windows that are not over, the earliest first
  std::int32_t maintained = 0;                      // how many of these windows have begun
  // Tasks that hold resources here. An exited task holds them until its attempt ends.
  std::int32_t holders = 0;
  std::int32_t exclusive = 0;  // those of exclusive jobs
  Timestamp idle_since;        // since when `holders` is 0; only then meaningful
  // Number of bound and nominated tasks here, by queue.
  std::vector<std::pair<QueueId, std::int32_t>> tenants;

  bool takes_tasks() const {
    return status == NodeStatus::kReady && maintained == 0 && (!cordoned || planted(Bug::kCordonIgnored));
  }
  // What is neither bound, nominated nor used by others. Less than 0 where others use what berth's tasks have.
  std::int64_t spare_cpu_milli() const { return free_cpu_milli - nominated_cpu_milli - foreign_cpu_milli(); }
  std::int64_t spare_memory_mib() const { return free_memory_mib - nominated_memory_mib - foreign_memory_mib(); }
  // Nothing is available beside an exclusive job, whatever others leave of the node meanwhile.
  std::int64_t available_cpu_milli() const { return exclusive > 0 ? 0 : std::max<std::int64_t>(0, spare_cpu_milli()); }
  std::int64_t available_memory_mib() const {
    return exclusive > 0 ? 0 : std::max<std::int64_t>(0, spare_memory_mib());
  }
  std::int64_t foreign_cpu_milli() const { return planted(Bug::kForeignIgnored) ? 0 : foreign.cpu_milli; }
  std::int64_t foreign_memory_mib() const { return planted(Bug::kForeignIgnored) ? 0 : foreign.memory_mib; }
  // What an exclusive job is charged: all that others do not use.
  std::int64_t own_cpu_milli() const { return std::max<std::int64_t>(0, spec.cpu_milli - foreign_cpu_milli()); }
  std::int64_t own_memory_mib() const { return std::max<std::int64_t>(0, spec.memory_mib - foreign_memory_mib()); }
  // Returns what is available of the countable at this place of spec.countables.
  std::int64_t available_countable(std::size_t at) const { return std::max<std::int64_t>(0, spare_countable(at)); }
  // The same, less than 0 where others use what berth's tasks have.
  std::int64_t spare_countable(std::size_t at) const {
    const CountableUse& use = countables[at];
    return spec.countables[at].second - use.bound - use.nominated - use.foreign;
  }
};

}  // namespace berth::state
