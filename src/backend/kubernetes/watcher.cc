#include "backend/kubernetes/watcher.h"

#include <algorithm>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <optional>
#include <utility>

#include "backend/kubernetes/object_stream.h"

namespace berth::backend {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostDepth = 128;
constexpr int kMostPauseDoublings = 16;
constexpr int kDenialsNotBelieved = 8;  // in a row: about a minute
constexpr std::chrono::seconds kShortestWatch{1};

bool is_unreserved(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_';
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += "0123456789ABCDEF"[byte >> 4U];
    out += "0123456789ABCDEF"[byte & 15U];
  }
  return out;
}

// Calls `take` with the parsed object. Its memory is gone afterwards. Returns what is wrong with the text, or "".
template <class Take>
std::string with_parsed_object(std::string_view text, Take&& take) {
  unsigned char buffer[32 * 1024];
  json::monotonic_resource memory(buffer, sizeof buffer);
  json::parse_options options;
  options.max_depth = kMostDepth;
  json::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error, &memory, options);
  if (error) return "is no JSON (" + error.message() + ")";
  if (!value.is_object()) return "is no object";
  take(value.get_object());
  return {};
}

const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_object() ? &value->get_object() : nullptr;
}

std::string string_at(const json::object* object, std::string_view key) {
  const json::value* value = object == nullptr ? nullptr : object->if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

// A page of a list under way.
struct Watcher::Page {
  explicit Page(ObjectReceiver receiver) : splitter(std::move(receiver)) {}
  ListSplitter splitter;
};

Watcher::Watcher(kube::Resource resource, WatchOptions options, Http& http, WatchReceiver& receiver, std::uint64_t seed)
    : resource_(resource), options_(options), http_(http), receiver_(receiver), random_(seed) {}

Watcher::~Watcher() { http_.cancel(call_); }

void Watcher::tick(Clock::time_point now) {
  if (phase_ == Phase::kWaiting && now >= due_at_) {
    version_.empty() ? list() : watch();
    return;
  }
  if (phase_ != Phase::kWatching) return;
  if (expired_) {
    http_.cancel(call_);
    relist();
  } else if (now - heard_at_ > options_.silence) {
    http_.cancel(call_);
    if (!had_bytes_) version_.clear();
    wait(std::chrono::milliseconds(0));
  }
}

void Watcher::list() {
  phase_ = Phase::kListing;
  if (continue_.empty()) receiver_.begin_list(resource_.kind);
  std::string path = std::string(resource_.path) + "?limit=" + std::to_string(options_.page);
  if (!resource_.selector.empty()) path += "&" + std::string(resource_.selector);
  if (!continue_.empty()) path += "&continue=" + percent_encoded(continue_);
  page_ = std::make_unique<Page>(ObjectReceiver{[this](std::string_view text) { take_item(text); },
                                                [this](std::string_view beginning) {
                                                  receiver_.passed_over("an object of " + std::string(resource_.path) +
                                                                        " was passed over: " + name_in(beginning) +
                                                                        " is larger than 16 MiB");
                                                }});
  HttpCall call;
  call.path = std::move(path);
  call.timeout = options_.list_timeout;
  call.on_bytes = [this](std::string_view bytes) { page_->splitter.feed(bytes); };
  call.done = [this](const HttpAnswer& answer) { page_ended(answer); };
  call_ = http_.send(std::move(call));
}

void Watcher::page_ended(const HttpAnswer& answer) {
  call_ = 0;
  const std::unique_ptr<Page> page = std::move(page_);
  const bool may_not = answer.status == 403 && resource_.extra;
  // What could be read before is not gone at once: an API server that has just started denies what it will allow.
  if (may_not && could_be_read_ && failures_ < kDenialsNotBelieved) return try_again(answer);
  if (may_not || (answer.status == 404 && resource_.optional)) return absent(may_not);
  if (answer.status == 410) {  // the continue token has expired: from the beginning
    continue_.clear();
    return try_again(answer);
  }
  if (!answer.ok()) return try_again(answer);
  std::string next;
  std::string version;
  const std::string wrong = with_parsed_object(page->splitter.envelope(), [&](const json::object& list) {
    const json::object* metadata = object_at(list, "metadata");
    next = string_at(metadata, "continue");
    version = string_at(metadata, "resourceVersion");
  });
  if (!wrong.empty() || version.empty()) {
    continue_.clear();
    HttpAnswer broken;
    broken.failure = "the answer is no list of objects";
    return try_again(broken);
  }
  failures_ = 0;
  receiver_.works(resource_);
  continue_ = std::move(next);
  if (!continue_.empty()) return wait(std::chrono::milliseconds(0));
  version_ = std::move(version);
  receiver_.end_list(resource_.kind);
  was_listed_ = true;
  could_be_read_ = true;
  wait(std::chrono::milliseconds(0));
}

void Watcher::absent(bool denied) {
  receiver_.works(resource_);
  receiver_.end_list(resource_.kind);
  if (denied) receiver_.denied(resource_.kind);
  could_be_read_ = false;
  was_listed_ = true;
  continue_.clear();
  wait(resource_.extra ? options_.extra_pause : options_.absent_pause);
}

void Watcher::watch() {
  phase_ = Phase::kWatching;
  expired_ = false;
  had_bytes_ = false;
  heard_at_ = Clock::now();
  std::string path = std::string(resource_.path) +
                     "?watch=1&allowWatchBookmarks=true&resourceVersion=" + percent_encoded(version_) +
                     "&timeoutSeconds=" + std::to_string(random_.between(options_.watch_s, 2 * options_.watch_s));
  if (!resource_.selector.empty()) path += "&" + std::string(resource_.selector);
  auto lines = std::make_shared<LineSplitter>(
      ObjectReceiver{[this](std::string_view text) { take_line(text); },
                     [this](std::string_view beginning) {
                       receiver_.passed_over("a change of " + std::string(resource_.path) +
                                             " was passed over: " + name_in(beginning) + " is larger than 16 MiB");
                     }});
  HttpCall call;
  call.path = std::move(path);
  call.timeout = std::chrono::milliseconds(0);
  call.on_open = [this] { receiver_.works(resource_); };
  call.on_bytes = [this, lines](std::string_view bytes) {
    had_bytes_ = true;
    heard_at_ = Clock::now();
    lines->feed(bytes);
  };
  call.done = [this](const HttpAnswer& answer) { watch_ended(answer); };
  call_ = http_.send(std::move(call));
}

void Watcher::watch_ended(const HttpAnswer& answer) {
  call_ = 0;
  if (expired_ || answer.status == 410) return relist();
  if (answer.status == 404 && resource_.optional) {  // its definition is gone, and all objects with it
    version_.clear();
    return wait(options_.first_pause);
  }
  // A watch that worked and then ended or was cut is resumed; that is no failure. One that ends at once is.
  const bool worked = had_bytes_ || (answer.ok() && Clock::now() - heard_at_ > kShortestWatch);
  if (worked) {
    failures_ = 0;
    return wait(std::chrono::milliseconds(random_.between(0, options_.first_pause.count())));
  }
  try_again(answer);
}

void Watcher::take_line(std::string_view text) {
  if (expired_) return;
  const std::string wrong = with_parsed_object(text, [&](const json::object& line) {
    const std::string type = string_at(&line, "type");
    const json::object* object = object_at(line, "object");
    if (object == nullptr) return;
    if (type == "ERROR") return take_error(*object);
    const std::string version = string_at(object_at(*object, "metadata"), "resourceVersion");
    if (!version.empty()) version_ = version;
    if (type == "BOOKMARK") return;
    relists_ = 0;
    if (type == "ADDED" || type == "MODIFIED" || type == "DELETED")
      receiver_.observe(resource_.kind, *object, type == "DELETED");
  });
  if (!wrong.empty()) {
    receiver_.passed_over("a change of " + std::string(resource_.path) + " was passed over: " + name_in(text) + " " +
                          wrong);
  }
}

// Whatever the error is, the watch has ended; after anything but 410 it may be resumed.
void Watcher::take_error(const json::object& status) {
  const json::value* code = status.if_contains("code");
  if (code != nullptr && code->is_int64() && code->get_int64() == 410) expired_ = true;
}

void Watcher::take_item(std::string_view text) {
  const std::string wrong =
      with_parsed_object(text, [&](const json::object& object) { receiver_.observe(resource_.kind, object, false); });
  if (!wrong.empty()) {
    receiver_.passed_over("an object of " + std::string(resource_.path) + " was passed over: " + name_in(text) + " " +
                          wrong);
  }
}

void Watcher::try_again(const HttpAnswer& answer) {
  receiver_.failed(resource_, answer);
  // A page that failed is asked for again; the token of a list lives for some minutes.
  std::chrono::milliseconds pause = options_.first_pause * (1LL << std::min(failures_++, kMostPauseDoublings));
  pause = std::min(pause, options_.longest_pause);
  pause = std::chrono::milliseconds(random_.between(pause.count() / 2, pause.count()));
  if (answer.retry_after_s) pause = std::max(pause, std::chrono::milliseconds(*answer.retry_after_s * 1000));
  wait(pause);
}

void Watcher::wait(std::chrono::milliseconds pause) {
  call_ = 0;
  phase_ = Phase::kWaiting;
  due_at_ = Clock::now() + pause;
}

// At once the first time. A server that says 410 to each new version is given time.
void Watcher::relist() {
  version_.clear();
  continue_.clear();
  expired_ = false;
  const int again = std::min(relists_++, kMostPauseDoublings);
  if (again == 0) return wait(std::chrono::milliseconds(0));
  std::chrono::milliseconds pause = options_.first_pause * (1LL << again);
  pause = std::min(pause, options_.longest_pause);
  wait(std::chrono::milliseconds(random_.between(pause.count() / 2, pause.count())));
}

}  // namespace berth::backend
