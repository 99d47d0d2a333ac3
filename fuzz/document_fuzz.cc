// fuzz: berth_model
// Any text as a document: what is accepted prints as YAML and as JSON, and both read back into the same tree.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/document/document.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::document;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tree = parse(text, "fuzz.yaml");
  if (!tree) return 0;
  const std::string json = to_json_text(*tree);
  const auto from_yaml = parse(to_yaml(*tree), "back.yaml");
  BERTH_CHECK(from_yaml.has_value());
  BERTH_CHECK(to_json_text(*from_yaml) == json);
  const auto from_json = parse(json, "back.json");
  BERTH_CHECK(from_json.has_value());
  BERTH_CHECK(to_json_text(*from_json) == json);
  return 0;
}
