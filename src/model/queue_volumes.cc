#include "model/queue_volumes.h"

#include <algorithm>

#include "model/nearest.h"
#include "model/volume.h"

namespace berth {
namespace {

constexpr std::size_t kMostNamed = 10;

// Calls `visit` for the queue and the queues above it, nearest first, until it returns true.
template <class Visit>
bool find_upwards(const ClusterConfig& config, std::string_view queue, const Visit& visit) {
  for (std::string_view at = queue; !at.empty();) {
    for (const QueueConfig& one : config.queues) {
      if (one.path == at && visit(one)) return true;
    }
    const std::size_t slash = at.rfind('/');
    at = slash == std::string_view::npos ? std::string_view() : at.substr(0, slash);
  }
  return false;
}

template <class One>
const One* named(const std::vector<One>& list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const One& one) { return one.name == name; });
  return found == list.end() ? nullptr : &*found;
}

template <class One>
const One* nearest_of(const ClusterConfig& config, std::string_view queue, std::string_view name,
                      std::vector<One> QueueConfig::*of_queue, const std::vector<One>& of_root) {
  const One* found = nullptr;
  find_upwards(config, queue, [&](const QueueConfig& one) { return (found = named(one.*of_queue, name)) != nullptr; });
  return found != nullptr ? found : named(of_root, name);
}

template <class One>
std::vector<std::string_view> names_of(const ClusterConfig& config, std::string_view queue,
                                       std::vector<One> QueueConfig::*of_queue, const std::vector<One>& of_root) {
  std::vector<std::string_view> names;
  for (const One& one : of_root) names.push_back(one.name);
  find_upwards(config, queue, [&](const QueueConfig& at) {
    for (const One& one : at.*of_queue) names.push_back(one.name);
    return false;
  });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

const VolumeConfig* volume_of(const ClusterConfig& config, std::string_view queue, std::string_view name) {
  return nearest_of(config, queue, name, &QueueConfig::volumes, config.volumes);
}

const SecretConfig* secret_of(const ClusterConfig& config, std::string_view queue, std::string_view name) {
  return nearest_of(config, queue, name, &QueueConfig::secrets, config.secrets);
}

std::vector<std::string_view> volume_names_of(const ClusterConfig& config, std::string_view queue) {
  return names_of(config, queue, &QueueConfig::volumes, config.volumes);
}

std::vector<std::string_view> secret_names_of(const ClusterConfig& config, std::string_view queue) {
  return names_of(config, queue, &QueueConfig::secrets, config.secrets);
}

std::string default_image_of(const ClusterConfig& config, std::string_view queue) {
  std::string image = config.default_image;
  find_upwards(config, queue, [&](const QueueConfig& one) {
    if (!one.default_image.empty()) image = one.default_image;
    return !one.default_image.empty();
  });
  return image;
}

std::optional<std::string> queue_without_shell(const ClusterConfig& config, std::string_view queue) {
  if (config.no_shell) return "/";
  std::optional<std::string> found;
  find_upwards(config, queue, [&](const QueueConfig& one) {
    if (one.no_shell) found = one.path;
    return one.no_shell;
  });
  return found;
}

std::string no_such_mount(std::string_view what, std::string_view queue, std::string_view name,
                          const std::vector<std::string_view>& known) {
  std::string text = "queue '" + std::string(queue.substr(0, 200)) + "' has no " + std::string(what) + " '" +
                     std::string(name.substr(0, 80)) + "'";
  if (const auto meant = nearest(name, known)) return text + "; did you mean '" + std::string(*meant) + "'?";
  if (known.empty()) return text + "; it has none, and the configuration defines them (" + std::string(what) + "s:)";
  text += "; it has ";
  for (std::size_t i = 0; i < std::min(known.size(), kMostNamed); ++i)
    text += (i == 0 ? "" : ", ") + std::string(known[i]);
  return text + (known.size() > kMostNamed ? " and more" : "");
}

}  // namespace berth
