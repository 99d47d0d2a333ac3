#include "model/volume.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/utf8.h"
#include "model/name.h"
#include "model/queue_path.h"

namespace berth {
namespace {

bool is_plain_text(std::string_view text) {
  return text.size() <= kMaxVolumeText && is_utf8(text) && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

// Returns true if the relative path has only parts that lead further down.
bool only_descends(std::string_view path) {
  if (path.empty()) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool is_directory_path(std::string_view path) {
  return path.size() > 1 && path.front() == '/' && only_descends(path.substr(1)) && is_plain_text(path);
}

// A DNS subdomain name, which names of Kubernetes' objects are.
bool is_object_name(std::string_view name) {
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 253 && is_word(name.front()) && is_word(name.back()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_word(c) || c == '-' || c == '.'; });
}

std::string in_quotes(std::string_view text) { return "'" + std::string(text.substr(0, 80)) + "'"; }

std::string problem_of_source(const VolumeConfig& volume) {
  const std::string_view source = volume.source;
  switch (volume.kind) {
    case VolumeKind::kHostPath:
      return is_directory_path(source)
                 ? ""
                 : ": " + in_quotes(source) + " is not an absolute path below /; give such as /srv/data";
    case VolumeKind::kNfs: {
      const std::size_t colon = source.find(":/");
      const std::string_view path = source.substr(std::min(colon, source.size() - 1) + 1);
      if (colon != std::string_view::npos && colon > 0 && is_plain_text(source) &&
          (path == "/" || is_directory_path(path)))
        return "";
      return ": " + in_quotes(source) + " is not SERVER:/PATH; give such as nas.example.com:/export/data";
    }
    case VolumeKind::kClaim:
      return is_object_name(source) ? "" : ": " + in_quotes(source) + " is not the name of a PersistentVolumeClaim";
    case VolumeKind::kCsi:
      return is_object_name(source)
                 ? ""
                 : ": " + in_quotes(source) + " is not the name of a CSI driver, such as s3.csi.aws.com";
  }
  return "";
}

}  // namespace

std::string problem_of_mount_place(std::string_view path) {
  constexpr std::array<std::string_view, 3> kOfTheSystem = {"/proc", "/sys", "/dev"};
  if (!is_directory_path(path) || path.find(':') != std::string_view::npos)
    return in_quotes(path) + " is not an absolute path without '..', ':' and empty parts; give such as /data";
  for (const std::string_view own : kOfTheSystem) {
    if (is_at_or_below(path, own))
      return in_quotes(path) + " lies in " + std::string(own) + "; give a place outside of it";
  }
  if (is_at_or_below(path, kOwnMounts))
    return in_quotes(path) + " lies in " + std::string(kOwnMounts) + ", where berth mounts; give a place outside of it";
  return "";
}

std::string problem_of_volume_path(std::string_view path) {
  if (only_descends(path) && is_plain_text(path)) return "";
  return in_quotes(path) + " is not a path within the volume; give a relative one without '..', such as runs/llama";
}

std::string problem_of(const VolumeConfig& volume) {
  if (std::string problem = problem_of_source(volume); !problem.empty())
    return std::string(name_of(volume.kind)) + problem;
  const bool is_csi = volume.kind == VolumeKind::kCsi;
  if (!is_csi && !volume.attributes.empty()) return "attributes are for csi alone; leave them out";
  if (!is_csi && !volume.secret.empty()) return "secret is for csi alone; leave it out";
  if (!volume.secret.empty() && !is_object_name(volume.secret))
    return "secret: " + in_quotes(volume.secret) + " is not the name of a Kubernetes Secret";
  for (const auto& [key, value] : volume.attributes) {
    if (key.empty() || !is_plain_text(key) || !is_plain_text(value))
      return "attributes: " + in_quotes(key) + " is no attribute; names and values are texts of at most 1024 bytes";
  }
  return "";
}

std::string problem_of(const SecretConfig& secret) {
  if (secret.kubernetes.empty() && secret.files.empty())
    return "it needs kubernetes: NAME, or files: {NAME: PATH}; it holds no value itself";
  if (!secret.kubernetes.empty() && !is_object_name(secret.kubernetes))
    return "kubernetes: " + in_quotes(secret.kubernetes) + " is not the name of a Kubernetes Secret";
  std::set<std::string_view> names;
  for (const auto& [name, path] : secret.files) {
    if (!well_formed_name(name) || !names.insert(name).second)
      return "files: " + in_quotes(name) + " is not a name of a file of its own: " + std::string(kNameRule);
    if (!is_directory_path(path))
      return "files." + name + ": " + in_quotes(path) +
             " is not an absolute path; give that of the file on the machine";
  }
  return "";
}

}  // namespace berth
