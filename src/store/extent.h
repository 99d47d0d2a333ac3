#pragma once
// The row of a database that says where its log begins and ends. append compares and sets it. It has a checksum of its
// own, because the chain covers only records.

#include <optional>
#include <string_view>

#include "store/log.h"

namespace berth::store {

struct Extent {
  Head head;
  std::uint64_t anchor_seq = 0;  // the last record that truncate_before dropped, 0 if none
  Hash anchor_hash{};
  bool operator==(const Extent&) const = default;
};

Hash checksum_of(const Extent& extent);

// Returns nullopt where the bytes are no hash.
std::optional<Hash> to_hash(std::optional<std::string_view> bytes);
std::string_view bytes_of(const Hash& hash);

}  // namespace berth::store
