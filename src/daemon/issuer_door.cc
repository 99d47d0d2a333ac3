#include "daemon/issuer_door.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "identity/discovery.h"
#include "identity/fetch.h"

namespace berth::daemon {
namespace {

constexpr std::int64_t kBetweenLinesMs = 10'000;
constexpr std::size_t kMostReasons = 50;  // a reason may name a time, which a client chooses

Result<identity::KeySet> load(const identity::Issuer& issuer, const std::atomic<bool>& stopping) {
  return identity::load_keys(issuer,
                             [&](const std::string& url) { return identity::fetch(url, issuer.ca_file, stopping); });
}

void tell_change(const std::string& issuer, const std::string& failure) {
  if (failure.empty()) {
    spdlog::info("the keys of issuer {} are fetched", issuer);
  } else {
    spdlog::warn("the keys of issuer {} cannot be fetched: {}", issuer, failure);
  }
}

}  // namespace

IssuerDoor::IssuerDoor(std::vector<identity::Issuer> issuers, const AccessTable& access, ServerClock& clock)
    : access_(access),
      clock_(clock),
      verifier_(std::make_shared<identity::Verifier>(
          std::move(issuers), [&clock] { return clock.now(); }, &load, &tell_change)) {}

http::Identification IssuerDoor::identify(std::string_view token, const http::TokenDigest& digest) {
  const Timestamp now = clock_.now();
  identity::Verdict verdict =
      verifier_->verify(token, {reinterpret_cast<const char*>(digest.data()), digest.size()}, now);
  if (verdict.identity) {
    if (auto subject = access_.subject_of(*verdict.identity)) return {.subject = std::move(*subject)};
    return {.refusal = "the access of user:" + verdict.identity->user + ", or of a group of it, was ended here"};
  }
  http::Identification refused{.refusal = verdict.refusal};
  if (verdict.fetching) {
    refused.until_known = [verifier = verifier_, fetches = *verdict.fetching](std::function<void()> callback) {
      verifier->when_fetched(fetches, std::move(callback));
    };
  } else {
    log_refusal(verdict.refusal, now);
  }
  return refused;
}

// At most one line in ten seconds, whatever comes.
void IssuerDoor::log_refusal(const std::string& why, Timestamp now) {
  const std::lock_guard lock(mutex_);
  if (refused_.size() < kMostReasons || refused_.contains(why)) ++refused_[why];
  if (now < next_line_) return;
  next_line_ = now + kBetweenLinesMs;
  for (const auto& [reason, count] : refused_) spdlog::warn("signed tokens refused: {} ({} times)", reason, count);
  refused_.clear();
}

}  // namespace berth::daemon
