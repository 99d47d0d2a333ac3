#include "api/http/tls_credentials.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

#include "model/certificate_name.h"

namespace berth::http {
namespace {

constexpr std::size_t kMostFileBytes = 1 << 20;

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
using Certificate = std::unique_ptr<X509, FreeCertificate>;
using Bio = std::unique_ptr<BIO, FreeBio>;

Bio bio_of(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return reason == nullptr ? "it cannot be read" : reason;
}

Error file_error(const std::string& path, std::string_view doing) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return {code, path + ": " + std::string(doing) + ": " + std::strerror(errno)};
}

// Why this file may not hold the server's key; empty if it may.
std::string exposure_of_key(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "it is not a plain file";
  const bool by_root = status.st_uid == 0;
  if (!by_root && status.st_uid != ::geteuid())
    return "it belongs to another user; it has to be the server's own or root's";
  const mode_t open = status.st_mode & (by_root ? 0037U : 0077U);
  if (open == 0) return {};
  std::array<char, 8> mode;
  std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777U);
  return "its mode is " + std::string(mode.data()) +
         ", so others may read or write it; if nobody has read it: chmod 600 it, else make a new key";
}

Result<std::string> read_whole(const std::string& path, bool is_key) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return file_error(path, "open");
  struct stat status {};
  std::string text;
  Result<std::string> result = text;
  if (::fstat(descriptor, &status) != 0) {
    result = file_error(path, "stat");
  } else if (const std::string exposure = is_key ? exposure_of_key(status) : ""; !exposure.empty()) {
    result = Error{ErrorCode::kDenied, path + ": the key file is refused: " + exposure};
  } else {
    text.resize(kMostFileBytes + 1);
    const ssize_t count = ::read(descriptor, text.data(), text.size());
    if (count < 0) {
      result = file_error(path, "read");
    } else if (static_cast<std::size_t>(count) > kMostFileBytes) {
      result = Error{ErrorCode::kTooLarge, path + " is larger than 1 MiB"};
    } else {
      text.resize(static_cast<std::size_t>(count));
      result = std::move(text);
    }
  }
  ::close(descriptor);
  return result;
}

std::string text_of(const ASN1_STRING* string) {
  unsigned char* bytes = nullptr;
  const int size = ASN1_STRING_to_UTF8(&bytes, string);
  if (size < 0) return {};
  std::string text(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return text;
}

Timestamp time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {0};
  return {static_cast<std::int64_t>(::timegm(&parts)) * 1000};
}

// The first name that a client may know the server by, for messages.
std::string shown_name(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) return text_of(name->d.dNSName);
  }
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "no name";
  return text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

// There is nobody to ask for a passphrase.
int no_passphrase(char*, int, int, void*) { return 0; }

Result<void> use_certificates(SSL_CTX* context, const std::string& file, const std::string& text) {
  const Bio bio = bio_of(text);
  const Certificate own(PEM_read_bio_X509_AUX(bio.get(), nullptr, &no_passphrase, nullptr));
  if (own == nullptr)
    return Error{ErrorCode::kInvalid, file +
                                          ": there is no certificate in it (a text that begins with -----BEGIN "
                                          "CERTIFICATE-----): " +
                                          openssl_reason()};
  if (SSL_CTX_use_certificate(context, own.get()) != 1) return invalid(file + ": " + openssl_reason());
  while (X509* between = PEM_read_bio_X509(bio.get(), nullptr, &no_passphrase, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, between) == 1) continue;
    X509_free(between);
    return invalid(file + ": " + openssl_reason());
  }
  ERR_clear_error();  // the end of the file
  return {};
}

Result<void> use_key(SSL_CTX* context, const TlsFiles& files, const std::string& text) {
  const Bio bio = bio_of(text);
  const std::unique_ptr<EVP_PKEY, FreeKey> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &no_passphrase, nullptr));
  if (key == nullptr)
    return invalid(files.key +
                   ": there is no private key in it that can be read without a passphrase: " + openssl_reason());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    return invalid(files.key + " is not the key of the certificate in " + files.certificate +
                   "; give the two that were made together");
  }
  return {};
}

Result<void> ask_for_clients(SSL_CTX* context, const std::string& file, const std::string& text) {
  const Bio bio = bio_of(text);
  int count = 0;
  while (true) {
    const Certificate authority(PEM_read_bio_X509(bio.get(), nullptr, &no_passphrase, nullptr));
    if (authority == nullptr) break;
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1)
      return invalid(file + ": " + openssl_reason());
    ++count;
  }
  ERR_clear_error();
  if (count == 0) return invalid(file + ": there is no certificate of an authority in it");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);  // a client without a certificate may bring a token
  return {};
}

int choose_http_1_1(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, size, kOurs, sizeof kOurs - 1, offered, offered_size) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

bool harden(SSL_CTX* context) {
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_alpn_select_cb(context, &choose_http_1_1, nullptr);
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL") == 1;
}

}  // namespace

struct TlsCredentials::Contents {
  std::string certificate, key, client_ca;

