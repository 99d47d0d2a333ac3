#pragma once
// Signing in on the web page with an identity provider (api/page/sign_in_routes.h): sends browsers to the issuers,
// redeems the codes with which they come back, and keeps the sessions (page_sessions.h).
//
// What belongs to a sign-in that is under way is kept by the browser alone, under a seal of this process, so that
// nobody can fill the server with sign-ins that never end. Each issuer has a thread that speaks with it; an issuer that
// is slow holds up nobody but those who sign in with it, and at most kMostWaiting of them.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/authenticator.h"
#include "api/page/sign_in_routes.h"
#include "daemon/access_table.h"
#include "daemon/page_sessions.h"
#include "daemon/server_clock.h"
#include "identity/verifier.h"

namespace berth::daemon {

class SignInDesk final : public api::SignIn {
 public:
  static constexpr std::size_t kMostWaiting = 64;

  // Offers those of `issuers` that have a client for the page. `tls`: this server speaks it itself. A null
  // `verifier`: there are no issuers. All references
  // must outlive it.
  SignInDesk(std::vector<identity::Issuer> issuers, bool tls, std::shared_ptr<identity::Verifier> verifier,
             const AccessTable& access, ServerClock& clock);
  ~SignInDesk() override;

  // The address of this server, which serves where an issuer states none.
  void serve_at(std::string address);

  // Whose session the cookies of a request name.
  http::Identification identify(std::string_view cookies);

  std::vector<std::string> issuers() const override;
  bool secure() const override { return secure_; }
  std::string port() const override;
  void begin(const std::string& issuer, std::function<void(Begun)> done) override;
  void finish(Answered answered, std::function<void(Finished)> done) override;
  std::optional<std::string> change_token(std::string_view session) override;
  bool end(std::string_view session, std::string_view change_token) override;

 private:
  class Site;  // an issuer and its thread

  Site* site_named(const std::string& name);
  std::string failure_of(const Answered& answered, const std::vector<std::string>& sealed, const Site* site) const;
  std::string seal(const std::vector<std::string>& parts) const;
  std::vector<std::string> unseal(const std::string& text) const;  // empty: it is none of this process, or too old
  Begun send(Site& site);
  Finished redeem(Site& site, const Answered& answered, const std::string& nonce, const std::string& verifier);
  void renew(Site& site, const std::string& digest, const std::string& refresh_token);
  std::string redirect_uri(const Site& site) const;
  Result<identity::Identity> prove(const Site& site, const std::string& id_token, const std::string& nonce);

  const std::shared_ptr<identity::Verifier> verifier_;
  const AccessTable& access_;
  ServerClock& clock_;
  std::string key_;  // of the seals
  mutable std::mutex mutex_;
  std::string address_;
  bool secure_ = false;
  PageSessions sessions_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::unique_ptr<Site>> sites_;
};

}  // namespace berth::daemon
