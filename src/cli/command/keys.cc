// Identities of jobs: what a job shows to others, and the keys that it is signed with.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "cli/command/commands.h"
#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"

namespace berth::cli {
namespace {

Result<int> rotate_keys(const KeysOptions& options, Session& session) {
  const auto answer = answer_of(
      session.server.post(options.withdraw ? "/v1/keys/rotate?withdraw=true" : "/v1/keys/rotate", std::string_view()));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format, [&] {
    return "key " + printable(show(*answer, "kid")) + " signs now; the earlier ones are " +
           (options.withdraw ? "withdrawn\n" : "public until their tokens have ended\n");
  });
  return kOk;
}

std::string key_table(const boost::json::array& keys, std::size_t width) {
  Table table({{"KEY", Align::kLeft, true}, {"ALGORITHM"}, {"SIGNS"}});
  bool newest = true;
  for (const Json& key : keys) {
    table.add({show(key, "kid"), show(key, "alg"), newest ? "yes" : "no"});
    newest = false;
  }
  return table.text(width);
}

}  // namespace

Result<int> run(const KeysOptions& options, Session& session) {
  if (options.action == "rotate") return rotate_keys(options, session);
  if (options.withdraw) return invalid("--withdraw goes with rotate");
  const auto answer = get(session, "/v1/keys");
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format, [&] {
    return key_table(items(*answer, "keys"), table_width(session, options.show.format));
  });
  return kOk;
}

// By the job's own token and address, whatever else the environment and contexts name.
Result<int> run(const JobTokenOptions& options, Session& session) {
  client::ClientOptions server;
  server.base_url = process_environment("BERTH_JOB_SERVER");
  server.token = process_environment("BERTH_JOB_TOKEN");
  server.ca_file = process_environment("BERTH_CA");
  const auto path = job_path(process_environment("BERTH_JOB"), "/identity");
  if (server.base_url.empty() || server.token.empty() || !path)
    return invalid(
        "this is not inside a job of a server that gives identities (BERTH_JOB, BERTH_JOB_SERVER and BERTH_JOB_TOKEN "
        "are not set)");
  client::Client own(std::move(server));
  const auto answer = answer_of(own.post(query(*path, {{"audience", options.audience}}), std::string_view()));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format, [&] { return show(*answer, "token") + "\n"; });
  return kOk;
}

}  // namespace berth::cli
