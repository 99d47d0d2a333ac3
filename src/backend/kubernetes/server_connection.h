#pragma once
// One connection to the API server for a protocol that is none of requests: an upgraded one. libcurl makes it, with TLS
// as for calls; its bytes are the caller's. Nothing blocks. One thread.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "backend/kubernetes/credentials.h"
#include "base/result.h"

namespace berth::backend {

class ServerConnection {
 public:
  explicit ServerConnection(const Credentials& credentials);
  ~ServerConnection();
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  // Goes on with the connecting; returns true when it is done. Until then it is called every few milliseconds. Error
  // kUnavailable: it has failed.
  Result<bool> connect();

  // The rest requires that it is connected.
  int descriptor() const;
  // Return how many bytes; 0: not now; an error kUnavailable: the connection is over. After a 0, `send` is called with
  // the same bytes at the same place: TLS has begun to write them.
  Result<std::size_t> send(std::string_view bytes);
  Result<std::size_t> receive(char* to, std::size_t at_most);

  // Returns true if bytes were sent and it has acknowledged nothing for the better part of a minute. One that has no
  // room for more acknowledges.
  bool is_silent() const;

  // Returns the beginning of a GET: its first line, Host, and Authorization where there is a token.
  std::string request_begin(const std::string& path) const;

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

}  // namespace berth::backend
