#pragma once
// Names of variables by which secrets are known. What has such a name is kept out of documents that the log would
// store.

#include <string>
#include <string_view>

namespace berth {

// Returns true for HF_TOKEN and wandb_api_key, and not for TOKENIZERS: by whole words between underscores.
inline bool looks_like_a_secret(std::string_view variable) {
  std::string words = "_";
  for (const char c : variable) words += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  words += '_';
  for (const std::string_view word : {"_PASSWORD_", "_PASSWD_", "_SECRET_", "_TOKEN_", "_API_KEY_", "_PRIVATE_KEY_"}) {
    if (words.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace berth
