#include "backend/kubernetes/object_stream.h"

#include <algorithm>
#include <utility>

namespace berth::backend {
namespace {

constexpr std::size_t kMostEnvelopeBytes = 1 << 20;
constexpr std::size_t kMostKeyBytes = 16;

std::string printable(std::string_view text, std::size_t most) {
  std::string out(text.substr(0, most));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

// Returns the text behind "key":" up to the next quote, or "".
std::string_view text_at(std::string_view text, std::string_view key) {
  const std::string quoted = "\"" + std::string(key) + "\":\"";
  const std::size_t at = text.find(quoted);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + quoted.size());
  return rest.substr(0, rest.find('"'));
}

}  // namespace

void ObjectText::append(std::string_view bytes) {
  if (too_large_) return;
  if (text_.size() + bytes.size() > most_) {
    too_large_ = true;
    text_.append(bytes.substr(0, kKeptOfTooLarge - std::min(kKeptOfTooLarge, text_.size())));
    text_.resize(std::min(text_.size(), kKeptOfTooLarge));
    text_.shrink_to_fit();
    return;
  }
  text_.append(bytes);
}

void ObjectText::give_to(const ObjectReceiver& receiver) {
  if (too_large_) {
    receiver.too_large(text_);
  } else {
    receiver.object(text_);
  }
  text_.clear();
  too_large_ = false;
}

void LineSplitter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    if (!line_.empty()) line_.give_to(receiver_);
    bytes.remove_prefix(end + 1);
  }
}

// Copies runs of bytes, not single ones: the part of `bytes` from `begin` belongs to the item or to the envelope.
void ListSplitter::feed(std::string_view bytes) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool was_in_items = in_items();
    const int depth_before = depth_;
    step(bytes[i]);
    if (was_in_items && !in_items()) {  // this is the ] of the array
      begin = i;
    } else if (!was_in_items && in_items()) {  // its [
      envelope_.append(bytes.substr(begin, i + 1 - begin));
      begin = i + 1;
    } else if (in_items() && depth_ < depth_before && depth_ == items_depth_) {  // the end of an item
      item_.append(bytes.substr(begin, i + 1 - begin));
      begin = i + 1;
      item_.give_to(receiver_);
    } else if (in_items() && depth_ == items_depth_ && !in_string_ && item_.empty() && begin == i) {
      begin = i + 1;  // a comma or a blank between two items
    }
  }
  const std::string_view rest = bytes.substr(begin);
  if (in_items()) {
    item_.append(rest);
  } else if (envelope_.size() + rest.size() <= kMostEnvelopeBytes) {
    envelope_.append(rest);
  }
}

void ListSplitter::step(char c) {
  if (in_string_) {
    if (depth_ == 1 && c != '"' && key_.size() < kMostKeyBytes) key_.push_back(c);
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
    return;
  }
  if (c == '"') {
    in_string_ = true;
    if (depth_ == 1) key_.clear();
  } else if (c == '{' || c == '[') {
    ++depth_;
    if (c == '[' && depth_ == 2 && key_ == "items") items_depth_ = 2;
  } else if (c == '}' || c == ']') {
    --depth_;
    if (items_depth_ != 0 && depth_ < items_depth_) items_depth_ = 0;
  }
}

std::string name_in(std::string_view text) {
  text = text.substr(0, kKeptOfTooLarge);
  const std::string_view name = text_at(text, "name");
  if (name.empty()) return "an object without a name";
  const std::string_view space = text_at(text, "namespace");
  return (space.empty() ? "" : printable(space, 63) + "/") + printable(name, 253);
}

}  // namespace berth::backend
