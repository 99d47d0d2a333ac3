#pragma once
// The parts of a policy, built in or read from a file:
//
//   name: fifo-fgd
//   order: fifo            # fifo | shortest | attained-service | berth
//   score: FGD             # FirstFit | Random | DotProd | GpuClustering | GpuPacking | BestFit | FGD | berth |
//                          # berth-learned; with order berth only berth (by expected fragmentation) and BestFit
//   backfill: none         # none: the head of the line blocks; any: a later job that fits may start first; berth: how
//                          # many blocked jobs get a reservation (0 = any), or {backfill_reservations: 1,
//                          backfill_after_s: 172800}
//   preemption: none       # attained-service: {thresholds_gpu_s: [3600, 36000], promote_after_s: 0};
//                          # berth: none | {reclaim: true, preempt: true, min_runtime_s: 0, victims: least-lost}
//   attained_service: {thresholds_gpu_s: [86400, 864000], promote_after_s: 216000}   # berth; absent: by arrival
//   consolidation: none    # berth: none | {consolidations_per_hour: 100}
//   energy: {prefer: true, watts: {T4: {watts: 70, idle_watts: 10}}}   # of every model of the fleet; prefer: berth
//
// An unknown key refuses the file. `order: berth` is the product's own cycle with its own settings.

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
  std::vector<std::int64_t> thresholds_gpu_s;             // thresholds at which a job falls one level
  std::int64_t promote_after_s = 0;                       // a job that has waited so long goes first; 0: none does
  std::optional<AttainedServiceConfig> attained_service;  // order berth: for every queue
  SchedulingConfig scheduling;                            // settings of the product's cycle
  // Order berth: the product assumes that an evicted job loses no work. Then it chooses victims only by priority and
  // latest start, as other schedulers do. The work that is really lost is still measured.
  bool newest_victims = false;
  // Watts of one GPU, for every model of the fleet, to compute the energy of a run. Empty: energy is not computed.
  std::vector<GpuModelConfig> watts;
};

const std::vector<PolicySpec>& built_in_policies();

// find_policy returns the built-in policy of that name, or reads the file.
Result<PolicySpec> find_policy(const std::string& name_or_file);
Result<PolicySpec> read_policy_text(const std::string& name, std::string_view text);

}  // namespace berth::sim
