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
    if (spec_.mounts.size() > kMaxMounts || spec_.secrets.size() > kMaxMounts) {
      tell("mounts and secrets list at most " + std::to_string(kMaxMounts) + " each");
      return std::move(errors_);
    }
    for (std::size_t i = 0; i < spec_.mounts.size(); ++i) {
      const Mount& mount = spec_.mounts[i];
      const std::string where = "mounts[" + std::to_string(i) + "]: ";
      check_volume(where, mount.name, false);
      check_path(where, mount.path);
    }
    for (std::size_t i = 0; i < spec_.secrets.size(); ++i) {
      const std::string where = "secrets[" + std::to_string(i) + "]: ";
      check_secret(where, spec_.secrets[i].name);
      if (!spec_.secrets[i].path.empty()) check_path(where, spec_.secrets[i].path);
    }
    check_secrets_differ();
    check_place("checkpoint", spec_.checkpoint.place);
    check_place("outputs", spec_.outputs);
    if (spec_.shm_mib < 0 || spec_.shm_mib > kMaxShmMib) tell("shm must be between 1MiB and 16TiB");
    check_shm();
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

  void check_path(const std::string& where, const std::string& path) {
    if (const std::string problem = problem_of_mount_place(path); !problem.empty()) return tell(where + problem);
    for (const std::string& other : taken_) {
      if (is_at_or_below(path, other) || is_at_or_below(other, path))
        return tell(where + "'" + path + "' and '" + other +
                    "' lie in one another; give each mount a place of its own");
    }
    taken_.push_back(path);
  }

  void check_shm() {
    for (const TaskGroup& group : spec_.groups) {
      const std::int64_t memory_mib = group.request.memory_mib;
      if (memory_mib > 0 && spec_.shm_mib > memory_mib)
        return tell("shm (" + std::to_string(spec_.shm_mib) + " MiB) is more than the memory of a task (" +
                    std::to_string(memory_mib) + " MiB), as which it counts; ask for more memory or less shm");
    }
  }

  void check_secrets_differ() {
    std::vector<std::string> places;
    for (const SecretMount& secret : spec_.secrets) places.push_back(secret.place());
    std::sort(places.begin(), places.end());
    if (const auto twice = std::adjacent_find(places.begin(), places.end()); twice != places.end())
      tell("secrets: two have their files in '" + *twice + "'; give one of them another path");
  }

  void check_place(const std::string& key, const VolumePlace& place) {
    if (place.volume.empty()) {
      if (!place.path.empty()) tell(key + ".path is a directory in " + key + ".volume; name the volume, too");
      return;
    }
    check_volume(key + ".volume: ", place.volume, true);
    if (place.path.empty()) return;
    if (const std::string problem = problem_of_volume_path(place.path); !problem.empty())
      tell(key + ".path: " + problem);
  }

  const ClusterConfig& config_;
  const JobSpec& spec_;
  const bool is_kubernetes_;
  std::vector<std::string> taken_;
  std::vector<Error> errors_;
};

}  // namespace

bool runs_containers(const state::State& state) {
  const auto& nodes = state.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const state::NodeState& node) { return node.spec.containers; });
}

std::vector<Error> check_mounts(const state::State& state, const JobSpec& spec) {
  if (!spec.has_mounts() && spec.checkpoint.place.path.empty() && spec.outputs.path.empty()) return {};
  return MountCheck(state, spec).run();
}

}  // namespace berth::control
