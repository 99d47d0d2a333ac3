#include "cli/command/shell_line.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>

#include "cli/printable.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostPending = 256 * 1024;  // of input that the connection has not taken
constexpr int kSilenceMs = 60'000;                // the server pings every 15 s
constexpr int kInterruptedShell = 130;            // as a shell says of SIGINT
constexpr int kMostInterrupts = 3;                // without a terminal: the third leaves the shell

// All keys go to the shell, Ctrl-C among them, until this goes.
class RawTerminal {
 public:
  explicit RawTerminal(bool wanted) {
    if (!wanted || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    is_raw_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  }
  ~RawTerminal() {
    if (is_raw_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  bool is_raw_ = false;
};

// The signals that are passed on, as a descriptor, until this goes.
class HeardSignals {
 public:
  HeardSignals() {
    sigset_t heard;
    ::sigemptyset(&heard);
    for (const int signo : {SIGWINCH, SIGINT, SIGQUIT, SIGTERM, SIGHUP}) ::sigaddset(&heard, signo);
    ::sigprocmask(SIG_BLOCK, &heard, &before_);
    descriptor_ = ::signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC);
  }
  ~HeardSignals() {
    ::close(descriptor_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  HeardSignals(const HeardSignals&) = delete;
  HeardSignals& operator=(const HeardSignals&) = delete;

  int descriptor() const { return descriptor_; }
  std::optional<int> next() const {
    signalfd_siginfo heard{};
    if (::read(descriptor_, &heard, sizeof heard) != static_cast<ssize_t>(sizeof heard)) return std::nullopt;
    return static_cast<int>(heard.ssi_signo);
  }

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

class ShellLine {
 public:
  ShellLine(client::WebSocketLink& line, const ShellLineOptions& options, Session& session)
      : line_(line), options_(options), session_(session), input_open_(options.input) {}

  Result<int> follow();

 private:
  void send(const std::string& message) { line_.send(WebSocketKind::kBinary, message); }
  Result<void> wait();
  void read_input();
  bool heed(int signo);  // false: leave the shell
  Result<void> take_messages();

  client::WebSocketLink& line_;
  const ShellLineOptions& options_;
  Session& session_;
  HeardSignals signals_;
  bool input_open_;
  bool input_ready_ = false;
  int interrupts_ = 0;
  std::optional<ShellEnd> end_;
};

Result<void> ShellLine::wait() {
  const bool reads = input_open_ && line_.pending_bytes() < kMostPending;
  const auto events = static_cast<short>(line_.pending_bytes() > 0 ? POLLIN | POLLOUT : POLLIN);
  std::array<pollfd, 3> waited{pollfd{line_.descriptor(), events, 0}, pollfd{signals_.descriptor(), POLLIN, 0},
                               pollfd{reads ? STDIN_FILENO : -1, POLLIN, 0}};
  const int ready = ::poll(waited.data(), waited.size(), kSilenceMs);
  if (ready == 0) return Error{ErrorCode::kUnavailable, "the server is silent; the shell has been given up"};
  input_ready_ = ready > 0 && waited[2].revents != 0;
  return {};
}

void ShellLine::read_input() {
  std::array<char, kShellChunkBytes> buffer;
  const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) return send(shell_message(ShellChannel::kInput, {buffer.data(), static_cast<std::size_t>(count)}));
  input_open_ = false;
  send(shell_message(ShellChannel::kNoInput, {}));
}

bool ShellLine::heed(int signo) {
  if (signo == SIGWINCH) {
    if (options_.terminal) send(shell_message(window_size_here()));
    return true;
  }
  if (signo == SIGHUP || ++interrupts_ >= kMostInterrupts) return false;
  send(shell_message(ShellChannel::kSignal, std::to_string(signo)));
  return true;
}

Result<void> ShellLine::take_messages() {
  while (!end_) {
    const auto message = line_.receive();
    if (!message) return message.error();
    if (!*message) return {};
    const std::string_view bytes = (*message)->bytes;
    const auto channel = channel_of(bytes);
    if (channel == ShellChannel::kOutput) session_.out << bytes.substr(1) << std::flush;
    if (channel == ShellChannel::kErrors) session_.err << bytes.substr(1) << std::flush;
    if (channel == ShellChannel::kEnd) end_ = shell_end_of(bytes.substr(1)).value_or(ShellEnd{});
  }
  return {};
}

Result<int> ShellLine::follow() {
  const RawTerminal raw(options_.terminal);
  if (options_.terminal) send(shell_message(window_size_here()));  // it may have changed meanwhile
  while (true) {
    if (auto sent = line_.flush(); !sent) return sent.error();
    if (auto taken = take_messages(); !taken) return taken.error();
    if (end_) break;
    if (auto waited = wait(); !waited) return waited.error();
    while (const auto signo = signals_.next()) {
      if (!heed(*signo)) return kInterruptedShell;
    }
    if (input_ready_) read_input();
  }
  if (!end_->code) return conflict(end_->message);
  if (!end_->message.empty()) session_.err << "berth: " << printable(end_->message) << "\n" << std::flush;
  return *end_->code & 0xFF;
}

}  // namespace

WindowSize window_size_here() {
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

Result<int> follow_shell(client::WebSocketLink& line, const ShellLineOptions& options, Session& session) {
  return ShellLine(line, options, session).follow();
}

}  // namespace berth::cli
