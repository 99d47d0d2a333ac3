#pragma once
// Objects that were created suspended and carry a queue label: berth admits them by lifting `suspend`, and sends them
// away by setting it again. Their pods do not exist before, so the job is made of the pod templates.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/cluster.h"
#include "kube/pod_object.h"

namespace berth::kube {

// An admin or user who wants a cancelled object admitted again removes this annotation.
inline constexpr std::string_view kCancelledAnnotation = "berth.dev/cancelled";

struct Suspension {
  bool suspended = false;
  bool cancelled = false;            // its job was cancelled in berth
  std::string path;                  // of the object whose `suspend` decides
  std::int64_t generation = 0;       // of the object
  std::vector<Role> roles = {};      // whose pods are the gang
  std::vector<PodObject> pods = {};  // one of each role, as its template says; empty unless it is suspended
  std::string problem;               // why it is not admitted although it should be; empty: it may be
  // For Events.
  std::string api_version, kind, name_space, name, uid;
};

// Returns how the object is suspended, or nothing if it is not for berth to admit: its kind cannot be suspended, no
// label names a queue, or its pods name another scheduler.
std::optional<Suspension> read_suspension(Kind kind, const boost::json::object& object, std::string_view scheduler,
                                          const std::vector<std::string>& vendors = {});

// The body of a merge patch that sets `suspend`, and the annotation if `cancelled` is not empty.
std::string suspend_patch(bool suspend, const std::string& cancelled);

}  // namespace berth::kube
