#pragma once
// The lines of an invoice that are rounded together, and those whose amounts are taken off (billing/invoice.h).

#include <tuple>

#include "billing/invoice.h"

namespace berth::billing {

inline auto group_key(const InvoiceLine& line) {
  return std::tie(line.queue, line.kind, line.cause, line.model, line.slice, line.unit, line.reported_unit,
                  line.unit_price_micro);
}

inline bool is_negative(LineKind kind) { return kind == LineKind::kLendingCredit || kind == LineKind::kDiscount; }

}  // namespace berth::billing
