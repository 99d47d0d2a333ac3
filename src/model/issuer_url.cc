#include "model/issuer_url.h"

#include <algorithm>

namespace berth {
namespace {

constexpr std::size_t kLongestUrl = 1024;

// The host of "HOST:PORT/PATH", without the brackets of an IPv6 address.
std::string_view host_of(std::string_view rest) {
  rest = rest.substr(0, rest.find('/'));
  if (rest.starts_with("[")) return rest.substr(1, std::min(rest.find(']'), rest.size()) - 1);
  return rest.substr(0, rest.find(':'));
}

bool is_this_machine(std::string_view host) {
  const auto digit_or_dot = [](char c) { return c == '.' || (c >= '0' && c <= '9'); };
  const bool address = host.starts_with("127.") && std::all_of(host.begin(), host.end(), digit_or_dot);
  return host == "localhost" || host == "::1" || address;
}

}  // namespace

std::string flaw_of_issuer_url(std::string_view url) {
  if (url.size() > kLongestUrl) return "the address is longer than " + std::to_string(kLongestUrl) + " bytes";
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!std::all_of(url.begin(), url.end(), visible) || url.find_first_of("?#@\\") != std::string_view::npos)
    return "the address may have no spaces, '?', '#', '@' and '\\'; it is scheme, host and path";
  const bool tls = url.starts_with("https://");
  if (!tls && !url.starts_with("http://")) return "the address must begin with https://";
  const std::string_view host = host_of(url.substr(tls ? 8 : 7));
  if (host.empty()) return "the address has no host";
  if (!tls && !is_this_machine(host)) return "http:// is for this machine alone (127.0.0.1); use https://";
  return {};
}

}  // namespace berth
