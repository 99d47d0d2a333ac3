#pragma once
// The volumes of an own pod, and where its container finds them. Secrets are named and never read: the kubelet gets
// them.

#include <boost/json/fwd.hpp>

#include "model/effect.h"

namespace berth::kube {

// Return spec.volumes of the pod and volumeMounts of its container. Each volume of the configuration is there once.
boost::json::array volumes_of(const StartTask& start);
boost::json::array mounts_of(const StartTask& start);

}  // namespace berth::kube
