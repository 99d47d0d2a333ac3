#include "model/job_size.h"

namespace berth {

std::int64_t gpu_milli_of(const JobSpec& spec) {
  std::int64_t milli = 0;
  for (const TaskGroup& group : spec.groups) milli += group.count * group.request.total_gpu_milli();
  return milli;
}

}  // namespace berth
