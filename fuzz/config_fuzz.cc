// fuzz: berth_model
// A cluster.yaml from anybody: no text may crash the decoder, a refusal names the file, and what is accepted is valid,
// prints, reads back as the same, and differs from itself in nothing.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/document/config_document.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = document::read_config(text, "fuzz.yaml");
  if (!config) {
    BERTH_CHECK(config.error().message.starts_with("fuzz.yaml:"));
    return 0;
  }
  BERTH_CHECK(validate(*config).has_value());
  const auto back = document::read_config(document::config_to_yaml(*config), "back.yaml");
  BERTH_CHECK(back.has_value());
  BERTH_CHECK(*back == *config);
  BERTH_CHECK(document::diff_configs(*config, *back).empty());
  return 0;
}
