#include "identity/own_keys.h"

#include <cjose/cjose.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "identity/job_claims.h"
#include "identity/json_member.h"
#include "model/strict_json.h"

namespace berth::identity {
namespace {

namespace json = boost::json;

constexpr std::size_t kRsaBits = 2048;
constexpr std::size_t kMostOwnKeys = 20;
constexpr std::size_t kMostFileBytes = 256 * 1024;
// How long a key is public after the last token that it can have signed has ended: clocks differ.
constexpr std::int64_t kSlackMs = 5 * 60'000;

struct FreeOwnKey {
  void operator()(cjose_jwk_t* key) const {
    if (key != nullptr) cjose_jwk_release(key);
  }
};
struct FreeSignature {
  void operator()(cjose_jws_t* jws) const { cjose_jws_release(jws); }
};
struct FreeHeader {
  void operator()(cjose_header_t* header) const { cjose_header_release(header); }
};

Error private_file_error(const std::string& path, const char* doing) {
  return {ErrorCode::kIo, path + ": " + doing + ": " + std::strerror(errno)};
}

Error no_signing_file(const std::string& path, const std::string& why) {
  return {ErrorCode::kCorrupt, path + ": " + why +
                                   ". Restore it, or remove it: then new keys are made, jobs that run lose their "
                                   "tokens, and what was signed is good for nobody any more"};
}

// An open file descriptor, closed on every path out.
class PrivateFile {
 public:
  explicit PrivateFile(int descriptor) : descriptor_(descriptor) {}
  ~PrivateFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

Result<void> check_private(const std::string& path, int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return private_file_error(path, "stat");
  const bool sound = S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 077U) == 0;
  if (sound) return {};
  return Error{ErrorCode::kDenied,
               path +
                   ": the file of the signing keys is refused: it has to be a plain file of the server's own user "
                   "that nobody else may read or write. If the keys may be known, remove it, and new ones are made; "
                   "else chmod 600"};
}

// Returns the text; kNotFound if there is no file.
Result<std::string> read_private(const std::string& path) {
  const PrivateFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0 && errno == ENOENT) return not_found(path);
  if (file.get() < 0) return private_file_error(path, "open");
  if (auto ok = check_private(path, file.get()); !ok) return ok.error();
  std::string text(kMostFileBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0) return private_file_error(path, "read");
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

// Written whole under another name, made durable, then renamed into place.
Result<void> write_private(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  ::unlink(draft.c_str());
  const PrivateFile file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return private_file_error(draft, "create");
  const bool written =
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(file.get()) == 0;
  if (!written || std::rename(draft.c_str(), path.c_str()) != 0) {
    const Error failed = private_file_error(path, "write");
    ::unlink(draft.c_str());
    return failed;
  }
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  const PrivateFile folder(::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return private_file_error(path, "sync the directory");
  return {};
}

}  // namespace

struct OwnKeys::Key {
  std::string id;
  Timestamp made;
  std::shared_ptr<cjose_jwk_t> jwk;

  json::object as_json(bool with_private) const {
    cjose_err error;
    char* const text = cjose_jwk_to_json(jwk.get(), with_private, &error);
    if (text == nullptr) return {};
    json::object members = json::parse(text).as_object();
    OPENSSL_cleanse(text, std::strlen(text));
    cjose_get_dealloc()(text);
    members["kid"] = id;
    return members;
  }

