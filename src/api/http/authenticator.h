#pragma once
// Bearer tokens and whose they are. Tokens are kept and compared as SHA-256 digests in constant time, so that neither
// the time of a comparison nor a dump of the table gives a token away.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::http {

class Authenticator {
 public:
  // Several tokens may name one subject. Tokens shorter than 16 bytes are refused.
  Result<void> add(std::string_view token, std::string subject);

  // The subject of an Authorization header ("Bearer <token>"), or nothing.
  std::optional<std::string> subject_of(std::string_view authorization) const;

 private:
  struct Entry {
    std::array<std::uint8_t, 32> digest;
    std::string subject;
  };
  std::vector<Entry> entries_;
};

// Reads the token file (64 hex digits), or creates it with mode 0600 and 256 random bits. A file that others may read
// or write, that belongs to another user, is no plain file, or holds something else is refused with what to do about
// it.
Result<std::string> load_or_create_token(const std::string& path);

}  // namespace berth::http
