#include "identity/verifier.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "identity/code_flow.h"

namespace berth::identity {
namespace {

constexpr std::size_t kMostProved = 20'000;
constexpr std::chrono::milliseconds kLook{200};  // how often a thread looks whether a fetch is due

}  // namespace

Verifier::Verifier(std::vector<Issuer> issuers, Clock clock, Load load, OnChange on_change)
    : clock_(std::move(clock)), load_(std::move(load)), on_change_(std::move(on_change)) {
  for (Issuer& issuer : issuers) sites_.push_back(std::make_unique<Site>(std::move(issuer)));
  for (const auto& site : sites_) site->thread = std::thread([this, one = site.get()] { keep_fetching(*one); });
}

Verifier::~Verifier() {
  stopping_ = true;
  wake_.notify_all();
  for (const auto& site : sites_) site->thread.join();
}

void Verifier::keep_fetching(Site& site) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!site.cache.due(clock_())) {
      wake_.wait_for(lock, kLook);
      continue;
    }
    site.cache.begin_fetch();
    lock.unlock();
    auto keys = load_(site.issuer, stopping_);
    if (!stopping_) end_fetch(site, std::move(keys));
    lock.lock();
  }
}

void Verifier::end_fetch(Site& site, Result<KeySet> keys) {
  const Timestamp now = clock_();
  std::vector<std::function<void()>> waiting;
  std::optional<std::string> change;
  {
    const std::lock_guard lock(mutex_);
    const bool was_good = site.cache.last_good() && site.cache.failure().empty();
    const bool had_failed = !site.cache.failure().empty();
    if (keys) {
      site.cache.fetched(std::move(*keys), now);
      ++site.version;
      if (!was_good) change = "";
    } else {
      if (!had_failed) change = keys.error().message;
      site.cache.failed(keys.error().message, now);
    }
    ++fetches_;
    waiting = std::exchange(waiting_, {});
  }
  if (change && on_change_) on_change_(site.issuer.name, *change);
  for (const auto& callback : waiting) callback();
}

Verifier::Site* Verifier::site_of(const std::string& url) {
  for (const auto& site : sites_) {
    if (site->issuer.url == url) return site.get();
  }
  return nullptr;
}

std::optional<Identity> Verifier::known(const std::string& digest, Timestamp now) {
  const std::lock_guard lock(mutex_);
  const auto found = proved_.find(digest);
  if (found == proved_.end()) return std::nullopt;
  const Proved& proved = found->second;
  if (proved.version == proved.site->version && proved.site->cache.keys(now) != nullptr && now < proved.identity.ends)
    return proved.identity;
  proved_.erase(found);
  return std::nullopt;
}

void Verifier::remember(const std::string& digest, Proved proved, Timestamp now) {
  const std::lock_guard lock(mutex_);
  if (proved_.size() >= kMostProved) {
    std::erase_if(proved_, [&](const auto& one) { return one.second.identity.ends <= now; });
    if (proved_.size() >= kMostProved) proved_.clear();
  }
  proved_.insert_or_assign(digest, std::move(proved));
}

std::variant<Verifier::Signed, Verdict> Verifier::check_signature(std::string_view text, Timestamp now) {
  auto token = read_token(text);
  if (!token) return Verdict{.refusal = token.error().message};
  Site* const site = site_of(token->issuer);
  if (site == nullptr) return Verdict{.refusal = "the token is of an issuer (`iss`) that this server does not take"};
  std::optional<KeySet> keys;
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(mutex_);
    const KeySet* const now_good = site->cache.keys(now);
    if (now_good == nullptr || !now_good->has_key_for(*token)) {
      Verdict verdict{.refusal = now_good != nullptr ? "the token is signed by a key that its issuer does not list"
                                 : site->cache.last_good()
                                     ? "the keys of the token's issuer could not be fetched for too long"
                                     : "the keys of the token's issuer could not be fetched yet"};
      if (site->cache.miss(now)) verdict.fetching = fetches_;
      wake_.notify_all();
      return verdict;
    }
    keys = *now_good;
    version = site->version;
  }
  if (auto good = keys->check_signature(text, *token); !good) return Verdict{.refusal = good.error().message};
  return Signed{std::move(*token), site, version};
}

Verdict Verifier::verify(std::string_view text, const std::string& digest, Timestamp now) {
  if (auto identity = known(digest, now)) return {.identity = std::move(identity)};
  auto checked = check_signature(text, now);
  if (auto* refused = std::get_if<Verdict>(&checked)) return std::move(*refused);
  const Signed& proved = std::get<Signed>(checked);
  auto identity = check_claims(proved.token.claims, proved.site->issuer, now);
  if (!identity) return {.refusal = identity.error().message};
  remember(digest, {*identity, proved.site, proved.version}, now);
  return {.identity = std::move(*identity)};
}

Verdict Verifier::verify_id_token(std::string_view text, const std::string& issuer, const std::string& nonce,
                                  Timestamp now) {
  auto checked = check_signature(text, now);
  if (auto* refused = std::get_if<Verdict>(&checked)) return std::move(*refused);
  const Signed& proved = std::get<Signed>(checked);
  if (proved.site->issuer.name != issuer) return {.refusal = "the ID token is of another issuer than was asked"};
  auto identity = check_id_token(proved.token.claims, proved.site->issuer, nonce, now);
  if (!identity) return {.refusal = identity.error().message};
  return {.identity = std::move(*identity)};
}

void Verifier::when_fetched(std::uint64_t fetches, std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (fetches_ == fetches) {
      waiting_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

std::vector<IssuerStatus> Verifier::statuses(Timestamp now) const {
  const std::lock_guard lock(mutex_);
  std::vector<IssuerStatus> all;
  for (const auto& site : sites_) {
    all.push_back({.name = site->issuer.name,
                   .last_good = site->cache.last_good(),
                   .failure = site->cache.failure(),
                   .serves = site->cache.keys(now) != nullptr});
  }
  return all;
}

}  // namespace berth::identity
