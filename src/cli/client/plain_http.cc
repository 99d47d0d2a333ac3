#include "cli/client/plain_http.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <memory>
#include <optional>

namespace berth::client {
namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return {};
  std::string found(text);
  curl_free(text);
  return found;
}

bool is_this_machine(std::string host) {
  if (host == "localhost") return true;
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24U) == 127;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  in6_addr six{};
  return ::inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

std::optional<std::string> host_of_plain_http(const std::string& base_url) {
  const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
  if (curl_url_set(url.get(), CURLUPART_URL, base_url.c_str(), CURLU_GUESS_SCHEME) != CURLUE_OK) return std::nullopt;
  if (part_of(url.get(), CURLUPART_SCHEME) != "http") return std::nullopt;
  return part_of(url.get(), CURLUPART_HOST);
}

}  // namespace

bool crosses_network_unencrypted(const std::string& base_url) {
  const auto host = host_of_plain_http(base_url);
  return host && !is_this_machine(*host);
}

bool is_plain_on_this_machine(const std::string& base_url) {
  const auto host = host_of_plain_http(base_url);
  return host && is_this_machine(*host);
}

}  // namespace berth::client
