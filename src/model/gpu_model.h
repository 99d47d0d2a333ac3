#pragma once
// Names of GPU models. A model of devices that a node offers as a resource, such as the MIG instances of Kubernetes'
// nvidia.com/mig-1g.10gb, has the name of that resource. Only a request that names such a model gets its devices: a
// request for any GPU means a whole one.

#include <string_view>

namespace berth {

constexpr bool is_resource_model(std::string_view model) { return model.find('/') != std::string_view::npos; }

// Returns true for a name, and for two names with a '/' between them.
bool well_formed_gpu_model(std::string_view model);

}  // namespace berth
