#pragma once
// The user that has made a pod, as the API server writes it into an annotation of the pod, by the policies of the chart
// (deploy/helm/berth/templates/user-stamps.yaml). Where these policies are not in force, the annotation is what the
// maker of the pod wrote. So a stamp is believed only while all of them are there and are what the chart makes, and
// only where they hold. A stamp is `MARK USER`: the mark is the administrator's, and no object from before the policies
// has it.

#include <boost/json/fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::kube {

inline constexpr std::string_view kStampAnnotation = "berth.dev/made-by";

// A user of the API server whose name begins with `from` is the user of berth whose name has `to` in its place.
struct StampedName {
  std::string from;
  std::string to;
  bool operator==(const StampedName&) const = default;
};

// Splits and checks the names of `berth serve --user-stamps`: FROM=TO, with commas between. The longest FROM comes
// first.
Result<std::vector<StampedName>> read_stamped_names(const std::string& flag);

// Which stamps are believed.
struct StampRules {
  std::string mark;
  std::set<std::string> left_out;  // namespaces in which nothing is stamped
  bool operator==(const StampRules&) const = default;
};

// Returns the names of the policies. The binding of each has its name.
std::span<const std::string_view> stamp_policies();

// Reads a policy. Error: it is not what the chart of this version makes, and what differs.
Result<StampRules> read_stamp_policy(std::string_view name, const boost::json::object& policy);
Result<void> check_stamp_binding(std::string_view name, const boost::json::object& binding);

// Returns a digest of the parts of a policy that no value of the chart changes.
std::string digest_of_stamp_policy(const boost::json::object& policy);

// Returns the user of berth that a pod or template in this namespace is stamped with. Empty: none that is believed, the
// stamp is that of a service account or of a part of Kubernetes, or no name of `names` takes its user.
std::string user_of_stamp(std::string_view stamp, const std::string& name_space, const StampRules& rules,
                          const std::vector<StampedName>& names);

}  // namespace berth::kube
