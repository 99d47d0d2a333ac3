#include "api/http/authenticator.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/http/screen.h"

namespace berth::http {
namespace {

constexpr std::size_t kTokenDigits = 64;  // 256 bits in hexadecimal

// Closes on every path out; the files here are small and short-lived.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

Error io_error(const std::string& path, std::string_view doing) {
  return {ErrorCode::kIo, path + ": " + std::string(doing) + ": " + std::strerror(errno)};
}

bool is_token_text(std::string_view text) {
  return text.size() == kTokenDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

Result<std::string> random_token() {
  std::array<unsigned char, kTokenDigits / 2> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return Error{ErrorCode::kIo, "the system gave no random bytes for a token"};
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return token;
}

namespace {

// Why this file may not hold a secret; empty if it may.
std::string exposure_of(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "it is not a plain file; remove it, and a new token is made";
  if (status.st_uid != ::geteuid()) return "it belongs to another user; remove it, and a new token is made";
  if ((status.st_mode & 077) != 0) {
    return "others may read or write it, so the token may be known; remove it, and a new token is made (or, if you are "
           "sure that nobody read it: chmod 600)";
  }
  return {};
}

Result<std::string> read_token(const std::string& path, const File& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return io_error(path, "stat");
  if (const std::string exposure = exposure_of(status); !exposure.empty()) {
    return Error{ErrorCode::kDenied, path + ": the token file is refused: " + exposure};
  }
  std::array<char, kTokenDigits + 2> bytes;
  const ssize_t count = ::read(file.get(), bytes.data(), bytes.size());
  if (count < 0) return io_error(path, "read");
  std::string_view text(bytes.data(), static_cast<std::size_t>(count));
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (!is_token_text(text)) {
    return Error{ErrorCode::kCorrupt,
                 path + ": this is not a token (64 hex digits); remove the file, and a new token is made"};
  }
  return std::string(text);
}

// Written whole under another name and then linked, so that nobody ever sees half a token under `path`, and an existing
// one is never replaced.
Result<void> create_token_file(const std::string& path, const std::string& token) {
  const std::string draft = path + "." + token.substr(0, 8) + ".new";
  const File file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) return io_error(draft, "create");
  const std::string line = token + "\n";
  const bool written =
      ::write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) && ::fsync(file.get()) == 0;
  const bool linked = written && (::link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int failure = errno;
  ::unlink(draft.c_str());
  errno = failure;
  if (!linked) return io_error(path, "write the new token");
  return {};
}

}  // namespace

TokenDigest digest_of(std::string_view token) {
  TokenDigest digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

std::string text_of(const TokenDigest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

Result<void> Authenticator::add(std::string_view token, policy::Subject subject) {
  if (token.size() < 16) return invalid("a token of " + subject.name + " is shorter than 16 characters");
  if (subject.name.empty()) return invalid("a token names no subject");
  entries_.push_back({digest_of(token), std::move(subject)});
  return {};
}

std::optional<policy::Subject> Authenticator::subject_of(std::string_view authorization) const {
  return bearer_of(authorization).subject;
}

Identification Authenticator::bearer_of(std::string_view authorization) const {
  const std::size_t space = authorization.find(' ');
  if (space == std::string_view::npos || !equals_ignoring_case(authorization.substr(0, space), "bearer")) return {};
  const std::string_view token = trim_whitespace(authorization.substr(space));
  const auto digest = digest_of(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {  // all of them, whatever matches
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  if (found != nullptr) return {.subject = found->subject};
  if (auto subject = lookup_ ? lookup_(digest) : std::nullopt) return {.subject = std::move(subject)};
  if (auto subject = job_lookup_ ? job_lookup_(token) : std::nullopt) return {.subject = std::move(subject)};
  const bool is_signed = std::count(token.begin(), token.end(), '.') == 2;
  return verify_ && is_signed ? verify_(token, digest) : Identification();
}

Identification Authenticator::identify(std::string_view authorization, std::string_view cookies,
                                       const Peer& peer) const {
  if (authorization.empty() && !cookies.empty() && session_lookup_) {
    Identification found = session_lookup_(cookies);
    if (found.subject || found.until_known) return found;
  }
  if (authorization.empty() && !peer.subject.empty())
    return {.subject = peer_lookup_ ? peer_lookup_(peer) : std::nullopt};
  Identification found = bearer_of(authorization);
  if (found.subject && found.subject->proof.empty()) found.subject->proof = kByToken;
  return found;
}

Result<std::string> load_or_create_token(const std::string& path) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.is_open()) return read_token(path, file);
    if (errno == ELOOP) return Error{ErrorCode::kDenied, path + ": the token file is refused: it is a symbolic link"};
    if (errno != ENOENT) return io_error(path, "open");
    const auto token = random_token();
    if (!token) return token;
    if (auto created = create_token_file(path, *token); !created) return created.error();
  }
  return Error{ErrorCode::kIo, path + ": the token file vanishes as soon as it is made"};
}

}  // namespace berth::http
