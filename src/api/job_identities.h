#pragma once
// The identity of a job that others can verify: a short-lived signed token (JWT), and the public keys that it is
// verified with. What the API asks of the daemon.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/timestamp.h"
#include "model/ids.h"

namespace berth::api {

class JobIdentities {
 public:
  virtual ~JobIdentities() = default;

  struct Token {
    std::string text;
    Timestamp expires;
  };

  // Signs a token that says which job runs, for one audience. kConflict if the job does not run.
  virtual Result<Token> issue(JobId job, const std::string& audience) = 0;
  // The URL of this server as the tokens name it (`iss`).
  virtual std::string issuer() = 0;
  // The public keys as a JSON Web Key Set.
  virtual std::string key_set() = 0;
  // Signs with a new key from now on, and returns its id. The earlier keys stay in the set until their tokens have
  // ended, or with `withdraw` leave it at once, so that no token that they signed is good any more. `by`: the subject.
  virtual Result<std::string> rotate(bool withdraw, const std::string& by) = 0;
};

}  // namespace berth::api
