#pragma once
// The CLI's way to the server: HTTP through libcurl with a bearer token. One Client is used by one thread at a time and
// keeps its connection open between calls. Transport failures are Errors (kUnavailable, with what to do about it); any
// answer of the server, an error status too, is a Reply.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::client {

// In front of the path of a Unix socket that is given as a server's address.
inline constexpr std::string_view kSocketScheme = "unix:";

struct ClientOptions {
  std::string base_url = "http://127.0.0.1:8080";  // or https://HOST:PORT, or unix:PATH
  std::string token = {};
  // Users whose process may get the token over http:// within this machine, besides root and this process's own user.
  std::vector<uid_t> server_users = {};
  std::string ca_file = {};    // authorities that the server's certificate may be of; empty: those of the system
  std::string cert_file = {};  // client certificate
  std::string key_file = {};   // its key; empty: in the same file
  std::chrono::milliseconds connect_timeout{3'000};
  std::chrono::milliseconds timeout{60'000};  // for a whole call
  // How long a call waits in all while the server says that it asks too often (429).
  std::chrono::milliseconds rate_patience{60'000};
  std::chrono::milliseconds stream_silence{45'000};  // a stream without a byte (heartbeats come every 15 s) is dead
};

struct Reply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  bool ok() const { return status >= 200 && status < 300; }
};

// One event of a stream. NDJSON lines have only data.
struct StreamEvent {
  std::string id;
  std::string name;
  std::string data;
};

enum class StreamStep : bool { kStop, kContinue };

struct StreamOptions {
  bool ndjson = false;             // else server-sent events
  std::string last_event_id = {};  // resume after this event
  bool resume = true;              // reconnect when the connection breaks (server-sent events only: they carry ids)
  // Given up after this many reconnections in a row without one event.
  int reconnections = 10;
  std::chrono::milliseconds first_backoff{200};  // doubled each time, up to 5 s
  std::function<bool()> stopped = {};            // asked about once a second, events or not; true ends the stream
};

class WebSocketLink;

class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // `path` begins with '/' and is already encoded (see encode_segment).
  Result<Reply> get(std::string_view path);
  Result<Reply> post(std::string_view path, std::string_view json, std::string_view idempotency_key = {});
  // `if_match`: the ETag that what is changed must have; empty: none.
  Result<Reply> put(std::string_view path, std::string_view json, std::string_view if_match = {});
  Result<Reply> post_matching(std::string_view path, std::string_view json, std::string_view if_match);
  // Sends a document as YAML, which JSON is, too.
  Result<Reply> send_yaml(const char* method, std::string_view path, std::string_view document);
  Result<Reply> del(std::string_view path);

  // Calls `on_event` for each event until it says kStop, the server ends the stream (value), or the connection is lost
  // for good (error). A status other than 200 is an error with the server's own words.
  Result<void> stream(std::string_view path, const StreamOptions& options,
                      const std::function<StreamStep(const StreamEvent&)>& on_event);

  // Opens a WebSocket with the subprotocol, on a connection of its own. `limit`: of its messages. A status other than
  // 101 is an error with the server's own words.
  Result<std::unique_ptr<WebSocketLink>> open_web_socket(const std::string& path, std::string_view protocol,
                                                         std::size_t limit) const;

 private:
  struct Connection;
  struct StreamRun;
  std::unique_ptr<Connection> connection_;
};

// What a reply with an error status says: the code and detail of its problem document, or its status if it has none.
Error error_of(const Reply& reply);

// Percent-encodes one path segment or query value ("research/nlp" gives "research%2Fnlp").
std::string encode_segment(std::string_view text);

}  // namespace berth::client
