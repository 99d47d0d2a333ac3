#include <boost/json/parse.hpp>
#include <deque>

#include "cli/command/commands.h"
#include "cli/command/event_line.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

constexpr std::int64_t kEventsPerPage = 1000;

std::string line_of(const Json& event, Format format) {
  if (format == Format::kJson) return json_line(event);
  if (format == Format::kYaml) return "---\n" + yaml_text(event);
  const auto padded = [](std::string text, std::size_t width) {
    text.resize(std::max(width, text.size()), ' ');
    return text;
  };
  return padded(show(event, "seq"), 6) + "  " + clock_text(show(event, "time")) + "  " +
         padded(printable(show(event, "kind")), 20) + "  " + printable(event_words(event)) + "\n";
}

std::string path_of(const EventsOptions& options, std::int64_t from, bool follow, std::int64_t limit) {
  return query("/v1/events", {{"from", std::to_string(from)},
                              {"limit", follow ? "" : std::to_string(limit)},
                              {"kind", options.kind},
                              {"job", options.job},
                              {"follow", follow ? "true" : ""}});
}

// Shows what is there from `from` on, page by page; where the next events will be.
Result<std::int64_t> show_stored(const EventsOptions& options, std::int64_t from, std::int64_t& shown,
                                 Session& session) {
  while (true) {
    const std::int64_t left = options.limit == 0 ? kEventsPerPage : std::min(kEventsPerPage, options.limit - shown);
    if (left <= 0) return from;
    const auto page = get(session, path_of(options, from, false, left));
    if (!page) return page.error();
    for (const Json& event : items(*page, "items")) session.out << line_of(event, options.format);
    shown += static_cast<std::int64_t>(items(*page, "items").size());
    const std::int64_t next = integer(*page, "next_from");
    if (next <= from) return from;
    from = next;
  }
}

Result<void> follow(const EventsOptions& options, std::int64_t from, std::int64_t shown, Session& session) {
  return session.server.stream(path_of(options, from, true, 0), {}, [&](const client::StreamEvent& event) {
    boost::json::error_code ec;
    const Json value = boost::json::parse(event.data, ec);
    if (ec || !has(value, "seq")) return client::StreamStep::kContinue;
    session.out << line_of(value, options.format) << std::flush;
    const bool enough = options.limit > 0 && ++shown >= options.limit;
    return enough || !session.out ? client::StreamStep::kStop : client::StreamStep::kContinue;
  });
}

// Shows the newest events, as many as the limit says. With a filter all events have to be read for it, because the
// server only goes forwards.
Result<int> show_newest(const EventsOptions& options, Session& session) {
  const auto cluster = get(session, "/v1/cluster");
  if (!cluster) return cluster.error();
  const std::int64_t last = integer(*cluster, "seq");
  const bool filters = !options.kind.empty() || !options.job.empty();
  std::int64_t from = filters ? 0 : std::max<std::int64_t>(1, last - options.limit + 1);
  std::deque<std::string> newest;
  while (from <= last) {
    const auto page = get(session, path_of(options, from, false, kEventsPerPage));
    if (!page) return page.error();
    for (const Json& event : items(*page, "items")) {
      newest.push_back(line_of(event, options.format));
      if (newest.size() > static_cast<std::size_t>(options.limit)) newest.pop_front();
    }
    const std::int64_t next = integer(*page, "next_from");
    if (next <= from) break;
    from = next;
  }
  for (const std::string& line : newest) session.out << line;
  return kOk;
}

}  // namespace

// Without --from, following begins with what comes next, and listing with the first event; with a limit it shows the
// newest.
Result<int> run(const EventsOptions& options, Session& session) {
  if (!options.follow && options.from < 0 && options.limit > 0) return show_newest(options, session);
  std::int64_t from = std::max<std::int64_t>(options.from, 0);
  if (options.follow && options.from < 0) {
    const auto cluster = get(session, "/v1/cluster");
    if (!cluster) return cluster.error();
    from = integer(*cluster, "seq") + 1;
  }
  std::int64_t shown = 0;
  if (!options.follow) {
    const auto next = show_stored(options, from, shown, session);
    if (!next) return next.error();
    return kOk;
  }
  if (auto followed = follow(options, from, shown, session); !followed) return followed.error();
  return kOk;
}

}  // namespace berth::cli
