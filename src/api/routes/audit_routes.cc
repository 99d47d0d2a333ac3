// The audit: who changed, tried and read what (policy/audit.h), by pages or as a stream that goes on.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "api/routes/event_feed.h"
#include "api/routes/event_start.h"
#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "policy/audit.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::integer_parameter;
using http::ParameterType;
using http::query_parameter;
using http::Request;
using http::Responder;
using policy::AuditEntry;
using policy::AuditFilter;

constexpr std::size_t kEventsPerAudit = 20'000;  // looked at for one answer; next_from goes on from there
constexpr std::size_t kEventsPerLook = 500;

json::value text_or_null(const std::optional<std::string>& text) {
  return text ? json::value(json::string(*text)) : json::value(nullptr);
}

json::object audit_view(const AuditEntry& entry) {
  json::array changes;
  for (const policy::AuditChange& change : entry.changes)
    changes.push_back(
        json::object{{"key", change.key}, {"before", text_or_null(change.before)}, {"after", change.after}});
  return {{"seq", entry.seq},
          {"time", to_iso8601(entry.time)},
          {"kind", entry.kind},
          {"verb", entry.verb},
          {"denied", entry.denied},
          {"subject", entry.by.subject},
          {"proof", entry.by.proof},
          {"address", entry.by.address},
          {"request", entry.by.request},
          {"queue", entry.queue},
          {"job", entry.job.valid() ? json::value(entry.job.value()) : json::value(nullptr)},
          {"object", entry.object},
          {"count", entry.count},
          {"first", to_iso8601(entry.first)},
          {"last", to_iso8601(entry.last)},
          {"others", entry.others},
          {"changes", std::move(changes)},
          {"reason", entry.reason}};
}

AuditFilter audit_filter_of(const Request& request) {
  return {.subject = text_of(request, "subject"),
          .queue = text_of(request, "queue"),
          .verb = text_of(request, "verb"),
          .denied = flag_of(request, "denied"),
          .since = time_of(request, "since", Timestamp())};
}

// The entry of the event, if the filter and the roles of the subject let it through.
std::optional<AuditEntry> shown_entry(const EventRecord& record, const AuditFilter& filter,
                                      const policy::Subject& subject) {
  auto entry = policy::audit_entry(record);
  if (entry && passes(*entry, filter) && may_see_entry(subject, *entry)) return entry;
  return std::nullopt;
}

Seq last_seq_of(Service& service) {
  Seq last = 0;
  service.read([&](const View& view) { last = view.state.last_seq(); });
  return last;
}

// Returns the first event from `from` on that is not before `since`. Events are in the order of their times.
Result<Seq> first_event_since(Service& service, Seq from, Timestamp since) {
  Seq low = from;
  Seq high = last_seq_of(service) + 1;
  while (low < high) {
    const Seq middle = low + (high - low) / 2;
    const auto one = service.events(middle, 1);
    if (!one && one.error().code != ErrorCode::kNotFound) return one.error();
    const bool before = !one || (!one->empty() && one->front().time < since);  // what is archived is before
    if (before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void list_audit(Service& service, const Request& request, Seq from, const Responder& responder) {
  const AuditFilter filter = audit_filter_of(request);
  const auto limit = static_cast<std::size_t>(integer_of(request, "limit", kDefaultLimit));
  json::array items;
  std::size_t seen = 0;
  bool more = true;
  while (more && items.size() < limit && seen < kEventsPerAudit) {
    const auto events = service.events(from, kEventsPerLook);
    if (!events) {
      responder.send(event_refusal(events.error()));
      return;
    }
    more = events->size() == kEventsPerLook;
    for (const EventRecord& record : *events) {
      if (items.size() == limit) break;
      ++seen;
      from = record.seq + 1;
      if (const auto entry = shown_entry(record, filter, request.principal)) items.push_back(audit_view(*entry));
    }
  }
  responder.send(
      json_answer(json::object{{"items", std::move(items)}, {"next_from", from}, {"seq", last_seq_of(service)}}));
}

void stream_audit(Service& service, const Request& request, Seq from, const Responder& responder) {
  if (const auto first = service.events(from, 1); !first) {
    responder.send(event_refusal(first.error()));
    return;
  }
  EventFilter lens;
  lens.view = [filter = audit_filter_of(request),
               subject = request.principal](const EventRecord& record) -> std::optional<http::StreamEvent> {
    const auto entry = shown_entry(record, filter, subject);
    if (!entry) return std::nullopt;
    return http::StreamEvent{
        .id = std::to_string(entry->seq), .name = "audit", .data = json::serialize(audit_view(*entry))};
  };
  http::Stream stream = responder.stream(request.stream_format);
  if (stream.open()) EventFeed::start(service, std::move(stream), std::move(lens), from);
}

void get_audit(Service& service, const Request& request, const Responder& responder) {
  auto from = event_start_of(request);
  if (from && request.query_value("since"))
    from = first_event_since(service, *from, time_of(request, "since", Timestamp()));
  if (!from) {
    responder.fail(from.error());
  } else if (const auto beyond = refuse_beyond_end(service, request, *from)) {
    responder.send(*beyond);
  } else if (wants_event_stream(request)) {
    stream_audit(service, request, *from, responder);
  } else {
    list_audit(service, request, *from, responder);
  }
}

}  // namespace

void add_audit_routes(http::Router& router, Service& service) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  http::ParameterDoc verb = query_parameter("verb", "Only entries with this verb.");
  for (const std::string_view word : EnumNames<policy::Verb>::kNames) verb.values.emplace_back(word);
  verb.values.emplace_back(policy::kSignInVerb);
  router.add(
      {.method = http::Method::kGet,
       .pattern = "/v1/audit",
       .access = http::Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "listAudit",
               .summary = "Who changed, tried and read what; with follow=true a stream that goes on.",
               .responses = {{.status = 200, .description = "A page of entries, or the stream.", .schema = "AuditList"},
                             {.status = 403, .description = "No role of yours has see-audit at any queue."},
                             {.status = 410,
                              .description = "The start was archived (gone; give since), or Last-Event-ID is beyond "
                                             "the last event (beyond-end)."}},
               .description =
                   "Entries are derived from the log of events: seq is the event's. You see what is of a "
                   "queue at which you have see-audit, or below; what is of the whole cluster takes it at "
                   "the root. Go on from next_from; it was the last page when next_from is above seq. A page "
                   "may be short or empty before that. Streams are as of /v1/events.",
               .tags = {"audit"},
               .parameters = {integer_parameter("from", "The first sequence number; 1 if absent.", 0, kMost - 1),
                              query_parameter("since", "Only entries since this time.", ParameterType::kTime),
                              limit_parameter(), query_parameter("subject", "Only entries of this subject."),
                              query_parameter("queue", "Only entries of this queue and those below it."), verb,
                              query_parameter("denied", "true: only what was denied.", ParameterType::kBoolean),
                              query_parameter("follow", "true: a stream. Asking for text/event-stream is the same.",
                                              ParameterType::kBoolean),
                              http::header_parameter("Last-Event-ID",
                                                     "The last entry seen; a stream goes on behind it. Empty: none.",
                                                     "^[0-9]{0,18}$")},
               .streamed_schema = "AuditEntry"},
       .handler = [&service](const Request& request, const Responder& to) { get_audit(service, request, to); }});
}

}  // namespace berth::api
