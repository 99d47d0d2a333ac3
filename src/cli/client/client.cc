#include "cli/client/client.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "cli/client/event_parser.h"
#include "cli/client/plain_http.h"
#include "cli/client/server_user.h"
#include "cli/client/tls_failure.h"
#include "cli/client/web_socket_link.h"

namespace berth::client {
namespace {

constexpr std::size_t kLargestReply = 512 * 1024 * 1024;
constexpr std::size_t kLargestErrorBody = 64 * 1024;
constexpr std::chrono::milliseconds kLongestBackoff{5'000};
constexpr int kTooManyRequests = 429;
constexpr std::int64_t kLongestWaitS = 3600;

// libcurl wants one global initialisation before any thread uses it.
void initialise_curl() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(initialised);
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

HeaderList header_list(const std::vector<std::string>& lines) {
  curl_slist* list = nullptr;
  for (const std::string& line : lines) list = curl_slist_append(list, line.c_str());
  return HeaderList(list);
}

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::size_t receive_header(char* bytes, std::size_t size, std::size_t count, void* reply) {
  const std::string_view line(bytes, size * count);
  auto& headers = static_cast<Reply*>(reply)->headers;
  const std::size_t colon = line.find(':');
  if (line.starts_with("HTTP/")) {
    headers.clear();  // those before were of an interim response
  } else if (colon != std::string_view::npos) {
    headers[lower_case(line.substr(0, colon))] = trim(line.substr(colon + 1));
  }
  return size * count;
}

std::size_t receive_body(char* bytes, std::size_t size, std::size_t count, void* reply) {
  auto& body = static_cast<Reply*>(reply)->body;
  if (body.size() + size * count > kLargestReply) return 0;
  body.append(bytes, size * count);
  return size * count;
}

// A second where the server does not say.
std::chrono::milliseconds wait_of(const Reply& reply) {
  const auto stated = reply.headers.find("retry-after");
  std::int64_t seconds = 1;
  if (stated != reply.headers.end()) {
    const std::string& text = stated->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || seconds < 0 || seconds > kLongestWaitS) seconds = 1;
  }
  return std::chrono::seconds(seconds);
}

std::string seconds(std::chrono::milliseconds time) {
  const auto tenths = time.count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

struct Client::Connection {
  explicit Connection(ClientOptions chosen) : options(std::move(chosen)) {
    initialise_curl();
    handle = curl_easy_init();
    while (options.base_url.ends_with('/')) options.base_url.pop_back();
    if (options.base_url.starts_with(kSocketScheme)) socket = options.base_url.substr(kSocketScheme.size());
    asks_who_listens = !options.token.empty() && socket.empty() && is_plain_on_this_machine(options.base_url);
    options.server_users.insert(options.server_users.end(), {0, ::geteuid()});
  }
  ~Connection() { curl_easy_cleanup(handle); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  template <class Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(handle, option, value);
  }

  void prepare(std::string_view path);
  std::vector<std::string> headers() const;
  // Waits as Retry-After says where the server answers that it is asked too often.
  Result<Reply> patient_call(const char* method, std::string_view path, std::optional<std::string_view> body,
                             const std::string& header);
  // `header`: one more, such as "Idempotency-Key: x", or empty.
  Result<Reply> call(const char* method, std::string_view path, std::optional<std::string_view> body,
                     const std::string& header);
  CURLcode follow(std::string_view path, const StreamOptions& stream, const std::string& last_id, StreamRun& run);
  Error failure(CURLcode code, std::string_view method, std::chrono::milliseconds waited) const;
  Error no_socket(int reason) const;
  int status() const;
  // Before each request: asks who is at the other end of a connection that was not asked about before.
  static int look_at_server(void* connection, char* server_address, char* client_address, int server_port,
                            int client_port);
  Error distrusts(uid_t stranger) const;

  ClientOptions options;
  std::string socket = {};  // the path of a Unix socket; empty: none
  CURL* handle = nullptr;
  bool asks_who_listens = false;                   // the token goes over http:// within this machine
  int port_asked_about = 0;                        // this process's own, of the connection
  std::optional<uid_t> stranger = {};              // who was there instead of the server
  std::array<char, CURL_ERROR_SIZE> details = {};  // libcurl's own words on a failure
};

// Back to the defaults; the open connection stays with the handle.
void Client::Connection::prepare(std::string_view path) {
  curl_easy_reset(handle);
  set(CURLOPT_URL, ((socket.empty() ? options.base_url : "http://localhost") + std::string(path)).c_str());
  if (!socket.empty()) set(CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
  details[0] = 0;
  set(CURLOPT_ERRORBUFFER, details.data());
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options.ca_file.empty()) {
    set(CURLOPT_CAINFO, options.ca_file.c_str());
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // these alone
  }
  if (!options.cert_file.empty()) {
    set(CURLOPT_SSLCERT, options.cert_file.c_str());
    set(CURLOPT_SSLKEY, (options.key_file.empty() ? options.cert_file : options.key_file).c_str());
  }
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOPROXY, "*");  // the token is for the server alone
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  if (!asks_who_listens) return;
  set(CURLOPT_PREREQFUNCTION, &Connection::look_at_server);
  set(CURLOPT_PREREQDATA, this);
}

int Client::Connection::look_at_server(void* connection, char* server_address, char* client_address, int server_port,
                                       int client_port) {
  auto& self = *static_cast<Connection*>(connection);
  if (client_port == self.port_asked_about) return CURL_PREREQFUNC_OK;
  const ConnectionEnds ends{server_address, static_cast<std::uint16_t>(server_port), client_address,
                            static_cast<std::uint16_t>(client_port)};
  self.stranger = find_stranger(ends, self.options.server_users);
  if (self.stranger) return CURL_PREREQFUNC_ABORT;
  self.port_asked_about = client_port;
  return CURL_PREREQFUNC_OK;
}

Error Client::Connection::distrusts(uid_t stranger_uid) const {
  const std::string who = name_of_user(stranger_uid);
  return {ErrorCode::kDenied,
          "the token is not sent to " + options.base_url + ": " + who +
              " listens there, which is neither root nor you; a job may have taken the port while the server was "
              "away. If your server runs as " +
              who + ", say so: BERTH_SERVER_USER=" + std::to_string(stranger_uid) +
              "; or use its Unix socket (--server unix:PATH) or https://"};
}

std::vector<std::string> Client::Connection::headers() const {
  std::vector<std::string> lines{"Expect:"};
  if (!options.token.empty()) lines.push_back("Authorization: Bearer " + options.token);
  return lines;
}

int Client::Connection::status() const {
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

Error Client::Connection::no_socket(int reason) const {
  std::string message = "cannot connect to " + options.base_url + ": " + std::strerror(reason);
  if (reason == ENOENT || reason == ECONNREFUSED) message += "; no server listens there";
  if (reason == EACCES) {
    message +=
        "; you may not use it. A socket for all users is one that the server is given by "
        "--socket PATH";
  }
  return {ErrorCode::kUnavailable, std::move(message)};
}

Error Client::Connection::failure(CURLcode code, std::string_view method, std::chrono::milliseconds waited) const {
  if (stranger) return distrusts(*stranger);
  long reason = 0;
  curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &reason);
  const std::string server = "the berth server at " + options.base_url;
  if (!socket.empty() && code == CURLE_COULDNT_CONNECT) return no_socket(static_cast<int>(reason));
  if (auto failed = tls_failure(handle, code, details.data(), options)) return *failed;
  if (code == CURLE_COULDNT_CONNECT && reason == ECONNREFUSED) {
    return {ErrorCode::kUnavailable, "cannot connect to " + options.base_url +
                                         ": is the server running? Start one with `berth serve --config FILE --data "
                                         "DIR`, or try berth on this machine with "
                                         "`berth dev`"};
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    std::string message = server + " was silent for " + seconds(waited);
    if (method != "GET") message += "; the request may have been carried out all the same";
    return {ErrorCode::kUnavailable, std::move(message)};
  }
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return invalid("\"" + options.base_url +
                   "\" is not a server's address, as https://berth.example:6380, http://127.0.0.1:6380 or "
                   "unix:/run/berth/berth.sock would be");
  }
  return {ErrorCode::kUnavailable, "no answer from " + server + ": " + curl_easy_strerror(code)};
}

Result<Reply> Client::Connection::call(const char* method, std::string_view path, std::optional<std::string_view> body,
                                       const std::string& header) {
  prepare(path);
  auto lines = headers();
  if (body && !header.starts_with("Content-Type:")) lines.push_back("Content-Type: application/json");
  if (!header.empty()) lines.push_back(header);
  const HeaderList list = header_list(lines);
  Reply reply;
  set(CURLOPT_HTTPHEADER, list.get());
  set(CURLOPT_CUSTOMREQUEST, method);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count()));
  set(CURLOPT_HEADERFUNCTION, &receive_header);
  set(CURLOPT_HEADERDATA, &reply);
  set(CURLOPT_WRITEFUNCTION, &receive_body);
  set(CURLOPT_WRITEDATA, &reply);
  if (body) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body->size()));
    set(CURLOPT_POSTFIELDS, body->data());
  }
  if (const CURLcode code = curl_easy_perform(handle); code != CURLE_OK) return failure(code, method, options.timeout);
  reply.status = status();
  return reply;
}

