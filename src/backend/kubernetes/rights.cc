#include "backend/kubernetes/rights.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

namespace berth::backend {
namespace {

// Returns group and resource of the path of a kind: /api/v1/pods, /apis/batch/v1/jobs.
Right right_of_path(std::string_view path) {
  Right right;
  const std::size_t last = path.rfind('/');
  right.resource = path.substr(last + 1);
  constexpr std::string_view kGroups = "/apis/";
  if (path.starts_with(kGroups)) {
    path.remove_prefix(kGroups.size());
    right.group = path.substr(0, path.find('/'));
  }
  return right;
}

boost::json::object review_of(const Right& right) {
  boost::json::object attributes{{"verb", right.verb}, {"group", right.group}, {"resource", right.resource}};
  if (!right.subresource.empty()) attributes["subresource"] = right.subresource;
  if (!right.space.empty()) attributes["namespace"] = right.space;
  return {{"apiVersion", "authorization.k8s.io/v1"},
          {"kind", "SelfSubjectAccessReview"},
          {"spec", boost::json::object{{"resourceAttributes", std::move(attributes)}}}};
}

// Only a plain no is a no.
bool is_denied(const HttpAnswer& answer) {
  if (!answer.ok()) return false;
  boost::json::error_code error;
  const boost::json::value review = boost::json::parse(answer.body, error);
  if (error || !review.is_object()) return false;
  const boost::json::value* status = review.get_object().if_contains("status");
  const boost::json::value* allowed =
      status == nullptr || !status->is_object() ? nullptr : status->get_object().if_contains("allowed");
  return allowed != nullptr && allowed->is_bool() && !allowed->get_bool();
}

}  // namespace

std::string text_of(const Right& right) {
  std::string text = right.verb + " " + right.resource;
  if (!right.group.empty()) text += "." + right.group;
  if (!right.subresource.empty()) text += "/" + right.subresource;
  if (!right.space.empty()) text += " in namespace " + right.space;
  return text;
}

namespace {

void add_reading(const kube::Resource& resource, std::vector<Right>& rights) {
  for (const char* verb : {"list", "watch"}) {
    Right right = right_of_path(resource.path);
    right.verb = verb;
    rights.push_back(std::move(right));
  }
}

}  // namespace

std::vector<Right> useful_rights(const std::vector<kube::Resource>& watched) {
  std::vector<Right> rights;
  for (const kube::Resource& resource : watched) {
    if (resource.extra) add_reading(resource, rights);
  }
  rights.push_back({"patch", "batch", "jobs", "", ""});  // to lift `suspend`
  rights.push_back({"patch", "jobset.x-k8s.io", "jobsets", "", ""});
  rights.push_back({"patch", "trainer.kubeflow.org", "trainjobs", "", ""});
  rights.push_back({"patch", "", "persistentvolumeclaims", "", ""});  // to write the chosen node
  rights.push_back({"create", "", "pods", "eviction", ""});           // so that disruption budgets are heard
  return rights;
}

std::vector<Right> queue_object_rights() {
  std::vector<Right> rights;
  for (const char* verb : {"list", "create", "patch", "delete"})
    rights.push_back({verb, "berth.dev", "queues", "", ""});
  return rights;
}

std::vector<Right> needed_rights(const std::vector<kube::Resource>& watched, const std::string& space,
                                 const std::vector<std::string>& job_spaces, bool saves) {
  std::vector<Right> rights;
  for (const kube::Resource& resource : watched) {
    if (!resource.extra) add_reading(resource, rights);
  }
  rights.push_back({"get", "", "pods", "", ""});
  rights.push_back({"get", "", "pods", "log", ""});
  rights.push_back({"create", "", "pods", "binding", ""});
  rights.push_back({"delete", "", "pods", "", ""});
  rights.push_back({"patch", "", "pods", "status", ""});
  rights.push_back({"create", "", "events", "", ""});
  for (const std::string& one : job_spaces) {
    rights.push_back({"create", "", "pods", "", one});
    rights.push_back({"create", "", "services", "", one});
    if (saves) rights.push_back({"create", "", "secrets", "", one});
  }
  for (const char* verb : {"get", "create", "update"})
    rights.push_back({verb, "coordination.k8s.io", "leases", "", space});
  return rights;
}

RightsCheck::RightsCheck(std::vector<Right> rights) : rights_(std::move(rights)), denied_(rights_.size(), false) {}

std::vector<HttpCall> RightsCheck::calls() const {
  std::vector<HttpCall> calls;
  for (const Right& right : rights_) {
    HttpCall call;
    call.method = "POST";
    call.path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    call.content_type = "application/json";
    call.body = boost::json::serialize(review_of(right));
    calls.push_back(std::move(call));
  }
  return calls;
}

void RightsCheck::answered(std::size_t number, const HttpAnswer& answer) {
  ++answered_;
  denied_.at(number) = is_denied(answer);
  if (answer.status == 403) refusal_ = message_of(answer);
}

bool RightsCheck::may_change(Clock::time_point now, std::chrono::milliseconds patience) {
  if (!done() || denial().empty()) return false;
  if (!denied_since_) denied_since_ = now;
  return now - *denied_since_ < patience;
}

void RightsCheck::ask_anew() {
  answered_ = 0;
  denied_.assign(rights_.size(), false);
  refusal_.clear();
}

std::string RightsCheck::denial() const {
  const std::string names = missing_names();
  if (!names.empty()) return "let this user: " + names;
  return refusal_.empty() ? std::string() : "answer what this user may do: " + refusal_;
}

std::string RightsCheck::missing_names() const {
  std::string all;
  for (std::size_t i = 0; i < rights_.size(); ++i) {
    if (denied_[i]) all += (all.empty() ? "" : ", ") + text_of(rights_[i]);
  }
  return all;
}

std::optional<Error> RightsCheck::missing() const {
  const std::string all = missing_names();
  if (all.empty()) return std::nullopt;
  return Error{ErrorCode::kDenied,
               "the API server does not let this user: " + all + ". Grant these rights (docs/kubernetes.md)"};
}

}  // namespace berth::backend
