#include "model/strict_json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace berth {
namespace {

namespace json = boost::json;

// Builds the value and stops at what Boost.JSON would let pass: it keeps the last of two equal keys, and turns integers
// beyond 64 bits into doubles.
class StrictHandler {
 public:
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  StrictHandler() { stack_.reset(); }

  json::value release() { return stack_.release(); }
  const std::string& complaint() const { return complaint_; }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    if (++object_depth_ > keys_.size()) keys_.emplace_back();
    keys_[object_depth_ - 1].clear();
    return true;
  }
  bool on_object_end(std::size_t size, json::error_code&) {
    --object_depth_;
    stack_.push_object(size);
    return true;
  }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(std::size_t size, json::error_code&) {
    stack_.push_array(size);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, json::error_code& ec) {
    key_.append(part.data(), part.size());
    stack_.push_chars(part);
    return has_no_nul(part, ec);
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& ec) {
    key_.append(part.data(), part.size());
    stack_.push_key(part);
    if (!has_no_nul(part, ec)) return false;
    const bool fresh = keys_[object_depth_ - 1].insert(key_).second;
    if (!fresh) return refuse("the key \"" + key_.substr(0, 64) + "\" is given twice", ec);
    key_.clear();
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code& ec) {
    stack_.push_chars(part);
    return has_no_nul(part, ec);
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& ec) {
    stack_.push_string(part);
    return has_no_nul(part, ec);
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, json::error_code&) {
    stack_.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, json::string_view, json::error_code&) {
    stack_.push_uint64(number);
    return true;
  }
  bool on_double(double number, json::string_view text, json::error_code& ec) {
    if (text.find_first_of(".eE") == json::string_view::npos) return refuse("an integer is beyond 64 bits", ec);
    if (!std::isfinite(number)) return refuse("a number is too large", ec);
    stack_.push_double(number);
    return true;
  }
  bool on_bool(bool value, json::error_code&) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(json::error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool refuse(std::string complaint, json::error_code& ec) {
    complaint_ = std::move(complaint);
    ec = json::error::syntax;
    return false;
  }
  bool has_no_nul(json::string_view text, json::error_code& ec) {
    return text.find('\0') == json::string_view::npos || refuse("a string has a NUL character", ec);
  }

  json::value_stack stack_;
  std::vector<std::set<std::string>> keys_;  // of the open objects; kept and cleared between siblings
  std::size_t object_depth_ = 0;
  std::string key_;
  std::string complaint_;
};

Error error_at(std::string_view text, std::size_t byte, const std::string& what) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return invalid("JSON: " + what + " at line " + std::to_string(line) + ", column " +
                 std::to_string(before.size() - line_start + 1) + " (byte " + std::to_string(before.size()) + ")");
}

std::string describe(json::error_code ec, const JsonLimits& limits) {
  if (ec == json::error::too_deep) return "nested deeper than " + std::to_string(limits.depth) + " levels";
  if (ec == json::error::incomplete) return "the text ends too early";
  if (ec == json::error::extra_data) return "there is something after the value";
  return ec.message();
}

bool is_json_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

Result<json::value> decode_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return Error{ErrorCode::kTooLarge, "JSON: over " + std::to_string(limits.bytes) + " bytes"};
  }
  json::parse_options options;
  options.max_depth = limits.depth;
  json::basic_parser<StrictHandler> parser(options);
  json::error_code ec;
  std::size_t consumed = parser.write_some(false, text.data(), text.size(), ec);
  if (ec) {
    const std::string& complaint = parser.handler().complaint();
    return error_at(text, consumed, complaint.empty() ? describe(ec, limits) : complaint);
  }
  while (consumed < text.size() && is_json_space(text[consumed])) ++consumed;
  if (consumed < text.size()) return error_at(text, consumed, describe(json::error::extra_data, limits));
  return parser.handler().release();
}

}  // namespace berth
