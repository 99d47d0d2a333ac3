#include "api/http/gate.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace berth::http {

std::string address_of(std::string_view peer) {
  const std::size_t colon = peer.rfind(':');
  if (colon == std::string_view::npos) return std::string(peer);
  std::string host(peer.substr(0, colon));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  in6_addr address{};
  if (::inet_pton(AF_INET6, host.c_str(), &address) != 1) return host;
  if (IN6_IS_ADDR_V4MAPPED(&address) || IN6_IS_ADDR_LOOPBACK(&address)) return host;
  std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr), std::uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(AF_INET6, &address, text.data(), text.size()) == nullptr ? host : text.data();
}

}  // namespace berth::http
