#pragma once
// The tables of the log's database, and the one row that says where the log begins and ends. That row is what append
// compares and sets; it carries a checksum of its own, because the chain covers records only.

#include "store/hash_chain.h"
#include "store/log.h"
#include "store/sqlite_connection.h"

namespace berth::store {

inline constexpr std::int64_t kSchemaVersion = 1;

// Settings of the connection that writes, and the tables where there are none. kUnsupported for a newer schema,
// kInvalid for a database that is not a berth log.
Result<void> prepare_writer(Connection& connection);
Result<void> prepare_reader(Connection& connection);

struct Extent {
  Head head;
  std::uint64_t anchor_seq = 0;  // the last record that truncate_before dropped, 0 if none
  Hash anchor_hash{};
};

// Columns 0.. of a statement over the table `extent`, in this order.
inline constexpr const char* kSelectExtent =
    "SELECT head_seq, epoch, head_hash, anchor_seq, anchor_hash, checksum FROM extent WHERE id = 1";

Hash checksum_of(const Extent& extent);
// Steps and resets `select_extent`, which is kSelectExtent prepared.
Result<Extent> load_extent(Statement& select_extent);

std::optional<Hash> to_hash(std::optional<std::string_view> bytes);
std::string_view bytes_of(const Hash& hash);

}  // namespace berth::store
