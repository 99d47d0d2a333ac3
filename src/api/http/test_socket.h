#pragma once
// For tests: a blocking loopback socket that sends bytes as they are and reads answers as a second, independent reader
// of HTTP framing would.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::http {

struct Answer {
  int status = 0;  // 0 if no whole answer came
  std::string head;
  std::string body;

  bool has_header(std::string_view line) const { return head.find(std::string(line)) != std::string::npos; }
};

class TestSocket {
 public:
  explicit TestSocket(std::uint16_t port, int receive_buffer_bytes = 0)
      : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer_bytes > 0) {
      ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
    }
    const int yes = 1;
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  TestSocket(TestSocket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        connected_(other.connected_),
        received_(std::move(other.received_)) {}
  TestSocket& operator=(TestSocket&&) = delete;
  ~TestSocket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  bool connected() const { return connected_; }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  void end_sending() { ::shutdown(descriptor_, SHUT_WR); }

  // Waits for something to read and appends it; false at the end of the stream, on a reset, or after `wait_ms`.
  bool receive(int wait_ms = 5000) {
    pollfd poll{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, wait_ms) <= 0) return false;
    char bytes[16384];
    const ssize_t count = ::recv(descriptor_, bytes, sizeof bytes, 0);
    if (count <= 0) {
      ended_ = true;
      return false;
    }
    received_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  bool receive_until(std::string_view text) {
    while (received_.find(text) == std::string::npos) {
      if (!receive()) return false;
    }
    return true;
  }

  // True if the server closes without another byte.
  bool is_closed_by_server() { return received_.empty() && !receive() && ended_; }

  // The next answer, framed by its Content-Length.
  Answer answer(bool head_only = false) {
    if (!receive_until("\r\n\r\n")) return {};
    const std::size_t head_size = received_.find("\r\n\r\n") + 4;
    Answer answer;
    answer.head = received_.substr(0, head_size);
    const std::size_t length_at = answer.head.find("Content-Length: ");
    const std::size_t length = length_at == std::string::npos || head_only
                                   ? 0
                                   : std::strtoull(answer.head.c_str() + length_at + 16, nullptr, 10);
    while (received_.size() < head_size + length) {
      if (!receive()) return {};
    }
    answer.body = received_.substr(head_size, length);
    answer.status = std::atoi(answer.head.c_str() + 9);
    received_.erase(0, head_size + length);
    return answer;
  }

  const std::string& received() const { return received_; }

 private:
  int descriptor_;
  bool connected_ = false;
  bool ended_ = false;
  std::string received_;
};

}  // namespace berth::http
