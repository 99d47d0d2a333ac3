#pragma once
// Names and values of variables by which secrets are known. What looks like one is kept out of documents that the log
// would store.

#include <string>
#include <string_view>

namespace berth {

// Returns true for HF_TOKEN and wandb_api_key, and not for TOKENIZERS: by whole words between underscores.
bool looks_like_a_secret(std::string_view variable);

// Returns true if the value begins as tokens and keys of well known services do, or is a private key, or a URL with a
// password in it.
bool is_known_form_of_secret(std::string_view value);

// Returns true if the variable holds a secret, by its name or by its value. An empty value holds none, nor does a
// reference to another variable, $(NAME), nor the path of a file: a name that ends in _FILE, _PATH or _DIR, and a value
// that begins with a slash.
bool holds_a_secret(std::string_view variable, std::string_view value);

// Regular expressions (RE2) of the same: of a name in capitals with an underscore before and behind it, and of a value.
// The second knows no difference between a password that begins with a dollar sign and a reference.
std::string pattern_of_secret_names();
std::string pattern_of_secret_values();

}  // namespace berth