Result<Reply> Client::Connection::patient_call(const char* method, std::string_view path,
                                               std::optional<std::string_view> body, const std::string& header) {
  std::chrono::milliseconds waited{0};
  while (true) {
    auto reply = call(method, path, body, header);
    if (!reply || reply->status != kTooManyRequests) return reply;
    const std::chrono::milliseconds wait = wait_of(*reply);
    if (waited + wait > options.rate_patience) return reply;
    std::this_thread::sleep_for(wait);
    waited += std::max(wait, std::chrono::milliseconds{1});
  }
}

Client::Client(ClientOptions options) : connection_(std::make_unique<Connection>(std::move(options))) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Result<Reply> Client::get(std::string_view path) { return connection_->patient_call("GET", path, std::nullopt, {}); }

Result<Reply> Client::post(std::string_view path, std::string_view json, std::string_view idempotency_key) {
  const auto body = json.empty() ? std::nullopt : std::optional(json);
  const std::string key(idempotency_key);
  return connection_->patient_call("POST", path, body, key.empty() ? "" : "Idempotency-Key: " + key);
}

Result<Reply> Client::put(std::string_view path, std::string_view json, std::string_view if_match) {
  const std::string tag(if_match);
  return connection_->patient_call("PUT", path, json, tag.empty() ? "" : "If-Match: " + tag);
}

