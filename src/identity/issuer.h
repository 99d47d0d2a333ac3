#pragma once
// The issuers whose tokens the server takes, as the operator writes them in a file (`berth serve --issuers FILE`;
// docs/sign-in.md has the keys). The file is read at the start.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/document/document.h"

namespace berth::identity {

// The client by which people sign in on the web page (code_flow.h).
struct PageClient {
  std::string id;           // empty: the page does not offer this issuer
  std::string secret_file;  // empty: a public client
  std::string secret;       // what it holds
  std::string scope = "openid";
  std::string url;  // of this server, as browsers reach it; empty: the address that it serves on
  bool operator==(const PageClient&) const = default;
};

struct Issuer {
  std::string name;  // in front of every subject and group of it: corp:ada
  std::string url;   // the `iss` of its tokens, letter by letter
  std::vector<std::string> audiences;
  std::string username_claim = "sub";
  std::string groups_claim = "groups";
  std::string keys_url;   // of its keys; empty: discovery says
  std::string keys_file;  // a file with its keys instead; empty: none
  std::string ca_file;    // certificates that its TLS is checked with; empty: those of the system
  std::int64_t clock_skew_s = 60;
  std::int64_t refresh_s = 300;  // how often its keys are fetched
  std::int64_t keep_s = 86'400;  // how long keys serve that could not be fetched again
  PageClient page = {};
  bool operator==(const Issuer&) const = default;
};

// Returns the issuers in `text`. An error has a line for each mistake, FILE:LINE:COLUMN: PATH: what is wrong.
Result<std::vector<Issuer>> read_issuers(std::string_view text, std::string_view file);
// The same from a tree, with each mistake by itself. The files that it names, which are the server's, are not looked
// at.
document::Checked<std::vector<Issuer>> check_issuers(const document::Node& tree);

}  // namespace berth::identity
