#pragma once
// Names of container images, as a job asks for one and a node says which it has. Two names are the same image where
// they are the same text: berth resolves no registry, tag or digest.

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

// What a node may say that it has: a bounded number of well-formed names, sorted, none twice.
Result<void> check_images(std::span<const std::string> images);

}  // namespace berth
