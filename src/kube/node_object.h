#pragma once
// A Node of the API server as a node of berth.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/device.h"
#include "model/node.h"

namespace berth::kube {

struct NodeObject {
  std::string uid;
  // The whole node, without what others use of it. Its GPUs are counted: their uuids are made of the node's uid and a
  // number, because the kubelet chooses the devices. Those of other resources follow (device.h).
  NodeSpec spec;
  bool ready = false;
  std::string why;                 // not ready: the condition's reason and message
  bool out_of_service = false;     // its taint vouches that nothing runs there any more
  Devices passed_over;             // GPUs of each resource that are too many for berth
  std::vector<std::string> notes;  // what of it was not understood
};

// Reads a Node. The model of its GPUs is its label berth.dev/gpu-model, else nvidia.com/gpu.product; its pool is its
// label berth.dev/pool, else `default`; its place in the topology is the values of the labels `levels`, if it has all
// of them. Taints that only advise (PreferNoSchedule) are left out. Error: it has no name or uid, or a quantity is
// none.
Result<NodeObject> read_node(const boost::json::object& node, const std::string& cell,
                             const std::vector<std::string>& levels, const std::vector<std::string>& vendors = {});

}  // namespace berth::kube
