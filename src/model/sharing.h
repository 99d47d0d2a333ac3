#pragma once
// Which jobs may share one GPU, by which level of sharing. One table says it: the jobs that would share it, what the
// job needs, the level. Everything that decides about sharing asks the table; docs/sharing.md is made of it
// (model/sharing_test.cc). A job never gets a weaker level than it asks for.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "model/job.h"
#include "model/resources.h"

namespace berth {

// From the strongest to the weakest. MPS is sharing in space: the processes run at once on a part of the compute each.
// Time-slice is sharing in time: they take turns on all of it.
enum class GpuLevel { kWhole, kMig, kMps, kTimeSlice };
BERTH_ENUM_NAMES(GpuLevel, "whole", "mig", "mps", "time-slice");

// Of jobs that would share a GPU: of two trust domains; of two users of one; of one user.
enum class Sharers { kStrangers, kOneTrustDomain, kOneUser };
BERTH_ENUM_NAMES(Sharers, "strangers", "one trust domain", "one user");

// What a job needs: that of its class, or of a latency objective, which goes before its class.
enum class GpuNeed { kTraining, kInference, kDev, kBatch, kLatencyCritical };
BERTH_ENUM_NAMES(GpuNeed, "training", "inference", "dev", "batch", "latency-critical");

// preferred: what berth advises where the job may choose.
enum class Sharing { kPreferred, kAllowed, kRefused };
BERTH_ENUM_NAMES(Sharing, "preferred", "allowed", "refused");

// What a level keeps apart between those that share a GPU.
struct Isolation {
  bool memory_enforced = false;
  bool compute_enforced = false;
  bool faults_isolated = false;
  bool operator==(const Isolation&) const = default;
};

namespace sharing {

inline constexpr std::size_t kLevels = 4;
inline constexpr std::size_t kSharers = 3;
inline constexpr std::size_t kNeeds = 5;

using Row = std::array<Sharing, kNeeds>;  // training, inference, dev, batch, latency-critical
inline constexpr Sharing kP = Sharing::kPreferred;
inline constexpr Sharing kA = Sharing::kAllowed;
inline constexpr Sharing kN = Sharing::kRefused;

// By level, then by sharers.
inline constexpr std::array<std::array<Row, kSharers>, kLevels> kTable{{
    {{{kP, kA, kA, kA, kP}, {kP, kA, kA, kA, kP}, {kP, kA, kA, kA, kP}}},  // whole
    {{{kA, kP, kP, kP, kP}, {kA, kA, kA, kA, kP}, {kA, kA, kA, kA, kP}}},  // MIG
    {{{kN, kN, kN, kN, kN}, {kN, kN, kN, kN, kN}, {kA, kA, kA, kP, kN}}},  // MPS
    {{{kN, kN, kN, kN, kN}, {kA, kP, kP, kA, kN}, {kA, kP, kP, kA, kN}}},  // time-slice
}};

}  // namespace sharing

constexpr Sharing sharing_of(Sharers sharers, GpuNeed need, GpuLevel level) {
  return sharing::kTable[static_cast<std::size_t>(level)][static_cast<std::size_t>(sharers)]
                        [static_cast<std::size_t>(need)];
}

// Returns why the table refuses it; empty where it does not.
std::string_view why_refused(Sharers sharers, GpuNeed need, GpuLevel level);

constexpr Isolation isolation_of(GpuLevel level) {
  const bool apart = level == GpuLevel::kWhole || level == GpuLevel::kMig;
  return {apart, apart, apart};
}

// "memory enforced | compute enforced | faults isolated", or with what is not.
std::string_view isolation_text(GpuLevel level);

constexpr GpuNeed need_of(JobClass job_class, std::int64_t latency_objective_ms) {
  return latency_objective_ms > 0 ? GpuNeed::kLatencyCritical : static_cast<GpuNeed>(job_class);
}
static_assert(need_of(JobClass::kBatch, 0) == GpuNeed::kBatch && need_of(JobClass::kTraining, 0) == GpuNeed::kTraining);

// Returns the level that the request asks for; nothing without a GPU. Of a cluster's models, those that its device
// plugin shares (nvidia.com/gpu.shared) and those of MIG instances (nvidia.com/mig-...) have a level of their own.
std::optional<GpuLevel> level_of(const TaskRequest& request);
// The same of a task group of a job: an exclusive job gets whole GPUs, whatever its groups ask for.
std::optional<GpuLevel> level_of(const JobSpec& spec, const TaskGroup& group);
// Returns the weakest level of all task groups.
std::optional<GpuLevel> weakest_level(const JobSpec& spec);
GpuLevel level_of_model(std::string_view model);

// Returns true if at least one kind of sharers may have the level for this need. Where none may, the request can never
// start.
constexpr bool may_ever_share(GpuNeed need, GpuLevel level) {
  return sharing_of(Sharers::kOneUser, need, level) != Sharing::kRefused;
}

}  // namespace berth
