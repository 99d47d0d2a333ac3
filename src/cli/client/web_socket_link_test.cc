#include "cli/client/web_socket_link.h"

#include <doctest/doctest.h>

#include <optional>

using namespace berth;
using namespace berth::client;

TEST_CASE("what a connection has not taken is given to it again from the same place, whatever is sent meanwhile") {
  std::optional<std::string_view> begun;  // what TLS would have begun to write
  bool is_busy = true;
  std::string taken;
  ByteLink bytes;
  bytes.send = [&](std::string_view given) -> Result<std::size_t> {
    if (begun) {
      CHECK(given.data() == begun->data());
      CHECK(given.size() == begun->size());
    }
    begun.reset();
    if (is_busy) {
      begun = given;
      return std::size_t{0};
    }
    const std::size_t count = (given.size() + 1) / 2;
    taken += given.substr(0, count);
    return count;
  };
  WebSocketLink link(bytes, 1024);
  link.send(WebSocketKind::kBinary, "first");
  CHECK(link.flush());
  for (int i = 0; i < 100; ++i) link.send(WebSocketKind::kBinary, std::string(1000, 'x'));
  CHECK(link.flush());
  CHECK(link.pending_bytes() == (6 + 5) + 100 * (8 + 1000));
  is_busy = false;
  CHECK(link.flush());
  CHECK(link.pending_bytes() == 0);
  WebSocketReader reader(true, 1024);
  reader.feed(taken);
  CHECK(reader.next().value()->bytes == "first");
  CHECK(reader.next().value()->bytes == std::string(1000, 'x'));
}
