#pragma once
// Decompression, for readers that do not take gzip.

#include <string>
#include <string_view>

namespace berth::api {

// The content of a gzip file that the build made. CHECKs that it is one.
std::string inflate(std::string_view gzip);

}  // namespace berth::api
