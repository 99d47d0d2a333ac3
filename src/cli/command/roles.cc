#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"

namespace berth::cli {
namespace {

std::string role_place(const Json& role) {
  const std::string queue = show(role, "queue");
  return queue.empty() ? "/" : queue;
}

Result<int> end_access(const BindOptions& options, Session& session) {
  if (!options.subject.empty()) return invalid("give SUBJECT ROLE QUEUE, or --subject alone");
  const std::string path = options.lift ? "/v1/subjects/unblock" : "/v1/subjects/block";
  const boost::json::object body{{"subject", options.blocked}};
  const auto answer = answer_of(session.server.post(path, boost::json::serialize(body)));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] {
    const std::string subject = printable(show(*answer, "subject"));
    if (options.lift) return subject + " may come in again, with the roles and tokens that it has\n";
    return "all access of " + subject + " is ended, its tokens and open streams with it; its jobs go on\n" +
           (subject == "user:admin" ? "the token in the data directory stays an admin's\n" : "");
  });
  return kOk;
}

std::string roles_text(const Json& answer, std::size_t width) {
  Table table({{"SUBJECT", Align::kLeft, true},
               {"ROLE"},
               {"QUEUE", Align::kLeft, true, true},
               {"FROM"},
               {"BY", Align::kLeft, true},
               {"AT"},
               {"ACCESS"}});
  for (const Json& role : items(answer, "items")) {
    table.add({show(role, "subject"), show(role, "role"), role_place(role), show(role, "from"), show(role, "by"),
               clock_text(show(role, "at")), is_true(role, "blocked") ? "ended" : ""});
  }
  std::string text = table.empty() ? "no roles, beside those of tokens\n" : table.text(width);
  for (const Json& subject : items(answer, "blocked")) {
    text += "all access of " + printable(show(subject, "subject")) + " was ended by " + printable(show(subject, "by")) +
            " at " + clock_text(show(subject, "at")) + "\n";
  }
  return text;
}

}  // namespace

Result<int> run(const BindOptions& options, Session& session) {
  if (!options.blocked.empty()) return end_access(options, session);
  if (options.lift) return invalid("--lift goes with --subject");
  if (options.subject.empty() || options.role.empty() || options.queue.empty())
    return invalid("give SUBJECT ROLE QUEUE, such as group:corp:nlp member research/nlp; / is the root");
  boost::json::object body{{"subject", options.subject}, {"role", options.role}};
  if (options.queue != "/") body["queue"] = options.queue;
  const auto answer =
      answer_of(session.server.post(options.grant ? "/v1/roles" : "/v1/roles/revoke", boost::json::serialize(body)));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] {
    const std::string binding = printable(show(*answer, "subject")) + (options.grant ? " is " : " is no longer ") +
                                show(*answer, "role") + " at " + printable(role_place(*answer));
    return binding + (is_true(*answer, "unchanged") ? ", as before\n" : "\n");
  });
  return kOk;
}

Result<int> run(const RolesOptions& options, Session& session) {
  const auto answer = get(session, "/v1/roles");
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format,
                           [&] { return roles_text(*answer, table_width(session, options.show.format)); });
  return kOk;
}

}  // namespace berth::cli
