#include "identity/claims.h"

#include <algorithm>
#include <cmath>

#include "model/issued_name.h"

namespace berth::identity {
namespace {

namespace json = boost::json;

constexpr double kLastSecond = 253'402'300'799;  // of the year 9999

// Seconds since 1970, which may have decimals (RFC 7519, section 2). Nothing if the claim is no such number.
std::optional<Timestamp> time_of(const json::value& value) {
  double seconds = -1;
  if (value.is_int64()) seconds = static_cast<double>(value.get_int64());
  if (value.is_double()) seconds = value.get_double();
  if (!(seconds >= 0 && seconds <= kLastSecond)) return std::nullopt;
  return Timestamp{static_cast<std::int64_t>(std::floor(seconds * 1000))};
}

std::string text_of(const json::value& value) {
  const json::string* text = value.if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

Result<void> check_audience(const json::object& claims, const Issuer& issuer) {
  const json::value* audience = claims.if_contains("aud");
  if (audience == nullptr) return invalid("the token is for nobody: it has no audience (`aud`)");
  const auto wanted = [&](const json::value& one) {
    const std::string name = text_of(one);
    return std::find(issuer.audiences.begin(), issuer.audiences.end(), name) != issuer.audiences.end();
  };
  const json::array* several = audience->if_array();
  const bool fits = several == nullptr ? wanted(*audience) : std::any_of(several->begin(), several->end(), wanted);
  if (!fits) return invalid("the token was made for another audience (`aud`) than this server's");
  return {};
}

// Returns the time of the claim; nothing if the claim is not there.
Result<std::optional<Timestamp>> read_time(const json::object& claims, const char* name) {
  const json::value* value = claims.if_contains(name);
  if (value == nullptr) return std::optional<Timestamp>();
  const auto time = time_of(*value);
  if (!time) return invalid(std::string("the token's `") + name + "` is no time");
  return std::optional(*time);
}

Result<void> check_times(const json::object& claims, const Issuer& issuer, Timestamp now, Identity& identity) {
  const std::int64_t skew_ms = issuer.clock_skew_s * 1000;
  const auto expires = read_time(claims, "exp");
  if (!expires) return expires.error();
  if (!*expires) return invalid("the token never ends: it has no `exp`");
  identity.ends = **expires + skew_ms;
  if (identity.ends <= now) return invalid("the token has expired at " + to_iso8601(**expires));
  const auto begins = read_time(claims, "nbf");
  if (!begins) return begins.error();
  if (*begins && now + skew_ms < **begins) return invalid("the token is not good before " + to_iso8601(**begins));
  const auto issued = read_time(claims, "iat");
  if (!issued) return issued.error();
  if (*issued && now + skew_ms < **issued) return invalid("the token was issued in the future (`iat`)");
  identity.issued = *issued;
  return {};
}

// An address that the issuer has not verified may be anybody's. An issuer that does not say so has not verified it.
Result<void> check_email(const json::object& claims, const Issuer& issuer) {
  if (issuer.username_claim != "email") return {};
  const json::value* verified = claims.if_contains("email_verified");
  if (verified == nullptr)
    return invalid(
        "the token does not say that its email address is verified: it has no `email_verified`. Let the issuer put "
        "that claim into its tokens, or name users by another one (`username_claim`, as `sub`)");
  if (!verified->is_bool() || !verified->get_bool())
    return invalid("the token's email address is not verified by its issuer");
  return {};
}

Result<void> read_names(const json::object& claims, const Issuer& issuer, Identity& identity) {
  const json::value* user = claims.if_contains(issuer.username_claim);
  const std::string name = user == nullptr ? std::string() : text_of(*user);
  if (!well_formed_issued_name(name))
    return invalid("the token's claim `" + issuer.username_claim + "` is no name: " + std::string(kIssuedNameRule));
  if (auto ok = check_email(claims, issuer); !ok) return ok;
  identity.user = issuer.name + ":" + name;
  const json::value* groups = claims.if_contains(issuer.groups_claim);
  if (groups == nullptr || groups->is_null()) return {};
  const auto add = [&](const json::value& one) {
    // What no binding can name has no effect.
    if (std::string group = text_of(one); well_formed_issued_name(group))
      identity.groups.push_back(issuer.name + ":" + group);
  };
  if (const json::array* several = groups->if_array()) {
    for (const json::value& one : *several) add(one);
  } else if (groups->is_string()) {
    add(*groups);
  } else {
    return invalid("the token's claim `" + issuer.groups_claim + "` is no list of groups");
  }
  std::sort(identity.groups.begin(), identity.groups.end());
  identity.groups.erase(std::unique(identity.groups.begin(), identity.groups.end()), identity.groups.end());
  return {};
}

}  // namespace

Result<Identity> check_claims(const json::object& claims, const Issuer& issuer, Timestamp now) {
  const json::value* stated = claims.if_contains("iss");
  if (stated == nullptr || text_of(*stated) != issuer.url) return invalid("the token is of another issuer (`iss`)");
  if (auto ok = check_audience(claims, issuer); !ok) return ok.error();
  Identity identity;
  identity.issuer = issuer.name;
  if (auto ok = check_times(claims, issuer, now, identity); !ok) return ok.error();
  if (auto ok = read_names(claims, issuer, identity); !ok) return ok.error();
  return identity;
}

}  // namespace berth::identity
