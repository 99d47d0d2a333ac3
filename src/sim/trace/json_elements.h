#pragma once
// Cuts a JSON array into the texts of its elements without parsing them, so that a file of hundreds of megabytes is
// read one element at a time and a malformed element costs only itself, named by its line.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace berth::sim {

struct JsonElement {
  std::string_view text;
  std::int64_t line = 0;
};

class JsonElements {
 public:
  // `text` must begin with '[' after blanks; otherwise the first next() says so.
  explicit JsonElements(std::string_view text) : text_(text) {}

  // The next element; an empty text after the last one. An array that ends too early, or runs on after its end, is an
  // error whose message names the line.
  Result<JsonElement> next();

 private:
  void skip_blanks();
  Error at_line(std::string_view what) const;
  std::size_t end_of_element();

  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  enum class Place { kBefore, kFirst, kLater, kAfter } place_ = Place::kBefore;
};

}  // namespace berth::sim
