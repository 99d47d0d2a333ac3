#include "sim/trace/json_elements.h"

#include <string>

namespace berth::sim {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

void JsonElements::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return;
    ++at_;
  }
}

Error JsonElements::at_line(std::string_view what) const {
  return invalid("line " + std::to_string(line_) + ": " + std::string(what));
}

// The index after the element that starts at at_: up to the comma or bracket that closes it at depth 0.
std::size_t JsonElements::end_of_element() {
  std::int64_t depth = 0;
  bool in_string = false;
  std::size_t i = at_;
  for (; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == '\n') ++line_;
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return i;
      --depth;
    } else if (c == ',' && depth == 0) {
      return i;
    }
  }
  return text_.size();
}

Result<JsonElement> JsonElements::next() {
  skip_blanks();
  if (place_ == Place::kBefore) {
    if (text_.substr(at_).starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != '[') return at_line("not a JSON array");
    ++at_;
    place_ = Place::kFirst;
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == ']') place_ = Place::kAfter;
    if (place_ == Place::kAfter) ++at_;
  } else if (place_ == Place::kLater) {
    if (at_ == text_.size()) return at_line("the array is cut short");
    if (text_[at_] == ']') place_ = Place::kAfter;
    ++at_;
  }
  skip_blanks();
  if (place_ == Place::kAfter) {
    if (at_ != text_.size()) return at_line("something follows the array");
    return JsonElement{{}, line_};
  }
  place_ = Place::kLater;
  JsonElement element;
  element.line = line_;
  const std::size_t begin = at_;
  at_ = end_of_element();
  if (at_ == text_.size()) return at_line("the array is cut short");
  if (at_ == begin) return at_line("an element is missing");
  element.text = text_.substr(begin, at_ - begin);
  return element;
}

}  // namespace berth::sim
