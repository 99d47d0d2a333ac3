#include "backend/kubernetes/job_namespace.h"

#include <algorithm>

namespace berth::backend {

bool is_namespace(const std::string& text) {
  constexpr std::size_t kMost = 63;
  if (text.empty() || text.size() > kMost || text.front() == '-' || text.back() == '-') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

Result<kube::OwnPods> read_job_namespace(const std::string& flag) {
  kube::OwnPods own;
  if (flag == "none") return own;
  for (std::size_t at = 0; at < flag.size();) {
    const std::size_t end = std::min(flag.find(',', at), flag.size());
    const std::string word = flag.substr(at, end - at);
    const std::size_t equals = word.find('=');
    const std::string space = equals == std::string::npos ? word : word.substr(equals + 1);
    const bool second = equals == std::string::npos && !own.space.empty();
    if (!is_namespace(space) || equals == 0 || second || end + 1 == flag.size())
      return invalid("--job-namespace: '" + word.substr(0, 200) +
                     "' is not what comes there; give a namespace, and QUEUE=NAMESPACE for queues with another, as "
                     "berth-jobs,research=research-jobs");
    if (equals == std::string::npos) {
      own.space = space;
    } else {
      own.spaces.emplace_back(word.substr(0, equals), space);
    }
    at = end + 1;
  }
  if (own.space.empty())
    return invalid(
        "--job-namespace: the namespace of all other queues is missing, as in berth-jobs,research=research-jobs");
  return own;
}

}  // namespace berth::backend
