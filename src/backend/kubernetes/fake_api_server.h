#pragma once
// For tests: an API server on loopback that answers as kube-apiserver does, without TLS and without rights. It has
// lists in pages with continue tokens, watches with bookmarks, resource versions that every write raises, 410 for what
// was compacted, Bindings, and optimistic locking of leases. Tests make it fail: statuses, slow answers, cut lines.

#include <boost/json/object.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/web_socket.h"

namespace berth::backend {

// A shell in a pod, as the API server sees it: the other side of the WebSocket of pods/exec.
class FakeExec {
 public:
  FakeExec(int socket, std::string received, std::string path) : path_(std::move(path)), socket_(socket) {
    reader_.feed(received);
  }
  const std::string& path() const { return path_; }  // with the query
  // Returns the next message, a channel and bytes. Nothing: the client has closed the connection.
  std::optional<std::string> next();
  int pings() const { return pings_; }  // that came before the last message
  // Returns false when it is not taken.
  bool send(const std::string& message);
  bool send_raw(const std::string& bytes);

 private:
  std::string path_;
  int socket_;
  int pings_ = 0;
  WebSocketReader reader_{true, 1 << 20};
};

class FakeApiServer {
 public:
  FakeApiServer();
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // Creates or changes an object of a kind, which is its path, such as /api/v1/pods.
  void put(const std::string& kind, boost::json::object object);
  void remove(const std::string& kind, const std::string& space, const std::string& name);
  boost::json::object get(const std::string& kind, const std::string& space, const std::string& name);

  // Forgets all versions before now: watches and continue tokens from before get 410.
  void compact();
  void bookmark(const std::string& kind);
  // Sends this to the watches of the kind as it is.
  void send_raw(const std::string& kind, const std::string& bytes);
  // Closes all watches, in the middle of a line.
  void cut_watches();
  // The next `times` requests that begin with this, such as "POST /api/v1/namespaces", get this status; and this body,
  // or one that goes with the status.
  void fail(const std::string& beginning, int status, int times, const std::string& header = "",
            const std::string& body = "");
  // The next `times` questions for a right are answered with no.
  void deny_rights(int times);
  void mend();  // takes all faults back
  // What happens in a shell; its connection is closed behind it. `protocol`: the subprotocol that is agreed to.
  void on_exec(std::function<void(FakeExec&)> shell, std::string protocol = "v5.channel.k8s.io");
  // Answers all of them with these bytes, and leaves the connection open.
  void answer_exec_with(std::string bytes);
  void delay(const std::string& beginning, std::chrono::milliseconds time, int times);

  // Returns the first lines so far that begin with this, without the HTTP version.
  std::vector<std::string> requests(const std::string& beginning = "");
  int watches(const std::string& kind);

 private:
  struct Change {
    std::uint64_t version = 0;
    std::string kind;
    std::string bytes;  // of the stream
  };
  struct Fault {
    std::string beginning;
    int status = 0;
    int times = 0;
    std::string header;
    std::chrono::milliseconds delay{0};
    std::string body = {};  // instead of what goes with the status
  };
  struct Request {
    std::string method;
    std::string path;  // without the query
    std::string query;
    std::string body;
    std::string socket_key = {};  // of a WebSocket
    std::string value(const std::string& key) const;
  };
  struct Answer {
    int status = 200;
    std::string body;
    std::string header = {};
  };
  using Key = std::pair<std::string, std::string>;  // namespace, name

  void accept_all();
  void serve(int socket);
  bool read_request(int socket, std::string& buffer, Request& request) const;
  Answer answer(const Request& request);
  Answer list(const Request& request);
  Answer write_lease(const Request& request);
  Answer bind(const Request& request);
  void watch(int socket, const Request& request);
  void exec(int socket, const Request& request, const std::string& received);
  void put_locked(const std::string& kind, boost::json::object object, const std::string& type);

  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::uint64_t version_ = 100;
  std::uint64_t compacted_ = 0;
  std::uint64_t cut_ = 0;     // how often the watches were cut
  std::uint64_t cut_at_ = 0;  // the version at which they were, the last time
  std::map<std::string, std::map<Key, boost::json::object>> objects_;
  std::vector<Change> changes_;
  std::vector<Fault> faults_;
  std::vector<std::string> requests_;
  std::map<std::string, int> watching_;
  std::function<void(FakeExec&)> shell_;
  std::string exec_protocol_;
  std::string exec_answer_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace berth::backend
