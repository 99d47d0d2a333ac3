#pragma once
// Names of variables by which secrets are known. What has such a name is kept out of documents that the log would
// store.

#include <string>
#include <string_view>

namespace berth {

// Returns true for HF_TOKEN and wandb_api_key, and not for TOKENIZERS: by whole words between underscores. The names
// that PostgreSQL, MySQL, GitHub and OpenAI chose have none of these words. GOOGLE_APPLICATION_CREDENTIALS is a path.
inline bool looks_like_a_secret(std::string_view variable) {
  std::string words = "_";
  for (const char c : variable) words += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  words += '_';
  if (words == "_GOOGLE_APPLICATION_CREDENTIALS_") return false;
  for (const std::string_view word :
       {"_PASSWORD_", "_PASSWD_", "_PASSPHRASE_", "_SECRET_", "_TOKEN_", "_API_KEY_", "_PRIVATE_KEY_", "_CREDENTIALS_",
        "_PGPASSWORD_", "_MYSQL_PWD_", "_GITHUB_PAT_", "_OPENAI_KEY_"}) {
    if (words.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace berth
