#pragma once
// What a policy is made of, as a file says it or as it is built in:
//
//   name: fifo-fgd
//   order: fifo            # fifo | shortest | attained-service | berth
//   score: FGD             # FirstFit | Random | DotProd | GpuClustering | GpuPacking | BestFit | FGD | berth |
//                          # berth-learned; with order berth only berth (by expected fragmentation) and BestFit
//   backfill: none         # none: the head of the line blocks; any: whoever fits may go first; berth: holds, a number,
//                          # or any, which is 0, or {backfill_reservations: 1, backfill_after_s: 172800}
//   preemption: none       # attained-service: {thresholds_gpu_s: [3600, 36000], promote_after_s: 0};
//                          # berth: none | {reclaim: true, preempt: true, min_runtime_s: 0, victims: least-lost}
//   attained_service: {thresholds_gpu_s: [86400, 864000], promote_after_s: 216000}   # berth; absent: by arrival
//   consolidation: none    # berth: none | {consolidations_per_hour: 100}
//   energy: {prefer: true, watts: {T4: {watts: 70, idle_watts: 10}}}   # of every model of the fleet; prefer: berth
//
// Keys are strict: an unknown one refuses the file. `order: berth` is the product's own cycle with its own knobs.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/cluster_config.h"

namespace berth::sim {

enum class PolicyOrder { kBerth, kFifo, kShortest, kAttainedService };

struct PolicySpec {
  std::string name;
  PolicyOrder order = PolicyOrder::kFifo;
  std::string score = "FirstFit";
  bool head_blocks = true;
  std::vector<std::int64_t> thresholds_gpu_s;  // attained service: where a job falls to the next level
  std::int64_t promote_after_s = 0;            // attained service: who has waited so long goes first; 0: nobody
  std::optional<AttainedServiceConfig> attained_service;  // order berth: of every queue
  SchedulingConfig scheduling;                            // order berth: the knobs of the product's cycle
  // Order berth: the product is told that whoever is stopped loses nothing. Its choice of victims then rests on
  // priority and on who came last alone, as elsewhere; what is really lost is measured all the same.
  bool newest_victims = false;
  // Watts of one GPU of every model of the fleet, for the energy that a run takes; empty: it is not worked out.
  std::vector<GpuModelConfig> watts;
};

const std::vector<PolicySpec>& built_in_policies();

// The built-in policy of that name, or the file.
Result<PolicySpec> find_policy(const std::string& name_or_file);
Result<PolicySpec> read_policy_text(const std::string& name, std::string_view text);

}  // namespace berth::sim
