#include "base/web_socket.h"

#include <doctest/doctest.h>

namespace berth {
namespace {

// Returns what the reader says of the bytes: each message as KIND:BYTES, and the error at last.
std::string read_all(WebSocketReader& reader) {
  std::string said;
  while (true) {
    const auto message = reader.next();
    if (!message) return said + "!" + message.error().message;
    if (!*message) return said;
    said += std::to_string(static_cast<int>((*message)->kind)) + ":" + (*message)->bytes + " ";
  }
}

std::string said_of(const std::string& bytes, bool masked, std::size_t limit = 1 << 20) {
  WebSocketReader reader(masked, limit);
  reader.feed(bytes);
  return read_all(reader);
}

TEST_CASE("web socket: the accept key is that of RFC 6455, section 1.3") {
  CHECK_EQ(web_socket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  CHECK(is_web_socket_key("dGhlIHNhbXBsZSBub25jZQ=="));
  for (const char* other : {"", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25j****", "dGhlIHNhbXBsZSBub25jZQ==="})
    CHECK_FALSE(is_web_socket_key(other));
  CHECK_EQ(base64_text("a"), "YQ==");
  CHECK_EQ(base64_text("ab"), "YWI=");
  CHECK_EQ(base64_text("abc"), "YWJj");
}

TEST_CASE("web socket: the frames of RFC 6455, section 5.7, are written and read") {
  CHECK_EQ(web_socket_frame(WebSocketKind::kText, "Hello"), "\x81\x05Hello");
  CHECK_EQ(web_socket_frame(WebSocketKind::kText, "Hello", 0x37fa213d), "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
  CHECK_EQ(said_of("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", true), "1:Hello ");
  CHECK_EQ(said_of(std::string("\x01\x03Hel\x80\x02lo", 9), false), "1:Hello ");
  CHECK_EQ(said_of(std::string("\x89\x05Hello", 7), false), "9:Hello ");
}

TEST_CASE("web socket: a message of any length comes through, in any pieces") {
  for (const std::size_t size : {0UL, 1UL, 125UL, 126UL, 65535UL, 65536UL, 70001UL}) {
    const std::string bytes(size, 'x');
    const std::string frame = web_socket_frame(WebSocketKind::kBinary, bytes, 0x01020304);
    WebSocketReader reader(true, 1 << 20);
    std::string said;
    for (std::size_t at = 0; at < frame.size(); at += 7) {
      reader.feed(std::string_view(frame).substr(at, 7));
      said += read_all(reader);
    }
    CHECK_EQ(said, "2:" + bytes + " ");
  }
}

TEST_CASE("web socket: a control frame may come between the parts of a message") {
  CHECK_EQ(said_of(std::string("\x02\x01"
                               "a"
                               "\x89\x00"
                               "\x80\x01"
                               "b",
                               8),
                   false),
           "9: 2:ab ");
}

TEST_CASE("web socket: what breaks the protocol is refused") {
  const std::pair<std::string, bool> cases[] = {
      {std::string("\x81\x01"
                   "a",
                   3),
       true},                                               // without a mask
      {std::string("\x81\x80\x00\x00\x00\x00", 6), false},  // with one
      {std::string("\xc1\x00", 2), false},                  // a bit of an extension
      {std::string("\x83\x00", 2), false},                  // no known kind
      {std::string("\x09\x00", 2), false},                  // a ping in parts
      {std::string("\x89\x7e\x00\x7e", 4), false},          // a long ping
      {std::string("\x80\x00", 2), false},                  // a part of nothing
      {std::string("\x02\x01"
                   "a"
                   "\x82\x01"
                   "b",
                   6),
       false},  // a message within another one
  };
  for (const auto& [bytes, masked] : cases)
    CHECK_NE(said_of(bytes, masked).find("!the other side breaks"), std::string::npos);
}

TEST_CASE("web socket: a message over the limit is refused before it has come, in parts or whole") {
  CHECK_EQ(said_of(std::string("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10), false, 100),
           "!a WebSocket message is over 100 bytes");
  const std::string half = std::string("\x02\x3c", 2) + std::string(60, 'x');
  CHECK_EQ(said_of(half + std::string("\x80\x3c", 2), false, 100), "!a WebSocket message is over 100 bytes");
}

TEST_CASE("web socket: a close has a code and a text that fits a control frame") {
  CHECK_EQ(close_bytes(kCloseNormal), "\x03\xe8");
  CHECK_EQ(close_bytes(kCloseGoingAway, std::string(200, 'x')).size(), 125);
}

}  // namespace
}  // namespace berth
