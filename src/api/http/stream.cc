#include "api/http/stream.h"

#include <utility>

namespace berth::http {
namespace {

// A line break inside a field would end it and forge the next one.
void append_field(std::string& text, std::string_view field, std::string_view value) {
  text += field;
  for (const char c : value) {
    if (c != '\n' && c != '\r' && c != '\0') text += c;
  }
  text += '\n';
}

// Each line of the data becomes a `data:` line of its own; the reader joins them again.
void append_data(std::string& text, std::string_view data) {
  while (true) {
    const std::size_t end = data.find('\n');
    append_field(text, "data: ", data.substr(0, end));
    if (end == std::string_view::npos) return;
    data.remove_prefix(end + 1);
  }
}

std::string encode_server_sent(const StreamEvent& event) {
  std::string text;
  text.reserve(event.data.size() + event.id.size() + event.name.size() + 32);
  if (!event.id.empty()) append_field(text, "id: ", event.id);
  if (!event.name.empty()) append_field(text, "event: ", event.name);
  append_data(text, event.data);
  text += '\n';
  return text;
}

}  // namespace

Chunk encode(const StreamEvent& event, StreamFormat format) {
  if (format == StreamFormat::kServerSentEvents) return std::make_shared<const std::string>(encode_server_sent(event));
  std::string line;
  append_field(line, "", event.data);
  return std::make_shared<const std::string>(std::move(line));
}

std::string_view heartbeat(StreamFormat format) {
  return format == StreamFormat::kServerSentEvents ? ": heartbeat\n\n" : "\n";
}

std::string_view content_type(StreamFormat format) {
  return format == StreamFormat::kServerSentEvents ? "text/event-stream" : "application/x-ndjson";
}

struct Stream::Writer {
  explicit Writer(std::shared_ptr<StreamSink> target) : sink(std::move(target)) {}
  ~Writer() { sink->close(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  std::shared_ptr<StreamSink> sink;
};

Stream::Stream(std::shared_ptr<StreamSink> sink, StreamFormat format)
    : writer_(sink == nullptr ? nullptr : std::make_shared<Writer>(std::move(sink))), format_(format) {}

bool Stream::send(Chunk chunk) const { return writer_ != nullptr && writer_->sink->write(std::move(chunk)); }

bool Stream::open() const { return writer_ != nullptr && writer_->sink->open(); }

void Stream::close() const {
  if (writer_ != nullptr) writer_->sink->close();
}

std::size_t Stream::pending_bytes() const { return writer_ == nullptr ? 0 : writer_->sink->pending_bytes(); }

void Stream::on_close(std::function<void()> callback) const {
  if (writer_ == nullptr) return callback();
  writer_->sink->on_close(std::move(callback));
}

void Stream::on_drained(std::function<void()> callback) const {
  if (writer_ != nullptr) writer_->sink->on_drained(std::move(callback));
}

}  // namespace berth::http
