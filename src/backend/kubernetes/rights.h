#pragma once
// Asks the API server, before anything else is done, whether it allows what berth will do (SelfSubjectAccessReview).
// So a right that is missing is an error at the start that names it, and not a pod that waits for ever. All missing
// rights are told at once.
//
// An API server that has just started knows no roles yet. It denies what it will allow some seconds later, this
// question too. So a denial is believed when it has lasted for a while (kube/waits.h).

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/kubernetes/http.h"
#include "base/result.h"
#include "kube/cluster.h"

namespace berth::backend {

struct Right {
  std::string verb;
  std::string group;        // empty: the core group
  std::string resource;     // such as pods
  std::string subresource;  // such as binding; or empty
  std::string space;        // empty: in the whole cluster
};

// Returns "create pods/binding" or "update leases.coordination.k8s.io in namespace x".
std::string text_of(const Right& right);

// Returns the rights that a server needs which keeps its Lease in the namespace `space`, and makes pods in
// `job_spaces`; with `saves` also the Secrets by which these report that they have saved.
std::vector<Right> needed_rights(const std::vector<kube::Resource>& watched, const std::string& space,
                                 const std::vector<std::string>& job_spaces = {}, bool saves = false);

// Returns the rights without which the server runs, but does not know some kinds of owners of pods, or volumes.
std::vector<Right> useful_rights(const std::vector<kube::Resource>& watched);

// Returns the rights without which the server runs, but does not show its queues as objects.
std::vector<Right> queue_object_rights();

class RightsCheck {
 public:
  explicit RightsCheck(std::vector<Right> rights);
  // Returns the calls to make, one for each right, in their order.
  std::vector<HttpCall> calls() const;
  // Takes the answer to the call of this number. A server that answers no such questions counts as one that allows.
  void answered(std::size_t number, const HttpAnswer& answer);
  bool done() const { return answered_ == rights_.size(); }
  // Returns true if all were answered, and some answer was a denial that has not lasted for `patience` yet. Then it is
  // to be asked anew.
  bool may_change(Clock::time_point now, std::chrono::milliseconds patience);
  void ask_anew();
  // Returns what was denied: "let this user: " and the names, or "answer what this user may do: " and the reason.
  std::string denial() const;
  // Returns the names of all rights that are missing, separated by commas; empty: none is.
  std::string missing_names() const;
  // Returns the error that names all rights that are missing.
  std::optional<Error> missing() const;

 private:
  std::vector<Right> rights_;
  std::vector<bool> denied_;
  std::string refusal_;  // of the question itself
  std::optional<Clock::time_point> denied_since_;
  std::size_t answered_ = 0;
};

}  // namespace berth::backend
