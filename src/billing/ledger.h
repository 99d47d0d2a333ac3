#pragma once
// The ledger: the accounts of money, as a fold over the events of the log. At each instant every thousandth of every
// GPU lies in exactly one account of its model (P12):
//
//   failed      unused, and the GPU is unhealthy or its node is unknown or lost
//   drained     unused, and its node is cordoned
//   floor used  used by a job that is within (AttemptStarted::guaranteed)
//   floor lent  used by another job, on GPUs that back the floor of a queue
//   burst       used by another job, on other GPUs
//   floor idle  unused, and backs the floor of a queue
//   unowned     unused, and backs no floor
//
// The floor of a queue is its guarantee in GPUs less those of its children. Which part of it is not used, which GPUs
// back it, and who borrows from whom follow from the amounts alone, in five steps at each instant (docs/billing.md):
//
//  1. Unused floor of a queue and model: the floor stated for the model less what jobs within use; of a floor that
//     names no model, what is left over of it.
//  2. The pool of a model: what is idle (not failed, not drained) and what is borrowed. It backs unused floors of that
//     model first, in proportion if it is smaller. What is left backs the floors without a model, model by model in the
//     order of their names, in proportion.
//  3. Own jobs first: the borrowed use in a queue or below it lies on that queue's backed unused floor, deepest first.
//  4. Other borrowed use lies on GPUs that back no floor as long as there are any (burst), shared in proportion; the
//     rest is lent by the remaining backed floors, in proportion.
//  5. Lenders and borrowers are paired in the order of their paths.
//
// "In proportion" is by running sums: the first n of N get floor(total * sum of n / sum of N). Amounts are thousandths
// of GPUs, so no GPU-millisecond is lost or counted twice.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "model/price_book.h"

namespace berth::billing {

struct FleetAccounts;

// The part of the log that is counted, and the instants at which it is split (price changes). Requires: the cuts are
// ascending and inside.
struct Window {
  Timestamp from;
  Timestamp to;
  std::vector<Timestamp> cuts = {};
};

// What a job used between two cuts.
struct JobUse {
  JobId job;
  std::uint32_t part = 0;  // number of cuts before it
  std::string model;       // empty: no GPUs
  std::string slice;       // MIG profile
  bool guaranteed = false;
  std::int64_t gpu_milli_ms = 0;
  std::int64_t units_milli_ms = 0;  // whole GPUs, or MIG instances
  std::int64_t cpu_milli_ms = 0;
  std::int64_t memory_mib_ms = 0;
};

// What became of the floor of a queue between two cuts; the use of it is in JobUse.
struct FloorUse {
  std::string queue;
  std::uint32_t part = 0;
  std::string model;
  std::string borrower;  // empty: idle
  bool own = false;      // the borrower is the queue or below it
  std::int64_t gpu_milli_ms = 0;
};

}  // namespace berth::billing
