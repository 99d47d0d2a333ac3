#include "model/sharing.h"

#include <algorithm>

namespace berth {

std::string_view why_refused(Sharers sharers, GpuNeed need, GpuLevel level) {
  if (sharing_of(sharers, need, level) != Sharing::kRefused) return "";
  if (level == GpuLevel::kTimeSlice) {
    return sharers == Sharers::kStrangers
               ? "time-slicing keeps neither memory nor faults of two trust domains apart"
               : "a job with a latency objective would wait for the time slices of the others";
  }
  switch (sharers) {
    case Sharers::kStrangers:
      return "under MPS a fault of one trust domain ends the work of the other";
    case Sharers::kOneTrustDomain:
      return "the daemon of MPS serves one user of a machine at a time";
    case Sharers::kOneUser:
      break;
  }
  return "under MPS the others take compute from a job with a latency objective";
}

std::string_view isolation_text(GpuLevel level) {
  return isolation_of(level) == Isolation{true, true, true}
             ? "memory enforced | compute enforced | faults isolated"
             : "memory not enforced | compute not enforced | faults not isolated";
}

std::optional<GpuLevel> level_of(const TaskRequest& request) {
  if (!request.mig_profile.empty()) return GpuLevel::kMig;
  if (request.gpus == 0) return std::nullopt;
  if (request.is_share()) return GpuLevel::kTimeSlice;
  GpuLevel weakest = GpuLevel::kWhole;
  for (const std::string& model : request.gpu_models) weakest = std::max(weakest, level_of_model(model));
  return weakest;
}

std::optional<GpuLevel> level_of(const JobSpec& spec, const TaskGroup& group) {
  return spec.exclusive ? GpuLevel::kWhole : level_of(group.request);
}

std::optional<GpuLevel> weakest_level(const JobSpec& spec) {
  std::optional<GpuLevel> weakest;
  for (const TaskGroup& group : spec.groups) weakest = std::max(weakest, level_of(spec, group));
  return weakest;
}

GpuLevel level_of_model(std::string_view model) {
  if (model == "nvidia.com/gpu.shared") return GpuLevel::kTimeSlice;
  return model.starts_with("nvidia.com/mig-") ? GpuLevel::kMig : GpuLevel::kWhole;
}

}  // namespace berth
