#include "store/hash_chain.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/check.h"

namespace berth::store {

namespace {

EVP_MD_CTX* context(void* digest) { return static_cast<EVP_MD_CTX*>(digest); }

// Fetched once: the implicit fetch of EVP_sha256() takes a lock and a look-up each time.
const EVP_MD* sha256_method() {
  static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  BERTH_CHECK(method != nullptr);
  return method;
}

template <std::size_t n>
void put(std::array<std::uint8_t, n>& out, std::size_t& at, std::uint64_t value) {
  for (unsigned shift = 0; shift < 64; shift += 8) out[at++] = static_cast<std::uint8_t>(value >> shift);
}

Hash finish(EVP_MD_CTX* digest) {
  Hash hash;
  unsigned length = 0;
  BERTH_CHECK(EVP_DigestFinal_ex(digest, hash.data(), &length) == 1);
  BERTH_CHECK(length == hash.size());
  return hash;
}

}  // namespace

HashChain::HashChain() : digest_(EVP_MD_CTX_new()) { BERTH_CHECK(digest_ != nullptr); }
HashChain::~HashChain() { EVP_MD_CTX_free(context(digest_)); }

Hash HashChain::next(const Hash& previous, const Record& record) {
  std::array<std::uint8_t, 6 * 8> fields;
  std::size_t at = 0;
  put(fields, at, record.seq);
  put(fields, at, record.epoch);
  put(fields, at, static_cast<std::uint64_t>(record.time.ms));
  put(fields, at, record.kind);
  put(fields, at, record.version);
  put(fields, at, record.payload.size());
  EVP_MD_CTX* const digest = context(digest_);
  BERTH_CHECK(EVP_DigestInit_ex(digest, sha256_method(), nullptr) == 1);
  BERTH_CHECK(EVP_DigestUpdate(digest, previous.data(), previous.size()) == 1);
  BERTH_CHECK(EVP_DigestUpdate(digest, fields.data(), fields.size()) == 1);
  BERTH_CHECK(EVP_DigestUpdate(digest, record.payload.data(), record.payload.size()) == 1);
  return finish(digest);
}

Hash sha256(std::string_view bytes) {
  Hash hash;
  unsigned length = 0;
  BERTH_CHECK(EVP_Digest(bytes.data(), bytes.size(), hash.data(), &length, sha256_method(), nullptr) == 1);
  BERTH_CHECK(length == hash.size());
  return hash;
}

Hash hash_of(const HistoryRow& row) {
  HashChain chain;
  return chain.next(Hash{}, {row.job_id, 0, row.finished, 0, 0, row.bytes});
}

std::string to_hex(const Hash& hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : hash) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

Error corrupt_record(std::uint64_t seq, std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("record {}: {}", seq, what)};
}

Result<void> check_batch(std::uint64_t epoch, std::uint64_t first_seq, std::span<const Record> records) {
  if (records.empty()) return invalid("append: the batch has no record");
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].seq != first_seq + i) {
      return invalid(fmt::format("append: record {} of the batch carries sequence number {} instead of {}", i,
                                 records[i].seq, first_seq + i));
    }
    if (records[i].epoch != epoch) {
      return invalid(fmt::format("append: record {} carries epoch {} in a batch of epoch {}", records[i].seq,
                                 records[i].epoch, epoch));
    }
  }
  return {};
}

Error refused_append(const Head& head, std::uint64_t epoch, std::uint64_t first_seq) {
  if (epoch != head.epoch) {
    return conflict(
        fmt::format("append: epoch {} is not in force; it is {}: another writer has taken over", epoch, head.epoch));
  }
  return conflict(fmt::format("append: the batch begins at {}, but the log ends at {}", first_seq, head.seq));
}

Error not_in_log(std::uint64_t seq, std::uint64_t first, std::uint64_t last) {
  return not_found(fmt::format("record {} is not in the log, which holds {} to {}", seq, first, last));
}

}  // namespace berth::store
