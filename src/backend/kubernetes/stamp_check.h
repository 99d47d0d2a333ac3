#pragma once
// Asks the API server whether the policies that stamp pods with their users are in force and as they should be
// (kube/user_stamp.h). It is asked at the start and again and again: an administrator may take them away.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backend/kubernetes/http.h"
#include "base/result.h"
#include "kube/user_stamp.h"

namespace berth::backend {

class StampCheck {
 public:
  // Returns the calls to make, in their order, and forgets what was answered.
  std::vector<HttpCall> begin();
  // Takes the answer to the call of this number.
  void answered(std::size_t number, const HttpAnswer& answer);
  bool done() const;
  // Requires done(). Error: no stamp can be believed, and why. kUnavailable: the server has not said; ask again.
  Result<kube::StampRules> result() const;

 private:
  std::size_t answered_ = 0;
  std::optional<kube::StampRules> rules_;
  std::optional<Error> error_;  // the first
  bool unknown_ = false;        // an answer is missing
};

}  // namespace berth::backend
