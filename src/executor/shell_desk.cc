#include "executor/shell_desk.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>

#include "executor/state_file.h"
#include "model/exit_code.h"

namespace berth::executor {
namespace {

constexpr int kBacklog = 16;
constexpr int kReadsAtOnce = 8;               // so that a shell that never stops printing does not keep the supervisor
constexpr std::int64_t kLastFlushMs = 1'000;  // of all connections together
constexpr const char* kTaskHasEnded = "the task has ended, and its shells with it";

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// Root and the user of this process alone: a task that runs as another user cannot reach the directory either.
bool is_trusted(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

// Returns true if the other side is gone. Bytes of it may still be unread.
bool is_gone(int connection) {
  pollfd asked{connection, POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

std::int32_t code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// Requires: none of the session may be left, and then its number may be another process's.
void signal_session_of(const Rank& process, int signo) {
  const auto leader = see_process(process.process.pid);
  if (leader && leader->start_ticks != process.process.start_ticks) return;
  for (const ProcessSeen& one : see_all_processes()) {
    if (one.session == process.process.pid) signal_process(one, signo);
  }
}

// The path of the directory itself could be too long for the address of a socket.
sockaddr_un address_in(const Descriptor& directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/shell", directory.get());
  return address;
}

}  // namespace

Result<Descriptor> connect_to_shells(const std::string& task_dir, const ShellBegin& begin) {
  const Descriptor directory(::open(task_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const sockaddr_un address = address_in(directory);
  Descriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EAGAIN)
      return Error{ErrorCode::kUnavailable, "too many shells are being opened in the task; try again"};
    return conflict(
        "no shell can be opened in the task now: it is just starting or ending, or a berth without shells "
        "started it");
  }
  const std::string message = framed(shell_message(begin));
  if (::send(connection.get(), message.data(), message.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(message.size()))
    return conflict("the task has just ended");
  return connection;
}

ShellDesk::ShellDesk(const std::string& task_dir) {
  const Descriptor directory(::open(task_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const sockaddr_un address = address_in(directory);
  listener_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // What is there is of a supervisor that has ended: this one has the lock of the task.
  ::unlink(address.sun_path);
  if (!listener_.is_open() ||
      ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), kBacklog) != 0) {
    problem_ = system_error("listen on", "the socket of its shells", errno).message;
    listener_.reset();
  }
}

ShellDesk::~ShellDesk() = default;

void ShellDesk::add_waited(std::vector<pollfd>& waited) const {
  if (listener_.is_open()) waited.push_back({listener_.get(), POLLIN, 0});
  for (const Session& session : sessions_) {
    if (session.connection.is_open()) {
      int events = POLLRDHUP;
      if (!session.finished && session.to_process.empty()) events |= POLLIN;
      if (!session.to_client.empty()) events |= POLLOUT;
      waited.push_back({session.connection.get(), static_cast<short>(events), 0});
    }
    if (!session.to_process.empty() && input_of(session) >= 0) waited.push_back({input_of(session), POLLOUT, 0});
    if (!session.process || session.to_client.size() >= kMostShellBytes) continue;
    for (const Descriptor* stream : {&session.process->output, &session.process->errors}) {
      if (stream->is_open()) waited.push_back({stream->get(), POLLIN, 0});
    }
  }
}

void ShellDesk::attend(const Start& start, std::int64_t now) {
  accept_all();
  may_start_ = true;
  for (Session& session : sessions_) attend(session, start, now);
  std::erase_if(sessions_, [](const Session& session) {
    return !session.connection.is_open() && !session.kill_at && (!session.process || session.process->ended);
  });
}

void ShellDesk::accept_all() {
  while (listener_.is_open()) {
    Descriptor connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.is_open()) return;
    if (!is_trusted(connection.get())) continue;
    sessions_.emplace_back().connection = std::move(connection);
    if (sessions_.size() > kMostShells)
      finish(sessions_.back(),
             {std::nullopt, "this task has " + std::to_string(kMostShells) + " shells already; close one"});
  }
}

void ShellDesk::attend(Session& session, const Start& start, std::int64_t now) {
  if (session.connection.is_open()) {
    pass_input(session);
    read_messages(session, start, now);
  }
  const bool all_is_copied = copy_output(session);
  if (session.process && session.process->ended && all_is_copied && !session.finished)
    finish(session, {code_of(session.process->wait_status), task_is_killed_ ? kTaskHasEnded : ""});
  flush(session);
  if (session.connection.is_open() &&
      (is_gone(session.connection.get()) || (session.finished && session.to_client.empty())))
    hang_up(session, now);
  if (session.kill_at && now >= *session.kill_at && session.process) {
    session.kill_at.reset();
    signal_session_of(*session.process, SIGKILL);
  }
}

void ShellDesk::read_messages(Session& session, const Start& start, std::int64_t now) {
  std::array<char, kShellChunkBytes> buffer;
  // A start may take seconds: the supervisor looks after its task between two of them. The message stays unread.
  if (!session.begun && !may_start_) return;
  // All that is received is obeyed, since poll tells of nothing that is here already.
  for (int reads = 0; session.to_process.empty() && !session.finished;) {
    auto message = session.reader.next();
    if (!message) return finish(session, {std::nullopt, message.error().message});
    if (*message) {
      obey(session, **message, start, now);
      pass_input(session);
      continue;
    }
    if (reads++ == kReadsAtOnce) return;
    const ssize_t count = ::recv(session.connection.get(), buffer.data(), buffer.size(), 0);
    if (count <= 0) return;  // attend looks whether it is gone
    session.reader.feed({buffer.data(), static_cast<std::size_t>(count)});
  }
}

void ShellDesk::obey(Session& session, std::string_view message, const Start& start, std::int64_t now) {
  const auto channel = channel_of(message);
  const std::string_view bytes = message.substr(std::min<std::size_t>(1, message.size()));
  if (!session.begun) {
    const auto wanted = channel == ShellChannel::kBegin ? shell_begin_of(bytes) : std::nullopt;
    if (!wanted) return finish(session, {std::nullopt, "a shell begins with what it is to run"});
    session.begun = true;
    return begin(session, *wanted, start, now);
  }
  if (channel == ShellChannel::kInput && !session.no_more_input) session.to_process += bytes;
  if (channel == ShellChannel::kNoInput) session.no_more_input = true;
  if (channel == ShellChannel::kResize && input_of(session) >= 0) {
    if (const auto size = window_size_of(bytes)) set_window_size(input_of(session), *size);
  }
  if (channel == ShellChannel::kSignal && session.process && !session.process->ended) {
    int signo = 0;
    std::from_chars(bytes.data(), bytes.data() + bytes.size(), signo);
    if (signo > 0 && signo < NSIG) ::kill(-session.process->process.pid, signo);
  }
}

void ShellDesk::begin(Session& session, const ShellBegin& begin, const Start& start, std::int64_t now) {
  if (begin.attach) return attach(session, begin);
  may_start_ = false;
  auto started = start(begin);
  if (const auto* failure = std::get_if<StartFailure>(&started))
    return finish(session, {failure->code, failure->message});
  session.process = std::move(std::get<Rank>(started));
  session.has_terminal = begin.terminal;
  if (!begin.terminal && !begin.input) session.process->input.reset();
  if (is_gone(session.connection.get())) hang_up(session, now);
}

void ShellDesk::attach(Session& session, const ShellBegin& begin) {
  if (terminal_ < 0)
    return finish(session, {std::nullopt, "this task has no terminal; berth exec opens a shell in it"});
  for (Session& other : sessions_) {
    if (!other.attached) continue;
    other.attached = false;
    finish(other, {std::nullopt, "the terminal was attached elsewhere"});
  }
  session.attached = true;
  for (std::size_t at = 0; at < history_.size(); at += kShellChunkBytes)
    session.to_client +=
        framed(shell_message(ShellChannel::kOutput, std::string_view(history_).substr(at, kShellChunkBytes)));
  set_window_size(terminal_, begin.size);
}

int ShellDesk::input_of(const Session& session) const {
  if (session.attached) return terminal_;
  return session.process && session.process->input.is_open() ? session.process->input.get() : -1;
}

void ShellDesk::pass_input(Session& session) {
  const int to = input_of(session);
  if (to < 0) return session.to_process.clear();
  while (!session.to_process.empty()) {
    const ssize_t count = ::write(to, session.to_process.data(), session.to_process.size());
    if (count < 0 && would_block()) return;
    if (count <= 0) return session.to_process.clear();  // nobody reads it any more
    session.to_process.erase(0, static_cast<std::size_t>(count));
  }
  // A terminal has no end of input but what is typed.
  if (session.no_more_input && session.process && !session.has_terminal) session.process->input.reset();
}

bool ShellDesk::copy_output(Session& session) {
  if (!session.process) return true;
  std::array<char, kShellChunkBytes> buffer;
  bool all = true;
  for (const ShellChannel channel : {ShellChannel::kOutput, ShellChannel::kErrors}) {
    Descriptor& from = channel == ShellChannel::kOutput ? session.process->output : session.process->errors;
    bool empty = !from.is_open();
    for (int turn = 0; turn < kReadsAtOnce && !empty; ++turn) {
      if (session.connection.is_open() && session.to_client.size() >= kMostShellBytes) break;
      const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
      empty = count <= 0;
      if (count < 0 && would_block()) break;
      if (count <= 0) {  // EIO: nobody has the terminal any more
        from.reset();
        break;
      }
      if (session.connection.is_open() && !session.finished)
        session.to_client += framed(shell_message(channel, {buffer.data(), static_cast<std::size_t>(count)}));
    }
    all = all && empty;
  }
  return all;
}

void ShellDesk::finish(Session& session, const ShellEnd& end) {
  if (session.finished) return;
  session.finished = true;
  session.to_client += framed(shell_message(end));
  flush(session);
}

void ShellDesk::flush(Session& session) {
  while (session.connection.is_open() && !session.to_client.empty()) {
    const ssize_t count =
        ::send(session.connection.get(), session.to_client.data(), session.to_client.size(), MSG_NOSIGNAL);
    if (count < 0 && would_block()) return;
    if (count < 0) {
      session.to_client.clear();
      return;
    }
    session.to_client.erase(0, static_cast<std::size_t>(count));
  }
}

// Closing the master of its terminal makes the kernel hang up its foreground processes; without one they are told. What
// they write to a pipe while they clean up is read and dropped: SIGPIPE would end them first.
void ShellDesk::hang_up(Session& session, std::int64_t now) {
  session.connection.reset();
  session.to_client.clear();
  if (session.attached) {
    session.attached = false;
    detached_since_ = now;
  }
  if (!session.process) return;
  if (!session.process->ended) {
    signal_session_of(*session.process, SIGHUP);
    signal_session_of(*session.process, SIGCONT);
    session.kill_at = now + kHangUpGraceMs;
  }
  session.process->input.reset();
  if (!session.has_terminal) return;
  session.process->output.reset();
  session.process->errors.reset();
}

bool ShellDesk::reaped(pid_t pid, int status) {
  for (Session& session : sessions_) {
    if (!session.process || session.process->ended || session.process->process.pid != pid) continue;
    session.process->ended = true;
    session.process->wait_status = status;
    return true;
  }
  return false;
}

void ShellDesk::has_terminal(int master, std::int64_t now) {
  terminal_ = master;
  detached_since_ = now;
}

void ShellDesk::show(std::string_view output) {
  history_ += output;
  if (history_.size() > kTerminalHistory) history_.erase(0, history_.size() - kTerminalHistory);
  for (Session& session : sessions_) {
    if (session.attached) session.to_client += framed(shell_message(ShellChannel::kOutput, output));
  }
}

bool ShellDesk::takes_output() const {
  return std::none_of(sessions_.begin(), sessions_.end(), [](const Session& session) {
    return session.attached && session.to_client.size() >= kMostShellBytes;
  });
}

std::optional<std::int64_t> ShellDesk::detached_since() const {
  for (const Session& session : sessions_) {
    if (session.attached) return std::nullopt;
  }
  return detached_since_;
}

void ShellDesk::flush_until(Session& session, std::int64_t deadline) {
  flush(session);
  while (session.connection.is_open() && !session.to_client.empty()) {
    pollfd writable{session.connection.get(), POLLOUT, 0};
    const std::int64_t left = deadline - boot_clock_ms();
    if (left <= 0 || ::poll(&writable, 1, static_cast<int>(left)) <= 0 || (writable.revents & POLLOUT) == 0) return;
    flush(session);
  }
}

void ShellDesk::end(std::int32_t code) {
  // A terminal that is just being attached gets what was shown, and the end.
  const Start none = [](const ShellBegin&) { return StartFailure{kNodeShortCode, kTaskHasEnded}; };
  accept_all();
  for (Session& session : sessions_) {
    may_start_ = true;
    if (!session.begun && session.connection.is_open()) read_messages(session, none, 0);
  }
  listener_.reset();
  terminal_ = -1;
  const std::int64_t deadline = boot_clock_ms() + kLastFlushMs;
  for (Session& session : sessions_) {
    copy_output(session);
    if (session.attached) {
      finish(session, {code, {}});
    } else if (session.process && session.process->ended) {
      finish(session, {code_of(session.process->wait_status), kTaskHasEnded});
    } else {
      finish(session, {std::nullopt, kTaskHasEnded});
    }
    flush_until(session, deadline);
    session.connection.reset();
  }
  sessions_.clear();
}

}  // namespace berth::executor
