#pragma once
// Volumes and secrets: what the tasks of a job find mounted (docs/data.md). The configuration defines them for a queue
// and all queues below it, and a job names them. No placement is decided by them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"

namespace berth {

inline constexpr std::size_t kMaxMounts = 32;        // of one job, and of secrets as many
inline constexpr std::int64_t kMaxShmMib = 1 << 24;  // 16 TiB
inline constexpr std::size_t kMaxVolumeText = 1024;  // bytes of a path, a claim, an attribute
inline constexpr std::size_t kMaxVolumesOfAQueue = 256;

// Where tasks find what berth itself mounts. Nothing else may be mounted below kOwnMounts.
inline constexpr std::string_view kOwnMounts = "/berth";
inline constexpr std::string_view kCheckpointMount = "/berth/checkpoint";
inline constexpr std::string_view kOutputsMount = "/berth/outputs";
inline constexpr std::string_view kSecretMounts = "/berth/secrets";  // a directory for each secret below it

// host_path: a directory of the node, which may be a network file system that is mounted there. nfs, claim and csi are
// for Kubernetes alone.
enum class VolumeKind { kHostPath, kNfs, kClaim, kCsi };
BERTH_ENUM_NAMES(VolumeKind, "host_path", "nfs", "claim", "csi");

struct VolumeConfig {
  std::string name;
  VolumeKind kind = VolumeKind::kHostPath;
  std::string source;  // a directory; SERVER:/PATH; the name of a PersistentVolumeClaim; or the name of a CSI driver
  std::vector<std::pair<std::string, std::string>> attributes = {};  // csi: for the driver
  std::string secret = {};  // csi: name of the Kubernetes Secret for the driver; empty: none
  bool read_only = false;   // for all jobs
  bool operator==(const VolumeConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &VolumeConfig::name), field("kind", &VolumeConfig::kind),
                      field("source", &VolumeConfig::source), field("attributes", &VolumeConfig::attributes),
                      field("secret", &VolumeConfig::secret), field("read_only", &VolumeConfig::read_only));
  }
};

// A secret by reference: berth knows where it is, and never what it is.
struct SecretConfig {
  std::string name;
  std::string kubernetes;  // name of a Kubernetes Secret in the namespace of the queue's pods; empty: none
  std::vector<std::pair<std::string, std::string>> files = {};  // on a machine: file name in the task, and its source
  bool operator==(const SecretConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &SecretConfig::name), field("kubernetes", &SecretConfig::kubernetes),
                      field("files", &SecretConfig::files));
  }
};

// A volume that the tasks of a job find at `path`.
struct Mount {
  std::string name;
  std::string path;
  bool read_only = false;
  bool operator==(const Mount&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &Mount::name), field("path", &Mount::path), field("read_only", &Mount::read_only));
  }
};

// A secret that the tasks of a job find as files in the directory `path`.
struct SecretMount {
  std::string name;
  std::string path;  // empty: kSecretMounts/NAME
  std::string place() const { return path.empty() ? std::string(kSecretMounts) + "/" + name : path; }
  bool operator==(const SecretMount&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &SecretMount::name), field("path", &SecretMount::path));
  }
};

// A directory in a volume. An empty path: a directory of the job's own.
struct VolumePlace {
  std::string volume;  // empty: none
  std::string path;
  bool operator==(const VolumePlace&) const = default;
  static constexpr auto fields() {
    return field_list(field("volume", &VolumePlace::volume), field("path", &VolumePlace::path));
  }
};

// Return what is wrong with a path and what would be right, or nothing. A place of a mount is absolute and not one of
// the system's own; a path within a volume is relative.
std::string problem_of_mount_place(std::string_view path);
std::string problem_of_volume_path(std::string_view path);

// Return what is wrong with a definition and what would be right, or nothing.
std::string problem_of(const VolumeConfig& volume);
std::string problem_of(const SecretConfig& secret);

}  // namespace berth
