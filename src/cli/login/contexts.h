#pragma once
// The servers that the user works with, each with how to sign in there and the tokens got: a file of mode 0600,
// ~/.config/berth/credentials.json (under $XDG_CONFIG_HOME if set). One of them is current.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/result.h"

namespace berth::cli {

struct Context {
  std::string name = {};
  std::string server = {};
  std::string issuer = {};  // empty: nobody signs in here; a token comes from elsewhere
  std::string client_id = {};
  std::string grant = {};        // device or client-credentials
  std::string secret_file = {};  // of the client; empty: $BERTH_CLIENT_SECRET
  std::string scope = {};
  std::string resource = {};   // whose access token is wanted (RFC 8707); empty: the ID token
  std::string audience = {};   // the same for providers that name it so
  std::string issuer_ca = {};  // certificates for the issuer's TLS
  std::string token = {};
  std::string refresh_token = {};
  std::int64_t expires_s = 0;  // of `token`, since 1970
  static constexpr auto fields() {
    return field_list(field("name", &Context::name), field("server", &Context::server),
                      field("issuer", &Context::issuer), field("client_id", &Context::client_id),
                      field("grant", &Context::grant), field("secret_file", &Context::secret_file),
                      field("scope", &Context::scope), field("resource", &Context::resource),
                      field("audience", &Context::audience), field("issuer_ca", &Context::issuer_ca),
                      field("token", &Context::token), field("refresh_token", &Context::refresh_token),
                      field("expires_s", &Context::expires_s));
  }
};

struct Contexts {
  std::string current;  // empty: none
  std::vector<Context> contexts;
  static constexpr auto fields() {
    return field_list(field("current", &Contexts::current), field("contexts", &Contexts::contexts));
  }

  Context* find(const std::string& name);
  Context& set(Context context);  // adds or replaces
};

using Environment = std::function<std::string(const std::string&)>;
std::string contexts_path(const Environment& environment);

// A file that is not there has no contexts. One that others may read, or that is another user's, is refused.
Result<Contexts> load_contexts(const std::string& path);

// Changes the file under a lock, so that two commands at once lose nothing. An error of `change` leaves it as it was.
Result<void> change_contexts(const std::string& path, const std::function<Result<void>(Contexts&)>& change);

}  // namespace berth::cli
