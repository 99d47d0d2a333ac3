#pragma once
// The hash chain over the log. To change, drop, insert or reorder a record, all later hashes would have to be
// recomputed, and any single hash that was noted elsewhere reveals that. Integers are hashed as 8 bytes little-endian
// and the payload with its length, so no two records have the same encoding.

#include <string>
#include <string_view>

#include "store/log.h"

namespace berth::store {

Hash sha256(std::string_view bytes);

// Keeps its digest context, because creating one costs as much as hashing a record.
class HashChain {
 public:
  HashChain();
  ~HashChain();
  HashChain(const HashChain&) = delete;
  HashChain& operator=(const HashChain&) = delete;

  Hash next(const Hash& previous, const Record& record);

 private:
  void* digest_;  // EVP_MD_CTX; OpenSSL is not included in headers
};

// Returns the hash of a history row without its cursor.
Hash hash_of(const HistoryRow& row);

std::string to_hex(const Hash& hash);

// kCorrupt, with the sequence number in front: "record 17: ..."
Error corrupt_record(std::uint64_t seq, std::string_view what);

// The checks of append that do not need the stored log.
Result<void> check_batch(std::uint64_t epoch, std::uint64_t first_seq, std::span<const Record> records);
// Returns the error that says whether the epoch or the sequence number was wrong.
Error refused_append(const Head& head, std::uint64_t epoch, std::uint64_t first_seq);
Error not_in_log(std::uint64_t seq, std::uint64_t first, std::uint64_t last);

}  // namespace berth::store
