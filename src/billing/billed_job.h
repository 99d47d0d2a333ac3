#pragma once
// What a bill says of a job, and which premiums and discounts it gets.

#include <string>

#include "model/job.h"
#include "model/price_book.h"

namespace berth::billing {

struct BilledJob {
  std::string queue;
  std::string user;
  std::string name;
  JobClass job_class = JobClass::kTraining;
  Labels labels;
  bool exclusive = false;
  bool required_topology = false;
};

BilledJob billed_job(const JobSpec& spec);

bool applies(AdjustmentCause cause, const BilledJob& job);

}  // namespace berth::billing