Result<Reply> Client::post_matching(std::string_view path, std::string_view json, std::string_view if_match) {
  const std::string tag(if_match);
  return connection_->patient_call("POST", path, json, tag.empty() ? "" : "If-Match: " + tag);
}

Result<Reply> Client::send_yaml(const char* method, std::string_view path, std::string_view document) {
  return connection_->patient_call(method, path, document, "Content-Type: application/yaml");
}

Result<Reply> Client::del(std::string_view path) { return connection_->patient_call("DELETE", path, std::nullopt, {}); }

// One connection of a stream, as libcurl's callbacks see it.
struct Client::StreamRun {
  EventParser parser;
  CURL* handle;
  const std::function<bool()>& stopped;
  Reply refusal = {};  // what came instead of a stream

  static std::size_t receive(char* bytes, std::size_t size, std::size_t count, void* run) {
    return static_cast<StreamRun*>(run)->take({bytes, size * count});
  }
  static int progress(void* run, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const auto& stopped = static_cast<StreamRun*>(run)->stopped;
    return stopped && stopped() ? 1 : 0;
  }

  std::size_t take(std::string_view bytes) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200) return parser.feed(bytes) ? bytes.size() : 0;
    refusal.body += bytes.substr(0, kLargestErrorBody - std::min(kLargestErrorBody, refusal.body.size()));
    return bytes.size();
  }
};

