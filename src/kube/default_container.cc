#include "kube/default_container.h"

#include <algorithm>
#include <boost/json/array.hpp>

#include "kube/json_reading.h"

namespace berth::kube {

std::string default_container_of(const boost::json::object& pod) {
  std::string name = text_at(pod, {"metadata", "annotations", "kubectl.kubernetes.io/default-container"});
  const auto containers = objects_at(pod, {"spec", "containers"});
  const bool is_there = std::any_of(containers.begin(), containers.end(),
                                    [&](const boost::json::object* one) { return text_at(*one, {"name"}) == name; });
  if (!is_there) name = containers.empty() ? std::string() : text_at(*containers.front(), {"name"});
  const bool plain = std::all_of(name.begin(), name.end(),
                                 [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  return plain ? name : std::string();
}

}  // namespace berth::kube
