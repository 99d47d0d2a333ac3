#pragma once
// The public keys of an issuer, read from its JSON Web Key Set, and the check of a signature with one of them. Only
// keys for RS256 (2048 bits or more) and ES256 are kept. So neither a secret key nor the text of a public one can serve
// to check an HMAC. libcjose is known here and in own_keys.cc alone.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "identity/token.h"

namespace berth::identity {

class KeySet {
 public:
  // kInvalid if the text is no key set, or has no key that can be used.
  static Result<KeySet> read(std::string_view json);

  // Returns true if there is a key for the token: the one that it names. A token that names none is checked with the
  // only key for its algorithm.
  bool has_key_for(const UnprovedToken& token) const;

  // Returns nothing if the key for the token has signed `text`. Requires `token` to be read from `text`. For any
  // thread.
  Result<void> check_signature(std::string_view text, const UnprovedToken& token) const;

  std::size_t size() const;

 private:
  struct Key;
  struct Keys;
  KeySet() = default;
  const Key* key_for(const UnprovedToken& token) const;
  std::shared_ptr<const Keys> keys_;
};

}  // namespace berth::identity