// Sets the handle up for one connection of a stream, and follows it to its end.
CURLcode Client::Connection::follow(std::string_view path, const StreamOptions& stream, const std::string& last_id,
                                    StreamRun& run) {
  prepare(path);
  auto lines = headers();
  lines.push_back(stream.ndjson ? "Accept: application/x-ndjson" : "Accept: text/event-stream");
  if (!last_id.empty()) lines.push_back("Last-Event-ID: " + last_id);
  const HeaderList list = header_list(lines);
  set(CURLOPT_HTTPHEADER, list.get());
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>((options.stream_silence.count() + 999) / 1000));
  set(CURLOPT_WRITEFUNCTION, &StreamRun::receive);
  set(CURLOPT_WRITEDATA, &run);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &StreamRun::progress);
  set(CURLOPT_XFERINFODATA, &run);
  const CURLcode code = curl_easy_perform(handle);
  run.refusal.status = status();
  return code;
}

Result<void> Client::stream(std::string_view path, const StreamOptions& options,
                            const std::function<StreamStep(const StreamEvent&)>& on_event) {
  std::string last_id = options.last_event_id;
  auto backoff = options.first_backoff;
  bool was_open = false;
  int failures = 0;
  while (true) {
    StreamRun run{
        .parser = EventParser(options.ndjson, on_event), .handle = connection_->handle, .stopped = options.stopped};
    const CURLcode code = connection_->follow(path, options, last_id, run);
    if (connection_->stranger) return connection_->distrusts(*connection_->stranger);
    if (run.parser.stopped() || code == CURLE_ABORTED_BY_CALLBACK) return {};
    if (run.parser.too_long()) return Error{ErrorCode::kTooLarge, "the server sent an event beyond any measure"};
    const int status = run.refusal.status;
    if (status == kTooManyRequests && ++failures <= options.reconnections) {
      std::this_thread::sleep_for(wait_of(run.refusal));
      continue;
    }
    const bool busy_again = was_open && status == 503;  // a server that is just starting up again
    if (status != 0 && status != 200 && !busy_again) return error_of(run.refusal);
    if (code == CURLE_OK && status == 200) return {};
    was_open = was_open || status == 200;
    if (!run.parser.last_id().empty()) last_id = run.parser.last_id();
    if (run.parser.had_event()) {
      failures = 0;
      backoff = options.first_backoff;
    }
    const bool may_resume = options.resume && !options.ndjson && was_open;
    if (!may_resume || ++failures > options.reconnections)
      return connection_->failure(code, "GET", connection_->options.stream_silence);
    std::this_thread::sleep_for(backoff);
    if (options.stopped && options.stopped()) return {};
    backoff = std::min(backoff * 2, kLongestBackoff);
  }
}

namespace {

std::string text_of_curl(CURL* handle, CURLINFO what) {
  char* text = nullptr;
  return curl_easy_getinfo(handle, what, &text) == CURLE_OK && text != nullptr ? text : "";
}

std::uint16_t port_of_curl(CURL* handle, CURLINFO what) {
  long port = 0;
  curl_easy_getinfo(handle, what, &port);
  return static_cast<std::uint16_t>(port);
}

// "berth.example:6380" of "https://berth.example:6380/x"
std::string authority_of(const std::string& base_url) {
  const std::size_t scheme = base_url.find("://");
  const std::size_t from = scheme == std::string::npos ? 0 : scheme + 3;
  return base_url.substr(from, base_url.find('/', from) - from);
}

}  // namespace

