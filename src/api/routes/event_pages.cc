#include "api/routes/event_pages.h"

#include "base/check.h"

namespace berth::api {

std::optional<EventPage> EventPages::find(Seq from, http::StreamFormat format) const {
  const std::lock_guard lock(mutex_);
  for (const Kept& kept : kept_) {
    if (kept.from == from && kept.format == format) return kept.page;
  }
  return std::nullopt;
}

void EventPages::keep(Seq from, http::StreamFormat format, const EventPage& page) {
  BERTH_CHECK(!page.at_end);
  const std::lock_guard lock(mutex_);
  kept_.push_back({from, format, page});
  if (kept_.size() > kPages) kept_.pop_front();
}

}  // namespace berth::api
