#include "daemon/sign_in_desk.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <utility>

#include "api/http/cookie.h"
#include "base/check.h"
#include "daemon/queue_thread.h"
#include "identity/code_flow.h"
#include "identity/discovery.h"
#include "identity/fetch.h"

namespace berth::daemon {
namespace {

constexpr std::int64_t kSignInMs = 600'000;
constexpr std::int64_t kDiscoverMs = 300'000;
constexpr std::chrono::seconds kKeyPatience{5};
constexpr char kSeparator = '/';  // in no name of an issuer and no secret, and allowed in cookies

std::string key_of(std::string_view secret) {
  const http::TokenDigest digest = http::digest_of(secret);
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string hmac(const std::string& key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), bytes.data(), &size);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += "0123456789abcdef"[bytes[i] >> 4U];
    hex += "0123456789abcdef"[bytes[i] & 15U];
  }
  return hex;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : std::string(1, kSeparator)) + part;
  return text;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = std::min(text.find(kSeparator), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

// Secrets cannot be guessed; a system without random numbers is not one to go on with.
std::string fresh_secret() {
  auto secret = http::random_token();
  BERTH_CHECK(secret.has_value());
  return *secret;
}

}  // namespace

// What is asked of an issuer is done in order by its own thread.
class SignInDesk::Site {
 public:
  explicit Site(identity::Issuer of)
      : issuer(std::move(of)), thread_([this](std::function<void()>& work) {
          work();
          --waiting_;
        }) {}

  // Returns false if too many wait already.
  bool post(std::function<void()> work) {
    if (++waiting_ > kMostWaiting) {
      --waiting_;
      return false;
    }
    thread_.push(std::move(work));
    return true;
  }
  void stop() { thread_.stop(); }

  // For the thread alone.
  Result<identity::CodeEndpoints> endpoints(Timestamp now, const std::atomic<bool>& stopping) {
    if (endpoints_ && now < discovered_ + kDiscoverMs) return *endpoints_;
    auto document = identity::discover(
        issuer, [&](const std::string& url) { return identity::fetch(url, issuer.ca_file, stopping); });
    auto read = document ? identity::read_code_endpoints(*document) : Result<identity::CodeEndpoints>(document.error());
    if (!read) return endpoints_ ? Result<identity::CodeEndpoints>(*endpoints_) : read;
    endpoints_ = *read;
    discovered_ = now;
    return *endpoints_;
  }

  const identity::Issuer issuer;

 private:
  std::atomic<std::size_t> waiting_ = 0;
  std::optional<identity::CodeEndpoints> endpoints_;
  Timestamp discovered_;
  QueueThread<std::function<void()>> thread_;  // last: it ends first
};

SignInDesk::SignInDesk(std::vector<identity::Issuer> issuers, bool tls, std::shared_ptr<identity::Verifier> verifier,
                       const AccessTable& access, ServerClock& clock)
    : verifier_(std::move(verifier)), access_(access), clock_(clock), key_(fresh_secret()) {
  for (identity::Issuer& issuer : issuers) {
    if (issuer.page.id.empty()) continue;
    const std::string& url = issuer.page.url;  // all issuers state the same (identity/issuer.cc)
    secure_ = url.empty() ? tls : url.starts_with("https://");
    sites_.push_back(std::make_unique<Site>(std::move(issuer)));
  }
}

SignInDesk::~SignInDesk() {
  stopping_ = true;
  for (const auto& site : sites_) site->stop();
}

void SignInDesk::serve_at(std::string address) {
  const std::lock_guard lock(mutex_);
  address_ = std::move(address);
}

std::string SignInDesk::redirect_uri(const Site& site) const {
  const std::lock_guard lock(mutex_);
  return (site.issuer.page.url.empty() ? address_ : site.issuer.page.url) + "/sign-in/answer";
}

std::vector<std::string> SignInDesk::issuers() const {
  std::vector<std::string> names;
  for (const auto& site : sites_) names.push_back(site->issuer.name);
  return names;
}

SignInDesk::Site* SignInDesk::site_named(const std::string& name) {
  for (const auto& site : sites_) {
    if (site->issuer.name == name) return site.get();
  }
  return nullptr;
}

