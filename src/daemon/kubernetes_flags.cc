#include "daemon/kubernetes_flags.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "backend/kubernetes/job_namespace.h"
#include "backend/kubernetes/kubernetes_backend.h"
#include "backend/kubernetes/stamp_check.h"
#include "base/hash.h"
#include "daemon/machine.h"
#include "model/document/quantity.h"
#include "model/gpu_model.h"
#include "model/name.h"
#include "model/resources.h"

namespace berth::daemon {
namespace {

constexpr std::size_t kMostTopologyLabels = 8;
constexpr std::size_t kMostLabelKey = 253 + 1 + 63;

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_label_key(const std::string& text) {
  return !text.empty() && text.size() <= kMostLabelKey && std::all_of(text.begin(), text.end(), [](char c) {
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string name_of_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "berth";
  return name.data();
}

}  // namespace

Result<std::vector<std::string>> read_topology_labels(const std::string& flag) {
  std::vector<std::string> keys;
  for (std::size_t at = 0; at < flag.size();) {
    const std::size_t end = std::min(flag.find(',', at), flag.size());
    std::string key = flag.substr(at, end - at);
    if (!is_label_key(key)) {
      return invalid("--topology-labels: '" + key +
                     "' is no label key; give keys as topology.kubernetes.io/zone,rack, outermost first");
    }
    keys.push_back(std::move(key));
    at = end + 1;
  }
  if (keys.size() > kMostTopologyLabels)
    return invalid("--topology-labels: at most " + std::to_string(kMostTopologyLabels) + " keys");
  return keys;
}

Result<std::vector<std::string>> read_device_resources(const std::string& flag) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < flag.size();) {
    const std::size_t end = std::min(flag.find(',', at), flag.size());
    std::string name = flag.substr(at, end - at);
    if (name.find('/') == std::string::npos || !well_formed_gpu_model(name)) {
      return invalid("--device-resources: '" + name +
                     "' is no name of a resource of devices; give names as amd.com/gpu,habana.ai/gaudi");
    }
    names.push_back(std::move(name));
    at = end + 1;
  }
  if (names.size() > kMaxGpuModels)
    return invalid("--device-resources: at most " + std::to_string(kMaxGpuModels) + " names");
  return names;
}

Result<std::int64_t> read_wait(const std::string& name, const std::string& flag) {
  constexpr std::int64_t kMostS = 86'400;
  const auto seconds = document::parse_duration_s(flag);
  if (!seconds) return invalid(name + ": " + seconds.error().message);
  if (*seconds < 1 || *seconds > kMostS) return invalid(name + ": '" + flag + "' is not from 1s to 24h");
  return seconds;
}

Result<backend::Credentials> read_credentials(const KubernetesFlags& flags) {
  if (auto labels = read_topology_labels(flags.topology_labels); !labels) return labels.error();
  if (auto names = read_device_resources(flags.device_resources); !names) return names.error();
  if (auto own = backend::read_job_namespace(flags.job_namespace); !own) return own.error();
  if (auto wait = read_wait("--volume-wait", flags.volume_wait); !wait) return wait.error();
  if (auto wait = read_wait("--pull-wait", flags.pull_wait); !wait) return wait.error();
  if (auto names = kube::read_stamped_names(flags.user_stamps); !names) return names.error();
  if (!well_formed_name(flags.cell)) return invalid("--cell: '" + flags.cell + "' is no name");
  auto credentials = flags.kubeconfig.empty() ? backend::read_service_account(backend::kServiceAccountDirectory,
                                                                              environment("KUBERNETES_SERVICE_HOST"),
                                                                              environment("KUBERNETES_SERVICE_PORT"))
                                              : backend::read_kubeconfig(flags.kubeconfig);
  if (!credentials) return credentials;
  if (!flags.space.empty()) credentials->space = flags.space;
  if (credentials->space.empty()) credentials->space = "default";
  if (!backend::is_namespace(credentials->space))
    return invalid("--kubernetes-namespace: '" + credentials->space + "' is no name of a namespace");
  return credentials;
}

Result<std::unique_ptr<backend::Backend>> make_kubernetes_backend(
    const KubernetesFlags& flags, std::vector<std::string> levels, backend::Credentials credentials,
    const std::string& data_dir, const state::State& state, SaveReports saves, std::function<Timestamp()> now,
    std::function<void(const Error&)> end_process) {
  auto labels = read_topology_labels(flags.topology_labels);
  if (!labels) return labels.error();
  const auto id = id_of_directory(data_dir);
  if (!id) return id.error();
  backend::KubernetesOptions options;
  options.space = credentials.space;
  options.credentials = std::move(credentials);
  options.identity = name_of_host() + "_" + *id;
  options.cluster.log = *id;
  options.seed = Hasher().add(options.identity).digest();
  options.cluster.cell = flags.cell;
  options.cluster.topology = std::move(*labels);
  options.cluster.levels = std::move(levels);
  auto devices = read_device_resources(flags.device_resources);
  if (!devices) return devices.error();
  options.cluster.devices = std::move(*devices);
  auto stamped = kube::read_stamped_names(flags.user_stamps);
  if (!stamped) return stamped.error();
  options.cluster.stamped = std::move(*stamped);
  auto own = backend::read_job_namespace(flags.job_namespace);
  if (!own) return own.error();
  options.cluster.own = std::move(*own);
  options.cluster.own.saves = {std::move(saves.server), std::move(saves.token)};
  for (const state::NodeState& node : state.nodes()) {
    if (node.removed || state.removals().contains(node.id)) continue;
    options.cluster.nodes.push_back({node.spec.name, node.spec.machine, node.status == NodeStatus::kLost});
  }
  const auto volumes = read_wait("--volume-wait", flags.volume_wait);
  if (!volumes) return volumes.error();
  options.cluster.volume_wait_s = *volumes;
  const auto pull = read_wait("--pull-wait", flags.pull_wait);
  if (!pull) return pull.error();
  options.cluster.pull_wait_s = *pull;
  options.cluster.waits = options.cluster.waits.shortened(flags.shorter_waits);
  options.denial_patience = std::chrono::milliseconds(options.cluster.waits.denial_ms);
  options.watch.absent_pause /= flags.shorter_waits;
  options.watch.extra_pause /= flags.shorter_waits;
  options.stamp_pause /= flags.shorter_waits;
  options.now = std::move(now);
  options.warn = [](const std::string& text) { spdlog::warn("{}", text); };
  options.end_process = std::move(end_process);
  return backend::make_kubernetes_backend(std::move(options));
}

}  // namespace berth::daemon
