#include "state/image_index.h"

#include <algorithm>
#include <iterator>

namespace berth::state {

void ImageIndex::enter(NodeId node, std::span<const std::string> images) {
  for (const std::string& image : images) {
    std::vector<NodeId>& nodes = holders_[image];
    const auto at = std::lower_bound(nodes.begin(), nodes.end(), node);
    if (at == nodes.end() || *at != node) nodes.insert(at, node);
  }
}

void ImageIndex::forget(NodeId node, std::span<const std::string> images) {
  for (const std::string& image : images) {
    const auto known = holders_.find(image);
    if (known == holders_.end()) continue;
    std::erase(known->second, node);
    if (known->second.empty()) holders_.erase(known);
  }
}

const std::vector<NodeId>* ImageIndex::holders(std::string_view image) const {
  const auto known = holders_.find(image);
  return known == holders_.end() ? nullptr : &known->second;
}

std::vector<std::string> with_change(std::span<const std::string> images, std::span<const std::string> pulled,
                                     std::span<const std::string> dropped) {
  std::vector<std::string> kept;
  std::set_difference(images.begin(), images.end(), dropped.begin(), dropped.end(), std::back_inserter(kept));
  std::vector<std::string> all;
  std::set_union(kept.begin(), kept.end(), pulled.begin(), pulled.end(), std::back_inserter(all));
  return all;
}

}  // namespace berth::state
