#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

// "n1,n2" are nodes, "pool=big,zone=east" select all that are there.
Result<void> take_nodes(const std::vector<std::string>& words, boost::json::object& body) {
  boost::json::array nodes;
  boost::json::object labels;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (word.empty() || equals == 0) return invalid("--nodes: '" + word + "' is neither a node nor KEY=VALUE");
    if (equals == std::string::npos)
      nodes.emplace_back(word);
    else if (word.substr(0, equals) == "pool")
      body["pool"] = word.substr(equals + 1);
    else
      labels[word.substr(0, equals)] = word.substr(equals + 1);
  }
  const bool selects = !labels.empty() || body.contains("pool");
  if (selects && !nodes.empty()) return invalid("--nodes: name nodes, or select them by pool= and labels, not both");
  if (!selects && nodes.empty()) return invalid("--nodes is missing; give names, such as n1,n2, or pool=NAME");
  if (!nodes.empty()) body["nodes"] = std::move(nodes);
  if (!labels.empty()) body["labels"] = std::move(labels);
  return {};
}

Result<int> add(const MaintenanceOptions& options, Session& session) {
  boost::json::object body;
  if (auto ok = take_nodes(options.nodes, body); !ok) return ok.error();
  if (!options.name.empty()) body["name"] = options.name;
  if (!options.reason.empty()) body["reason"] = options.reason;
  if (!options.from.empty() && options.from != "now") {
    const auto from = parse_when(options.from, clock_now());
    if (!from) return invalid("--from: " + from.error().message);
    body["from"] = to_iso8601(*from);
  }
  const auto seconds = document::parse_duration_s(options.duration);
  if (!seconds) return invalid("--for: " + seconds.error().message);
  body["for_s"] = *seconds;
  const auto answer = answer_of(session.server.post("/v1/maintenance", boost::json::serialize(body)));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format, [&] {
    return "maintenance " + printable(show(*answer, "name")) +
           (is_true(*answer, "unchanged") ? " was planned already\n" : " is planned\n");
  });
  return kOk;
}

Result<int> cancel(const MaintenanceOptions& options, Session& session) {
  if (options.name.empty()) return invalid("cancel needs the window's name");
  const auto answer = answer_of(session.server.del("/v1/maintenance/" + client::encode_segment(options.name)));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format,
                           [&] { return "maintenance " + printable(show(*answer, "name")) + " is cancelled\n"; });
  return kOk;
}

std::string table(const boost::json::array& windows, std::size_t width) {
  if (windows.empty()) return "no maintenance is planned\n";
  Table table({{"NAME", Align::kLeft, true},
               {"FROM"},
               {"TO"},
               {"STATE"},
               {"JOBS THERE", Align::kRight},
               {"NODES", Align::kLeft, true},
               {"REASON", Align::kLeft, true}});
  for (const Json& window : windows) {
    table.add({show(window, "name"), clock_text(show(window, "from")), clock_text(show(window, "to")),
               is_true(window, "begun") ? "lasts" : "planned", show(window, "jobs_there"),
               joined(at(window, "nodes"), ","), show(window, "reason")});
  }
  return table.text(width);
}

Result<int> list(const MaintenanceOptions& options, Session& session) {
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto answer = get(session, "/v1/maintenance");
    if (!answer) return answer.error();
    const Format format = options.show.format;
    return formatted(at(*answer, "items"), format,
                     [&] { return table(items(*answer, "items"), table_width(session, format)); });
  });
}

}  // namespace

Result<int> run(const MaintenanceOptions& options, Session& session) {
  if (options.action == "add") return add(options, session);
  if (options.action == "cancel") return cancel(options, session);
  return list(options, session);
}

}  // namespace berth::cli
