#pragma once
// Where the pods of berth's own jobs are made, as an admin writes it (berth serve --job-namespace).

#include <string>

#include "base/result.h"
#include "kube/own_pod.h"

namespace berth::backend {

// Returns whether it can be the name of a namespace (RFC 1123 label).
bool is_namespace(const std::string& text);

// Reads a namespace, and with commas between QUEUE=NAMESPACE for queues with another one; or `none`.
Result<kube::OwnPods> read_job_namespace(const std::string& flag);

}  // namespace berth::backend
