#include "cli/client/server_user.h"

#include <arpa/inet.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include "base/socket_table.h"

namespace berth::client {
namespace {

std::optional<SocketAddress> address_of(const std::string& text) {
  std::array<std::uint8_t, 4> four{};
  if (::inet_pton(AF_INET, text.c_str(), four.data()) == 1) return mapped_address(four);
  SocketAddress six{};
  if (::inet_pton(AF_INET6, text.c_str(), six.data()) == 1) return six;
  return std::nullopt;
}

}  // namespace

std::optional<uid_t> find_stranger(const ConnectionEnds& ends, const std::vector<uid_t>& trusted) {
  const auto server = address_of(ends.server_address);
  const auto client = address_of(ends.client_address);
  if (!server || !client) return std::nullopt;
  const auto is_the_server = [&](const SocketRow& row) {
    if (row.local_port != ends.server_port) return false;
    if (row.listens) return is_reached_by(row.local, *server);
    return row.local == *server && row.remote == *client && row.remote_port == ends.client_port;
  };
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (const SocketRow& row : parse_socket_table(text)) {
      if (is_the_server(row) && std::find(trusted.begin(), trusted.end(), row.uid) == trusted.end()) return row.uid;
    }
  }
  return std::nullopt;
}

std::string name_of_user(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer{};
  ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  const std::string number = "uid " + std::to_string(uid);
  return found == nullptr ? number : "user " + std::string(found->pw_name) + " (" + number + ")";
}

}  // namespace berth::client
