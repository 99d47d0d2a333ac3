#pragma once
// What a pod asks a node for.

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/device.h"
#include "model/node.h"
#include "model/resources.h"

namespace berth::kube {

struct PodRequest {
  TaskRequest request;
  Devices devices;      // all that it asks for; the request has those of one resource
  std::string unknown;  // a resource that berth does not schedule; empty: none
};

// Returns the effective request, as Kubernetes defines it: the larger of the sum of the containers and of each init
// container, with the sidecars that run by then, plus the overhead. A limit stands for a request that is missing.
// `vendors`: resources that count as devices besides NVIDIA's.
// Error: a quantity is none, or the sum is too large; it names the container.
Result<PodRequest> read_request(const boost::json::object& pod, const std::vector<std::string>& vendors);

}  // namespace berth::kube
