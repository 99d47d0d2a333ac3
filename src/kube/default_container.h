#pragma once
// Which container of a pod is meant where none is named: of a log, of a shell.

#include <boost/json/object.hpp>
#include <string>

namespace berth::kube {

// Returns the one that the pod names as kubectl's default (the annotation kubectl.kubernetes.io/default-container),
// else its first. Empty: it has none, or its name is none.
std::string default_container_of(const boost::json::object& pod);

}  // namespace berth::kube
