#include "api/http/relay.h"

#include <utility>

namespace berth::http {
namespace {

using boost::system::error_code;

constexpr std::size_t kMostLast = 4 * 1024;  // of the last message that is kept
constexpr std::size_t kMostToClient = 4 * kMostShellBytes;
constexpr int kSilentHeartbeats = 3;
constexpr std::chrono::seconds kClosingTime{2};

}  // namespace

Relay::Relay(std::unique_ptr<Transport> client, std::unique_ptr<Transport> stream, std::string early, RelayOffer offer,
             std::chrono::milliseconds heartbeat, std::function<void()> closed)
    : client_(std::move(client)),
      stream_(std::move(stream)),
      offer_(std::move(offer)),
      heartbeat_(heartbeat),
      closed_(std::move(closed)),
      client_reader_(true, kMostShellBytes),
      next_ping_(Clock::now() + heartbeat) {
  client_reader_.feed(early);
  client_in_.resize(kShellChunkBytes);
  stream_in_.resize(kShellChunkBytes);
}

void Relay::begin() {
  to_client_ =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
      web_socket_accept(offer_.key) + "\r\nSec-WebSocket-Protocol: " + offer_.protocol + "\r\n\r\n";
  write_client();
  take_from_client();
  read_stream();
}

// --- From the client to the stream.

void Relay::read_client() {
  if (std::exchange(reading_client_, true)) return;
  client_->read(client_in_.data(), client_in_.size(), [self = shared_from_this()](error_code ec, std::size_t count) {
    self->reading_client_ = false;
    if (self->is_closed_) return;
    if (ec) return self->close();
    self->heard_ = Clock::now();
    self->client_reader_.feed({self->client_in_.data(), count});
    self->take_from_client();
  });
}

// Goes on when the stream has taken what it was given.
void Relay::take_from_client() {
  while (to_stream_.empty()) {
    auto message = client_reader_.next();
    if (!message) return end(kCloseProtocolError, message.error().message);
    if (!*message) return read_client();
    switch ((*message)->kind) {
      case WebSocketKind::kText:
        return end(kCloseProtocolError, "messages are binary");
      case WebSocketKind::kBinary: {
        const auto channel = channel_of((*message)->bytes);
        if (!channel || *channel == ShellChannel::kBegin) return end(kCloseProtocolError, "no such channel");
        if (!stream_is_over_ && !ending_) to_stream_ = framed((*message)->bytes);
        break;
      }
      case WebSocketKind::kPing:
        say(WebSocketKind::kPong, (*message)->bytes);
        break;
      case WebSocketKind::kPong:
        break;
      case WebSocketKind::kClose:
        if (ending_) return close();
        client_left_ = true;
        return end(kCloseNormal, {});
    }
  }
  write_stream();
}

void Relay::write_stream() {
  if (writing_stream_) return;
  writing_stream_ = true;
  stream_->write(to_stream_.data() + stream_sent_, to_stream_.size() - stream_sent_,
                 [self = shared_from_this()](error_code ec, std::size_t count) {
                   self->writing_stream_ = false;
                   if (self->is_closed_) return;
                   self->stream_sent_ += count;
                   if (!ec && self->stream_sent_ < self->to_stream_.size()) return self->write_stream();
                   self->heard_ = Clock::now();  // it could not be heard meanwhile
                   self->to_stream_.clear();  // also what a stream that has ended does not take: its end is being read
                   self->stream_sent_ = 0;
                   self->take_from_client();
                 });
}

// --- From the stream to the client.

void Relay::read_stream() {
  if (reading_stream_ || stream_is_over_) return;
  reading_stream_ = true;
  stream_->read(stream_in_.data(), stream_in_.size(), [self = shared_from_this()](error_code ec, std::size_t count) {
    self->reading_stream_ = false;
    if (self->is_closed_) return;
    if (ec) return self->stream_ended();
    self->stream_reader_.feed({self->stream_in_.data(), count});
    self->take_from_stream();
  });
}

void Relay::take_from_stream() {
  while (true) {
    auto message = stream_reader_.next();
    if (!message) return stream_ended();
    if (!*message) break;
    last_ = (*message)->size() <= kMostLast ? **message : std::string();
    if (!ending_) say(WebSocketKind::kBinary, **message);
  }
  if (!writing_client_) read_stream();  // else when it is sent
}

void Relay::stream_ended() {
  stream_is_over_ = true;
  end(kCloseNormal, {});
}

void Relay::say(WebSocketKind kind, std::string_view bytes) {
  if (to_client_.size() > kMostToClient) return close();  // it pings, and does not read the answers
  to_client_ += web_socket_frame(kind, bytes);
  write_client();
}

void Relay::write_client() {
  if (writing_client_ || to_client_.empty() || is_closed_) return;
  writing_client_ = true;
  sending_ = std::exchange(to_client_, {});
  client_sent_ = 0;
  write_began_ = Clock::now();
  write_rest();
}

void Relay::write_rest() {
  client_->write(sending_.data() + client_sent_, sending_.size() - client_sent_,
                 [self = shared_from_this()](error_code ec, std::size_t count) {
                   if (self->is_closed_) return;
                   if (ec) return self->close();
                   self->client_sent_ += count;
                   if (self->client_sent_ < self->sending_.size()) return self->write_rest();
                   self->writing_client_ = false;
                   // A client that was busy with what it was sent has had no time for a word.
                   if (Clock::now() - self->write_began_ > self->heartbeat_) self->heard_ = Clock::now();
                   if (!self->to_client_.empty()) return self->write_client();
                   if (self->client_left_) return self->close();
                   self->read_stream();
                 });
}

// --- The end.

void Relay::tick(Clock::time_point now) {
  if (is_closed_) return;
  const bool is_awaited = reading_client_ && !writing_client_;
  if (now >= deadline_ || (is_awaited && now - heard_ > kSilentHeartbeats * heartbeat_)) return close();
  if (now < next_ping_ || ending_) return;
  next_ping_ = now + heartbeat_;
  if (!writing_client_) say(WebSocketKind::kPing, {});
}

void Relay::end(std::uint16_t code, std::string_view why) {
  if (ending_ || is_closed_) return;
  ending_ = true;
  deadline_ = Clock::now() + kClosingTime;
  stream_is_over_ = true;
  stream_->close();
  offer_.stream.reset();
  to_client_ += web_socket_frame(WebSocketKind::kClose, close_bytes(code, why));
  write_client();
}

void Relay::close() {
  if (std::exchange(is_closed_, true)) return;
  client_->close();
  stream_->close();
  if (offer_.ended) offer_.ended(last_);
  offer_.stream.reset();
  closed_();
}

}  // namespace berth::http
