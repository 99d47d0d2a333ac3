#pragma once
// A response that goes on: events written from any thread to one reader, through a bounded queue. Rules:
//   1. Writing never blocks. A reader that lets more than the limit pile up is disconnected; nobody else notices.
//   2. One encoded Chunk may be shared by all the streams that send it, so that a thousand watchers hold one copy.
//   3. Events arrive in the order in which they were sent. Blank heartbeats are added while nothing happens.
//   4. The stream ends when close() is called or the last copy of the Stream is dropped.
//   5. A long history is sent piece by piece: send a page, and the next one from on_drained.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/http/message.h"

namespace berth::http {

using Chunk = std::shared_ptr<const std::string>;

struct StreamEvent {
  std::string id = {};    // resumption point (an SSE `id:` line); empty for none; must not contain line breaks
  std::string name = {};  // SSE `event:`; empty for the default
  std::string data;       // a JSON document on one line; in NDJSON it is the line, so it should carry its own id
};

Chunk encode(const StreamEvent& event, StreamFormat format);
// What is sent while nothing happens, so that both ends notice a dead connection.
std::string_view heartbeat(StreamFormat format);
std::string_view content_type(StreamFormat format);

// Where a Stream writes to: a connection of the server, or a recorder in a test. All calls from any thread.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  virtual bool write(Chunk chunk) = 0;  // false once the reader is gone
  virtual void close() = 0;
  virtual bool open() const = 0;
  virtual std::size_t pending_bytes() const = 0;
  virtual void on_close(std::function<void()> callback) = 0;
  virtual void on_drained(std::function<void()> callback) = 0;
};

class Stream {
 public:
  Stream() = default;
  Stream(std::shared_ptr<StreamSink> sink, StreamFormat format);

  StreamFormat format() const { return format_; }
  // False once the reader is gone (it left, or was too slow); sending on is then harmless and useless.
  bool send(const StreamEvent& event) const { return send(encode(event, format_)); }
  bool send(Chunk chunk) const;
  bool open() const;
  void close() const;
  std::size_t pending_bytes() const;

  // Called once, on an I/O thread, when the reader is gone or the stream was closed; at once if that was before.
  // The callback must not hold the Stream itself.
  void on_close(std::function<void()> callback) const;
  // Called once at first, and then each time everything sent so far has been handed to the kernel; on a thread of the
  // server that takes a step of one client after the other, at low priority. It may block. Null ends the calls.
  void on_drained(std::function<void()> callback) const;

 private:
  struct Writer;  // closes the sink when the last copy of the Stream goes
  std::shared_ptr<Writer> writer_;
  StreamFormat format_ = StreamFormat::kServerSentEvents;
};

}  // namespace berth::http