std::string SignInDesk::seal(const std::vector<std::string>& parts) const {
  const std::string text = std::to_string((clock_.now() + kSignInMs).ms) + kSeparator + joined(parts);
  return text + kSeparator + hmac(key_, text);
}

std::vector<std::string> SignInDesk::unseal(const std::string& text) const {
  const std::size_t end = text.rfind(kSeparator);
  if (end == std::string::npos) return {};
  const std::string_view sealed = std::string_view(text).substr(0, end);
  if (!same(hmac(key_, sealed), std::string_view(text).substr(end + 1))) return {};
  std::vector<std::string> parts = split(sealed);
  std::int64_t ends_ms = 0;
  std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), ends_ms);
  if (clock_.now().ms >= ends_ms) return {};
  parts.erase(parts.begin());
  return parts;
}

void SignInDesk::begin(const std::string& issuer, std::function<void(Begun)> done) {
  Site* const site = site_named(issuer);
  if (site == nullptr) return done({.address = {}, .secret = {}, .failure = "issuer"});
  if (!site->post([this, site, done] { done(send(*site)); })) done({.address = {}, .secret = {}, .failure = "busy"});
}

SignInDesk::Begun SignInDesk::send(Site& site) {
  const auto endpoints = site.endpoints(clock_.now(), stopping_);
  if (!endpoints) {
    spdlog::warn("signing in with issuer {}: {}", site.issuer.name, endpoints.error().message);
    return {.address = {}, .secret = {}, .failure = "provider"};
  }
  const identity::CodeSecrets secrets{fresh_secret(), fresh_secret(), fresh_secret()};
  return {.address = identity::authorization_address(*endpoints, site.issuer.page, secrets, redirect_uri(site)),
          .secret = seal({site.issuer.name, secrets.state, secrets.nonce, secrets.verifier}),
          .failure = {}};
}

// What the browser brings is looked at before the issuer is asked anything.
std::string SignInDesk::failure_of(const Answered& answered, const std::vector<std::string>& sealed,
                                   const Site* site) const {
  if (site == nullptr || sealed.size() != 4 || !same(sealed[1], answered.state)) return "state";
  if (!answered.issuer.empty() && answered.issuer != site->issuer.url) return "state";
  if (!answered.error.empty()) return answered.error == "access_denied" ? "denied" : "provider";
  return answered.code.empty() ? "state" : "";
}

void SignInDesk::finish(Answered answered, std::function<void(Finished)> done) {
  const std::vector<std::string> sealed = unseal(answered.secret);
  Site* const site = sealed.size() == 4 ? site_named(sealed[0]) : nullptr;
  if (const std::string failure = failure_of(answered, sealed, site); !failure.empty()) {
    spdlog::info("a sign-in on the page did not come about: {}", failure);
    return done({.session = {}, .failure = failure});
  }
  const bool posted = site->post([this, site, done, answered = std::move(answered), sealed] {
    done(redeem(*site, answered, sealed[2], sealed[3]));
  });
  if (!posted) done({.session = {}, .failure = "busy"});
}

Result<identity::Identity> SignInDesk::prove(const Site& site, const std::string& id_token, const std::string& nonce) {
  for (int attempt = 0;; ++attempt) {
    auto verdict = verifier_->verify_id_token(id_token, site.issuer.name, nonce, clock_.now());
    if (verdict.identity) return std::move(*verdict.identity);
    if (!verdict.fetching || attempt > 0 || stopping_) return invalid(verdict.refusal);
    const auto fetched = std::make_shared<std::promise<void>>();
    auto known = fetched->get_future();
    verifier_->when_fetched(*verdict.fetching, [fetched] { fetched->set_value(); });
    known.wait_for(kKeyPatience);
  }
}

