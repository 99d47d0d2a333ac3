#pragma once
// Bearer tokens and whose they are. Tokens are kept and compared as SHA-256 digests in constant time, so that neither
// the time of a comparison nor a dump of the table gives a token away.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/peer.h"
#include "base/result.h"
#include "policy/authorize.h"

namespace berth::http {

using TokenDigest = std::array<std::uint8_t, 32>;
TokenDigest digest_of(std::string_view token);
// 64 hexadecimal digits.
std::string text_of(const TokenDigest& digest);

// Whose request it is.
struct Identification {
  std::optional<policy::Subject> subject = {};
  std::string refusal = {};  // what is wrong with a signed token, for its bearer
  // Of a session of the web page: what the header X-Berth-Change of a change must be. Pages of other sites cannot know
  // it, though the browser sends the cookie with what they make it ask.
  std::string change_token = {};
  // Set if that is not known yet, because the keys of its issuer are being fetched: calls back once when it is time to
  // ask again, from any thread.
  std::function<void(std::function<void()>)> until_known = {};
};

class Authenticator {
 public:
  // Finds tokens beyond those that were added: those of the state. Called on I/O threads.
  using Lookup = std::function<std::optional<policy::Subject>(const TokenDigest&)>;
  void look_up_by(Lookup lookup) { lookup_ = std::move(lookup); }

  // Finds running jobs by their tokens. Called on I/O threads; must not block.
  using JobLookup = std::function<std::optional<policy::Subject>(std::string_view token)>;
  void look_up_jobs_by(JobLookup lookup) { job_lookup_ = std::move(lookup); }

  // Finds the roles of a peer that its connection proves. Called on I/O threads.
  using PeerLookup = std::function<std::optional<policy::Subject>(const Peer&)>;
  void look_up_peers_by(PeerLookup lookup) { peer_lookup_ = std::move(lookup); }

  // Proves signed tokens (HEADER.CLAIMS.SIGNATURE). Called on I/O threads; must not block.
  using Verify = std::function<Identification(std::string_view token, const TokenDigest&)>;
  void verify_signed_by(Verify verify) { verify_ = std::move(verify); }

  // Finds sessions of the web page by the Cookie header. Called on I/O threads; must not block.
  using SessionLookup = std::function<Identification(std::string_view cookies)>;
  void look_up_sessions_by(SessionLookup lookup) { session_lookup_ = std::move(lookup); }

  // Several tokens may name one subject. Tokens shorter than 16 bytes are refused.
  Result<void> add(std::string_view token, policy::Subject subject);

  // The subject of an Authorization header ("Bearer <token>"), or nothing.
  std::optional<policy::Subject> subject_of(std::string_view authorization) const;

  // Whose request it is, and by what proof: the token where there is an Authorization header, good or not; else the
  // session of its cookie, if there is one; else the peer of the connection.
  Identification identify(std::string_view authorization, std::string_view cookies, const Peer& peer) const;

 private:
  struct Entry {
    TokenDigest digest;
    policy::Subject subject;
  };
  std::vector<Entry> entries_;
  Lookup lookup_;
  JobLookup job_lookup_;
  PeerLookup peer_lookup_;
  Verify verify_;
  SessionLookup session_lookup_;

  Identification bearer_of(std::string_view authorization) const;
};

// Returns a new token: 256 random bits in hexadecimal.
Result<std::string> random_token();

// Reads the token file (64 hex digits), or creates it with mode 0600 and 256 random bits. A file that others may read
// or write, that belongs to another user, is no plain file, or holds something else is refused with what to do about
// it.
Result<std::string> load_or_create_token(const std::string& path);

}  // namespace berth::http
