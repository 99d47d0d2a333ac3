#include "model/shell_message.h"

#include <doctest/doctest.h>

namespace berth {
namespace {

TEST_CASE("shell messages come back as they were") {
  const ShellBegin begin{false, true, true, {"sh", "-c", "printf 'a\n\xff'"}, {132, 43}, "xterm"};
  CHECK_EQ(channel_of(shell_message(begin)), ShellChannel::kBegin);
  CHECK_EQ(shell_begin_of(shell_message(begin).substr(1)), begin);
  CHECK_EQ(window_size_of(shell_message(WindowSize{132, 43}).substr(1)), WindowSize{132, 43});
  for (const ShellEnd& end : {ShellEnd{3, {}}, ShellEnd{std::nullopt, "no such program"}, ShellEnd{137, "killed"}})
    CHECK_EQ(shell_end_of(shell_message(end).substr(1)), end);
}

TEST_CASE("shell messages that are malformed are nothing") {
  CHECK_FALSE(channel_of(""));
  CHECK_FALSE(channel_of("\x08"));
  for (const char* size : {"", "80", "x", "80x", "80x24x", "-1x24", "70000x24", "80 x 24"})
    CHECK_FALSE(window_size_of(size));
  for (const char* text : {"", "{", "[]", "{}", R"({"attach":1})"}) CHECK_FALSE(shell_begin_of(text));
  CHECK_FALSE(shell_end_of(R"({"code":"x"})"));
}

TEST_CASE("a stream of shell messages is taken apart in any pieces, and a message too long ends it") {
  const std::string stream = framed("\1one") + framed("") + framed(std::string(kMostShellBytes, 'x'));
  ShellMessageReader reader;
  std::vector<std::size_t> sizes;
  for (std::size_t at = 0; at < stream.size(); at += 1000) {
    reader.feed(std::string_view(stream).substr(at, 1000));
    for (auto message = reader.next(); message && *message; message = reader.next())
      sizes.push_back((*message)->size());
  }
  CHECK_EQ(sizes, std::vector<std::size_t>{4, 0, kMostShellBytes});
  reader.feed(framed(std::string(kMostShellBytes + 1, 'x')).substr(0, 4));
  CHECK_FALSE(reader.next());
}

}  // namespace
}  // namespace berth
