#include <boost/json/object.hpp>

#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"

namespace berth::cli {

// The server's version too, where there is one; that there is none is no failure.
Result<int> run(const VersionOptions& options, Session& session) {
  const auto health = get(session, "/healthz");
  const std::string server = health ? show(*health, "version") : "";
  boost::json::object value{{"client", BERTH_VERSION}, {"server", nullptr}, {"address", session.address}};
  if (!server.empty()) value["server"] = server;
  session.out << formatted(value, options.format, [&] {
    const std::string found = server.empty() ? "none at " : printable(server) + " at ";
    return std::string("berth ") + BERTH_VERSION + "\nserver " + found + printable(session.address) + "\n";
  });
  return kOk;
}

}  // namespace berth::cli
