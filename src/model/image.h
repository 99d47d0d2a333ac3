#pragma once
// Names of container images, as jobs request them and nodes report them. Two names are the same image only if their
// text is equal: berth resolves no registry, tag or digest.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

inline constexpr std::size_t kMaxImageName = 512;
inline constexpr std::size_t kMaxImagesPerNode = 128;
inline constexpr std::string_view kImageRule =
    "use 1-512 letters, digits and '-', '_', '.', ':', '/', '@', '+', starting with a letter or digit";

bool well_formed_image(std::string_view name);

// Checks the image names that a node reports: at most kMaxImagesPerNode, well-formed, sorted, no name twice.
Result<void> check_images(std::span<const std::string> images);

}  // namespace berth