Result<std::unique_ptr<WebSocketLink>> Client::open_web_socket(const std::string& path, std::string_view protocol,
                                                               std::size_t limit) const {
  const auto connection = std::make_shared<Connection>(connection_->options);
  connection->prepare(path);
  connection->set(CURLOPT_CONNECT_ONLY, 1L);
  connection->set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  CURL* handle = connection->handle;
  const CURLcode code = curl_easy_perform(handle);
  if (code != CURLE_OK) return connection->failure(code, "GET", connection->options.connect_timeout);
  if (connection->asks_who_listens) {
    const ConnectionEnds ends{text_of_curl(handle, CURLINFO_PRIMARY_IP), port_of_curl(handle, CURLINFO_PRIMARY_PORT),
                              text_of_curl(handle, CURLINFO_LOCAL_IP), port_of_curl(handle, CURLINFO_LOCAL_PORT)};
    if (const auto stranger = find_stranger(ends, connection->options.server_users))
      return connection->distrusts(*stranger);
  }
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, &socket);
  ByteLink link;
  link.descriptor = socket;
  const auto lost = [](CURLcode why) {
    return Error{ErrorCode::kUnavailable,
                 std::string("the connection to the server was lost: ") + curl_easy_strerror(why)};
  };
  link.send = [connection, lost](std::string_view bytes) -> Result<std::size_t> {
    std::size_t count = 0;
    const CURLcode sent = curl_easy_send(connection->handle, bytes.data(), bytes.size(), &count);
    if (sent == CURLE_AGAIN) return std::size_t{0};
    if (sent != CURLE_OK) return lost(sent);
    return count;
  };
  link.receive = [connection, lost](char* to, std::size_t at_most) -> Result<std::size_t> {
    std::size_t count = 0;
    const CURLcode received = curl_easy_recv(connection->handle, to, at_most, &count);
    if (received == CURLE_AGAIN) return std::size_t{0};
    if (received != CURLE_OK) return lost(received);
    if (count == 0) return Error{ErrorCode::kUnavailable, "the connection to the server was lost"};
    return count;
  };
  auto opened = std::make_unique<WebSocketLink>(std::move(link), limit);
  std::vector<std::string> lines{
      "Host: " + (connection->socket.empty() ? authority_of(connection->options.base_url) : "localhost")};
  if (!connection->options.token.empty()) lines.push_back("Authorization: Bearer " + connection->options.token);
  if (auto upgraded = opened->upgrade(path, lines, protocol, connection->options.timeout); !upgraded)
    return upgraded.error();
  return opened;
}

Error error_of(const Reply& reply) {
  Error error{ErrorCode::kUnavailable, "the server answered with status " + std::to_string(reply.status)};
  switch (reply.status) {
    case 404:
      error.code = ErrorCode::kNotFound;
      break;
    case 409:
    case 412:
      error.code = ErrorCode::kConflict;
      break;
    case 401:
    case 403:
      error.code = ErrorCode::kDenied;
      break;
    case 413:
      error.code = ErrorCode::kTooLarge;
      break;
    case 422:
      error.code = ErrorCode::kUnsupported;
      break;
    case kTooManyRequests:
    case 503:
      error.code = ErrorCode::kUnavailable;
      break;
    default:
      error.code = reply.status >= 500 ? ErrorCode::kIo : ErrorCode::kInvalid;
  }
  boost::json::error_code ec;
  const boost::json::value document = boost::json::parse(reply.body, ec);
  if (ec || !document.is_object()) return error;
  const boost::json::value* detail = document.as_object().if_contains("detail");
  if (detail != nullptr && detail->is_string()) error.message = std::string(detail->as_string());
  return error;
}

std::string encode_segment(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += "0123456789ABCDEF"[byte >> 4];
      encoded += "0123456789ABCDEF"[byte & 15];
    }
  }
  return encoded;
}

}  // namespace berth::client
