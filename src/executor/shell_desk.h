#pragma once
// The shells of one task, within its supervisor: processes that users start beside the ranks, and the terminal of an
// interactive task. Rules:
//
// 1. A shell belongs to one connection of the socket `shell` in the task's directory. When that is closed, the shell
//    gets SIGHUP, and SIGKILL kHangUpGraceMs later. When it exits, its end is the last message of the connection.
// 2. Nothing blocks, and at most about kMostShellBytes of each direction of a connection are kept here: what the
//    other side does not take is not read from the shell, and the reverse.
// 3. Of the terminal of an interactive task the latest connection has it; the one before is told and closed. A new one
//    first gets the last kTerminalHistory bytes that it showed.
// 4. All shells are children of the supervisor and in the cgroup of the task, so they end with it.
//
// Not thread-safe.

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "executor/descriptor.h"
#include "executor/rank.h"
#include "model/shell_message.h"

namespace berth::executor {

inline constexpr std::size_t kMostShells = 16;  // of one task, at once
inline constexpr std::int64_t kHangUpGraceMs = 5'000;
inline constexpr std::size_t kTerminalHistory = 16 * 1024;

// Connects to the desk of a task and sends the begin. Error kConflict: no desk listens there.
Result<Descriptor> connect_to_shells(const std::string& task_dir, const ShellBegin& begin);

class ShellDesk {
 public:
  // Starts a process for a shell, as a rank is started.
  using Start = std::function<std::variant<Rank, StartFailure>(const ShellBegin&)>;

  // Listens. Where it cannot, there are no shells; `problem()` says why.
  explicit ShellDesk(const std::string& task_dir);
  ~ShellDesk();
  ShellDesk(const ShellDesk&) = delete;
  ShellDesk& operator=(const ShellDesk&) = delete;

  const std::string& problem() const { return problem_; }

  void add_waited(std::vector<pollfd>& waited) const;
  // Takes connections and moves bytes. `now`: of the boot clock.
  void attend(const Start& start, std::int64_t now);
  // Returns true if the process that has ended, with the status from waitpid, is a shell.
  bool reaped(pid_t pid, int status);

  // The terminal of an interactive task; it stays the caller's. Requires: no other was given.
  void has_terminal(int master, std::int64_t now);
  void show(std::string_view output);  // what the terminal has written
  bool takes_output() const;           // false while the attached connection is behind
  // Since when no connection has the terminal; nothing: one has it.
  std::optional<std::int64_t> detached_since() const;

  // The task is being killed: the shells that end from now on are told why.
  void note_kill() { task_is_killed_ = true; }

  // The task is over: tells all that are left, with the exit code of the rank for the terminal, and closes them.
  void end(std::int32_t code);

 private:
  struct Session {
    Descriptor connection;
    ShellMessageReader reader;
    std::string to_client;   // framed messages
    std::string to_process;  // input that its stdin has not taken
    bool begun = false;
    bool attached = false;      // it has the terminal of the task
    bool has_terminal = false;  // its process has one of its own
    bool no_more_input = false;
    bool finished = false;  // its end is in to_client
    std::optional<Rank> process = {};
    std::optional<std::int64_t> kill_at = {};
  };

  void accept_all();
  void attend(Session& session, const Start& start, std::int64_t now);
  void read_messages(Session& session, const Start& start, std::int64_t now);
  void obey(Session& session, std::string_view message, const Start& start, std::int64_t now);
  void begin(Session& session, const ShellBegin& begin, const Start& start, std::int64_t now);
  void attach(Session& session, const ShellBegin& begin);
  void pass_input(Session& session);
  bool copy_output(Session& session);  // true: there is no more now
  void finish(Session& session, const ShellEnd& end);
  void flush(Session& session);
  void flush_until(Session& session, std::int64_t deadline);  // of the boot clock
  void hang_up(Session& session, std::int64_t now);
  int input_of(const Session& session) const;

  Descriptor listener_;
  std::string problem_;
  std::list<Session> sessions_;
  int terminal_ = -1;
  bool task_is_killed_ = false;
  bool may_start_ = true;  // false: a process was started in this turn
  std::string history_;
  std::int64_t detached_since_ = 0;
};

}  // namespace berth::executor
