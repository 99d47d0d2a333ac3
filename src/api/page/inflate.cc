#include "api/page/inflate.h"

#include <zlib.h>

#include <array>

#include "base/check.h"

namespace berth::api {

std::string inflate(std::string_view gzip) {
  constexpr int kGzipWindow = 15 + 16;  // the largest window, with the header of gzip
  z_stream stream{};
  BERTH_CHECK(::inflateInit2(&stream, kGzipWindow) == Z_OK);
  std::string compressed(gzip);
  stream.next_in = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string content;
  std::array<char, 16 * 1024> part;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    status = ::inflate(&stream, Z_NO_FLUSH);
    content.append(part.data(), part.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  BERTH_CHECK(status == Z_STREAM_END);
  return content;
}

}  // namespace berth::api
