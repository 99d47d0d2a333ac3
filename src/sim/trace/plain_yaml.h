#pragma once
// Safe YAML: no anchors, no aliases, no tags, one document. Limits on size, depth and number of nodes are checked while
// events are read, before a tree is built.

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::sim {

struct YamlLimits {
  std::size_t max_bytes = std::size_t{16} << 20U;
  std::size_t max_nodes = 1'000'000;
  std::size_t max_depth = 16;
};

Result<YAML::Node> load_plain_yaml(const std::string& name, std::string_view text, const YamlLimits& limits = {});

}  // namespace berth::sim
