#pragma once
// Who is at the other end of a connection, as the connection itself proves it: by a client certificate, or by the
// credentials that the kernel gives of the peer of a Unix socket. A token that a request carries goes before it.

#include <string>
#include <string_view>

#include "base/timestamp.h"

namespace berth::http {

struct Peer {
  std::string subject = {};             // `cert:spiffe://corp/ci`, `user:ada`; empty: nobody is proved
  std::string user = {};                // the owner of the jobs that it submits
  std::string_view proof = {};          // kByCertificate or kBySocket
  bool is_admin = false;                // root, or the server's own user, on the Unix socket
  Timestamp ends = Timestamp::never();  // of the certificate
  std::string address = {};             // "127.0.0.1:40112"; "unix" on the Unix socket
  std::string refusal = {};             // why nobody is proved, for an answer to that peer
};

// How a request was authenticated.
inline constexpr std::string_view kByToken = "token";
inline constexpr std::string_view kByCertificate = "certificate";
inline constexpr std::string_view kBySocket = "socket";
inline constexpr std::string_view kBySession = "session";  // signed in on the web page
inline constexpr std::string_view kByIssuer = "issuer";    // a signed token of an identity provider
inline constexpr std::string_view kByJob = "job-token";    // the token of a running job

// What carries a connection.
enum class Carrier : std::uint8_t { kPlain, kTls, kSocket };
inline constexpr std::string_view name_of(Carrier carrier) {
  return carrier == Carrier::kTls ? "tls" : carrier == Carrier::kSocket ? "unix-socket" : "plain";
}

}  // namespace berth::http
