#include "billing/billed_job.h"

#include <algorithm>

namespace berth::billing {
namespace {

bool has_required_topology(const JobSpec& spec) {
  return !spec.topology.required.empty() || std::any_of(spec.groups.begin(), spec.groups.end(), [](const TaskGroup& g) {
    return !g.topology.required.empty();
  });
}

}  // namespace

BilledJob billed_job(const JobSpec& spec) {
  return {spec.queue, spec.user, spec.name, spec.job_class, spec.labels, spec.exclusive, has_required_topology(spec)};
}

bool applies(AdjustmentCause cause, const BilledJob& job) {
  switch (cause) {
    case AdjustmentCause::kExclusive:
      return job.exclusive;
    case AdjustmentCause::kRequiredTopology:
      return job.required_topology;
    case AdjustmentCause::kTraining:
      return job.job_class == JobClass::kTraining;
    case AdjustmentCause::kInference:
      return job.job_class == JobClass::kInference;
    case AdjustmentCause::kDev:
      return job.job_class == JobClass::kDev;
    case AdjustmentCause::kBatch:
      return job.job_class == JobClass::kBatch;
  }
  return false;
}

}  // namespace berth::billing
