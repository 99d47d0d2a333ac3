#pragma once
// For tests: a server on loopback that answers what it is told to.

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace berth::client {

// A server that says what it is told to: one canned answer per connection, then it closes. It keeps what it was asked.
class CannedServer {
 public:
  explicit CannedServer(std::vector<std::string> answers) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto length = static_cast<socklen_t>(sizeof address);
    REQUIRE(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) == 0);
    REQUIRE(::listen(listener_, 8) == 0);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) serve(answer);
    });
  }
  ~CannedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  CannedServer(const CannedServer&) = delete;
  CannedServer& operator=(const CannedServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve(const std::string& answer) {
    const int socket = ::accept(listener_, nullptr, nullptr);
    if (socket < 0) return;
    std::string request;
    char bytes[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
      if (count <= 0) break;
      request.append(bytes, static_cast<std::size_t>(count));
    }
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::shutdown(socket, SHUT_WR);
    while (::recv(socket, bytes, sizeof bytes, 0) > 0) {
    }
    ::close(socket);
  }

  int listener_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

inline std::string answer_with(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status +
         "\r\nX-Kind: test \r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace berth::client
