#include "api/routes/event_feed.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "api/routes/documents.h"

namespace berth::api {
namespace {

constexpr std::size_t kPage = 256;
constexpr std::size_t kPageBytes =
    64 * 1024;                            // then the rest of the page waits: much less than a stream may have pending
constexpr std::size_t kPagesPerStep = 8;  // looked through at once for a filter that leaves most out

const http::Chunk& encoded(const LiveEvent& event, http::StreamFormat format) {
  http::Chunk& text = event.encoded.at(static_cast<std::size_t>(format));
  if (text == nullptr) text = http::encode(stream_event(event.record), format);
  return text;
}

}  // namespace

bool EventFilter::wants(const EventRecord& record) const {
  if (!kind.empty() && kind_name(record.event) != kind) return false;
  return !job || job_of(record.event) == *job;
}

http::StreamEvent stream_event(const EventRecord& record) {
  return {.id = std::to_string(record.seq),
          .name = std::string(kind_name(record.event)),
          .data = boost::json::serialize(shown_event(record))};
}

std::optional<http::StreamEvent> stream_event(const EventRecord& record, const EventFilter& filter) {
  if (!filter.wants(record)) return std::nullopt;
  return filter.view ? filter.view(record) : stream_event(record);
}

void EventFeed::start(Service& service, http::Stream stream, EventFilter filter, Seq from,
                      std::shared_ptr<EventPages> pages) {
  const std::shared_ptr<EventFeed> feed(
      new EventFeed(service, std::move(stream), std::move(filter), from, std::move(pages)));
  const std::uint64_t watch = service.watch([feed](const LiveEvent& event) { feed->on_durable(event); });
  // The watch holds the feed and the feed the stream; when the reader is gone the watch is given up, and all with it.
  feed->stream_.on_drained([weak = std::weak_ptr(feed)] {
    if (const auto alive = weak.lock()) alive->catch_up();
  });
  feed->stream_.on_close([&service, watch] { service.unwatch(watch); });
}

EventPage EventFeed::make_page(const std::vector<EventRecord>& events, Seq from) const {
  EventPage page{.text = nullptr, .next = from};
  std::string text;
  std::size_t taken = 0;
  for (; taken < events.size() && text.size() < kPageBytes; ++taken) {
    if (const auto shown = stream_event(events[taken], filter_)) text += *http::encode(*shown, stream_.format());
    page.next = events[taken].seq + 1;
  }
  page.at_end = events.size() < kPage && taken == events.size();
  if (!text.empty()) page.text = std::make_shared<const std::string>(std::move(text));
  return page;
}

Result<EventPage> EventFeed::page_from(Seq from) {
  const bool shared = filter_.wants_all();
  if (shared) {
    if (auto page = pages_->find(from, stream_.format())) return *page;
  }
  const auto events = service_.events(from, kPage);
  if (!events) return events.error();
  EventPage page = make_page(*events, from);
  if (shared && !page.at_end) pages_->keep(from, stream_.format(), page);
  return page;
}

// A live feed has no steps: each would wait behind those of the feeds that catch up, and keep them waiting.
bool EventFeed::go_live() {
  live_ = watched_ < next_;
  if (live_) stream_.on_drained(nullptr);
  return live_;
}

void EventFeed::catch_up() {
  Seq from = 0;
  {
    const std::lock_guard lock(mutex_);
    if (live_) return;
    from = next_;
  }
  bool sent = false;
  for (std::size_t page = 0; page < kPagesPerStep && !sent; ++page) {
    const auto events = page_from(from);
    if (!events) {
      stream_.close();  // archived meanwhile, or the log cannot be read: asking again says which
      return;
    }
    sent = events->text != nullptr;
    if (sent) stream_.send(events->text);
    from = events->next;
    const std::lock_guard lock(mutex_);
    next_ = from;
    if (events->at_end && go_live()) return;
  }
  // Whatever leaves brings the next step; when the filter left out everything, a heartbeat does.
  if (!sent) stream_.send(std::make_shared<const std::string>(http::heartbeat(stream_.format())));
}

void EventFeed::on_durable(const LiveEvent& event) {
  const Seq seq = event.record.seq;
  const std::lock_guard lock(mutex_);
  watched_ = seq;
  if (!live_ || seq < next_) return;
  if (filter_.view) {
    if (const auto shown = stream_event(event.record, filter_)) stream_.send(http::encode(*shown, stream_.format()));
  } else if (filter_.wants(event.record)) {
    stream_.send(encoded(event, stream_.format()));
  }
  next_ = seq + 1;
}

}  // namespace berth::api
