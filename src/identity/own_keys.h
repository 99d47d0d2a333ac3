#pragma once
// The keys that this server signs with, so that others can verify which job speaks to them (docs/job-identity.md). They
// are in one file of mode 0600, with the secret that tokens of jobs are made of. It is made at the first start.
//
// Signed is with the newest key, by RS256: every OpenID Connect client has it. An earlier key stays public until the
// tokens that it has signed have ended. Times are arguments.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"

namespace berth::identity {

class OwnKeys {
 public:
  // Reads the file, or makes it with the first key. A file that others may read or write, that belongs to another user,
  // or that holds something else is refused with what to do about it.
  static Result<OwnKeys> load_or_create(const std::string& path, Timestamp now);
  // Returns the error with which load_or_create would refuse the file; a file that is not there is none. Changes
  // nothing.
  static Result<void> check(const std::string& path);
  ~OwnKeys();
  OwnKeys(OwnKeys&&) noexcept;
  OwnKeys& operator=(OwnKeys&&) noexcept;

  // Returns a JWT of these claims (JSON text) in compact form.
  Result<std::string> sign(const std::string& claims) const;

  // Returns the JSON Web Key Set of the keys whose tokens may be good at `now`.
  std::string published(Timestamp now) const;

  // Adds a key, which is the newest from then on. Returns its id, once it is in the file. With `withdraw` the earlier
  // ones are forgotten at once.
  Result<std::string> rotate(Timestamp now, bool withdraw);

  // What tokens of jobs are made of (job_token.h).
  const std::string& job_secret() const { return job_secret_; }

 private:
  struct Key;
  OwnKeys();
  Result<void> read(const std::string& text);
  std::string text() const;
  bool is_published(std::size_t index, Timestamp now) const;

  std::string path_;
  std::string job_secret_;
  std::vector<Key> keys_;  // the newest first
};

// Returns 32 random bytes in hexadecimal.
Result<std::string> random_hex();

}  // namespace berth::identity
