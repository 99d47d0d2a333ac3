#include "control/mounts.h"

#include <algorithm>
#include <string>

#include "model/queue_volumes.h"

namespace berth::control {
namespace {

class MountCheck {
 public:
  MountCheck(const state::State& state, const JobSpec& spec)
      : config_(state.config()), spec_(spec), is_kubernetes_(runs_containers(state)) {}

  std::vector<Error> run() {
    for (std::size_t i = 0; i < spec_.mounts.size(); ++i)
      check_volume("mounts[" + std::to_string(i) + "]: ", spec_.mounts[i].name, false);
    for (std::size_t i = 0; i < spec_.secrets.size(); ++i)
      check_secret("secrets[" + std::to_string(i) + "]: ", spec_.secrets[i].name);
    if (const std::string& volume = spec_.checkpoint.place.volume; !volume.empty())
      check_volume("checkpoint.volume: ", volume, true);
    if (const std::string& volume = spec_.outputs.volume; !volume.empty())
      check_volume("outputs.volume: ", volume, true);
    return std::move(errors_);
  }

 private:
  void tell(const std::string& message) { errors_.push_back(invalid(message)); }

  void check_volume(const std::string& where, const std::string& name, bool is_written) {
    const VolumeConfig* volume = volume_of(config_, spec_.queue, name);
    if (volume == nullptr)
      return tell(where + no_such_mount("volume", spec_.queue, name, volume_names_of(config_, spec_.queue)));
    if (volume->kind != VolumeKind::kHostPath && !is_kubernetes_)
      return tell(where + "volume '" + name + "' is of kind " + std::string(name_of(volume->kind)) +
                  ", which only Kubernetes has; this server runs tasks on its machine, where volumes are host_path");
    if (is_written && volume->read_only)
      tell(where + "volume '" + name + "' is read-only in the configuration; name one that may be written");
  }

  void check_secret(const std::string& where, const std::string& name) {
    const SecretConfig* secret = secret_of(config_, spec_.queue, name);
    if (secret == nullptr)
      return tell(where + no_such_mount("secret", spec_.queue, name, secret_names_of(config_, spec_.queue)));
    if (is_kubernetes_ ? secret->kubernetes.empty() : secret->files.empty())
      tell(where + "secret '" + name + "' is not defined for " +
           (is_kubernetes_ ? "Kubernetes (kubernetes: NAME)" : "a machine (files: {NAME: PATH})"));
  }

  const ClusterConfig& config_;
  const JobSpec& spec_;
  const bool is_kubernetes_;
  std::vector<Error> errors_;
};

}  // namespace

bool runs_containers(const state::State& state) {
  const auto& nodes = state.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const state::NodeState& node) { return node.spec.containers; });
}

std::vector<Error> check_mounts(const state::State& state, const JobSpec& spec) {
  if (spec.mounts.size() > kMaxMounts || spec.secrets.size() > kMaxMounts) return {};  // told already
  return MountCheck(state, spec).run();
}

}  // namespace berth::control
