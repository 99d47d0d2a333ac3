#pragma once
// Frames of WebSocket (RFC 6455) as bytes, for both sides; no socket, no clock, no randomness. Extensions are not
// agreed to, so their bits are refused. The server, the command line and, towards an API server, a backend use it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

enum class WebSocketKind : std::uint8_t { kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };

struct WebSocketMessage {
  WebSocketKind kind = WebSocketKind::kBinary;
  std::string bytes;  // of kClose: two bytes of a code, and a text; or nothing
};

// Codes of kClose (RFC 6455, section 7.4.1).
inline constexpr std::uint16_t kCloseNormal = 1000;
inline constexpr std::uint16_t kCloseGoingAway = 1001;
inline constexpr std::uint16_t kCloseProtocolError = 1002;

// Returns the payload of a kClose.
std::string close_bytes(std::uint16_t code, std::string_view text = {});

// Returns one unfragmented frame. `mask`: random, and required of a client; a server sends none.
std::string web_socket_frame(WebSocketKind kind, std::string_view bytes, std::optional<std::uint32_t> mask = {});

// Puts messages together from what arrives, in any pieces.
class WebSocketReader {
 public:
  // `masked`: whether the sender masks its frames, as clients must and servers must not. `limit`: of a whole message.
  WebSocketReader(bool masked, std::size_t limit) : masked_(masked), limit_(limit) {}

  void feed(std::string_view bytes) { received_ += bytes; }
  // Returns the next whole message, or nothing yet. Error: the sender breaks the protocol; nothing more can be read.
  Result<std::optional<WebSocketMessage>> next();

 private:
  const bool masked_;
  const std::size_t limit_;
  std::string received_;
  std::optional<WebSocketMessage> begun_;  // of a fragmented message
};

// Returns what a server answers in Sec-WebSocket-Accept to a client's Sec-WebSocket-Key.
std::string web_socket_accept(std::string_view key);

// Returns true if it is a key: 16 bytes in base64.
bool is_web_socket_key(std::string_view key);

// Returns base64 with padding (RFC 4648, section 4).
std::string base64_text(std::string_view bytes);

}  // namespace berth
