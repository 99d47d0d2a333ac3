#include "backend/kubernetes/lease.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

namespace berth::backend {
namespace {

constexpr std::int64_t kLongestDurationS = 600;
constexpr std::size_t kMostHolder = 253;

std::string printable_holder(std::string_view text) {
  std::string out(text.substr(0, kMostHolder));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

// The time as a MicroTime of Kubernetes has it.
std::string micro_time(Timestamp time) {
  std::string text = to_iso8601(time);  // 2026-11-21T08:15:30.250Z
  if (text.ends_with('Z')) text.replace(text.size() - 1, 1, "000Z");
  return text;
}

}  // namespace

Lease::Lease(std::string space, std::string name, std::string identity)
    : space_(std::move(space)), name_(std::move(name)), identity_(std::move(identity)) {}

Clock::time_point Lease::due_at() const { return under_way_ || lost_ ? Clock::time_point::max() : due_at_; }

std::string Lease::object(const std::string& holder, std::int64_t transitions, Timestamp wall) const {
  boost::json::object metadata{{"name", name_}, {"namespace", space_}};
  if (exists_) metadata["resourceVersion"] = seen_.version;
  boost::json::object spec{{"holderIdentity", holder},
                           {"leaseDurationSeconds", kDuration.count()},
                           {"renewTime", micro_time(wall)},
                           {"leaseTransitions", transitions}};
  return boost::json::serialize(boost::json::object{{"apiVersion", "coordination.k8s.io/v1"},
                                                    {"kind", "Lease"},
                                                    {"metadata", std::move(metadata)},
                                                    {"spec", std::move(spec)}});
}

std::optional<HttpCall> Lease::next(Clock::time_point now, Timestamp wall) {
  if (under_way_ || lost_ || now < due_at_) return std::nullopt;
  under_way_ = true;
  sent_at_ = now;
  const std::string all = "/apis/coordination.k8s.io/v1/namespaces/" + space_ + "/leases";
  HttpCall call;
  if (step_ == Step::kLook) {
    call.path = all + "/" + name_;
    return call;
  }
  call.method = exists_ ? "PUT" : "POST";
  call.path = exists_ ? all + "/" + name_ : all;
  call.content_type = "application/json";
  const std::int64_t transitions = seen_.transitions + (exists_ && seen_.holder != identity_ ? 1 : 0);
  call.body = object(identity_, transitions, wall);
  return call;
}

std::optional<HttpCall> Lease::give_back(Timestamp wall) {
  if (!held_ || lost_) return std::nullopt;
  held_ = false;
  HttpCall call;
  call.method = "PUT";
  call.path = "/apis/coordination.k8s.io/v1/namespaces/" + space_ + "/leases/" + name_;
  call.content_type = "application/json";
  call.body = object("", seen_.transitions, wall);
  return call;
}

void Lease::answered(const HttpAnswer& answer, Clock::time_point now) {
  under_way_ = false;
  failure_.clear();
  due_at_ = now + kLookEvery;
  if (step_ == Step::kLook) {
    looked(answer, now);
  } else {
    wrote(answer);
  }
}

namespace {

std::optional<boost::json::object> parsed_lease(const HttpAnswer& answer) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(answer.body, error);
  if (error || !value.is_object()) return std::nullopt;
  const boost::json::value* metadata = value.get_object().if_contains("metadata");
  if (metadata == nullptr || !metadata->is_object()) return std::nullopt;
  return std::move(value.get_object());
}

std::string lease_text(const boost::json::object& lease, std::string_view part, std::string_view key) {
  const boost::json::value* map = lease.if_contains(part);
  const boost::json::value* value = map == nullptr || !map->is_object() ? nullptr : map->get_object().if_contains(key);
  return value == nullptr || !value->is_string() ? std::string() : std::string(value->get_string());
}

std::int64_t lease_number(const boost::json::object& lease, std::string_view key) {
  const boost::json::value* map = lease.if_contains("spec");
  const boost::json::value* value = map == nullptr || !map->is_object() ? nullptr : map->get_object().if_contains(key);
  return value == nullptr || !value->is_int64() ? 0 : value->get_int64();
}

}  // namespace

void Lease::looked(const HttpAnswer& answer, Clock::time_point now) {
  if (answer.status == 404) {
    // A namespace that is missing says 404, too; then the creation is refused, and says so.
    exists_ = false;
    seen_ = {};
    step_ = Step::kWrite;
    due_at_ = now;
    return;
  }
  const auto lease = answer.ok() ? parsed_lease(answer) : std::nullopt;
  if (!lease) {
    failure_ = message_of(answer);
    return;
  }
  Seen seen;
  seen.holder = lease_text(*lease, "spec", "holderIdentity");
  seen.version = lease_text(*lease, "metadata", "resourceVersion");
  seen.duration_s = std::clamp<std::int64_t>(lease_number(*lease, "leaseDurationSeconds"), 1, kLongestDurationS);
  seen.transitions = std::max<std::int64_t>(0, lease_number(*lease, "leaseTransitions"));
  if (!seen.holder.empty() && seen.holder != identity_) return meet_other(seen, now);
  exists_ = true;
  seen_ = std::move(seen);
  step_ = Step::kWrite;
  due_at_ = now;
}

void Lease::meet_other(const Seen& seen, Clock::time_point now) {
  const bool first = seen_.holder != seen.holder;
  const bool renewed = !first && seen_.version != seen.version;
  if (held_ || renewed) {
    lost_ =
        conflict("another server schedules this cluster: '" + printable_holder(seen.holder) + "' renews the Lease " +
                 space_ + "/" + name_ + (held_ ? ", which this server had. It stops." : ". Stop that one first."));
    return;
  }
  if (first) seen_since_ = now;
  seen_ = seen;
  exists_ = true;
  if (now - seen_since_ >= std::chrono::seconds(seen.duration_s)) {
    step_ = Step::kWrite;  // with its version: if it was renewed meanwhile, this is a conflict
    due_at_ = now;
  }
}

void Lease::wrote(const HttpAnswer& answer) {
  step_ = Step::kLook;
  if (answer.status == 409 || answer.status == 404) {  // made or changed by another: look who
    due_at_ = sent_at_;
    if (answer.status == 404) failure_ = message_of(answer);
    if (answer.status == 404 && !exists_) due_at_ = sent_at_ + kLookEvery;
    return;
  }
  const auto lease = answer.ok() ? parsed_lease(answer) : std::nullopt;
  if (!lease) {
    failure_ = message_of(answer);
    return;
  }
  held_ = true;
  exists_ = true;
  renewed_at_ = sent_at_;  // not the time of the answer: the server may have done it any time after
  seen_.holder = identity_;
  seen_.version = lease_text(*lease, "metadata", "resourceVersion");
  seen_.transitions = std::max<std::int64_t>(0, lease_number(*lease, "leaseTransitions"));
  step_ = Step::kWrite;
  due_at_ = sent_at_ + kRenewEvery;
}

}  // namespace berth::backend
