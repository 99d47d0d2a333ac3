#include "cli/login/contexts.h"

#include "cli/command/commands.h"
#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/name.h"

namespace berth::cli {
namespace {

std::string sign_in_words(const Context& context) {
  if (context.token.empty()) return context.issuer.empty() ? "-" : "signed out";
  return "until " + clock_text(to_iso8601({context.expires_s * 1000}));
}

// Without the tokens.
Json context_view(const Context& context, bool current) {
  return boost::json::object{{"name", context.name},     {"server", context.server},
                             {"issuer", context.issuer}, {"client_id", context.client_id},
                             {"grant", context.grant},   {"signed_in", !context.token.empty()},
                             {"current", current}};
}

Result<int> list_contexts(const ContextOptions& options, Session& session, const std::string& path) {
  const auto known = load_contexts(path);
  if (!known) return known.error();
  boost::json::array rows;
  for (const Context& one : known->contexts) rows.push_back(context_view(one, one.name == known->current));
  session.out << formatted(Json(rows), options.show.format, [&] {
    if (known->contexts.empty())
      return std::string("there are no contexts; `berth login` or `berth context set` make one\n");
    Table table({{"CURRENT"},
                 {"NAME", Align::kLeft, true},
                 {"SERVER", Align::kLeft, true},
                 {"ISSUER", Align::kLeft, true, true},
                 {"TOKEN"}});
    for (const Context& one : known->contexts)
      table.add({one.name == known->current ? "*" : "", one.name, printable(one.server), printable(one.issuer),
                 sign_in_words(one)});
    return table.text(table_width(session, options.show.format));
  });
  return kOk;
}

Result<void> change(const ContextOptions& options, const std::string& server, Contexts& contexts) {
  Context* known = contexts.find(options.name);
  if (options.action == "set") {
    if (!well_formed_name(options.name)) return invalid("the name of a context: " + std::string(kNameRule));
    if (server.empty()) return invalid("give the server of the context by --server URL");
    Context context = known == nullptr ? Context{.name = options.name} : *known;
    if (context.server != server) {  // a token of one server is not sent to another
      context.token.clear();
      context.refresh_token.clear();
    }
    context.server = server;
    contexts.set(std::move(context));
    if (contexts.current.empty()) contexts.current = options.name;
    return {};
  }
  if (known == nullptr) return not_found("there is no context '" + options.name + "'; `berth context` lists them");
  if (options.action == "use") {
    contexts.current = options.name;
    return {};
  }
  std::erase_if(contexts.contexts, [&](const Context& one) { return one.name == options.name; });
  if (contexts.current == options.name) contexts.current.clear();
  return {};
}

}  // namespace

Result<int> run(const ContextOptions& options, Session& session) {
  const std::string path = contexts_path(&process_environment);
  if (options.action == "list") return list_contexts(options, session, path);
  if (options.name.empty()) return invalid("berth context " + options.action + " needs the name of a context");
  const std::string server = options.server_given ? session.address : std::string();
  const auto changed = change_contexts(path, [&](Contexts& contexts) { return change(options, server, contexts); });
  if (!changed) return changed.error();
  session.out << "context " << options.name
              << (options.action == "delete" ? " is deleted"
                  : options.action == "use"  ? " is used now"
                                             : " is set")
              << "\n";
  return kOk;
}

}  // namespace berth::cli
