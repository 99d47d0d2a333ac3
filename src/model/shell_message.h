#pragma once
// What passes between a user's terminal and a shell in a task: messages of one byte, the channel, and the bytes that
// follow. They are the same from the command line over the server to the supervisor of the task. The first five
// channels are those of an API server of Kubernetes (v5.channel.k8s.io).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth {

enum class ShellChannel : std::uint8_t {
  kInput = 0,    // to the shell
  kOutput = 1,   // from it; with a terminal also what it writes to its standard error
  kErrors = 2,   // from it
  kEnd = 3,      // from it, last: a ShellEnd
  kResize = 4,   // to it: a WindowSize
  kSignal = 5,   // to it: the number of a signal for its process group
  kNoInput = 6,  // to it: the input has ended
  kBegin = 7,    // to it, first: a ShellBegin; only from the server on
};

inline constexpr std::size_t kMostShellBytes = 64 * 1024;  // of one message
// What is passed on of a stream at once.
inline constexpr std::size_t kShellChunkBytes = 16 * 1024;
inline constexpr std::string_view kShellProtocol = "v1.shell.berth";  // of the WebSocket

struct WindowSize {
  std::uint16_t columns = 80;
  std::uint16_t rows = 24;
  bool operator==(const WindowSize&) const = default;
};

struct ShellBegin {
  bool attach = false;               // the terminal that the task has, not a process of its own
  bool terminal = false;             // the process gets a terminal
  bool input = false;                // something may come on kInput; else its standard input is empty
  std::vector<std::string> command;  // empty with attach
  WindowSize size = {};
  std::string term = {};  // TERM of the process; empty: none
  bool operator==(const ShellBegin&) const = default;
};

// How a shell has ended.
struct ShellEnd {
  std::optional<std::int32_t> code;  // of its process: 128 and the number of the signal that ended it; absent: unknown
  std::string message = {};          // what is to be said of it; may be empty
  bool operator==(const ShellEnd&) const = default;
};

std::string shell_message(ShellChannel channel, std::string_view bytes);
std::string shell_message(const WindowSize& size);
std::string shell_message(const ShellBegin& begin);
std::string shell_message(const ShellEnd& end);

// Returns the channel of a message; nothing if it is empty or of no known channel.
std::optional<ShellChannel> channel_of(std::string_view message);

// Read what follows the channel. Nothing: it is malformed.
std::optional<WindowSize> window_size_of(std::string_view bytes);
std::optional<ShellBegin> shell_begin_of(std::string_view bytes);
std::optional<ShellEnd> shell_end_of(std::string_view bytes);

// On a stream of bytes each message goes behind its length, four bytes, the highest first.
std::string framed(std::string_view message);

// Takes such a stream apart.
class ShellMessageReader {
 public:
  void feed(std::string_view bytes) { received_ += bytes; }
  // Returns the next message, or nothing yet. Error: one is over kMostShellBytes.
  Result<std::optional<std::string>> next();

 private:
  std::string received_;
};

}  // namespace berth
