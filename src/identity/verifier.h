#pragma once
// Proves signed tokens of the configured issuers. Each issuer has a thread that fetches its keys (key_cache.h says
// when); a caller never waits for it. A token that was proved is kept by its digest, so that the next request with
// it costs no signature; it is proved again when its issuer's keys have been fetched anew.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "base/timestamp.h"
#include "identity/claims.h"
#include "identity/issuer.h"
#include "identity/key_cache.h"
#include "identity/token.h"

namespace berth::identity {

struct Verdict {
  std::optional<Identity> identity = {};
  std::string refusal = {};  // if there is no identity: what is wrong with the token
  // Its key is not known yet and is being fetched: ask again after when_fetched(). The number of fetches until now.
  std::optional<std::uint64_t> fetching = {};
};

struct IssuerStatus {
  std::string name;
  std::optional<Timestamp> last_good;  // fetch of its keys
  std::string failure;                 // of the last fetch; empty: it was good
  bool serves = false;                 // its tokens can be proved now
};

class Verifier {
 public:
  using Clock = std::function<Timestamp()>;
  // Loads the keys of an issuer; may block. Ends early once the flag is true.
  using Load = std::function<Result<KeySet>(const Issuer& issuer, const std::atomic<bool>& stopping)>;
  // Told of each issuer whose fetches begin to fail, with why, or succeed again (empty).
  using OnChange = std::function<void(const std::string& issuer, const std::string& failure)>;

  Verifier(std::vector<Issuer> issuers, Clock clock, Load load, OnChange on_change = {});
  ~Verifier();
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;

  // `digest` is that of the token. For any thread; does not block.
  Verdict verify(std::string_view token, const std::string& digest, Timestamp now);

  // The ID token that the issuer of this name made for berth's page alone, in answer to `nonce` (code_flow.h). For any
  // thread; does not block; keeps nothing.
  Verdict verify_id_token(std::string_view token, const std::string& issuer, const std::string& nonce, Timestamp now);

  // Calls back once after the next fetch that ends, good or not; at once if one has ended since `fetches`.
  void when_fetched(std::uint64_t fetches, std::function<void()> callback);

  std::vector<IssuerStatus> statuses(Timestamp now) const;

 private:
  struct Site {
    explicit Site(Issuer one) : issuer(std::move(one)), cache(issuer) {}
    const Issuer issuer;
    KeyCache cache;
    std::uint64_t version = 0;  // of its keys
    std::thread thread = {};
  };
  struct Proved {
    Identity identity;
    const Site* site;
    std::uint64_t version;
  };

  // A token whose signature holds by the keys of its issuer.
  struct Signed {
    UnprovedToken token;
    Site* site;
    std::uint64_t version;  // of the keys
  };

  std::variant<Signed, Verdict> check_signature(std::string_view text, Timestamp now);
  void keep_fetching(Site& site);
  void end_fetch(Site& site, Result<KeySet> keys);
  Site* site_of(const std::string& url);
  std::optional<Identity> known(const std::string& digest, Timestamp now);
  void remember(const std::string& digest, Proved proved, Timestamp now);

  const Clock clock_;
  const Load load_;
  const OnChange on_change_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::unique_ptr<Site>> sites_;
  std::map<std::string, Proved> proved_;  // by digest
  std::uint64_t fetches_ = 0;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace berth::identity
