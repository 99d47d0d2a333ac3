#pragma once
// Signing in with a browser: the authorization code flow of OpenID Connect with PKCE (RFC 7636). These are its texts:
// what is read of the issuer's discovery document, the address to which the browser is sent, the form that redeems the
// code, and what an ID token that comes of it must say. Pure.

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "identity/claims.h"
#include "identity/issuer.h"

namespace berth::identity {

// Where an issuer has people sign in, and where codes are redeemed.
struct CodeEndpoints {
  std::string authorization;
  std::string token;
  bool names_itself = false;  // it gives `iss` with each code (RFC 9207)
};

// `document`: the discovery document of the issuer.
Result<CodeEndpoints> read_code_endpoints(const boost::json::object& document);

// The secrets of one sign-in: `state` comes back with the code, `nonce` within the ID token, and `verifier` proves to
// the issuer that the code is redeemed by the one who asked for it.
struct CodeSecrets {
  std::string state;
  std::string nonce;
  std::string verifier;
};

// The address to which the browser is sent.
std::string authorization_address(const CodeEndpoints& to, const PageClient& client, const CodeSecrets& secrets,
                                  const std::string& redirect_uri);

using Form = std::vector<std::pair<std::string, std::string>>;
// A client without a secret names itself in the form; one with a secret does so by HTTP Basic.
Form code_form(const PageClient& client, const std::string& code, const std::string& verifier,
               const std::string& redirect_uri);
Form refresh_form(const PageClient& client, const std::string& refresh_token);
std::string encoded(const Form& form);
// As forms and HTTP Basic of OAuth want it (RFC 6749, appendix B).
std::string form_encoded(std::string_view text);

struct IssuedTokens {
  std::string id_token;
  std::string refresh_token;  // empty: none was given
};
// Reads the answer of the token endpoint with this status. kDenied if the issuer refuses the code or refresh token.
Result<IssuedTokens> read_issued(int status, std::string_view body);

// Base64url of the SHA-256 of the verifier (method S256).
std::string code_challenge(std::string_view verifier);

// Returns the identity of an ID token that was made for `client` alone; `nonce` empty: it came by a refresh token.
// Requires claims signed by the issuer.
Result<Identity> check_id_token(const boost::json::object& claims, const Issuer& issuer, const std::string& nonce,
                                Timestamp now);

}  // namespace berth::identity
