#include "cli/connection.h"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <vector>

#include "cli/client/plain_http.h"
#include "cli/login/contexts.h"
#include "cli/login/sign_in.h"
#include "cli/when.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLongestToken = 16 * 1024;
constexpr const char* kDevOfRoot = "/var/lib/berth-dev";  // as src/daemon/serve.cc has it

std::string state_directory(const Environment& environment) {
  const std::string state = environment("XDG_STATE_HOME");
  if (!state.empty()) return state + "/berth";
  return environment("HOME") + "/.local/state/berth";
}

bool is_listened_on(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.sun_path), path.c_str(), path.size() + 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const bool listened_on = connected || errno == EAGAIN;
  ::close(socket);
  return listened_on;
}

std::string default_server(const Environment& environment) {
  for (const std::string& path : {state_directory(environment) + "/berth.sock", std::string("/run/berth/berth.sock"),
                                  std::string("/var/lib/berth/berth.sock"), std::string(kDevOfRoot) + "/berth.sock"}) {
    if (is_listened_on(path)) return "unix:" + path;
  }
  return kDefaultServer;
}

Result<std::string> token_in(const std::string& file) {
  auto text = read_file(file, kLongestToken);
  if (!text) return Error{text.error().code, "token file " + text.error().message};
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r' || text->back() == ' ')) text->pop_back();
  for (const char c : *text) {
    if (c <= ' ' || c > '~') return invalid("token file " + file + " does not hold a token: one line of plain letters");
  }
  return text;
}

// The context that is used; its name is empty if there is none.
Result<Context> find_context(const ConnectionOptions& options, const Environment& environment) {
  auto known = load_contexts(contexts_path(environment));
  if (!known) return known.error();
  const std::string& name = options.context.empty() ? known->current : options.context;
  if (name.empty()) return Context();
  if (const Context* found = known->find(name)) return *found;
  if (options.context.empty()) return Context();
  return not_found("there is no context '" + name + "'; `berth context` lists them");
}

// The token of the context, renewed if it is about to end.
Result<std::string> token_of(const Context& context, const Environment& environment) {
  const auto now_s = [] { return clock_now().ms / 1000; };
  if (!is_ending(context, now_s())) return context.token;
  std::string token;
  const auto renew = [&](Contexts& contexts) -> Result<void> {
    Context* known = contexts.find(context.name);
    if (known == nullptr) return not_found("there is no context '" + context.name + "' any more");
    if (is_ending(*known, now_s())) {  // else another command has renewed it
      auto fresh = renewed(*known, environment);
      if (!fresh) return fresh.error();
      *known = std::move(*fresh);
    }
    token = known->token;
    return {};
  };
  if (auto changed = change_contexts(contexts_path(environment), renew); !changed) return changed.error();
  return token;
}

// A token, and the file that it is from, if it is from one.
struct FoundToken {
  std::string token = {};
  std::string file = {};
};

Result<FoundToken> found_in(const std::string& file) {
  auto token = token_in(file);
  if (!token) return token.error();
  return FoundToken{std::move(*token), file};
}

Result<FoundToken> find_token(const ConnectionOptions& options, const Environment& environment, const Context& context,
                              bool is_socket) {
  if (!options.token_file.empty()) return found_in(options.token_file);
  if (const std::string file = environment("BERTH_TOKEN_FILE"); !file.empty()) return found_in(file);
  if (std::string token = environment("BERTH_TOKEN"); !token.empty()) return FoundToken{std::move(token)};
  if (!context.token.empty()) {
    auto token = token_of(context, environment);
    if (!token) return token.error();
    return FoundToken{std::move(*token)};
  }
  if (is_socket) return FoundToken();
  if (::geteuid() == 0) {
    if (auto found = found_in(std::string(kDevOfRoot) + "/token")) return found;
  }
  auto found = found_in(state_directory(environment) + "/token");
  if (!found && found.error().code == ErrorCode::kNotFound) return FoundToken();
  return found;
}

// Whom the server may run as, besides root and this user: the owner of the file that the token is from, for a server
// writes its own token there, and the user that $BERTH_SERVER_USER names.
Result<std::vector<uid_t>> find_server_users(const std::string& token_file, const Environment& environment) {
  std::vector<uid_t> users;
  struct stat status {};
  if (!token_file.empty() && ::stat(token_file.c_str(), &status) == 0) users.push_back(status.st_uid);
  const std::string named = environment("BERTH_SERVER_USER");
  if (named.empty()) return users;
  uid_t uid = 0;
  const auto [end, error] = std::from_chars(named.data(), named.data() + named.size(), uid);
  if (error == std::errc() && end == named.data() + named.size()) {
    users.push_back(uid);
    return users;
  }
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer{};
  ::getpwnam_r(named.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr)
    return invalid("BERTH_SERVER_USER: this machine has no user '" + named + "'; give a name or a uid");
  users.push_back(found->pw_uid);
  return users;
}

std::string find_address(const ConnectionOptions& options, const Environment& environment, const Context& context) {
  std::string address = options.server.empty() ? environment("BERTH_SERVER") : options.server;
  if (!options.context.empty() && options.server.empty()) address = context.server;  // a flag before the environment
  if (address.empty()) address = context.server;
  if (address.empty()) return default_server(environment);
  if (address.starts_with(client::kSocketScheme)) return address;
  return address.find("://") == std::string::npos ? "http://" + address : address;
}

Error not_readable(const std::string& path) {
  const int reason = errno;
  return {reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path + ": " + std::strerror(reason)};
}

}  // namespace

std::string process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

Result<client::ClientOptions> find_server(const ConnectionOptions& options, const Environment& environment,
                                          bool sign_in) {
  const auto chosen = [&](const std::string& flag, const char* variable) {
    return flag.empty() ? environment(variable) : flag;
  };
  client::ClientOptions found;
  auto context = find_context(options, environment);
  if (!context && sign_in) return context.error();
  if (!context) context = Context();
  found.base_url = find_address(options, environment, *context);
  // A token of one server is not sent to another.
  if (!sign_in || context->server != found.base_url) context->token.clear();
  auto token = find_token(options, environment, *context, found.base_url.starts_with(client::kSocketScheme));
  if (!token) return token.error();
  auto users = find_server_users(token->file, environment);
  if (!users) return users.error();
  found.token = std::move(token->token);
  found.server_users = std::move(*users);
  if (!found.token.empty() && client::crosses_network_unencrypted(found.base_url))
    return invalid("the token is not sent to " + found.base_url +
                   ": it would cross the network unencrypted. Give the server's https:// address (docs/tls.md)");
  found.ca_file = chosen(options.ca, "BERTH_CA");
  found.cert_file = chosen(options.cert, "BERTH_CERT");
  found.key_file = chosen(options.cert_key, "BERTH_KEY");
  return found;
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  std::ifstream file;
  if (path != "-") {
    errno = 0;
    file.open(path, std::ios::binary);
    if (!file) return not_readable(path);
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string text(limit + 1, '\0');
  errno = 0;
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return not_readable(path);
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > limit) {
    return Error{ErrorCode::kTooLarge, path + " is larger than " + std::to_string(limit) + " bytes"};
  }
  return text;
}

}  // namespace berth::cli
