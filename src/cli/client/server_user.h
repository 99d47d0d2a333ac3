#pragma once
// Whose process is at the other end of a connection within this machine. A port of loopback may be anybody's: a job
// that listens there while the server is away would get the token of the next command.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::client {

// The two ends of a connection, as libcurl names them.
struct ConnectionEnds {
  std::string server_address;
  std::uint16_t server_port = 0;
  std::string client_address;
  std::uint16_t client_port = 0;
};

// Returns the first user that listens on the server's end, or has it, and is none of `trusted`. Nothing: there is none,
// or the server is not in this machine (or in another network namespace of it, as a container has).
std::optional<uid_t> find_stranger(const ConnectionEnds& ends, const std::vector<uid_t>& trusted);

// Returns "user mallory (uid 1001)", or "uid 50003".
std::string name_of_user(uid_t uid);

}  // namespace berth::client
