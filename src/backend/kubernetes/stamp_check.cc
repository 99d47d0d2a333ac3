#include "backend/kubernetes/stamp_check.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <utility>

namespace berth::backend {
namespace {

constexpr std::string_view kServedAt = "/apis/admissionregistration.k8s.io/v1/";

Error not_there(std::string_view what, std::string_view name) {
  return {ErrorCode::kNotFound, "there is no " + std::string(what) + " " + std::string(name) +
                                    "; it comes with userStamps of berth's chart, and needs Kubernetes 1.37"};
}

}  // namespace

std::vector<HttpCall> StampCheck::begin() {
  *this = {};
  std::vector<HttpCall> calls;
  for (const char* kind : {"mutatingadmissionpolicies/", "mutatingadmissionpolicybindings/"}) {
    for (const std::string_view name : kube::stamp_policies()) {
      HttpCall call;
      call.path = std::string(kServedAt) + kind + std::string(name);
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

bool StampCheck::done() const { return answered_ == 2 * kube::stamp_policies().size(); }

void StampCheck::answered(std::size_t number, const HttpAnswer& answer) {
  ++answered_;
  const auto names = kube::stamp_policies();
  const bool is_binding = number >= names.size();
  const std::string_view name = names[number % names.size()];
  const auto fail = [this](Error error) {
    if (!error_) error_ = std::move(error);
  };
  if (answer.status == 404)
    return fail(not_there(is_binding ? "MutatingAdmissionPolicyBinding" : "MutatingAdmissionPolicy", name));
  if (answer.status == 403)
    return fail({ErrorCode::kDenied, "the API server does not let this user look: " + message_of(answer)});
  if (!answer.ok()) {
    unknown_ = true;
    return;
  }
  boost::json::error_code wrong;
  const boost::json::value value = boost::json::parse(answer.body, wrong);
  if (wrong || !value.is_object()) {
    unknown_ = true;
    return;
  }
  if (is_binding) {
    if (auto ok = kube::check_stamp_binding(name, value.get_object()); !ok) fail(ok.error());
    return;
  }
  auto read = kube::read_stamp_policy(name, value.get_object());
  if (!read) return fail(read.error());
  if (!rules_) {
    rules_ = std::move(*read);
    return;
  }
  if (rules_->mark != read->mark) fail({ErrorCode::kInvalid, "its policies have two marks; apply all of them anew"});
  rules_->left_out.merge(read->left_out);
}

Result<kube::StampRules> StampCheck::result() const {
  if (error_) return *error_;
  if (unknown_ || !rules_) return Error{ErrorCode::kUnavailable, "the API server does not answer"};
  return *rules_;
}

}  // namespace berth::backend
