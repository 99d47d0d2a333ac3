#include "cli/client/web_socket_link.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <random>
#include <utility>

#include "cli/client/client.h"

namespace berth::client {
namespace {

using LinkClock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kMostHeadBytes = 64 * 1024;
constexpr int kSwitchingProtocols = 101;

std::uint32_t random_word() {
  static std::random_device device;
  return device();
}

std::string random_key_of_socket() {
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t word = random_word();
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((word >> shift) & 0xFF);
  }
  return base64_text(bytes);
}

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

// Takes an answer apart: its head, and the bytes behind it.
Reply reply_of(std::string_view head) {
  Reply reply;
  const std::size_t space = head.find(' ');
  if (space != std::string_view::npos)
    std::from_chars(head.data() + space + 1, head.data() + head.size(), reply.status);
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos && at + 2 < head.size();) {
    const std::size_t end = std::min(head.find("\r\n", at + 2), head.size());
    const std::string_view line = head.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      std::string_view value = line.substr(colon + 1);
      while (value.starts_with(' ')) value.remove_prefix(1);
      reply.headers[lower(line.substr(0, colon))] = value;
    }
    at = end == head.size() ? std::string_view::npos : end;
  }
  return reply;
}

Error lost(const std::string& why) {
  return {ErrorCode::kUnavailable, "the connection to the server was lost: " + why};
}

}  // namespace

WebSocketLink::WebSocketLink(ByteLink link, std::size_t limit) : link_(std::move(link)), reader_(false, limit) {}

bool WebSocketLink::wait_for(short events, LinkClock::time_point until) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - LinkClock::now()).count();
  pollfd waited{link_.descriptor, events, 0};
  return left > 0 && ::poll(&waited, 1, static_cast<int>(left)) > 0;
}

Result<void> WebSocketLink::upgrade(const std::string& path, const std::vector<std::string>& lines,
                                    std::string_view protocol, std::chrono::milliseconds patience) {
  const std::string key = random_key_of_socket();
  out_ = "GET " + path + " HTTP/1.1\r\n";
  for (const std::string& line : lines) out_ += line + "\r\n";
  out_ += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key +
          "\r\nSec-WebSocket-Protocol: " + std::string(protocol) + "\r\n\r\n";
  const auto until = LinkClock::now() + patience;
  const Error silent{ErrorCode::kUnavailable, "the server did not answer in time"};
  while (pending_bytes() > 0) {
    if (auto sent = flush(); !sent) return sent;
    if (pending_bytes() > 0 && !wait_for(POLLOUT, until)) return silent;
  }
  const auto more = [&]() -> Result<void> {
    if (head_.size() > kMostHeadBytes) return lost("its answer is no HTTP");
    const auto read = read_more();
    if (!read) return read.error();
    if (!*read && !wait_for(POLLIN, until)) return silent;
    return {};
  };
  while (head_.find("\r\n\r\n") == std::string::npos) {
    if (auto read = more(); !read) return read;
  }
  const std::size_t end = head_.find("\r\n\r\n");
  Reply reply = reply_of(std::string_view(head_).substr(0, end));
  reply.body = head_.substr(end + 4);
  if (reply.status == kSwitchingProtocols) {
    if (reply.headers["sec-websocket-accept"] != web_socket_accept(key)) return lost("its answer is no WebSocket's");
    upgraded_ = true;
    reader_.feed(reply.body);
    head_.clear();
    return {};
  }
  std::size_t length = 0;
  const std::string& stated = reply.headers["content-length"];
  std::from_chars(stated.data(), stated.data() + stated.size(), length);
  while (head_.size() < end + 4 + std::min(length, kMostHeadBytes)) {
    if (!more()) break;  // what has come says enough
  }
  reply.body = head_.substr(end + 4);
  return error_of(reply);
}

void WebSocketLink::send(WebSocketKind kind, std::string_view bytes) {
  out_ += web_socket_frame(kind, bytes, random_word());
}

Result<void> WebSocketLink::flush() {
  while (true) {
    if (sent_ == sending_.size()) {
      sending_ = std::exchange(out_, {});
      sent_ = 0;
      if (sending_.empty()) return {};
    }
    const auto count = link_.send(std::string_view(sending_).substr(sent_));
    if (!count) return count.error();
    if (*count == 0) return {};
    sent_ += *count;
  }
}

Result<bool> WebSocketLink::read_more() {
  std::array<char, kReadBytes> buffer;
  const auto count = link_.receive(buffer.data(), buffer.size());
  if (!count) return count.error();
  if (*count == 0) return false;
  if (upgraded_) {
    reader_.feed({buffer.data(), *count});
  } else {
    head_.append(buffer.data(), *count);
  }
  return true;
}

Result<std::optional<WebSocketMessage>> WebSocketLink::receive() {
  while (true) {
    auto message = reader_.next();
    if (!message) return message.error();
    if (!*message) {
      const auto more = read_more();
      if (!more) return more.error();
      if (!*more) return std::optional<WebSocketMessage>();
      continue;
    }
    if ((*message)->kind == WebSocketKind::kClose)
      return lost((*message)->bytes.size() > 2 ? (*message)->bytes.substr(2) : "it was closed");
    if ((*message)->kind == WebSocketKind::kPing) {
      send(WebSocketKind::kPong, (*message)->bytes);
      if (auto sent = flush(); !sent) return sent.error();
      continue;
    }
    if ((*message)->kind != WebSocketKind::kPong) return message;
  }
}

}  // namespace berth::client
