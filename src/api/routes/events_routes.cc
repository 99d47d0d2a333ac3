// The events that made the state what it is: by pages, or as a stream that goes on.

#include <boost/json/array.hpp>
#include <limits>
#include <optional>

#include "api/routes/documents.h"
#include "api/routes/event_feed.h"
#include "api/routes/event_start.h"
#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::integer_parameter;
using http::Method;
using http::ParameterType;
using http::query_parameter;
using http::Request;
using http::Responder;

constexpr std::size_t kRowsPerCall = 5000;  // looked at for one answer with a filter; next_from goes on from there
constexpr std::size_t kEventsPerPage = 500;

EventFilter filter_of(const Request& request) {
  EventFilter filter{.kind = text_of(request, "kind"), .job = {}, .view = {}};
  const std::int64_t job = integer_of(request, "job", 0);
  if (job != 0) filter.job = JobId(static_cast<std::uint64_t>(job));
  return filter;
}

http::Response list_events(Service& service, const EventFilter& filter, Seq from, std::size_t limit) {
  json::array items;
  std::size_t seen = 0;
  bool more = true;
  while (more && items.size() < limit && seen < kRowsPerCall) {
    const auto events = service.events(from, kEventsPerPage);
    if (!events) return event_refusal(events.error());
    more = events.value().size() == kEventsPerPage;
    for (const EventRecord& record : events.value()) {
      if (items.size() == limit) break;
      ++seen;
      from = record.seq + 1;
      if (filter.wants(record)) items.push_back(shown_event(record));
    }
  }
  Seq last = 0;
  service.read([&](const View& view) { last = view.state.last_seq(); });
  return json_answer(json::object{{"items", std::move(items)}, {"next_from", from}, {"seq", last}});
}

void stream_events(Service& service, const Request& request, const Responder& responder, EventFilter filter, Seq from,
                   const std::shared_ptr<EventPages>& pages) {
  if (const auto first = service.events(from, 1); !first) {
    responder.send(event_refusal(first.error()));
    return;
  }
  http::Stream stream = responder.stream(request.stream_format);
  if (stream.open()) EventFeed::start(service, std::move(stream), std::move(filter), from, pages);
}

void get_events(Service& service, const Request& request, const Responder& responder,
                const std::shared_ptr<EventPages>& pages) {
  const auto from = event_start_of(request);
  if (!from) {
    responder.fail(from.error());
    return;
  }
  EventFilter filter = filter_of(request);
  if (const auto beyond = refuse_beyond_end(service, request, *from)) {
    responder.send(*beyond);
  } else if (wants_event_stream(request)) {
    stream_events(service, request, responder, std::move(filter), *from, pages);
  } else {
    const std::int64_t limit = integer_of(request, "limit", kDefaultLimit);
    responder.send(list_events(service, filter, *from, static_cast<std::size_t>(limit)));
  }
}

template <std::size_t... I>
std::vector<std::string> kind_names(std::index_sequence<I...>) {
  return {std::string(kind_name(Event(std::in_place_index<I>)))...};
}

}  // namespace

std::vector<std::string> event_kinds() { return kind_names(std::make_index_sequence<std::variant_size_v<Event>>()); }

void add_event_routes(http::Router& router, Service& service) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  http::ParameterDoc kind = query_parameter("kind", "Only events of this kind.");
  kind.values = event_kinds();
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/events",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "listEvents",
               .summary = "Events in the order in which they happened; with follow=true a stream that goes on.",
               .responses = {{.status = 200, .description = "A page of events, or the stream.", .schema = "EventList"},
                             {.status = 410,
                              .description = "The start was archived (gone), or Last-Event-ID is beyond the last event "
                                             "(beyond-end); begin from a snapshot."}},
               .description = "As a page: go on from next_from; it was the last page when next_from is above seq. A "
                              "page may be short or empty before that. As a stream: every event once, in order, "
                              "without gap. Server-sent events carry the sequence number as id, and Last-Event-ID "
                              "goes on behind it; with Accept: application/x-ndjson each line is one event. A reader "
                              "that is too slow is disconnected.",
               .tags = {"events"},
               .parameters = {integer_parameter("from", "The first sequence number; 1 if absent.", 0, kMost - 1),
                              limit_parameter(), kind,
                              integer_parameter("job", "Only events about this job.", 1, kMost),
                              query_parameter("follow", "true: a stream. Asking for text/event-stream is the same.",
                                              ParameterType::kBoolean),
                              http::header_parameter("Last-Event-ID",
                                                     "The last event seen; a stream goes on behind it. Empty: none.",
                                                     "^[0-9]{0,18}$")},
               .streamed_schema = "Event"},
       .handler = [&service, pages = std::make_shared<EventPages>()](const Request& request, const Responder& to) {
         get_events(service, request, to, pages);
       }});
}

}  // namespace berth::api
