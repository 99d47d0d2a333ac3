#pragma once
// Signing in at an identity provider: the device authorization flow (RFC 8628), client credentials (RFC 6749, section
// 4.4), and renewal by a refresh token. Each returns the context with its new tokens.

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "cli/login/contexts.h"

namespace berth::cli {

// What the user has to do elsewhere.
struct DevicePrompt {
  std::string url;       // to open in a browser
  std::string code;      // to enter there
  std::string full_url;  // with the code in it; empty: the provider gives none
  std::int64_t expires_in_s = 0;
};

Result<Context> sign_in_by_device(Context context, const std::function<void(const DevicePrompt&)>& show);
Result<Context> sign_in_as_client(Context context, const std::string& secret);

// Returns the secret of the client: from its file, else from $BERTH_CLIENT_SECRET.
Result<std::string> client_secret(const Context& context, const Environment& environment);

// Returns true if the token ends within half a minute.
bool is_ending(const Context& context, std::int64_t now_s);
Result<Context> renewed(Context context, const Environment& environment);

// Tells the provider that the refresh token is no longer needed (RFC 7009), where it takes that.
void forget_at_provider(const Context& context);

}  // namespace berth::cli
