#include "model/image.h"

#include <algorithm>

namespace berth {

bool well_formed_image(std::string_view name) {
  if (name.empty() || name.size() > kMaxImageName) return false;
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  constexpr std::string_view kBetween = "-_.:/@+";
  return plain(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
           return plain(c) || kBetween.find(c) != std::string_view::npos;
         });
}

Result<void> check_images(std::span<const std::string> images) {
  if (images.size() > kMaxImagesPerNode) {
    return invalid("images: there are " + std::to_string(images.size()) + "; a node names " +
                   std::to_string(kMaxImagesPerNode) + " at most");
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (!well_formed_image(images[i]))
      return invalid("images[" + std::to_string(i) + "] is not the name of an image: " + std::string(kImageRule));
    if (i == 0 || images[i - 1] < images[i]) continue;
    return invalid("images: '" + images[i] +
                   (images[i - 1] == images[i] ? "' is given twice" : "' stands out of order; sort the names"));
  }
  return {};
}

}  // namespace berth
