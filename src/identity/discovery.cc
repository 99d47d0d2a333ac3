#include "identity/discovery.h"

#include <boost/json/object.hpp>
#include <fstream>

#include "identity/json_member.h"
#include "model/issuer_url.h"
#include "model/strict_json.h"

namespace berth::identity {
namespace {

constexpr std::size_t kMostKeyFileBytes = 1024 * 1024;

Result<std::string> read_key_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read " + path);
  std::string text(kMostKeyFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error{ErrorCode::kIo, "cannot read " + path};
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::string discovery_address(const Issuer& issuer) {
  std::string base = issuer.url;
  if (base.ends_with('/')) base.pop_back();
  return base + "/.well-known/openid-configuration";
}

Result<std::string> discover_keys_url(const Issuer& issuer, const Get& get) {
  const std::string url = discovery_address(issuer);
  const auto object = discover(issuer, get);
  if (!object) return object.error();
  const std::string keys_url = text_in(*object, "jwks_uri");
  if (keys_url.empty()) return invalid(url + " names no keys (`jwks_uri`)");
  if (const std::string flaw = flaw_of_issuer_url(keys_url); !flaw.empty()) return invalid(url + ": jwks_uri: " + flaw);
  return keys_url;
}

}  // namespace

Result<boost::json::object> discover(const Issuer& issuer, const Get& get) {
  const std::string url = discovery_address(issuer);
  const auto body = get(url);
  if (!body) return body.error();
  const auto document = decode_json(*body);
  if (!document) return invalid(url + ": " + document.error().message);
  const boost::json::object* object = document->if_object();
  if (object == nullptr) return invalid(url + " is no JSON object");
  if (text_in(*object, "issuer") != issuer.url)
    return invalid(url + " is the document of another issuer than " + issuer.url + " (letter by letter)");
  return *object;
}

Result<KeySet> load_keys(const Issuer& issuer, const Get& get) {
  if (!issuer.keys_file.empty()) {
    const auto text = read_key_file(issuer.keys_file);
    return text ? KeySet::read(*text) : Result<KeySet>(text.error());
  }
  const Result<std::string> url = issuer.keys_url.empty() ? discover_keys_url(issuer, get) : issuer.keys_url;
  if (!url) return url.error();
  const auto body = get(*url);
  return body ? KeySet::read(*body) : Result<KeySet>(body.error());
}

}  // namespace berth::identity
