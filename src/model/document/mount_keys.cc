// The keys `mounts` and `secrets` of a job.

#include "model/document/custom_keys.h"
#include "model/volume.h"

namespace berth::document {
namespace {

template <class Visit>
void each_item_or_one(const Value& value, const Visit& visit) {
  if (value.node().kind == NodeKind::kList) return value.each_item(visit);
  visit(value);
}

bool is_map(const Value& item) { return item.node().kind == NodeKind::kMap; }

// NAME:/PATH, NAME:/PATH:ro, NAME:/PATH:rw
Mount mount_of_line(const Value& item) {
  const std::string line = item.string();
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string::npos || colon + 1 == line.size() || line[colon + 1] != '/') {
    item.refuse("'" + line.substr(0, 80) + "' is not NAME:/PATH or NAME:/PATH:ro");
    return {};
  }
  Mount mount{line.substr(0, colon), line.substr(colon + 1), false};
  const std::size_t mode = mount.path.find(':');
  if (mode == std::string::npos) return mount;
  const std::string word = mount.path.substr(mode + 1);
  if (word != "ro" && word != "rw")
    item.refuse("'" + word.substr(0, 80) + "' is neither ro nor rw; give NAME:/PATH:ro");
  mount.read_only = word == "ro";
  mount.path.resize(mode);
  return mount;
}

SecretMount secret_of_line(const Value& item) {
  const std::string line = item.string();
  const std::size_t colon = line.find(':');
  if (line.empty() || colon == 0 || (colon != std::string::npos && line.substr(colon + 1, 1) != "/")) {
    item.refuse("'" + line.substr(0, 80) + "' is not NAME or NAME:/PATH");
    return {};
  }
  if (colon == std::string::npos) return {line, ""};
  return {line.substr(0, colon), line.substr(colon + 1)};
}

}  // namespace

void read_mounts(const Value& value, JobTarget to) {
  each_item_or_one(value, [&](const Value& item) {
    Mount mount = is_map(item) ? Mount{} : mount_of_line(item);
    if (is_map(item)) {
      item.map({{"name", [&](const Value& v) { mount.name = v.string(); }},
                {"path", [&](const Value& v) { mount.path = v.string(); }},
                {"read_only", [&](const Value& v) { mount.read_only = v.boolean(); }}});
      if (mount.name.empty() || mount.path.empty())
        item.refuse("a mount needs a name and a path, such as {name: data, path: /data}");
    }
    to.job.mounts.push_back(std::move(mount));
  });
}
Node mounts_node(JobSource from) {
  if (from.job.mounts.empty()) return {};
  Node list = list_node();
  for (const Mount& mount : from.job.mounts) {
    Node& item = list.items.emplace_back(map_node());
    item.set("name", string_node(mount.name)).set("path", string_node(mount.path));
    if (mount.read_only) item.set("read_only", plain_node("true"));
  }
  return list;
}

void read_secrets(const Value& value, JobTarget to) {
  each_item_or_one(value, [&](const Value& item) {
    SecretMount secret = is_map(item) ? SecretMount{} : secret_of_line(item);
    if (is_map(item)) {
      item.map({{"name", [&](const Value& v) { secret.name = v.string(); }},
                {"path", [&](const Value& v) { secret.path = v.string(); }}});
      if (secret.name.empty()) item.refuse("a secret needs a name, such as {name: hf-token}");
    }
    to.job.secrets.push_back(std::move(secret));
  });
}
Node secrets_node(JobSource from) {
  if (from.job.secrets.empty()) return {};
  Node list = list_node();
  for (const SecretMount& secret : from.job.secrets) {
    Node& item = list.items.emplace_back(map_node());
    item.set("name", string_node(secret.name));
    if (!secret.path.empty()) item.set("path", string_node(secret.path));
  }
  return list;
}

}  // namespace berth::document
