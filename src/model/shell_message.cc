#include "model/shell_message.h"

#include <boost/json.hpp>
#include <charconv>
#include <exception>

namespace berth {
namespace {

namespace json = boost::json;

constexpr std::size_t kLengthBytes = 4;

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The library's exceptions end here.
template <class Decode>
auto decoded(std::string_view bytes, Decode decode) -> std::optional<decltype(decode(json::object()))> {
  try {
    json::parse_options options;
    options.allow_invalid_utf8 = true;  // words of a command are bytes
    return decode(json::parse(json::string_view(bytes.data(), bytes.size()), {}, options).as_object());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string shell_message(ShellChannel channel, std::string_view bytes) {
  std::string message(1, static_cast<char>(channel));
  message += bytes;
  return message;
}

std::string shell_message(const WindowSize& size) {
  return shell_message(ShellChannel::kResize, std::to_string(size.columns) + "x" + std::to_string(size.rows));
}

std::string shell_message(const ShellBegin& begin) {
  json::array command;
  for (const std::string& word : begin.command) command.push_back(json::string(word));
  return shell_message(ShellChannel::kBegin, json::serialize(json::object{{"attach", begin.attach},
                                                                          {"terminal", begin.terminal},
                                                                          {"input", begin.input},
                                                                          {"command", std::move(command)},
                                                                          {"columns", begin.size.columns},
                                                                          {"rows", begin.size.rows},
                                                                          {"term", begin.term}}));
}

std::string shell_message(const ShellEnd& end) {
  json::object object;
  if (end.code) object["code"] = *end.code;
  if (!end.message.empty()) object["message"] = end.message;
  return shell_message(ShellChannel::kEnd, json::serialize(object));
}

std::optional<ShellChannel> channel_of(std::string_view message) {
  if (message.empty()) return std::nullopt;
  const auto number = static_cast<std::uint8_t>(message.front());
  if (number > static_cast<std::uint8_t>(ShellChannel::kBegin)) return std::nullopt;
  return static_cast<ShellChannel>(number);
}

std::optional<WindowSize> window_size_of(std::string_view bytes) {
  const std::size_t by = bytes.find('x');
  if (by == std::string_view::npos) return std::nullopt;
  const auto columns = number_of<std::uint16_t>(bytes.substr(0, by));
  const auto rows = number_of<std::uint16_t>(bytes.substr(by + 1));
  if (!columns || !rows) return std::nullopt;
  return WindowSize{*columns, *rows};
}

std::optional<ShellBegin> shell_begin_of(std::string_view bytes) {
  return decoded(bytes, [](const json::object& object) {
    ShellBegin begin;
    begin.attach = object.at("attach").as_bool();
    begin.terminal = object.at("terminal").as_bool();
    begin.input = object.at("input").as_bool();
    for (const json::value& word : object.at("command").as_array()) begin.command.emplace_back(word.as_string());
    begin.size = {object.at("columns").to_number<std::uint16_t>(), object.at("rows").to_number<std::uint16_t>()};
    begin.term = std::string(object.at("term").as_string());
    return begin;
  });
}

std::optional<ShellEnd> shell_end_of(std::string_view bytes) {
  return decoded(bytes, [](const json::object& object) {
    ShellEnd end;
    if (const json::value* code = object.if_contains("code")) end.code = code->to_number<std::int32_t>();
    if (const json::value* message = object.if_contains("message")) end.message = std::string(message->as_string());
    return end;
  });
}

std::string framed(std::string_view message) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((message.size() >> shift) & 0xFF);
  bytes += message;
  return bytes;
}

Result<std::optional<std::string>> ShellMessageReader::next() {
  using Answer = std::optional<std::string>;
  if (received_.size() < kLengthBytes) return Answer();
  std::size_t size = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) size = size << 8 | static_cast<std::uint8_t>(received_[i]);
  if (size > kMostShellBytes)
    return Error{ErrorCode::kTooLarge, "a message of a shell is over " + std::to_string(kMostShellBytes) + " bytes"};
  if (received_.size() < kLengthBytes + size) return Answer();
  Answer message = received_.substr(kLengthBytes, size);
  received_.erase(0, kLengthBytes + size);
  return message;
}

}  // namespace berth