  std::string digest() const {
    std::string digests;
    for (const std::string* text : {&certificate, &key, &client_ca}) {
      std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
      SHA256(reinterpret_cast<const unsigned char*>(text->data()), text->size(), digest.data());
      digests.append(digest.begin(), digest.end());
    }
    return digests;
  }
};

struct TlsCredentials::Pair {
  std::unique_ptr<SSL_CTX, FreeContext> context;
  std::string name;
  Timestamp ends;
};

Result<TlsCredentials::Contents> TlsCredentials::read_files(const TlsFiles& files) {
  auto certificate = read_whole(files.certificate, false);
  if (!certificate) return certificate.error();
  auto key = read_whole(files.key, true);
  if (!key) return key.error();
  Contents contents{std::move(*certificate), std::move(*key), {}};
  if (files.client_ca.empty()) return contents;
  auto authorities = read_whole(files.client_ca, false);
  if (!authorities) return authorities.error();
  contents.client_ca = std::move(*authorities);
  return contents;
}

Result<TlsCredentials::Pair> TlsCredentials::make_pair(const TlsFiles& files, const Contents& contents) {
  ERR_clear_error();
  Pair pair{std::unique_ptr<SSL_CTX, FreeContext>(SSL_CTX_new(TLS_server_method())), {}, {}};
  SSL_CTX* context = pair.context.get();
  if (context == nullptr || !harden(context)) return Error{ErrorCode::kIo, "TLS: " + openssl_reason()};
  if (auto ok = use_certificates(context, files.certificate, contents.certificate); !ok) return ok.error();
  if (auto ok = use_key(context, files, contents.key); !ok) return ok.error();
  if (!files.client_ca.empty()) {
    if (auto ok = ask_for_clients(context, files.client_ca, contents.client_ca); !ok) return ok.error();
  }
  X509* own = SSL_CTX_get0_certificate(context);
  pair.name = shown_name(own);
  pair.ends = time_of(X509_get0_notAfter(own));
  return pair;
}

Result<std::unique_ptr<TlsCredentials>> TlsCredentials::load(TlsFiles files) {
  std::unique_ptr<TlsCredentials> loaded(new TlsCredentials(std::move(files)));
  auto contents = read_files(loaded->files_);
  if (!contents) return contents.error();
  auto pair = make_pair(loaded->files_, *contents);
  if (!pair) return pair.error();
  loaded->seen_ = contents->digest();
  loaded->current_ = std::make_shared<const Pair>(std::move(*pair));
  return loaded;
}

Result<bool> TlsCredentials::reload() {
  const auto contents = read_files(files_);
  std::string now = contents ? contents->digest() : contents.error().message;
  if (now == seen_) return false;
  seen_ = std::move(now);
  if (!contents) return contents.error();
  auto pair = make_pair(files_, *contents);
  if (!pair) return pair.error();
  if (pair->ends.ms < static_cast<std::int64_t>(::time(nullptr)) * 1000)
    return invalid(files_.certificate + ": this certificate has expired at " + to_iso8601(pair->ends));
  auto fresh = std::make_shared<const Pair>(std::move(*pair));
  const std::lock_guard lock(mutex_);
  current_ = std::move(fresh);
  return true;
}

ssl_st* TlsCredentials::new_connection() const {
  const std::lock_guard lock(mutex_);
  return SSL_new(current_->context.get());  // it holds the context for as long as it lives
}

std::string TlsCredentials::describe() const {
  const std::lock_guard lock(mutex_);
  return files_.certificate + " (" + current_->name + ", until " + to_iso8601(current_->ends) + ")";
}

Timestamp TlsCredentials::ends() const {
  const std::lock_guard lock(mutex_);
  return current_->ends;
}

namespace {

// The one URI among the names of the certificate if it is a SPIFFE id. SPIFFE allows no second URI beside it.
Result<std::string> spiffe_id_of(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string id;
  int uris = 0;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    ++uris;
    std::string uri = text_of(name->d.uniformResourceIdentifier);
    if (uri.starts_with(kSpiffeScheme)) id = std::move(uri);
  }
  if (!id.empty() && uris > 1) return invalid("it has a SPIFFE id and another URI; a SPIFFE id has to be the only one");
  return id;
}

Result<std::string> common_name_of(X509* certificate) {
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return invalid("it has neither a SPIFFE id nor a common name");
  if (X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return invalid("it has more than one common name");
  std::string name = text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (name.starts_with(kSpiffeScheme)) return invalid("its common name looks like a SPIFFE id; that has to be a URI");
  return name;
}

}  // namespace

Result<CertificateName> name_of_client(const ssl_st* connection) {
  const Certificate certificate(SSL_get1_peer_certificate(connection));
  if (certificate == nullptr) return invalid("there is none");
  auto name = spiffe_id_of(certificate.get());
  if (name && name->empty()) name = common_name_of(certificate.get());
  if (!name) return name.error();
  if (!well_formed_certificate_name(*name))
    return invalid("its name cannot be a subject: " + std::string(kCertificateNameRule));
  return CertificateName{std::move(*name), time_of(X509_get0_notAfter(certificate.get()))};
}

}  // namespace berth::http
