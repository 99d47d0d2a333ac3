// The adapter of libcurl for connections. Each has a `CURLM` of its own: one that makes another connection would look
// at the ones that it knows, and close what has bytes that no transfer has read.

#include "backend/kubernetes/server_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "backend/kubernetes/curl_server.h"

namespace berth::backend {
namespace {

// A server that is gone without a word is found out within about a minute: by probes while nothing is sent, else by
// what it does not acknowledge. TCP_USER_TIMEOUT would also end a connection whose server only has no room for input.
constexpr int kIdleSeconds = 15;
constexpr int kProbes = 3;
constexpr std::uint32_t kSilentMs = 45'000;

Error connection_lost(const std::string& why) {
  return {ErrorCode::kUnavailable, "the connection to the API server was lost: " + why};
}

}  // namespace

struct ServerConnection::Handles {
  explicit Handles(const Credentials& given) : credentials(given) {
    initialise_curl();
    multi = curl_multi_init();
    easy = curl_easy_init();
    set_server(easy, credentials, "/");
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // no wait for a resolver that hangs
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, failure);
    curl_multi_add_handle(multi, easy);
  }
  ~Handles() {
    curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  Credentials credentials;
  CURLM* multi = nullptr;
  CURL* easy = nullptr;
  curl_socket_t socket = CURL_SOCKET_BAD;
  char failure[CURL_ERROR_SIZE] = {};
};

ServerConnection::ServerConnection(const Credentials& credentials) : handles_(std::make_unique<Handles>(credentials)) {}
ServerConnection::~ServerConnection() = default;

Result<bool> ServerConnection::connect() {
  int active = 0;
  curl_multi_perform(handles_->multi, &active);
  int left = 0;
  const CURLMsg* message = curl_multi_info_read(handles_->multi, &left);
  if (message == nullptr || message->msg != CURLMSG_DONE) return false;
  if (message->data.result != CURLE_OK)
    return Error{ErrorCode::kUnavailable,
                 std::string("no connection to the API server: ") +
                     (handles_->failure[0] != '\0' ? handles_->failure : curl_easy_strerror(message->data.result))};
  curl_easy_getinfo(handles_->easy, CURLINFO_ACTIVESOCKET, &handles_->socket);
  if (handles_->socket == CURL_SOCKET_BAD) return connection_lost("it was closed at once");
  const auto set = [this](int option, int value) {
    ::setsockopt(handles_->socket, IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_NODELAY, 1);
  set(TCP_KEEPIDLE, kIdleSeconds);
  set(TCP_KEEPINTVL, kIdleSeconds);
  set(TCP_KEEPCNT, kProbes);
  return true;
}

bool ServerConnection::is_silent() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(handles_->socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_unacked > 0 &&
         info.tcpi_last_ack_recv > kSilentMs;
}

int ServerConnection::descriptor() const { return handles_->socket; }

Result<std::size_t> ServerConnection::send(std::string_view bytes) {
  std::size_t count = 0;
  const CURLcode code = curl_easy_send(handles_->easy, bytes.data(), bytes.size(), &count);
  if (code == CURLE_AGAIN) return std::size_t{0};
  if (code != CURLE_OK) return connection_lost(curl_easy_strerror(code));
  return count;
}

Result<std::size_t> ServerConnection::receive(char* to, std::size_t at_most) {
  std::size_t count = 0;
  const CURLcode code = curl_easy_recv(handles_->easy, to, at_most, &count);
  if (code == CURLE_AGAIN) return std::size_t{0};
  if (code != CURLE_OK) return connection_lost(curl_easy_strerror(code));
  if (count == 0) return connection_lost("the API server has closed it");
  return count;
}

std::string ServerConnection::request_begin(const std::string& path) const {
  const Credentials& who = handles_->credentials;
  const std::size_t scheme = who.server.find("://");
  const std::string place = scheme == std::string::npos ? who.server : who.server.substr(scheme + 3);
  const std::size_t slash = std::min(place.find('/'), place.size());  // a server may be below a path
  std::string begin = "GET " + place.substr(slash) + path + " HTTP/1.1\r\nHost: " + place.substr(0, slash) +
                      "\r\nUser-Agent: berth\r\n";
  const auto fresh = who.token_file.empty() ? Result<std::string>(who.token) : read_token(who.token_file);
  if (fresh && !fresh->empty()) begin += "Authorization: Bearer " + *fresh + "\r\n";
  return begin;
}

}  // namespace berth::backend
