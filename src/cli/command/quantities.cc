#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <utility>

#include "cli/command/commands.h"
#include "cli/command/document_body.h"
#include "cli/command/job_words.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/quantity_report.h"

namespace berth::cli {
namespace {

// Returns a body with the one report that the options name.
Result<std::string> body_of_one(const QuantitiesOptions& options, Timestamp now) {
  const std::pair<const char*, const std::string&> needed[] = {{"--id", options.id},
                                                               {"--queue", options.queue},
                                                               {"--kind", options.kind},
                                                               {"--from", options.from},
                                                               {"--to", options.to}};
  for (const auto& [flag, value] : needed) {
    if (value.empty())
      return invalid(std::string(flag) + " is missing: give a FILE, or --id --queue --kind --quantity --from --to");
  }
  if (options.quantity == 0) return invalid("--quantity is missing: give whole units, 1 or more");
  boost::json::object report{
      {"id", options.id}, {"queue", options.queue}, {"kind", options.kind}, {"quantity", options.quantity}};
  if (!options.unit.empty()) report["unit"] = options.unit;
  for (const auto& [name, text] : {std::pair("from", &options.from), std::pair("to", &options.to)}) {
    const auto time = parse_when(*text, now);
    if (!time) return invalid("--" + std::string(name) + ": " + time.error().message);
    report[name] = to_iso8601(*time);
  }
  return boost::json::serialize(boost::json::object{{"quantities", boost::json::array{std::move(report)}}});
}

Result<int> report_quantities(const QuantitiesOptions& options, Session& session) {
  const auto body =
      options.file.empty() ? body_of_one(options, clock_now()) : document_body(options.file, document::read_quantities);
  if (!body) return body.error();
  const auto done = answer_of(session.server.post("/v1/quantities", *body));
  if (!done) return done.error();
  session.out << formatted(*done, options.format, [&] {
    const std::int64_t repeated = integer(*done, "repeated");
    return counted(show(*done, "reported"), "report") + " on the bill" +
           (repeated == 0 ? "" : "; " + std::to_string(repeated) + " counted before") + "\n";
  });
  return kOk;
}

Table quantity_table(const Json& list) {
  Table table({{"ID", Align::kLeft, true, true},
               {"QUEUE", Align::kLeft, true},
               {"KIND", Align::kLeft, true},
               {"QUANTITY", Align::kRight},
               {"UNIT", Align::kLeft, true},
               {"FROM"},
               {"TO"},
               {"BY", Align::kLeft, true}});
  for (const Json& one : items(list, "items"))
    table.add({show(one, "id"), show(one, "queue"), show(one, "kind"), show(one, "quantity"), show(one, "unit"),
               show(one, "from"), show(one, "to"), show(one, "user")});
  return table;
}

Result<int> list_quantities(const QuantitiesOptions& options, Session& session) {
  const auto list = get(
      session, query("/v1/quantities", {{"queue", options.queue}, {"kind", options.kind}, {"month", options.month}}));
  if (!list) return list.error();
  session.out << formatted(at(*list, "items"), options.format, [&] {
    const Table table = quantity_table(*list);
    if (options.format == Format::kCsv) return table.csv();
    if (table.empty()) return std::string("nothing is reported for months that are not closed\n");
    return table.text(table_width(session, options.format));
  });
  return kOk;
}

}  // namespace

Result<int> run(const QuantitiesOptions& options, Session& session) {
  return options.action == "report" ? report_quantities(options, session) : list_quantities(options, session);
}

}  // namespace berth::cli
