#include "identity/job_token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <charconv>

namespace berth::identity {
namespace {

constexpr std::string_view kOfJob = "berth-job-";
constexpr std::string_view kOfSaves = "berth-save-";
constexpr std::size_t kLongest = 128;

// Reads the number at the beginning, in its only form, and the hyphen after it. Takes both off the text.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto size = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || size == text.size() || text[size] != '-' ||
      std::to_string(number) != text.substr(0, size))
    return std::nullopt;
  text.remove_prefix(size + 1);
  return number;
}

std::string token_of(std::string_view prefix, const std::string& secret, const JobAttempt& attempt) {
  std::string token =
      std::string(prefix) + std::to_string(attempt.job.value()) + "-" + std::to_string(attempt.attempt) + "-";
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data(), &size);
  for (const unsigned char byte : digest) {
    token += "0123456789abcdef"[byte >> 4U];
    token += "0123456789abcdef"[byte & 15U];
  }
  return token;
}

std::optional<JobAttempt> read(std::string_view prefix, const std::string& secret, std::string_view token) {
  if (!token.starts_with(prefix) || token.size() > kLongest) return std::nullopt;
  std::string_view rest = token.substr(prefix.size());
  const auto job = take_number<std::uint64_t>(rest);
  const auto number = job ? take_number<std::uint32_t>(rest) : std::nullopt;
  if (!number) return std::nullopt;
  const JobAttempt attempt{JobId(*job), *number};
  const std::string right = token_of(prefix, secret, attempt);
  if (right.size() != token.size() || CRYPTO_memcmp(right.data(), token.data(), token.size()) != 0) return std::nullopt;
  return attempt;
}

}  // namespace

std::string job_token(const std::string& secret, const JobAttempt& attempt) {
  return token_of(kOfJob, secret, attempt);
}
std::string save_token(const std::string& secret, const JobAttempt& attempt) {
  return token_of(kOfSaves, secret, attempt);
}
std::optional<JobAttempt> read_job_token(const std::string& secret, std::string_view token) {
  return read(kOfJob, secret, token);
}
std::optional<JobAttempt> read_save_token(const std::string& secret, std::string_view token) {
  return read(kOfSaves, secret, token);
}

}  // namespace berth::identity
