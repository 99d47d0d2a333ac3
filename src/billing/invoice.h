#pragma once
// The bill of a queue and of all queues below it for one month, in exact integers. It is a value: what makes it
// (billing/rate.h) and what prints it (billing/render.h) are apart.
//
// Rounding. The exact amount of a line is quantity * unit price / per_hour(unit). Lines of one group (the same queue,
// kind, cause, model, slice, unit and unit price) are rounded together: the sum of the first n lines of a group is the
// exact sum of the n amounts, rounded half up to whole micro units. So a group is rounded once, its lines add up to it,
// and every total is a sum of lines. A credit or discount is the negative of the amount that is rounded so.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/timestamp.h"
#include "model/job.h"

namespace berth::billing {

// What a line is for. The floor of a queue is its guarantee (billing/ledger.h).
enum class LineKind {
  kFloorUsed,      // a job on the floor of its queue: paid at the floor price
  kFloorIdle,      // floor that no job used: paid at the floor price
  kFloorLent,      // floor that jobs of `borrower` used: paid at the floor price
  kLendingCredit,  // negative: part of the burst price that `borrower` pays for it
  kBurst,          // a job beyond the floor of its queue: paid at the burst price
  kPremium,        // for what the job asked for (`cause`): a percentage of its price
  kDiscount,       // negative: likewise
  kCpu,
  kMemory,
  kCorrection,  // names what it corrects in `note`
  kReported,    // a quantity of `cause` that was reported (storage, egress, energy), in `reported_unit`
};
enum class Unit { kGpuHour, kMigHour, kCoreHour, kGibHour, kNone, kReported };

struct InvoiceLine {
  std::string queue;
  LineKind kind = LineKind::kBurst;
  std::string cause;     // premium, discount: an AdjustmentCause or off_peak; reported: its kind; else empty
  std::string model;     // GPU model; empty: cpu, memory, correction
  std::string slice;     // MIG profile; empty: whole GPUs
  std::string borrower;  // floor-lent, lending-credit: the queue that used the floor
  std::string user;      // empty: the line belongs to the queue as such (floor-idle, floor-lent, lending-credit)
  JobId job;             // JobId::none(): no job, or the invoice is not told by job
  std::string job_name;
  JobClass job_class = JobClass::kTraining;  // of `job`
  Labels labels;                             // of `job`, sorted by key
  Timestamp from;                            // the part of the month in which these prices were in force
  Timestamp to;
  Unit unit = Unit::kGpuHour;
  std::string reported_unit;  // of Unit::kReported
  // Thousandths of a GPU, MIG instance or core times milliseconds; memory: MiB times milliseconds.
  std::int64_t quantity = 0;
  std::int64_t gpu_milli_ms = 0;      // the GPUs in it, thousandths times milliseconds; differs for MIG instances
  std::int64_t unit_price_micro = 0;  // per hour of one unit, never negative
  std::int64_t amount_micro = 0;      // negative: credits and discounts
  std::string note;                   // correction: what it corrects and why; reported: the id of the report
  // What the line is of, beyond what it says; not in canonical_text().
  bool guaranteed = false;   // of the jobs: what they used within guarantees
  bool own = false;          // floor-lent, lending-credit: the borrower is the queue or below it
  std::int64_t percent = 0;  // premium, discount: of the full price
};
// Returns the unit as text: its name, or that which the prices give what is reported.
std::string_view unit_text(const InvoiceLine& line);

// The accounts of one GPU model over the month, thousandths of a GPU times milliseconds. They add up to the capacity:
// each GPU-millisecond of the fleet is in exactly one.
struct FleetAccounts {
  std::string model;
  std::int64_t floor_used = 0;
  std::int64_t floor_idle = 0;
  std::int64_t floor_lent = 0;
  std::int64_t burst = 0;    // used beyond floors, on GPUs that back no floor
  std::int64_t unowned = 0;  // idle, and backs no floor
  std::int64_t drained = 0;  // unused on a node that is cordoned
  std::int64_t failed = 0;   // unused, and the GPU is unhealthy or its node is not in contact
  std::int64_t foreign = 0;  // unused, and others than berth use it
  std::int64_t capacity = 0;
};

struct Invoice {
  std::string number;  // of a closed month, such as 2026-11/research/nlp; empty: the month is not closed
  std::string hash;    // SHA-256 over canonical_text(), 64 hexadecimal digits; empty: not closed
  std::string month;   // 2026-11, in UTC
  Timestamp from;
  Timestamp to;      // the end of the month, or the moment until which it is counted
  Timestamp closed;  // 0: not closed
  std::string cluster;
  std::string queue;  // with all queues below it; empty: the root, and so the whole cluster
  std::string currency;
  std::uint64_t price_version = 0;  // of the price book; 0: one that is not applied
  Seq first_seq = 0;                // the events that it was computed from
  Seq last_seq = 0;
  Timestamp began;                   // of the first event of the cluster; not in canonical_text()
  bool simulated = false;            // some of the GPUs are simulated
  bool partial = false;              // lines that the reader may not see were left out; not in canonical_text()
  std::string unpriced;              // what has no price and so counts as nothing, as rate.h says; not in it either
  std::vector<InvoiceLine> lines;    // by queue, kind, cause, model, slice, unit price, borrower, user, job, from
  std::vector<FleetAccounts> fleet;  // by model; empty unless the queue is the root
  std::int64_t total_micro = 0;      // the sum of the lines
};

// Of a quantity: what one unit used for an hour counts; of a reported one, what one unit counts.
constexpr std::int64_t per_hour(Unit unit) {
  if (unit == Unit::kReported) return 1;
  return unit == Unit::kGibHour ? std::int64_t{1024} * 3'600'000 : std::int64_t{1000} * 3'600'000;
}

// Returns the invoice as text that is equal if and only if the invoices are: one line of tab-separated fields for the
// head, then one for each line and each row of `fleet`. number, hash and closed are not in it.
std::string canonical_text(const Invoice& invoice);

}  // namespace berth::billing

namespace berth {
BERTH_ENUM_NAMES(billing::LineKind, "floor-used", "floor-idle", "floor-lent", "lending-credit", "burst", "premium",
                 "discount", "cpu", "memory", "correction", "reported");
BERTH_ENUM_NAMES(billing::Unit, "gpu-hour", "mig-hour", "core-hour", "gib-hour", "none", "reported");
}  // namespace berth
