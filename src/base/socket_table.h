#pragma once
// The kernel's table of TCP sockets, as /proc/net/tcp and /proc/net/tcp6 show it: who listens where. Pure: the text is
// an argument.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

// An IPv6 address, or an IPv4 one in its mapped form (::ffff:127.0.0.1).
using SocketAddress = std::array<std::uint8_t, 16>;

struct SocketRow {
  SocketAddress local{};
  std::uint16_t local_port = 0;
  SocketAddress remote{};
  std::uint16_t remote_port = 0;
  bool listens = false;
  std::uint32_t uid = 0;
};

// Returns the rows that can be read; others, as the heading, are passed over.
std::vector<SocketRow> parse_socket_table(std::string_view text);

// Returns the mapped form of four bytes in their order on the network.
SocketAddress mapped_address(const std::array<std::uint8_t, 4>& four);

// Returns true if what connects to the address may reach a listener that is bound to `bound`: the same address, or all.
bool is_reached_by(const SocketAddress& bound, const SocketAddress& address);

}  // namespace berth
