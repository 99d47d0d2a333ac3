#pragma once
// Which nodes have which image: by image the nodes, so that whoever would rather be where its image is asks for those
// alone. Nothing here changes when tasks come and go, and nodes are no less alike for what images they have.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ids.h"

namespace berth::state {

class ImageIndex {
 public:
  void enter(NodeId node, std::span<const std::string> images);
  void forget(NodeId node, std::span<const std::string> images);

  // The nodes that have it, ascending, whether they take tasks or not; null where none has it.
  const std::vector<NodeId>* holders(std::string_view image) const;

  bool operator==(const ImageIndex&) const = default;

 private:
  std::map<std::string, std::vector<NodeId>, std::less<>> holders_;
};

// Sorted names, with these more and those fewer.
std::vector<std::string> with_change(std::span<const std::string> images, std::span<const std::string> pulled,
                                     std::span<const std::string> dropped);

}  // namespace berth::state
