#pragma once
// Pages of the log as streams send them. Streams that catch up over the same events share their texts, so that 300 of
// them that begin at the first event cost about as much as one.

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

#include "api/http/stream.h"
#include "model/event.h"

namespace berth::api {

struct EventPage {
  http::Chunk text;     // null if a filter left out all of it
  Seq next = 0;         // the first event after it
  bool at_end = false;  // there was no further event when it was made
};

// The pages that were made last, of all events. Any thread.
class EventPages {
 public:
  std::optional<EventPage> find(Seq from, http::StreamFormat format) const;
  void keep(Seq from, http::StreamFormat format, const EventPage& page);  // requires: not at the end, which moves on

 private:
  static constexpr std::size_t kPages = 32;  // of about 64 KiB

  struct Kept {
    Seq from;
    http::StreamFormat format;
    EventPage page;
  };
  mutable std::mutex mutex_;
  std::deque<Kept> kept_;  // newest last
};

}  // namespace berth::api