SignInDesk::Finished SignInDesk::redeem(Site& site, const Answered& answered, const std::string& nonce,
                                        const std::string& verifier) {
  const auto failed = [&](const char* word, const std::string& why) {
    spdlog::warn("signing in with issuer {}: {}", site.issuer.name, why);
    return Finished{.session = {}, .failure = word};
  };
  const auto endpoints = site.endpoints(clock_.now(), stopping_);
  if (!endpoints) return failed("provider", endpoints.error().message);
  if (endpoints->names_itself && answered.issuer.empty()) return failed("state", "its answer does not name it (`iss`)");
  const identity::PageClient& page = site.issuer.page;
  const std::string form = identity::encoded(identity::code_form(page, answered.code, verifier, redirect_uri(site)));
  const std::string user = page.secret.empty() ? "" : identity::form_encoded(page.id);
  const auto answer =
      identity::post(endpoints->token, form, user, identity::form_encoded(page.secret), site.issuer.ca_file, stopping_);
  if (!answer) return failed("provider", answer.error().message);
  auto tokens = identity::read_issued(answer->status, answer->body);
  if (!tokens) return failed(tokens.error().code == ErrorCode::kDenied ? "denied" : "provider", tokens.error().message);
  auto identity = prove(site, tokens->id_token, nonce);
  if (!identity) return failed("token", identity.error().message);
  const auto subject = access_.subject_of(*identity);
  if (!subject || subject->roles.empty()) return failed("role", "user:" + identity->user + " has no role here");
  const std::string session = fresh_secret();
  sessions_.begin(key_of(session), {std::move(*identity), fresh_secret()}, std::move(tokens->refresh_token),
                  clock_.now());
  return {.session = session, .failure = {}};
}

void SignInDesk::renew(Site& site, const std::string& digest, const std::string& refresh_token) {
  const auto failed = [&](bool refused, const std::string& why) {
    spdlog::warn("a session of issuer {} {}: {}", site.issuer.name, refused ? "ends" : "could not be renewed", why);
    sessions_.renewed(digest, std::nullopt, "", refused, clock_.now());
  };
  const auto endpoints = site.endpoints(clock_.now(), stopping_);
  if (!endpoints) return failed(false, endpoints.error().message);
  const identity::PageClient& page = site.issuer.page;
  const std::string user = page.secret.empty() ? "" : identity::form_encoded(page.id);
  const auto answer = identity::post(endpoints->token, identity::encoded(identity::refresh_form(page, refresh_token)),
                                     user, identity::form_encoded(page.secret), site.issuer.ca_file, stopping_);
  if (!answer) return failed(false, answer.error().message);
  auto tokens = identity::read_issued(answer->status, answer->body);
  if (!tokens) return failed(tokens.error().code == ErrorCode::kDenied, tokens.error().message);
  auto identity = prove(site, tokens->id_token, "");
  if (!identity) return failed(true, identity.error().message);
  sessions_.renewed(digest, std::move(*identity), std::move(tokens->refresh_token), false, clock_.now());
}

std::string SignInDesk::port() const {
  const std::lock_guard lock(mutex_);
  return address_.substr(address_.rfind(':') + 1);
}

http::Identification SignInDesk::identify(std::string_view cookies) {
  const std::string_view secret = http::cookie_named(cookies, api::session_cookie(*this));
  if (secret.empty()) return {};
  const std::string digest = key_of(secret);
  PageSessions::Found found = sessions_.find(digest, clock_.now());
  Site* const site = found.refresh_token.empty() ? nullptr : site_named(found.issuer);
  if (site != nullptr) {
    const bool posted = site->post([this, site, digest, token = found.refresh_token] { renew(*site, digest, token); });
    if (!posted) sessions_.renewed(digest, std::nullopt, "", false, clock_.now());
  }
  if (!found.known) {
    if (!found.renewing) return {};
    return {.until_known = [this, digest](std::function<void()> callback) {
      sessions_.when_renewed(digest, std::move(callback));
    }};
  }
  std::optional<policy::Subject> subject = access_.subject_of(found.known->identity);
  if (!subject || subject->roles.empty()) {  // what it had was revoked
    sessions_.end(digest);
    return {};
  }
  subject->proof = http::kBySession;
  return {.subject = std::move(*subject), .change_token = std::move(found.known->change_token)};
}

std::optional<std::string> SignInDesk::change_token(std::string_view session) {
  if (session.empty()) return std::nullopt;
  auto found = sessions_.find(key_of(session), clock_.now());
  if (!found.known) return std::nullopt;
  return std::move(found.known->change_token);
}

bool SignInDesk::end(std::string_view session, std::string_view change_token) {
  const auto token = this->change_token(session);
  if (!token) return true;  // there is nothing to end
  if (!same(*token, change_token)) return false;
  sessions_.end(key_of(session));
  return true;
}

}  // namespace berth::daemon
