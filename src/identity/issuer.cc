#include "identity/issuer.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "model/document/reading.h"
#include "model/issuer_url.h"

namespace berth::identity {
namespace {

using document::Value;

constexpr std::size_t kMostIssuers = 32;
constexpr std::size_t kMostSecretBytes = 4096;

void read_url(const Value& value, std::string& url) {
  url = value.string();
  if (const std::string flaw = flaw_of_issuer_url(url); !flaw.empty()) value.refuse(flaw);
}

void read_claim(const Value& value, std::string& claim) {
  claim = value.string();
  if (claim.empty() || claim.size() > 256) value.refuse("a claim's name has 1 to 256 bytes");
}

// An issuer called so could state names that another kind of sign-in gives.
void refuse_reserved(const Value& value, const std::string& name) {
  constexpr std::array<std::string_view, 4> kReserved{"berth", "cert", "spiffe", "system"};
  if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end())
    value.refuse("'" + name + "' is reserved; choose another name");
}

// The secret must not be known to other users of this machine. A file of root may be read by its group, as that of a
// Secret is which Kubernetes mounts.
Result<std::string> read_secret(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return not_found("cannot read " + path);
  if ((status.st_mode & (status.st_uid == 0 ? 0037U : 0077U)) != 0)
    return invalid(path + ": others may read it; chmod 600");
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostSecretBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (text.empty() || text.size() >= kMostSecretBytes) return invalid(path + ": no secret of 1 to 4095 bytes");
  return text;
}

void read_page_url(const Value& value, std::string& url) {
  read_url(value, url);
  const std::size_t host = url.find("://");
  if (host != std::string::npos && url.find_first_of("/?#", host + 3) != std::string::npos)
    value.refuse("only scheme, host and port, such as https://berth.example.com");
}

PageClient read_page(const Value& body, bool with_secrets) {
  PageClient page;
  body.map({
      {"client_id", [&](const Value& v) { page.id = v.string(); }},
      {"client_secret_file",
       [&](const Value& v) {
         page.secret_file = v.string();
         if (!with_secrets) return;
         auto secret = read_secret(page.secret_file);
         if (!secret) return v.refuse(secret.error().message);
         page.secret = std::move(*secret);
       }},
      {"scope", [&](const Value& v) { page.scope = v.string(); }},
      {"url", [&](const Value& v) { read_page_url(v, page.url); }},
  });
  if (page.id.empty() || page.id.size() > 256) body.refuse("page needs the client_id of berth's web page");
  const std::string words = " " + page.scope + " ";
  if (words.find(" openid ") == std::string::npos) body.refuse("openid has to be among the words of scope");
  return page;
}

Issuer read_issuer(const Value& body, bool with_secrets) {
  Issuer issuer;
  body.map({
      {"name",
       [&](const Value& v) {
         issuer.name = v.name();
         refuse_reserved(v, issuer.name);
       }},
      {"url", [&](const Value& v) { read_url(v, issuer.url); }},
      {"audience", [&](const Value& v) { issuer.audiences = v.strings(); }},
      {"username_claim", [&](const Value& v) { read_claim(v, issuer.username_claim); }},
      {"groups_claim", [&](const Value& v) { read_claim(v, issuer.groups_claim); }},
      {"keys_url", [&](const Value& v) { read_url(v, issuer.keys_url); }},
      {"keys_file", [&](const Value& v) { issuer.keys_file = v.string(); }},
      {"ca_file", [&](const Value& v) { issuer.ca_file = v.string(); }},
      {"clock_skew", [&](const Value& v) { issuer.clock_skew_s = v.duration_s(); }},
      {"refresh", [&](const Value& v) { issuer.refresh_s = v.duration_s(); }},
      {"keep", [&](const Value& v) { issuer.keep_s = v.duration_s(); }},
      {"page", [&](const Value& v) { issuer.page = read_page(v, with_secrets); }},
  });
  const auto is_empty = [](const std::string& one) { return one.empty(); };
  if (issuer.name.empty()) body.refuse("an issuer needs a name, which stands in front of its users, such as corp");
  if (issuer.url.empty()) body.refuse("an issuer needs its url, the `iss` of its tokens");
  if (issuer.audiences.empty() || std::any_of(issuer.audiences.begin(), issuer.audiences.end(), is_empty))
    body.refuse("an issuer needs an audience: tokens that it made for other programs must not serve here");
  if (!issuer.keys_url.empty() && !issuer.keys_file.empty()) body.refuse("give keys_url or keys_file, not both");
  if (issuer.clock_skew_s < 0 || issuer.clock_skew_s > 300) body.refuse("clock_skew must be between 0s and 5m");
  if (issuer.refresh_s < 10 || issuer.refresh_s > 86'400) body.refuse("refresh must be between 10s and 1d");
  if (issuer.keep_s < issuer.refresh_s || issuer.keep_s > 7 * 86'400)
    body.refuse("keep must be between refresh and 7d");
  return issuer;
}

// What keeps the issuer from standing beside those before it; empty: nothing.
std::string conflict_of(const Issuer& issuer, const std::vector<Issuer>& earlier) {
  for (const Issuer& other : earlier) {
    if (other.name == issuer.name || other.url == issuer.url) return "there is an issuer of this name or url already";
    if (!other.page.id.empty() && !issuer.page.id.empty() && other.page.url != issuer.page.url)
      return "page.url is the address of this server, so it is the same for all issuers";
  }
  return {};
}

document::Checked<std::vector<Issuer>> issuers_of(const document::Node& tree, bool with_secrets) {
  document::Reading reading;
  std::vector<Issuer> issuers;
  const auto read = [&](const Value& value) {
    value.each_item([&](const Value& one) {
      Issuer issuer = read_issuer(one, with_secrets);
      if (const std::string conflict = conflict_of(issuer, issuers); !conflict.empty()) one.refuse(conflict);
      issuers.push_back(std::move(issuer));
    });
    if (issuers.size() > kMostIssuers) value.refuse("at most 32 issuers");
  };
  Value(reading, tree, "").map({{"issuers", read}});
  if (!reading.mistakes().empty()) return {std::nullopt, reading.take_mistakes()};
  return {std::move(issuers)};
}

}  // namespace

Result<std::vector<Issuer>> read_issuers(std::string_view text, std::string_view file) {
  const auto tree = document::parse(text, file);
  if (!tree) return tree.error();
  return document::result_of(file, issuers_of(*tree, true));
}

document::Checked<std::vector<Issuer>> check_issuers(const document::Node& tree) { return issuers_of(tree, false); }

}  // namespace berth::identity
