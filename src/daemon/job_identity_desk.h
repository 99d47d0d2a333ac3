#pragma once
// Gives running jobs what they show: to this server the token of their attempt, to others a signed identity
// (docs/job-identity.md). Has the server's signing keys. Any thread.

#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "api/job_identities.h"
#include "daemon/access_table.h"
#include "daemon/reader.h"
#include "daemon/server_clock.h"
#include "identity/own_keys.h"
#include "model/effect.h"

namespace berth::daemon {

class JobIdentityDesk final : public api::JobIdentities {
 public:
  // Says what is wrong with the URL that `berth serve --url` gives. The empty one is none.
  static Result<void> check_url(const std::string& url);

  // Reads or makes the keys, in signing-keys.json of the data directory. `url`: of this server, as others reach it;
  // empty: the address that it serves on. Reader and clock must outlive it.
  static Result<std::unique_ptr<JobIdentityDesk>> open(const std::string& data_dir, std::string url, Reader& reader,
                                                       ServerClock& clock);
  JobIdentityDesk(identity::OwnKeys keys, std::string url, Reader& reader, ServerClock& clock);

  // The server is reached by this address, unless another was given. Called once; with an empty one if it never is.
  void serve_at(const std::string& url);

  // The variables by which a task speaks for its job. Waits until the server's address is known: a start of the server
  // takes that long.
  Environment variables_of(const TaskKey& key);

  // The token by which a task reports the saves of its job, and nothing else.
  std::string save_token_of(const TaskKey& key) const;

  // The running job whose token it is.
  std::optional<policy::Subject> find(std::string_view token) const;

  Result<Token> issue(JobId job, const std::string& audience) override;
  std::string issuer() override { return url_.get(); }
  std::string key_set() override;
  Result<std::string> rotate(bool withdraw, const std::string& by) override;

 private:
  Reader& reader_;
  ServerClock& clock_;
  std::mutex mutex_;
  identity::OwnKeys keys_;
  const std::string job_secret_;
  std::promise<std::string> served_;
  std::shared_future<std::string> url_;
  bool url_given_;
};

}  // namespace berth::daemon
