#include "kube/pod_exec.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "kube/json_reading.h"

namespace berth::kube {
namespace {

constexpr std::size_t kMostTold = 300;
constexpr std::int32_t kNoSuchProgram = 127;  // as a POSIX shell says it
constexpr std::int32_t kNotExecutable = 126;
constexpr std::int32_t kMostCode = 255;
constexpr std::string_view kNoMoreInput("\xff\0", 2);  // channel 255 closes the stream that it names

std::string in_query(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 0xF];
    }
  }
  return out;
}

std::optional<std::int32_t> exit_code_in(const boost::json::object& status) {
  for (const boost::json::object* cause : objects_at(status, {"details", "causes"})) {
    if (text_at(*cause, {"reason"}) != "ExitCode") continue;
    const std::string text = text_at(*cause, {"message"});
    std::int32_t code = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
    if (error == std::errc() && end == text.data() + text.size() && code >= 0 && code <= kMostCode) return code;
  }
  return std::nullopt;
}

// What runc says of the program; a kubelet passes it on.
std::optional<std::int32_t> code_of_no_start(std::string_view message) {
  const auto says = [&](std::string_view words) { return message.find(words) != std::string_view::npos; };
  if (!says("exec: \"") && !says("exec /")) return std::nullopt;
  if (says("executable file not found") || says("no such file or directory")) return kNoSuchProgram;
  if (says("permission denied")) return kNotExecutable;
  return std::nullopt;
}

// The reason stands at the end: kubelet, runtime and runc each say before it what they were about.
std::string last_of(std::string_view message) {
  if (message.size() <= kMostTold) return shown(message, kMostTold);
  std::string_view told = message.substr(message.size() - kMostTold);
  while (!told.empty() && (static_cast<unsigned char>(told.front()) & 0xC0U) == 0x80U) told.remove_prefix(1);
  return "..." + shown(told, kMostTold);
}

}  // namespace

std::string exec_path(std::string_view space, std::string_view pod, std::string_view container,
                      const ShellBegin& begin) {
  std::string path =
      "/api/v1/namespaces/" + in_query(space) + "/pods/" + in_query(pod) + "/exec?container=" + in_query(container);
  for (const std::string& word : begin.command) path += "&command=" + in_query(word);
  path += begin.input || begin.terminal ? "&stdin=true" : "&stdin=false";
  path += "&stdout=true";
  path += begin.terminal ? "&stderr=false&tty=true" : "&stderr=true&tty=false";
  return path;
}

std::optional<std::string> exec_message(std::string_view message) {
  const auto channel = channel_of(message);
  if (channel == ShellChannel::kInput) return std::string(message);
  if (channel == ShellChannel::kNoInput) return std::string(kNoMoreInput);
  if (channel != ShellChannel::kResize) return std::nullopt;
  const auto size = window_size_of(message.substr(1));
  if (!size) return std::nullopt;
  return shell_message(ShellChannel::kResize,
                       boost::json::serialize(boost::json::object{{"Width", size->columns}, {"Height", size->rows}}));
}

ShellEnd end_of_exec(std::string_view status) {
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse(status, error);
  if (error || !value.is_object())
    return {std::nullopt, "how the command ended is not known; its node says: " + shown(status, kMostTold)};
  const boost::json::object& object = value.get_object();
  const std::string word = text_at(object, {"status"});
  if (word == "Success") return {0, {}};
  if (const auto code = exit_code_in(object)) return {code, {}};
  const std::string message = text_at(object, {"message"});
  const auto code = code_of_no_start(message);
  const std::string told = last_of(message.empty() ? status : std::string_view(message));
  return {code, "its node says: " + told};
}

}  // namespace berth::kube
