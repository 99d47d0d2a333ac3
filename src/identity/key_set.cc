#include "identity/key_set.h"

#include <cjose/cjose.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <vector>

#include "identity/json_member.h"
#include "model/strict_json.h"

namespace berth::identity {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostKeys = 200;
constexpr std::size_t kLeastRsaBits = 2048;
constexpr std::size_t kMostRsaBits = 8192;
constexpr JsonLimits kSetLimits{.bytes = 1024 * 1024, .depth = 8};

struct ReleaseKey {
  void operator()(cjose_jwk_t* key) const { cjose_jwk_release(key); }
};
struct ReleaseJws {
  void operator()(cjose_jws_t* jws) const { cjose_jws_release(jws); }
};

// A key for encryption, or for other operations than checking, is none for signatures.
bool is_for_signatures(const json::object& key) {
  const std::string use = text_in(key, "use");
  if (key.contains("use") && use != "sig") return false;
  const json::value* operations = key.if_contains("key_ops");
  if (operations == nullptr) return true;
  const json::array* several = operations->if_array();
  return several != nullptr && std::find(several->begin(), several->end(), json::value("verify")) != several->end();
}

// Its public members alone, as text for cjose.
std::string public_text(const json::object& key, std::initializer_list<const char*> members) {
  json::object kept;
  for (const char* member : members) kept[member] = text_in(key, member);
  return json::serialize(kept);
}

}  // namespace

struct KeySet::Key {
  std::string id;
  Algorithm algorithm;
  std::unique_ptr<cjose_jwk_t, ReleaseKey> key;

  // Null if the key is of no use here.
  static cjose_jwk_t* import(const json::object& from, Algorithm& algorithm) {
    const std::string type = text_in(from, "kty");
    const std::string stated = text_in(from, "alg");
    std::string text;
    if (type == "RSA" && (stated.empty() || stated == "RS256")) {
      algorithm = Algorithm::kRs256;
      text = public_text(from, {"kty", "n", "e"});
    } else if (type == "EC" && text_in(from, "crv") == "P-256" && (stated.empty() || stated == "ES256")) {
      algorithm = Algorithm::kEs256;
      text = public_text(from, {"kty", "crv", "x", "y"});
    } else {
      return nullptr;
    }
    cjose_err error;
    cjose_jwk_t* key = cjose_jwk_import(text.data(), text.size(), &error);
    if (key == nullptr || algorithm != Algorithm::kRs256) return key;
    const std::size_t bits = cjose_jwk_get_keysize(key, &error);
    if (bits >= kLeastRsaBits && bits <= kMostRsaBits) return key;
    cjose_jwk_release(key);
    return nullptr;
  }
};

struct KeySet::Keys {
  std::vector<Key> all;
};

Result<KeySet> KeySet::read(std::string_view text) {
  const auto value = decode_json(text, kSetLimits);
  if (!value) return invalid("the key set: " + value.error().message);
  const json::object* set = value->if_object();
  const json::value* listed = set == nullptr ? nullptr : set->if_contains("keys");
  const json::array* keys = listed == nullptr ? nullptr : listed->if_array();
  if (keys == nullptr) return invalid("the key set has no list `keys`");
  if (keys->size() > kMostKeys) return invalid("the key set has more than " + std::to_string(kMostKeys) + " keys");
  auto usable = std::make_shared<Keys>();
  for (const json::value& one : *keys) {
    const json::object* object = one.if_object();
    if (object == nullptr || !is_for_signatures(*object)) continue;
    Key key{text_in(*object, "kid"), Algorithm::kRs256, nullptr};
    key.key.reset(Key::import(*object, key.algorithm));
    if (key.key == nullptr) continue;
    const auto same = [&](const Key& other) { return other.id == key.id && other.algorithm == key.algorithm; };
    if (!key.id.empty() && std::any_of(usable->all.begin(), usable->all.end(), same))
      return invalid("the key set has two keys of one name (`kid`)");
    usable->all.push_back(std::move(key));
  }
  if (usable->all.empty()) return invalid("the key set has no key for RS256 (of 2048 bits or more) or ES256");
  KeySet found;
  found.keys_ = std::move(usable);
  return found;
}

std::size_t KeySet::size() const { return keys_->all.size(); }

const KeySet::Key* KeySet::key_for(const UnprovedToken& token) const {
  const Key* found = nullptr;
  for (const Key& key : keys_->all) {
    if (key.algorithm != token.algorithm || (!token.key_id.empty() && key.id != token.key_id)) continue;
    if (found != nullptr) return nullptr;  // which of them would be a guess
    found = &key;
  }
  return found;
}

bool KeySet::has_key_for(const UnprovedToken& token) const { return key_for(token) != nullptr; }

Result<void> KeySet::check_signature(std::string_view text, const UnprovedToken& token) const {
  const Key* key = key_for(token);
  if (key == nullptr) return invalid("the token is signed by a key that its issuer does not list");
  cjose_err error;
  const std::unique_ptr<cjose_jws_t, ReleaseJws> jws(cjose_jws_import(text.data(), text.size(), &error));
  if (jws == nullptr || !cjose_jws_verify(jws.get(), key->key.get(), &error))
    return invalid("the token's signature is not its issuer's");
  return {};
}

}  // namespace berth::identity
