#include "cli/client/event_parser.h"

#include <utility>

namespace berth::client {
namespace {

constexpr std::size_t kLongestLine = 16 * 1024 * 1024;

}  // namespace

EventParser::EventParser(bool ndjson, std::function<StreamStep(const StreamEvent&)> on_event)
    : ndjson_(ndjson), on_event_(std::move(on_event)) {}

bool EventParser::feed(std::string_view bytes) {
  while (!bytes.empty() && !stopped_) {
    const std::size_t end = bytes.find('\n');
    partial_ += bytes.substr(0, end);
    too_long_ = partial_.size() > kLongestLine;
    if (too_long_) return false;
    if (end == std::string_view::npos) return true;
    bytes.remove_prefix(end + 1);
    if (partial_.ends_with('\r')) partial_.pop_back();
    line(std::exchange(partial_, {}));
  }
  return !stopped_;
}

void EventParser::line(std::string_view text) {
  if (ndjson_) {
    if (text.empty()) return;
    event_.data = text;
    has_data_ = true;
    return dispatch();
  }
  if (text.empty()) return dispatch();
  const std::size_t colon = text.find(':');
  std::string_view value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  field(text.substr(0, colon), value);
}

void EventParser::field(std::string_view name, std::string_view value) {
  if (name == "id") {
    event_.id = value;
  } else if (name == "event") {
    event_.name = value;
  } else if (name == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
}

void EventParser::dispatch() {
  const StreamEvent event = std::exchange(event_, {});
  if (!event.id.empty()) last_id_ = event.id;
  if (!std::exchange(has_data_, false)) return;
  had_event_ = true;
  stopped_ = on_event_(event) == StreamStep::kStop;
}

}  // namespace berth::client
