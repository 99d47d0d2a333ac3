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

std::string queue_words(const Json& token) {
  const std::string queue = show(token, "queue");
  return queue.empty() ? "/" : queue;
}

Result<int> create_token(const TokenOptions& options, Session& session) {
  if (options.queue.empty())
    return invalid("--queue is missing; give the queue at which it has the role, or / for all");
  const auto seconds = document::parse_duration_s(options.expires);
  if (!seconds) return invalid("--expires: " + seconds.error().message);
  boost::json::object body{{"name", options.name}, {"role", options.role}, {"expires_in_s", *seconds}};
  if (options.queue != "/") body["queue"] = options.queue;
  if (!options.user.empty()) body["user"] = options.user;
  const auto answer = answer_of(session.server.post("/v1/tokens", boost::json::serialize(body)));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format, [&] {
    return "token " + printable(show(*answer, "name")) + ": " + show(*answer, "role") + " at " +
           printable(queue_words(*answer)) + ", submits as " + printable(show(*answer, "user")) + ", until " +
           clock_text(show(*answer, "expires")) + "\nIt is shown this once:\n" + show(*answer, "token") + "\n";
  });
  return kOk;
}

Result<int> revoke_token(const TokenOptions& options, Session& session) {
  const auto answer = answer_of(session.server.del("/v1/tokens/" + client::encode_segment(options.name)));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format,
                           [&] { return "token " + printable(show(*answer, "name")) + " is revoked\n"; });
  return kOk;
}

std::string token_table(const boost::json::array& tokens, std::size_t width) {
  if (tokens.empty()) return "there are no tokens (beside the one in the data directory)\n";
  Table table({{"NAME", Align::kLeft, true},
               {"ROLE"},
               {"QUEUE", Align::kLeft, true, true},
               {"USER", Align::kLeft, true},
               {"CREATED"},
               {"BY", Align::kLeft, true},
               {"LAST USED"},
               {"EXPIRES"}});
  for (const Json& token : tokens) {
    table.add({show(token, "name"), show(token, "role"), queue_words(token), show(token, "user"),
               clock_text(show(token, "created")), show(token, "created_by"),
               show(token, "last_used").empty() ? "never" : clock_text(show(token, "last_used")),
               is_true(token, "expired") ? "expired" : clock_text(show(token, "expires"))});
  }
  return table.text(width);
}

// Empty for a server that does not say it.
std::string proof_words(const Json& identity) {
  const std::string by = show(identity, "authenticated_by");
  if (by.empty()) return "";
  const std::string carrier = show(identity, "connection");
  const std::string over = carrier == "tls" ? " over TLS" : carrier == "unix-socket" ? " over the Unix socket" : "";
  return ", known by " + (by == "socket" ? "the Unix socket" : "its " + printable(by) + over);
}

}  // namespace

Result<int> run(const TokenOptions& options, Session& session) {
  if (options.action != "list" && options.name.empty()) return invalid(options.action + " needs the token's name");
  if (options.action == "create") return create_token(options, session);
  if (options.action == "revoke") return revoke_token(options, session);
  const auto answer = get(session, "/v1/tokens");
  if (!answer) return answer.error();
  session.out << formatted(at(*answer, "items"), options.show.format, [&] {
    return token_table(items(*answer, "items"), table_width(session, options.show.format));
  });
  return kOk;
}

Result<int> run(const WhoamiOptions& options, Session& session) {
  const auto answer = get(session, "/v1/identity");
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format, [&] {
    std::string text = printable(show(*answer, "subject")) + ", submits as " + printable(show(*answer, "user")) +
                       proof_words(*answer) + "\n";
    for (const Json& role : items(*answer, "roles"))
      text += show(role, "role") + " at " + printable(queue_words(role)) + "\n";
    return text;
  });
  return kOk;
}

}  // namespace berth::cli
