#include "kube/shared_volumes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace berth::kube {
namespace {

struct Seen {
  std::string_view trust_domain;
  std::map<std::string_view, const VolumeConfig*> volumes;  // by name, each nearest to the queue
};

Seen seen_from(const QueueConfig& queue, const std::map<std::string_view, const QueueConfig*>& queues,
               const ClusterConfig& config) {
  Seen seen;
  for (std::string_view at = queue.path; !at.empty();) {
    if (const auto found = queues.find(at); found != queues.end()) {
      if (seen.trust_domain.empty()) seen.trust_domain = found->second->trust_domain;
      for (const VolumeConfig& volume : found->second->volumes) seen.volumes.emplace(volume.name, &volume);
    }
    const std::size_t slash = at.rfind('/');
    at = slash == std::string_view::npos ? std::string_view() : at.substr(0, slash);
  }
  for (const VolumeConfig& volume : config.volumes) seen.volumes.emplace(volume.name, &volume);
  return seen;
}

}  // namespace

std::vector<std::string> warnings_of_shared_volumes(const ClusterConfig& config, const OwnPods& own) {
  if (own.space.empty()) return {};
  std::map<std::string_view, const QueueConfig*> queues;
  for (const QueueConfig& queue : config.queues) queues.emplace(queue.path, &queue);
  std::map<std::pair<const VolumeConfig*, std::string>, std::set<std::string_view>> domains;
  for (const QueueConfig& queue : config.queues) {
    const Seen seen = seen_from(queue, queues, config);
    if (seen.trust_domain.empty()) continue;
    for (const auto& [name, volume] : seen.volumes) {
      if (volume->read_only) continue;
      const bool is_claim = volume->kind == VolumeKind::kClaim;
      domains[{volume, is_claim ? space_of_queue(own, queue.path) : std::string()}].insert(seen.trust_domain);
    }
  }
  std::vector<std::string> warnings;
  for (const auto& [where, of_volume] : domains) {
    if (of_volume.size() < 2) continue;
    warnings.push_back("volume '" + where.first->name + "' may be written from queues of " +
                       std::to_string(of_volume.size()) +
                       " trust domains, and as all pods have one user, their jobs can read and change what others save "
                       "there; define one for each of these queues (docs/data.md)");
  }
  std::sort(warnings.begin(), warnings.end());
  warnings.erase(std::unique(warnings.begin(), warnings.end()), warnings.end());
  return warnings;
}

}  // namespace berth::kube
