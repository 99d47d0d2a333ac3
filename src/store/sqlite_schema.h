#pragma once
// The tables of the log's database, and its row `extent` (extent.h).

#include "store/extent.h"
#include "store/hash_chain.h"
#include "store/log.h"
#include "store/sqlite_connection.h"

namespace berth::store {

inline constexpr std::int64_t kSchemaVersion = 1;

// Prepares the writing connection, and creates the tables if missing. Error kUnsupported: a newer schema. Error
// kInvalid: the database is not a berth log.
Result<void> prepare_writer(Connection& connection);
Result<void> prepare_reader(Connection& connection);

// Selects the columns of the table `extent`, in the order that load_extent reads.
inline constexpr const char* kSelectExtent =
    "SELECT head_seq, epoch, head_hash, anchor_seq, anchor_hash, checksum FROM extent WHERE id = 1";

// Requires: `select_extent` is kSelectExtent prepared. It is stepped and reset.
Result<Extent> load_extent(Statement& select_extent);

}  // namespace berth::store
