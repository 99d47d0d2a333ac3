#include "model/mount_check.h"

#include <algorithm>
#include <string>

#include "model/queue_path.h"

namespace berth {
namespace {

class MountCheck {
 public:
  explicit MountCheck(const JobSpec& spec) : spec_(spec) {}

  std::vector<Error> run() {
    if (spec_.mounts.size() > kMaxMounts || spec_.secrets.size() > kMaxMounts) {
      tell("mounts and secrets list at most " + std::to_string(kMaxMounts) + " each");
      return std::move(errors_);
    }
    for (std::size_t i = 0; i < spec_.mounts.size(); ++i)
      check_path("mounts[" + std::to_string(i) + "]: ", spec_.mounts[i].path);
    for (std::size_t i = 0; i < spec_.secrets.size(); ++i) {
      const std::string& path = spec_.secrets[i].path;
      if (!path.empty()) check_path("secrets[" + std::to_string(i) + "]: ", path);
    }
    check_secrets_differ();
    check_place("checkpoint", spec_.checkpoint.place);
    check_place("outputs", spec_.outputs);
    check_shm();
    return std::move(errors_);
  }

 private:
  void tell(const std::string& message) { errors_.push_back(invalid(message)); }

  void check_path(const std::string& where, const std::string& path) {
    if (const std::string problem = problem_of_mount_place(path); !problem.empty()) return tell(where + problem);
    for (const std::string& other : taken_) {
      if (is_at_or_below(path, other) || is_at_or_below(other, path))
        return tell(where + "'" + path + "' and '" + other +
                    "' lie in one another; give each mount a place of its own");
    }
    taken_.push_back(path);
  }

  void check_secrets_differ() {
    std::vector<std::string> places;
    for (const SecretMount& secret : spec_.secrets) places.push_back(secret.place());
    std::sort(places.begin(), places.end());
    if (const auto twice = std::adjacent_find(places.begin(), places.end()); twice != places.end())
      tell("secrets: two have their files in '" + *twice + "'; give one of them another path");
  }

  void check_place(const std::string& key, const VolumePlace& place) {
    if (place.path.empty()) return;
    if (place.volume.empty()) return tell(key + ".path is a directory in " + key + ".volume; name the volume, too");
    if (const std::string problem = problem_of_volume_path(place.path); !problem.empty())
      tell(key + ".path: " + problem);
  }

  void check_shm() {
    if (spec_.shm_mib < 0 || spec_.shm_mib > kMaxShmMib) return tell("shm must be between 1MiB and 16TiB");
    for (const TaskGroup& group : spec_.groups) {
      const std::int64_t memory_mib = group.request.memory_mib;
      if (memory_mib > 0 && spec_.shm_mib > memory_mib)
        return tell("shm (" + std::to_string(spec_.shm_mib) + " MiB) is more than the memory of a task (" +
                    std::to_string(memory_mib) + " MiB), as which it counts; ask for more memory or less shm");
    }
  }

  const JobSpec& spec_;
  std::vector<std::string> taken_;
  std::vector<Error> errors_;
};

}  // namespace

std::vector<Error> check_mounts_alone(const JobSpec& spec) { return MountCheck(spec).run(); }

}  // namespace berth
