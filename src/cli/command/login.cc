#include <cstdlib>

#include "cli/command/commands.h"
#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/login/contexts.h"
#include "cli/login/sign_in.h"
#include "cli/printable.h"
#include "model/issuer_url.h"
#include "model/name.h"

namespace berth::cli {
namespace {

constexpr const char* kDefaultContext = "default";
constexpr const char* kDefaultScope = "openid offline_access";

// The context that the options name: what it was before, and over that what the options say.
Result<Context> context_of(const LoginOptions& options, Contexts& known, const std::string& address) {
  Context context;
  context.name = !options.context.empty() ? options.context : known.current.empty() ? kDefaultContext : known.current;
  if (!well_formed_name(context.name)) return invalid("--context: " + std::string(kNameRule));
  if (const Context* before = known.find(context.name)) context = *before;
  const bool other_issuer = !options.issuer.empty() && options.issuer != context.issuer;
  if (other_issuer) context = {.name = context.name, .server = context.server, .issuer = options.issuer};
  if (!options.client_id.empty()) context.client_id = options.client_id;
  if (context.issuer.empty() || context.client_id.empty())
    return invalid("give --issuer URL and --client-id ID, as your administrator says");
  if (const std::string flaw = flaw_of_issuer_url(context.issuer); !flaw.empty()) return invalid("--issuer: " + flaw);
  if (options.client_credentials) {
    context.grant = "client-credentials";
  } else if (!options.issuer.empty() || context.grant.empty()) {
    context.grant = "device";
  }
  if (!options.secret_file.empty()) context.secret_file = options.secret_file;
  if (!options.scope.empty()) context.scope = options.scope;
  if (context.scope.empty() && context.grant == "device") context.scope = kDefaultScope;
  if (!options.resource.empty()) context.resource = options.resource;
  if (!options.audience.empty()) context.audience = options.audience;
  if (!options.issuer_ca.empty()) context.issuer_ca = options.issuer_ca;
  if (options.server_given || context.server.empty()) context.server = address;
  return context;
}

void show_prompt(Session& session, const DevicePrompt& prompt) {
  session.out << "Open " << printable(prompt.url) << " in a browser and enter the code\n\n    "
              << printable(prompt.code) << "\n\n";
  if (!prompt.full_url.empty()) session.out << "or open " << printable(prompt.full_url) << "\n";
  session.out << "Waiting, at most " << prompt.expires_in_s << " seconds ...\n" << std::flush;
}

}  // namespace

Result<int> run(const LoginOptions& options, Session& session) {
  const std::string path = contexts_path(&process_environment);
  auto known = load_contexts(path);
  if (!known) return known.error();
  auto context = context_of(options, *known, session.address);
  if (!context) return context.error();
  Result<Context> signed_in = *context;
  if (context->grant == "client-credentials") {
    const auto secret = client_secret(*context, &process_environment);
    if (!secret) return secret.error();
    signed_in = sign_in_as_client(*context, *secret);
  } else {
    signed_in = sign_in_by_device(*context, [&](const DevicePrompt& prompt) { show_prompt(session, prompt); });
  }
  if (!signed_in) return signed_in.error();
  const auto saved = change_contexts(path, [&](Contexts& contexts) -> Result<void> {
    contexts.set(*signed_in);
    contexts.current = signed_in->name;
    return {};
  });
  if (!saved) return saved.error();
  session.out << "signed in at " << printable(signed_in->issuer) << "; context " << signed_in->name << " for "
              << printable(signed_in->server) << "\n";
  return kOk;
}

Result<int> run(const LogoutOptions& options, Session& session) {
  const std::string path = contexts_path(&process_environment);
  Context ended;
  const auto saved = change_contexts(path, [&](Contexts& contexts) -> Result<void> {
    const std::string name = options.context.empty() ? contexts.current : options.context;
    Context* context = contexts.find(name);
    if (context == nullptr) return not_found("there is no context '" + name + "'; `berth context` lists them");
    ended = *context;
    context->token.clear();
    context->refresh_token.clear();
    context->expires_s = 0;
    return {};
  });
  if (!saved) return saved.error();
  forget_at_provider(ended);
  session.out << "signed out of context " << ended.name << "; a token that was copied is good until it expires\n";
  return kOk;
}

}  // namespace berth::cli
