#pragma once
// A log copied from one store to another, as `berth store copy` does: from SQLite to PostgreSQL or back, record by
// record with the same numbers, epochs and hashes, and then compared.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/log.h"

namespace berth::store {

struct TransferReport {
  std::uint64_t records = 0;
  std::uint64_t history_rows = 0;
  Head head;
  std::uint64_t checkpoint = 0;  // the newest one, copied as well; 0: there is none
};

// Copies the log of `from` as of now to `to`, of which one is a data directory and the other postgresql://..., or both
// the same kind. `to` is a database without a log, or a directory without one, which is made if it is missing. Until
// the copy was compared with `from` it is no log that a server opens. Errors: kConflict: `to` has a log; kUnsupported:
// the beginning of `from` was cut off; kCorrupt: `from` is damaged, or the copy differs.
Result<TransferReport> transfer_log(const std::string& from, const std::string& to);

}  // namespace berth::store
