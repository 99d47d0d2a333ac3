#include "api/http/json_decode.h"

#include <boost/json/serialize.hpp>
#include <string_view>

#include "base/check.h"

namespace berth::http {

int fuzz_json_decode(const std::uint8_t* data, std::size_t size) {
  const auto value = decode_json({reinterpret_cast<const char*>(data), size});
  if (!value) return 0;
  const auto again = decode_json(boost::json::serialize(*value), {.bytes = 16 * 1024 * 1024});
  BERTH_CHECK(again.has_value());
  return 0;
}

}  // namespace berth::http
