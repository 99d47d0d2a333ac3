#pragma once
// A WebSocket (RFC 6455) that is joined to a local stream: each of its messages goes, framed, to the stream, and the
// reverse (model/shell_message.h). Rules:
//   1. All happens on the I/O thread of the connection that was upgraded. Nothing blocks.
//   2. What one side does not take is not read from the other, so each direction keeps one message and one read.
//   3. A client that has said nothing for three heartbeats is gone: it is asked by a ping at each, and answers it. One
//      that has not taken what it was sent is waited for, as long as its kernel answers.
//   4. When one side ends, so does the other: of the stream what it has said is sent first.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/http/relay_offer.h"
#include "api/http/transport.h"
#include "base/web_socket.h"
#include "model/shell_message.h"

namespace berth::http {

class Relay : public std::enable_shared_from_this<Relay> {
 public:
  using Clock = std::chrono::steady_clock;

  // `early`: what the client has sent behind its request. `stream`: over a descriptor of its own. `closed`: called
  // once, when both sides are.
  Relay(std::unique_ptr<Transport> client, std::unique_ptr<Transport> stream, std::string early, RelayOffer offer,
        std::chrono::milliseconds heartbeat, std::function<void()> closed);

  void begin();  // sends the answer 101
  void tick(Clock::time_point now);
  void end(std::uint16_t code, std::string_view why);  // says so to the client, and closes within seconds
  void close();

 private:
  void read_client();
  void take_from_client();
  void read_stream();
  void take_from_stream();
  void say(WebSocketKind kind, std::string_view bytes);
  void write_client();
  void write_rest();
  void write_stream();
  void stream_ended();

  std::unique_ptr<Transport> client_;
  std::unique_ptr<Transport> stream_;
  RelayOffer offer_;
  const std::chrono::milliseconds heartbeat_;
  std::function<void()> closed_;
  WebSocketReader client_reader_;
  ShellMessageReader stream_reader_;
  std::string client_in_;
  std::string stream_in_;
  std::string to_client_;  // behind what is being sent
  std::string sending_;
  std::string to_stream_;
  std::size_t client_sent_ = 0;
  std::size_t stream_sent_ = 0;
  bool writing_client_ = false;
  bool writing_stream_ = false;
  bool reading_client_ = false;
  bool reading_stream_ = false;
  bool stream_is_over_ = false;
  bool ending_ = false;       // a close was said to the client
  bool client_left_ = false;  // it has said a close first
  bool is_closed_ = false;
  std::string last_;
  Clock::time_point heard_ = Clock::now();
  Clock::time_point write_began_;
  Clock::time_point next_ping_;
  Clock::time_point deadline_ = Clock::time_point::max();
};

}  // namespace berth::http
