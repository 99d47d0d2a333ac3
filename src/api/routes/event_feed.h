#pragma once
// One reader's stream of events, from a sequence number on, for ever: pages of history first, then live. The hand-over
// has neither gap nor repeat: the feed watches before it reads the first page, notes how far the watched events have
// come, and goes live only when a page ended beyond that; an event at or below what was sent is not sent again.
//
// A page is sent when everything before it has left (Stream::on_drained), so a long history costs no memory, and many
// streams that catch up take turns, page by page. Once live,
// a reader that is too slow is dropped by its stream; it comes back with Last-Event-ID.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/http/stream.h"
#include "api/routes/event_pages.h"
#include "api/service.h"
#include "base/result.h"
#include "model/event.h"

namespace berth::api {

struct EventFilter {
  std::string kind;  // empty: all
  std::optional<JobId> job;
  // What is sent of an event instead of itself, or nothing: the event is left out.
  std::function<std::optional<http::StreamEvent>(const EventRecord&)> view = {};
  bool wants(const EventRecord& record) const;
  bool wants_all() const { return kind.empty() && !job && !view; }
};

http::StreamEvent stream_event(const EventRecord& record);
// What is sent of the event with this filter; nothing if it is left out.
std::optional<http::StreamEvent> stream_event(const EventRecord& record, const EventFilter& filter);

class EventFeed : public std::enable_shared_from_this<EventFeed> {
 public:
  // Keeps itself alive as long as the stream is open. Feeds that share `pages` share the texts of what they catch up.
  static void start(Service& service, http::Stream stream, EventFilter filter, Seq from,
                    std::shared_ptr<EventPages> pages = std::make_shared<EventPages>());

 private:
  EventFeed(Service& service, http::Stream stream, EventFilter filter, Seq from, std::shared_ptr<EventPages> pages)
      : service_(service),
        stream_(std::move(stream)),
        filter_(std::move(filter)),
        pages_(std::move(pages)),
        next_(from) {}

  void catch_up();                          // on the thread of stream steps, when everything sent has left
  void on_durable(const LiveEvent& event);  // on the thread that tells watchers
  Result<EventPage> page_from(Seq from);
  EventPage make_page(const std::vector<EventRecord>& events, Seq from) const;
  bool go_live();

  Service& service_;
  const http::Stream stream_;
  const EventFilter filter_;
  const std::shared_ptr<EventPages> pages_;
  std::mutex mutex_;  // all below
  Seq next_;          // everything below it was sent, or left out by the filter
  Seq watched_ = 0;   // the last event that came by watching
  bool live_ = false;
};

}  // namespace berth::api
