#include "backend/local/master_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "executor/descriptor.h"
#include "executor/state_file.h"

namespace berth::backend {

namespace {

constexpr std::size_t kLargestPortFile = 16;

// Returns the port that a socket on all addresses got, or nothing if it is in use. `port` 0: any that is free. As
// servers do, it passes over connections that have ended.
std::optional<int> try_to_listen(int family, int port) {
  const executor::Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return port;  // without this family nothing can listen there
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_storage address{};
  socklen_t length = 0;
  if (family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    auto& six = reinterpret_cast<sockaddr_in6&>(address);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(static_cast<std::uint16_t>(port));
    length = sizeof six;
  } else {
    auto& four = reinterpret_cast<sockaddr_in&>(address);
    four.sin_family = AF_INET;
    four.sin_port = htons(static_cast<std::uint16_t>(port));
    length = sizeof four;
  }
  auto* const bound = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), bound, length) != 0) return errno == EADDRINUSE ? std::nullopt : std::optional(port);
  if (::listen(socket.get(), 1) != 0) return std::nullopt;
  if (port != 0) return port;
  if (::getsockname(socket.get(), bound, &length) != 0) return std::nullopt;
  return ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// Returns a free port of the range that the kernel takes from for port 0: the control plane gives no gang one of it.
std::optional<int> find_free_port() {
  constexpr int kTries = 20;
  for (int tries = 0; tries < kTries; ++tries) {
    const auto port = try_to_listen(AF_INET, 0);
    if (port && *port != 0 && is_free_port(*port)) return port;
  }
  return std::nullopt;
}

std::optional<int> read_port(const std::string& text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || port < 1 || port > 65'535) return std::nullopt;
  return port;
}

// The one that an earlier task of the attempt got, else the wanted one, else another that is free.
Result<int> choose_port(int wanted, const std::string& file) {
  if (const auto text = executor::read_state_file(file, kLargestPortFile)) {
    if (const auto known = read_port(*text)) return *known;
  }
  int port = wanted;
  if (!is_free_port(wanted)) {
    const auto other = find_free_port();
    if (!other)
      return Error{ErrorCode::kIo,
                   "MASTER_PORT " + std::to_string(wanted) + " is in use on this machine, and no other port is free"};
    port = *other;
  }
  const std::string directory = file.substr(0, file.rfind('/'));
  if (auto made = executor::make_directories(directory, 0700); !made) return made.error();
  if (auto written = executor::replace_state_file(file, std::to_string(port) + "\n"); !written) return written.error();
  return port;
}

// Launchers of berth's own have it as "--master_port" PORT, or as "--rdzv_endpoint" ADDRESS:PORT.
void replace_in_launcher(std::vector<std::string>& command, const std::string& from, const std::string& to) {
  for (std::size_t i = 0; i + 1 < command.size(); ++i) {
    std::string& value = command[i + 1];
    if (command[i] == "--master_port" && value == from) {
      value = to;
      return;
    }
    if (command[i] == "--rdzv_endpoint" && value.ends_with(":" + from)) {
      value = value.substr(0, value.size() - from.size()) + to;
      return;
    }
  }
}

}  // namespace

bool is_free_port(int port) { return try_to_listen(AF_INET, port) && try_to_listen(AF_INET6, port); }

Result<void> take_master_port(StartTask& start, const std::string& file) {
  // The job's own variables come first, then those of the task, and at last those of a gang.
  const auto variable = std::find_if(start.env.rbegin(), start.env.rend(), [](const auto& one) {
    return one.first == "MASTER_PORT" || one.first == "BERTH_TASK";
  });
  if (variable == start.env.rend() || variable->first != "MASTER_PORT") return {};
  const auto wanted = read_port(variable->second);
  if (!wanted) return {};
  const auto port = choose_port(*wanted, file);
  if (!port) return port.error();
  if (*port == *wanted) return {};
  const std::string from = variable->second;
  variable->second = std::to_string(*port);
  replace_in_launcher(start.command, from, variable->second);
  return {};
}

}  // namespace berth::backend
