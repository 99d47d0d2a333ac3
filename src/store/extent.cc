#include "store/extent.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/hash_chain.h"

namespace berth::store {

std::string_view bytes_of(const Hash& hash) { return {reinterpret_cast<const char*>(hash.data()), hash.size()}; }

std::optional<Hash> to_hash(std::optional<std::string_view> bytes) {
  Hash hash;
  if (!bytes || bytes->size() != hash.size()) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), hash.begin());
  return hash;
}

Hash checksum_of(const Extent& extent) {
  return sha256(fmt::format("{} {} {} {} {}", extent.head.seq, extent.head.epoch, to_hex(extent.head.hash),
                            extent.anchor_seq, to_hex(extent.anchor_hash)));
}

}  // namespace berth::store
