#pragma once
// The volumes of an own pod, and where its container finds them. Secrets are named and never read: the kubelet gets
// them.

#include <boost/json/fwd.hpp>
#include <string_view>

#include "model/effect.h"

namespace berth::kube {

// Return spec.volumes of the pod and volumeMounts of its container. Each volume of the configuration is there once.
// `log` is the identity of the server's log.
boost::json::array volumes_of(const StartTask& start);
boost::json::array mounts_of(const StartTask& start, std::string_view log);

}  // namespace berth::kube