  static Result<Key> make(Timestamp now) {
    auto id = random_hex();
    if (!id) return id.error();
    const unsigned char exponent[] = {1, 0, 1};
    cjose_err error;
    Key key{id->substr(0, 16), now, nullptr};
    cjose_jwk_t* const jwk = cjose_jwk_create_RSA_random(kRsaBits, exponent, sizeof exponent, &error);
    key.jwk = {jwk, FreeOwnKey()};
    if (jwk == nullptr) return Error{ErrorCode::kIo, "a signing key cannot be made"};
    return key;
  }
};

OwnKeys::OwnKeys() = default;
OwnKeys::~OwnKeys() { OPENSSL_cleanse(job_secret_.data(), job_secret_.size()); }
OwnKeys::OwnKeys(OwnKeys&&) noexcept = default;
OwnKeys& OwnKeys::operator=(OwnKeys&&) noexcept = default;

Result<std::string> random_hex() {
  std::array<unsigned char, 32> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    return Error{ErrorCode::kIo, "the system gave no random bytes"};
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
  }
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return text;
}

Result<OwnKeys> OwnKeys::load_or_create(const std::string& path, Timestamp now) {
  OwnKeys keys;
  keys.path_ = path;
  auto text = read_private(path);
  if (text) {
    auto loaded = keys.read(*text);
    OPENSSL_cleanse(text->data(), text->size());
    if (!loaded) return loaded.error();
    return keys;
  }
  if (text.error().code != ErrorCode::kNotFound) return text.error();
  auto secret = random_hex();
  if (!secret) return secret.error();
  keys.job_secret_ = std::move(*secret);
  if (auto made = keys.rotate(now, false); !made) return made.error();
  return keys;
}

Result<void> OwnKeys::check(const std::string& path) {
  OwnKeys keys;
  keys.path_ = path;
  auto text = read_private(path);
  if (!text) return text.error().code == ErrorCode::kNotFound ? Result<void>() : text.error();
  auto loaded = keys.read(*text);
  OPENSSL_cleanse(text->data(), text->size());
  return loaded;
}

Result<void> OwnKeys::read(const std::string& text) {
  const auto value = decode_json(text, {.bytes = kMostFileBytes, .depth = 8});
  if (!value) return no_signing_file(path_, "this is no file of signing keys: " + value.error().message);
  const json::object* file = value->if_object();
  const json::value* listed = file == nullptr ? nullptr : file->if_contains("keys");
  const json::array* keys = listed == nullptr ? nullptr : listed->if_array();
  if (keys == nullptr || keys->empty() || keys->size() > kMostOwnKeys)
    return no_signing_file(path_, "this is no file of signing keys");
  job_secret_ = text_in(*file, "job_secret");
  if (job_secret_.size() != 64) return no_signing_file(path_, "job_secret is not 64 hexadecimal digits");
  for (const json::value& one : *keys) {
    const json::object* members = one.if_object();
    const auto made = from_iso8601(members == nullptr ? "" : text_in(*members, "made"));
    if (!made) return no_signing_file(path_, "a key does not say when it was made");
    std::string jwk = json::serialize(*members);
    cjose_err error;
    Key key{text_in(*members, "kid"), *made, nullptr};
    key.jwk = {cjose_jwk_import(jwk.data(), jwk.size(), &error), FreeOwnKey()};
    OPENSSL_cleanse(jwk.data(), jwk.size());
    if (key.jwk == nullptr || key.id.empty() || cjose_jwk_get_kty(key.jwk.get(), &error) != CJOSE_JWK_KTY_RSA)
      return no_signing_file(path_, "a key is not an RSA key with a name (`kid`)");
    keys_.push_back(std::move(key));
  }
  return {};
}

std::string OwnKeys::text() const {
  json::array keys;
  for (const Key& key : keys_) {
    json::object members = key.as_json(true);
    members["made"] = to_iso8601(key.made);
    keys.emplace_back(std::move(members));
  }
  return json::serialize(json::object{{"job_secret", job_secret_}, {"keys", std::move(keys)}}) + "\n";
}

// The newest one is. An earlier one signed its last token when the next key was made.
bool OwnKeys::is_published(std::size_t index, Timestamp now) const {
  return index == 0 || now < keys_[index - 1].made + kJobTokenLifetimeMs + kSlackMs;
}

std::string OwnKeys::published(Timestamp now) const {
  json::array keys;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (!is_published(i, now)) continue;
    const json::object members = keys_[i].as_json(false);
    keys.emplace_back(json::object{{"kty", "RSA"},
                                   {"kid", keys_[i].id},
                                   {"use", "sig"},
                                   {"alg", "RS256"},
                                   {"n", text_in(members, "n")},
                                   {"e", text_in(members, "e")}});
  }
  return json::serialize(json::object{{"keys", std::move(keys)}});
}

Result<std::string> OwnKeys::rotate(Timestamp now, bool withdraw) {
  auto made = Key::make(now);
  if (!made) return made.error();
  const std::vector<Key> before = std::exchange(keys_, {std::move(*made)});
  Timestamp last_use = now;  // of the key that is looked at
  for (const Key& key : before) {
    if (!withdraw && now < last_use + kJobTokenLifetimeMs + kSlackMs) keys_.push_back(key);
    last_use = key.made;
  }
  if (keys_.size() > kMostOwnKeys) {
    keys_ = before;
    return conflict("there are " + std::to_string(kMostOwnKeys) +
                    " keys whose tokens have not ended yet; wait some minutes, or withdraw them (--withdraw)");
  }
  std::string file = text();
  const auto written = write_private(path_, file);
  OPENSSL_cleanse(file.data(), file.size());
  if (!written) {
    keys_ = before;
    return written.error();
  }
  return keys_.front().id;
}

Result<std::string> OwnKeys::sign(const std::string& claims) const {
  const Key& key = keys_.front();
  cjose_err error;
  const std::unique_ptr<cjose_header_t, FreeHeader> header(cjose_header_new(&error));
  const bool stated = header != nullptr && cjose_header_set(header.get(), CJOSE_HDR_ALG, "RS256", &error) &&
                      cjose_header_set(header.get(), CJOSE_HDR_KID, key.id.c_str(), &error) &&
                      cjose_header_set(header.get(), "typ", "JWT", &error);
  if (!stated) return Error{ErrorCode::kIo, "the identity cannot be signed: " + std::string(error.message)};
  const std::unique_ptr<cjose_jws_t, FreeSignature> jws(cjose_jws_sign(
      key.jwk.get(), header.get(), reinterpret_cast<const std::uint8_t*>(claims.data()), claims.size(), &error));
  const char* token = nullptr;
  if (jws == nullptr || !cjose_jws_export(jws.get(), &token, &error))
    return Error{ErrorCode::kIo, "the identity cannot be signed: " + std::string(error.message)};
  return std::string(token);
}

}  // namespace berth::identity
