#include "base/web_socket.h"

#include <algorithm>
#include <boost/uuid/detail/sha1.hpp>

namespace berth {
namespace {

constexpr std::string_view kAcceptSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455, section 1.3
constexpr std::uint8_t kContinuation = 0;
constexpr std::uint8_t kFinal = 0x80;
constexpr std::uint8_t kMasked = 0x80;
constexpr std::size_t kMostControlBytes = 125;
constexpr std::size_t kLongestHead = 14;

std::uint8_t byte_at(std::string_view bytes, std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); }

void append_big_endian(std::string& to, std::uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) to += static_cast<char>((number >> shift) & 0xFF);
}

void apply_mask(std::string& bytes, std::size_t from, std::string_view mask) {
  for (std::size_t i = from; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(byte_at(bytes, i) ^ byte_at(mask, (i - from) % 4));
}

bool is_control(std::uint8_t code) { return (code & 0x8) != 0; }

bool is_known(std::uint8_t code) {
  return code == kContinuation || code == static_cast<std::uint8_t>(WebSocketKind::kText) ||
         code == static_cast<std::uint8_t>(WebSocketKind::kBinary) ||
         (code >= static_cast<std::uint8_t>(WebSocketKind::kClose) &&
          code <= static_cast<std::uint8_t>(WebSocketKind::kPong));
}

// The head of a frame, once it has arrived.
struct FrameHead {
  bool final = false;
  std::uint8_t code = 0;
  std::size_t head_bytes = 0;  // the mask included
  std::uint64_t bytes = 0;
};

std::optional<FrameHead> head_of(std::string_view received) {
  if (received.size() < 2) return std::nullopt;
  FrameHead head;
  head.final = (byte_at(received, 0) & kFinal) != 0;
  head.code = byte_at(received, 0) & 0x0F;
  head.bytes = byte_at(received, 1) & 0x7F;
  const std::size_t longer = head.bytes == 126 ? 2 : head.bytes == 127 ? 8 : 0;
  const bool masked = (byte_at(received, 1) & kMasked) != 0;
  head.head_bytes = 2 + longer + (masked ? 4 : 0);
  if (received.size() < head.head_bytes) return std::nullopt;
  if (longer > 0) head.bytes = 0;
  for (std::size_t i = 0; i < longer; ++i) head.bytes = head.bytes << 8 | byte_at(received, 2 + i);
  return head;
}

Error broken(const std::string& what) { return invalid("the other side breaks the WebSocket protocol: " + what); }

}  // namespace

std::string close_bytes(std::uint16_t code, std::string_view text) {
  std::string bytes;
  append_big_endian(bytes, code, 2);
  bytes += text.substr(0, kMostControlBytes - 2);
  return bytes;
}

std::string web_socket_frame(WebSocketKind kind, std::string_view bytes, std::optional<std::uint32_t> mask) {
  std::string frame;
  frame.reserve(bytes.size() + kLongestHead);
  frame += static_cast<char>(kFinal | static_cast<std::uint8_t>(kind));
  const std::uint8_t bit = mask ? kMasked : 0;
  if (bytes.size() < 126) {
    frame += static_cast<char>(bit | bytes.size());
  } else if (bytes.size() <= 0xFFFF) {
    frame += static_cast<char>(bit | 126);
    append_big_endian(frame, bytes.size(), 2);
  } else {
    frame += static_cast<char>(bit | 127);
    append_big_endian(frame, bytes.size(), 8);
  }
  std::string key;
  if (mask) append_big_endian(key, *mask, 4);
  frame += key;
  const std::size_t from = frame.size();
  frame += bytes;
  if (mask) apply_mask(frame, from, key);
  return frame;
}

Result<std::optional<WebSocketMessage>> WebSocketReader::next() {
  using Answer = std::optional<WebSocketMessage>;
  while (true) {
    const auto head = head_of(received_);
    if (received_.size() >= 2) {  // what the first bytes say already
      const std::uint8_t first = byte_at(received_, 0);
      const std::uint8_t code = first & 0x0F;
      if ((first & 0x70) != 0 || !is_known(code)) return broken("a frame of no known kind");
      if (((byte_at(received_, 1) & kMasked) != 0) != masked_)
        return broken(masked_ ? "a frame without a mask" : "a frame with a mask");
      if (is_control(code) && ((first & kFinal) == 0 || (byte_at(received_, 1) & 0x7F) > kMostControlBytes))
        return broken("a control frame that is long or in parts");
      if (!is_control(code) && (code == kContinuation) != begun_.has_value())
        return broken("a message within another one");
    }
    if (!head) return Answer();
    const std::size_t before = begun_ && !is_control(head->code) ? begun_->bytes.size() : 0;
    if (head->bytes > limit_ || before + head->bytes > limit_)
      return Error{ErrorCode::kTooLarge, "a WebSocket message is over " + std::to_string(limit_) + " bytes"};
    const auto size = static_cast<std::size_t>(head->bytes);
    if (received_.size() - head->head_bytes < size) return Answer();
    std::string bytes = received_.substr(head->head_bytes, size);
    if (masked_) apply_mask(bytes, 0, std::string_view(received_).substr(head->head_bytes - 4, 4));
    received_.erase(0, head->head_bytes + size);
    if (is_control(head->code)) return Answer({static_cast<WebSocketKind>(head->code), std::move(bytes)});
    if (head->code != kContinuation) begun_.emplace(WebSocketMessage{static_cast<WebSocketKind>(head->code), {}});
    begun_->bytes += bytes;
    if (!head->final) continue;
    Answer whole = std::move(begun_);
    begun_.reset();
    return whole;
  }
}

std::string base64_text(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (i < count ? byte_at(bytes, at + i) : 0U);
    for (std::size_t digit = 0; digit < 4; ++digit)
      text += digit <= count ? kDigits[(group >> (18 - 6 * digit)) & 63] : '=';
  }
  return text;
}

std::string web_socket_accept(std::string_view key) {
  boost::uuids::detail::sha1 hash;
  hash.process_bytes(key.data(), key.size());
  hash.process_bytes(kAcceptSuffix.data(), kAcceptSuffix.size());
  unsigned int words[5];
  hash.get_digest(words);
  std::string digest;
  for (const unsigned int word : words) append_big_endian(digest, word, 4);
  return base64_text(digest);
}

bool is_web_socket_key(std::string_view key) {
  return key.size() == 24 && key.ends_with("==") && std::all_of(key.begin(), key.end() - 2, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
         });
}

}  // namespace berth
