#pragma once
// The tables of the log's database, and the single row (extent) that says where the log begins and ends. append
// compares and sets that row. It has a checksum of its own, because the chain covers only records.

#include "store/hash_chain.h"
#include "store/log.h"
#include "store/sqlite_connection.h"

namespace berth::store {

inline constexpr std::int64_t kSchemaVersion = 1;

// Prepares the writing connection, and creates the tables if missing. Error kUnsupported: a newer schema. Error
// kInvalid: the database is not a berth log.
Result<void> prepare_writer(Connection& connection);
Result<void> prepare_reader(Connection& connection);

struct Extent {
  Head head;
  std::uint64_t anchor_seq = 0;  // the last record that truncate_before dropped, 0 if none
  Hash anchor_hash{};
};

// Selects the columns of the table `extent`, in the order that load_extent reads.
inline constexpr const char* kSelectExtent =
    "SELECT head_seq, epoch, head_hash, anchor_seq, anchor_hash, checksum FROM extent WHERE id = 1";

Hash checksum_of(const Extent& extent);
// Requires: `select_extent` is kSelectExtent prepared. It is stepped and reset.
Result<Extent> load_extent(Statement& select_extent);

std::optional<Hash> to_hash(std::optional<std::string_view> bytes);
std::string_view bytes_of(const Hash& hash);

}  // namespace berth::store
