#pragma once
// The client's side of one WebSocket, over a connection that libcurl has made (this libcurl speaks none itself). One
// thread. Nothing blocks but upgrade().

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/web_socket.h"

namespace berth::client {

struct Reply;

// The bytes of a connection. `send` and `receive` return how many; 0: not now; an error: it is over. After a 0, `send`
// is called with the same bytes at the same place: TLS has begun to write them, and fails if they have moved.
struct ByteLink {
  int descriptor = -1;
  std::function<Result<std::size_t>(std::string_view bytes)> send;
  std::function<Result<std::size_t>(char* to, std::size_t at_most)> receive;
};

class WebSocketLink {
 public:
  WebSocketLink(ByteLink link, std::size_t limit);

  // Asks for the upgrade. `lines`: headers beyond those of the WebSocket. Error: the server's own words, or what is
  // wrong with the connection.
  Result<void> upgrade(const std::string& path, const std::vector<std::string>& lines, std::string_view protocol,
                       std::chrono::milliseconds patience);

  int descriptor() const { return link_.descriptor; }
  // Not sent yet: wait until the descriptor can be written.
  std::size_t pending_bytes() const { return sending_.size() - sent_ + out_.size(); }

  void send(WebSocketKind kind, std::string_view bytes);  // queues
  Result<void> flush();                                   // sends what the connection takes
  // Returns the next message but pings, which it answers; nothing: none has come yet. Error kUnavailable: the
  // connection is over, also by a kClose.
  Result<std::optional<WebSocketMessage>> receive();

 private:
  Result<bool> read_more();  // false: nothing has come
  bool wait_for(short events, std::chrono::steady_clock::time_point until) const;

  ByteLink link_;
  WebSocketReader reader_;
  std::string sending_;  // stays where it is until it is sent
  std::size_t sent_ = 0;
  std::string out_;   // behind it
  std::string head_;  // of the answer, until it is whole
  bool upgraded_ = false;
};

}  // namespace berth::client
