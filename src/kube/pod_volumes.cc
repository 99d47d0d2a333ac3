#include "kube/pod_volumes.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "model/volume_directory.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr int kSecretMode = 0440;  // the files are root's, and of the group that the container runs as

// The volumes of the configuration that the task mounts, each once: a claim may be named once in a pod.
std::vector<const VolumeConfig*> distinct_volumes(const StartTask& start) {
  std::vector<const VolumeConfig*> distinct;
  for (const TaskVolume& one : start.volumes) {
    const auto is_same = [&](const VolumeConfig* other) { return other->name == one.volume.name; };
    if (std::none_of(distinct.begin(), distinct.end(), is_same)) distinct.push_back(&one.volume);
  }
  return distinct;
}

// Names of the configuration need not be names of Kubernetes.
std::string name_of_volume(const StartTask& start, const VolumeConfig& volume) {
  const auto distinct = distinct_volumes(start);
  const auto found =
      std::find_if(distinct.begin(), distinct.end(), [&](const VolumeConfig* one) { return one->name == volume.name; });
  return "volume-" + std::to_string(found - distinct.begin());
}

std::string name_of_secret(std::size_t index) { return "secret-" + std::to_string(index); }

json::object source_of(const VolumeConfig& volume) {
  switch (volume.kind) {
    case VolumeKind::kHostPath:
      return {{"hostPath", {{"path", volume.source}, {"type", "Directory"}}}};
    case VolumeKind::kNfs: {
      const std::size_t colon = volume.source.find(":/");
      return {{"nfs",
               {{"server", volume.source.substr(0, colon)},
                {"path", volume.source.substr(colon + 1)},
                {"readOnly", volume.read_only}}}};
    }
    case VolumeKind::kClaim:
      return {{"persistentVolumeClaim", {{"claimName", volume.source}, {"readOnly", volume.read_only}}}};
    case VolumeKind::kCsi: {
      json::object csi{{"driver", volume.source}, {"readOnly", volume.read_only}};
      json::object attributes;
      for (const auto& [key, value] : volume.attributes) attributes[key] = value;
      if (!attributes.empty()) csi["volumeAttributes"] = std::move(attributes);
      if (!volume.secret.empty()) csi["nodePublishSecretRef"] = json::object{{"name", volume.secret}};
      return {{"csi", std::move(csi)}};
    }
  }
  return {};
}

}  // namespace

json::array volumes_of(const StartTask& start) {
  json::object shm{{"medium", "Memory"}};
  if (start.shm_mib > 0) shm["sizeLimit"] = std::to_string(start.shm_mib) + "Mi";
  json::array all{json::object{{"name", "shm"}, {"emptyDir", std::move(shm)}}};
  for (const VolumeConfig* volume : distinct_volumes(start)) {
    json::object one = source_of(*volume);
    one["name"] = name_of_volume(start, *volume);
    all.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < start.secrets.size(); ++i) {
    all.push_back(
        json::object{{"name", name_of_secret(i)},
                     {"secret", {{"secretName", start.secrets[i].secret.kubernetes}, {"defaultMode", kSecretMode}}}});
  }
  return all;
}

json::array mounts_of(const StartTask& start, std::string_view log) {
  json::array all{json::object{{"name", "shm"}, {"mountPath", "/dev/shm"}}};
  for (const TaskVolume& one : start.volumes) {
    json::object mount{{"name", name_of_volume(start, one.volume)}, {"mountPath", one.path}};
    // What is mounted below the directory on its node stays writable without the second word. Kubernetes before 1.30
    // does not know it.
    if (one.read_only) mount["readOnly"] = true;
    if (one.read_only) mount["recursiveReadOnly"] = "IfPossible";
    if (const std::string at = directory_in_volume(one, start.key.job, log); !at.empty()) mount["subPath"] = at;
    all.push_back(std::move(mount));
  }
  for (std::size_t i = 0; i < start.secrets.size(); ++i) {
    all.push_back(json::object{{"name", name_of_secret(i)}, {"mountPath", start.secrets[i].path}, {"readOnly", true}});
  }
  return all;
}

}  // namespace berth::kube
