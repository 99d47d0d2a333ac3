#include "model/document/volume_document.h"

#include <string>
#include <utility>

#include "model/name.h"

namespace berth::document {
namespace {

constexpr VolumeKind kKinds[] = {VolumeKind::kHostPath, VolumeKind::kNfs, VolumeKind::kClaim, VolumeKind::kCsi};

// Refuses a definition at its place, unless its keys were refused already.
template <class Config>
void finish(const Config& one, const Entry& entry, const Value& body, std::size_t mistakes) {
  if (!well_formed_name(one.name)) {
    body.reading().refuse(entry.at, body.path(),
                          "'" + one.name.substr(0, 80) + "' is not a name; " + std::string(kNameRule));
  }
  if (body.reading().mistakes().size() != mistakes) return;
  if (std::string problem = problem_of(one); !problem.empty()) body.refuse(problem);
}

VolumeConfig volume_of(const Entry& entry, const Value& body) {
  VolumeConfig volume;
  volume.name = entry.key;
  const std::size_t mistakes = body.reading().mistakes().size();
  int kinds = 0;
  std::vector<Key> keys;
  for (const VolumeKind kind : kKinds) {
    keys.push_back({name_of(kind), [&volume, &kinds, kind](const Value& v) {
                      ++kinds;
                      volume.kind = kind;
                      volume.source = v.string();
                    }});
  }
  keys.push_back({"attributes", [&](const Value& v) { volume.attributes = v.string_map(); }});
  keys.push_back({"secret", [&](const Value& v) { volume.secret = v.string(); }});
  keys.push_back({"read_only", [&](const Value& v) { volume.read_only = v.boolean(); }});
  body.map(keys);
  if (kinds != 1) body.refuse("a volume has one of host_path, nfs, claim and csi, such as {host_path: /srv/data}");
  finish(volume, entry, body, mistakes);
  return volume;
}

SecretConfig secret_of(const Entry& entry, const Value& body) {
  SecretConfig secret;
  secret.name = entry.key;
  const std::size_t mistakes = body.reading().mistakes().size();
  body.map({{"kubernetes", [&](const Value& v) { secret.kubernetes = v.string(); }},
            {"files", [&](const Value& v) { secret.files = v.string_map(); }}});
  finish(secret, entry, body, mistakes);
  return secret;
}

Node pairs_node(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Node map = map_node();
  for (const auto& [key, value] : pairs) map.set(key, string_node(value));
  return map;
}

}  // namespace

std::vector<VolumeConfig> read_volumes(const Value& value) {
  std::vector<VolumeConfig> volumes;
  value.each_entry([&](const Entry& entry, const Value& body) { volumes.push_back(volume_of(entry, body)); });
  return volumes;
}

std::vector<SecretConfig> read_secret_references(const Value& value) {
  std::vector<SecretConfig> secrets;
  value.each_entry([&](const Entry& entry, const Value& body) { secrets.push_back(secret_of(entry, body)); });
  return secrets;
}

Node volumes_node(const std::vector<VolumeConfig>& volumes) {
  Node map = map_node();
  for (const VolumeConfig& volume : volumes) {
    Node body = map_node();
    body.set(name_of(volume.kind), string_node(volume.source));
    if (!volume.attributes.empty()) body.set("attributes", pairs_node(volume.attributes));
    if (!volume.secret.empty()) body.set("secret", string_node(volume.secret));
    if (volume.read_only) body.set("read_only", plain_node("true"));
    map.set(volume.name, std::move(body));
  }
  return map;
}

Node secret_references_node(const std::vector<SecretConfig>& secrets) {
  Node map = map_node();
  for (const SecretConfig& secret : secrets) {
    Node body = map_node();
    if (!secret.kubernetes.empty()) body.set("kubernetes", string_node(secret.kubernetes));
    if (!secret.files.empty()) body.set("files", pairs_node(secret.files));
    map.set(secret.name, std::move(body));
  }
  return map;
}

}  // namespace berth::document
