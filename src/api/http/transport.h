#pragma once
// The bytes of one connection, whatever carries them: a socket as it is, or TLS over it. Rules:
//   1. All happens on the I/O thread of the io_context. A handler is never called from within the call that it was
//      given to, and it keeps the transport alive.
//   2. There is at most one read, one write and one wait at a time. cancel() and close() end them with an error; then
//      the bytes that they were given are not touched any more.
//   3. Nothing blocks.

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>

#include "api/http/peer.h"
#include "api/http/tls_credentials.h"

namespace boost::asio {
class io_context;
}

namespace berth::http {

enum class Handshake : std::uint8_t {
  kDone,
  kNotTls,  // the client sends letters: HTTP without TLS. From now on the transport carries plain bytes.
  kFailed,
};

class Transport {
 public:
  using ErrorCode = boost::system::error_code;
  using Done = std::function<void(ErrorCode, std::size_t)>;

  virtual ~Transport() = default;

  // Only of TLS, before anything else.
  virtual void handshake(std::function<void(Handshake)> done) = 0;
  // The peer by its certificate, after the handshake; nobody where there is none.
  virtual Peer peer() const = 0;

  virtual void read(char* to, std::size_t at_most, Done done) = 0;        // at least one byte, or an error
  virtual void write(const char* from, std::size_t size, Done done) = 0;  // some of them
  virtual void await_input(std::function<void(ErrorCode)> done) = 0;
  // What has come already; would_block if nothing has.
  virtual std::size_t take_input(char* to, std::size_t at_most, ErrorCode& failure) = 0;
  // After this, what is read is raw: it is only read to be thrown away.
  virtual void end_sending(ErrorCode& failure) = 0;
  virtual void cancel() = 0;
  virtual void close() = 0;
};

// Takes over the connected, non-blocking socket; null if it is no socket. `tls`: null for plain bytes.
std::unique_ptr<Transport> make_transport(boost::asio::io_context& io, int socket, int family,
                                          const TlsCredentials* tls);

}  // namespace berth::http
