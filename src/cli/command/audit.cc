#include <boost/json/parse.hpp>
#include <deque>

#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"

namespace berth::cli {
namespace {

constexpr std::int64_t kEntriesPerPage = 1000;

std::string queue_of_entry(const Json& entry) {
  const std::string queue = show(entry, "queue");
  return queue.empty() ? "/" : queue;
}

std::string what_changed(const Json& entry) {
  std::string text;
  const auto add = [&](const std::string& more) {
    if (!more.empty()) text += (text.empty() ? "" : " ") + more;
  };
  if (has(entry, "job") && !at(entry, "job").is_null()) add("job " + show(entry, "job"));
  add(show(entry, "object"));
  for (const Json& change : items(entry, "changes")) {
    const std::string before = at(change, "before").is_null() ? "" : show(change, "before") + " -> ";
    add(show(change, "key") + ": " + before + show(change, "after"));
  }
  if (is_true(entry, "others")) add(show(entry, "subject").empty() ? "several subjects" : "several objects");
  if (integer(entry, "count") > 1) add(show(entry, "count") + " times since " + clock_text(show(entry, "first")));
  const std::string reason = show(entry, "reason");
  if (!reason.empty()) add("\"" + reason + "\"");
  return text;
}

std::vector<std::string> audit_cells(const Json& entry) {
  const std::string verb = show(entry, "verb");
  const std::string subject = show(entry, "subject");
  return {show(entry, "seq"),
          clock_text(show(entry, "time")),
          subject,
          verb.empty() ? "several" : verb,
          is_true(entry, "denied") ? "denied" : "done",
          queue_of_entry(entry),
          show(entry, "address"),
          what_changed(entry)};
}

Table audit_table() {
  return Table({{"SEQ", Align::kRight},
                {"TIME"},
                {"SUBJECT", Align::kLeft, true},
                {"VERB"},
                {"RESULT"},
                {"QUEUE", Align::kLeft, true, true},
                {"FROM"},
                {"WHAT", Align::kLeft, true}});
}

std::string audit_line(const Json& entry, Format format) {
  if (format == Format::kJson) return json_line(entry);
  if (format == Format::kYaml) return "---\n" + yaml_text(entry);
  std::string line;
  for (const std::string& cell : audit_cells(entry))
    line += (line.empty() ? "" : "  ") + (cell.empty() ? "-" : printable(cell));
  return line + "\n";
}

std::string audit_path(const AuditOptions& options, std::int64_t from, const std::string& since) {
  return query("/v1/audit", {{"from", std::to_string(from)},
                             {"since", since},
                             {"limit", options.follow ? "" : std::to_string(kEntriesPerPage)},
                             {"subject", options.subject},
                             {"queue", options.queue == "/" ? "" : options.queue},
                             {"verb", options.verb},
                             {"denied", options.denied ? "true" : ""},
                             {"follow", options.follow ? "true" : ""}});
}

Result<int> follow_audit(const AuditOptions& options, std::int64_t from, Session& session) {
  std::int64_t shown = 0;
  auto followed = session.server.stream(audit_path(options, from, ""), {}, [&](const client::StreamEvent& event) {
    boost::json::error_code ec;
    const Json entry = boost::json::parse(event.data, ec);
    if (ec || !has(entry, "seq")) return client::StreamStep::kContinue;
    session.out << audit_line(entry, options.format) << std::flush;
    const bool enough = options.limit > 0 && ++shown >= options.limit;
    return enough || !session.out ? client::StreamStep::kStop : client::StreamStep::kContinue;
  });
  if (!followed) return followed.error();
  return kOk;
}

void show_entries(const AuditOptions& options, const std::deque<Json>& entries, Session& session) {
  if (options.format != Format::kTable) {
    for (const Json& entry : entries) session.out << audit_line(entry, options.format);
    return;
  }
  Table table = audit_table();
  for (const Json& entry : entries) table.add(audit_cells(entry));
  session.out << (table.empty() ? "nothing since " + options.since + "\n"
                                : table.text(table_width(session, options.format)));
}

}  // namespace

// Following begins with what comes next. A list has the newest entries that the limit allows, oldest first.
Result<int> run(const AuditOptions& options, Session& session) {
  const auto since = iso_when(options.since, clock_now());
  if (!since) return since.error();
  if (options.follow) {
    const auto end = get(session, query("/v1/audit", {{"since", to_iso8601(clock_now())}, {"limit", "1"}}));
    if (!end) return end.error();
    return follow_audit(options, integer(*end, "seq") + 1, session);
  }
  std::deque<Json> newest;
  for (std::int64_t from = 1; true;) {
    const auto page = get(session, audit_path(options, from, *since));
    if (!page) return page.error();
    for (const Json& entry : items(*page, "items")) {
      newest.push_back(entry);
      if (options.limit > 0 && newest.size() > static_cast<std::size_t>(options.limit)) newest.pop_front();
    }
    const std::int64_t next = integer(*page, "next_from");
    if (next <= from || next > integer(*page, "seq")) break;
    from = next;
  }
  show_entries(options, newest, session);
  return kOk;
}

}  // namespace berth::cli
