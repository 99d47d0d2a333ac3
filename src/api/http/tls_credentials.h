#pragma once
// The server's side of TLS 1.2 and 1.3: certificate, key and, for client certificates, the authorities that may sign
// them. All are read from files, and read again when the content of a file has changed. Sessions are not resumed, so a
// client certificate is checked for every connection.

#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "base/timestamp.h"

struct ssl_ctx_st;
struct ssl_st;

namespace berth::http {

struct TlsFiles {
  std::string certificate;     // PEM: the server's certificate, then those between it and the authority
  std::string key;             // PEM, without a passphrase
  std::string client_ca = {};  // PEM: authorities of client certificates; empty: none are asked for
};

class TlsCredentials {
 public:
  // Reads the files. An error says which file, what is wrong and what would be right. The key file has to belong to the
  // server's user or root, and nobody else may write it; of others, only the group of a file of root's may read it.
  static Result<std::unique_ptr<TlsCredentials>> load(TlsFiles files);

  // Returns true if the files have changed and are in force now. With an error the old ones stay in force; the same
  // content is told of once.
  Result<bool> reload();

  // For any thread. A new connection; null where memory has run out.
  ssl_st* new_connection() const;
  // "/etc/berth/cert.pem (berth.corp.example, until 2027-02-01)".
  std::string describe() const;
  Timestamp ends() const;  // of the certificate

 private:
  struct Pair;
  struct Contents;
  explicit TlsCredentials(TlsFiles files) : files_(std::move(files)) {}
  static Result<Contents> read_files(const TlsFiles& files);
  static Result<Pair> make_pair(const TlsFiles& files, const Contents& contents);

  TlsFiles files_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Pair> current_;
  std::string seen_;  // a digest of the contents that were last tried, or the error of reading them
};

// The name of a client certificate: its SPIFFE id (the one URI among its names, spiffe://...), else the common name of
// its subject. An error says why it has none that could be a subject of a role.
struct CertificateName {
  std::string name;
  Timestamp ends;
};
Result<CertificateName> name_of_client(const ssl_st* connection);

}  // namespace berth::http
