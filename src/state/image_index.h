#pragma once
// ImageIndex: for each container image, the nodes that have it. Placement that prefers nodes with the image of a job
// looks up these nodes alone. Starts and ends of tasks do not change the index. Images are no part of the class of a
// node.

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

  // Returns the nodes that have the image, ascending, including nodes that take no tasks; null if no node has it.
  const std::vector<NodeId>* holders(std::string_view image) const;

  bool operator==(const ImageIndex&) const = default;

 private:
  std::map<std::string, std::vector<NodeId>, std::less<>> holders_;
};

// Returns the sorted names of `images` without `dropped` and with `pulled`. Requires that all three are sorted.
std::vector<std::string> with_change(std::span<const std::string> images, std::span<const std::string> pulled,
                                     std::span<const std::string> dropped);

}  // namespace berth::state
