#pragma once
// Cuts a stream of bytes, as it comes, into events: server-sent events after the WHATWG HTML standard, section 9.2.6,
// or NDJSON lines. Heartbeats (comments, blank lines) yield nothing.

#include <functional>
#include <string>
#include <string_view>

#include "cli/client/client.h"

namespace berth::client {

class EventParser {
 public:
  EventParser(bool ndjson, std::function<StreamStep(const StreamEvent&)> on_event);

  // False once the receiver wants no more, or a line is over the limit (see too_long).
  bool feed(std::string_view bytes);
  bool stopped() const { return stopped_; }
  bool too_long() const { return too_long_; }
  bool had_event() const { return had_event_; }
  const std::string& last_id() const { return last_id_; }

 private:
  void line(std::string_view text);
  void field(std::string_view name, std::string_view value);
  void dispatch();

  bool ndjson_;
  std::function<StreamStep(const StreamEvent&)> on_event_;
  std::string partial_;
  StreamEvent event_;
  bool has_data_ = false;
  std::string last_id_;
  bool stopped_ = false;
  bool too_long_ = false;
  bool had_event_ = false;
};

}  // namespace berth::client
