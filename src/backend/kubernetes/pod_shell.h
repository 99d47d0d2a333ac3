#pragma once
// One shell in a pod: the API server's WebSocket (kube/pod_exec.h) joined to a local stream, which the user's relay has
// the other end of (model/shell_message.h). Rules:
//
// 1. Nothing blocks. What one side does not take is not read from the other: about kMostShellBytes of each direction
// are
//    kept here, and one message.
// 2. When the user's end is closed, so is the connection to the API server. Kubernetes has nothing else to end a
// command.
// 3. When the command has ended, or the connection, the user is told how, last, and the local stream is closed.
// 4. A signal has no way to a pod. With a terminal, SIGINT and SIGQUIT are typed; without one the user is told once.
//
// Not thread-safe.

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/kubernetes/http.h"
#include "backend/kubernetes/server_connection.h"
#include "base/web_socket.h"
#include "model/shell_message.h"

namespace berth::backend {

class PodShell {
 public:
  // Begins to connect. `pod`: its namespace and name, for messages. `path`: of exec_path. `answer` is called once.
  PodShell(const Credentials& credentials, std::string pod, std::string path, const ShellBegin& begin,
           Clock::time_point now, ShellAnswer answer);
  ~PodShell();
  PodShell(const PodShell&) = delete;
  PodShell& operator=(const PodShell&) = delete;

  // Moves bytes. It is called when one of those of add_waited is ready, or at due_at.
  void attend(Clock::time_point now);
  void add_waited(std::vector<pollfd>& waited) const;
  Clock::time_point due_at() const { return due_at_; }
  bool is_over() const { return stage_ == Stage::kOver; }

  // Ends it: the server stops.
  void give_up(const std::string& why);

 private:
  enum class Stage : std::uint8_t { kConnecting, kUpgrading, kOpen, kEnding, kOver };

  void connect(Clock::time_point now);
  void upgrade(Clock::time_point now);
  bool read_head();  // true: there is no more to wait for
  void open(std::string_view head, Clock::time_point now);
  void pass(Clock::time_point now);
  void take_from_client();
  void obey(std::string_view message);
  void take_from_server(Clock::time_point now);
  void heed(const WebSocketMessage& message);
  void hear(Clock::time_point now);
  void show(ShellChannel channel, std::string_view bytes);
  void say(WebSocketKind kind, std::string_view bytes);
  bool flush_server();  // false: it takes nothing more
  void flush_client();
  bool server_is_behind() const { return sent_ < sending_.size(); }
  bool client_is_gone() const;
  void refuse(Error why);
  void server_ended(const std::string& why);
  void finish(const ShellEnd& end);
  void leave();

  const std::string pod_;
  const std::string path_;
  const ShellBegin begin_;
  ShellAnswer answer_;
  Stage stage_ = Stage::kConnecting;
  std::optional<ServerConnection> server_;
  int client_ = -1;
  std::string key_;   // of the WebSocket
  std::string head_;  // of the API server's answer, and what has come behind it
  WebSocketReader server_reader_;
  ShellMessageReader client_reader_;
  std::string sending_;    // stays where it is until it is sent: TLS has begun to write it
  std::string to_server_;  // behind it
  std::size_t sent_ = 0;
  std::string to_client_;
  std::string status_;  // how the command ended, by channel 3
  bool is_busy_ = false;
  bool is_held_ = false;  // the user has no room for what may have come already
  bool is_deaf_ = false;  // the API server takes nothing any more
  bool told_of_signals_ = false;
  Clock::time_point give_up_at_;
  Clock::time_point end_at_ = Clock::time_point::max();  // the API server has said the end, and does not close
  Clock::time_point ping_at_ = Clock::time_point::max();
  Clock::time_point due_at_;
};

}  // namespace berth::backend
