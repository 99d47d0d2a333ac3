#pragma once
// Reads the files of TLS again when they have changed, and says so in the server's log. A new pair that cannot be used
// is told, and the old one stays in force.

#include <condition_variable>
#include <mutex>
#include <thread>

#include "api/http/tls_credentials.h"

namespace berth::daemon {

class TlsWatch {
 public:
  // `credentials` have to outlive it.
  explicit TlsWatch(http::TlsCredentials& credentials);
  ~TlsWatch();
  TlsWatch(const TlsWatch&) = delete;
  TlsWatch& operator=(const TlsWatch&) = delete;

 private:
  void run();
  void look();

  http::TlsCredentials& credentials_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  bool warned_ = false;  // that the certificate in force ends soon
  std::thread thread_;
};

}  // namespace berth::daemon
