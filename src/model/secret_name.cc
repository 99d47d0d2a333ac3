#include "model/secret_name.h"

#include <algorithm>
#include <string>

namespace berth {
namespace {

constexpr std::string_view kWords[] = {"_PASSWORD_", "_PASSWD_", "_PASSPHRASE_", "_SECRET_", "_TOKEN_", "_API_KEY_",
                                       "_APIKEY_", "_ACCESS_KEY_", "_PRIVATE_KEY_",
                                       // The names that PostgreSQL, MySQL, GitHub and OpenAI chose have none of these.
                                       "_PGPASSWORD_", "_MYSQL_PWD_", "_GITHUB_PAT_", "_OPENAI_KEY_"};

// What a token of a service begins with, and how many letters and digits follow at least.
struct Form {
  std::string_view beginning;
  std::size_t rest;
};
constexpr Form kForms[] = {
    {"AKIA", 16}, {"ASIA", 16},  {"AIza", 30},        {"ghp_", 20},   {"gho_", 20}, {"ghu_", 20},
    {"ghs_", 20}, {"ghr_", 20},  {"github_pat_", 20}, {"glpat-", 16}, {"hf_", 20},  {"nvapi-", 20},
    {"sk-", 20},  {"xoxb-", 10}, {"xoxp-", 10},       {"xoxa-", 10},
};

bool is_of_token(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

bool has_form(std::string_view value, const Form& form) {
  if (!value.starts_with(form.beginning)) return false;
  const std::string_view rest = value.substr(form.beginning.size());
  return rest.size() >= form.rest && std::all_of(rest.begin(), rest.begin() + std::ptrdiff_t(form.rest), is_of_token);
}

bool is_private_key(std::string_view value) {
  const std::size_t end_of_line = value.find('\n');
  return value.starts_with("-----BEGIN ") && value.substr(0, end_of_line).find("PRIVATE KEY") != std::string_view::npos;
}

// Returns true for postgres://ada:pass@host/, and not for http://host/a:b@c or http://$(USER):$(PASSWORD)@host.
bool has_password(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos || scheme > 20) return false;
  const std::string_view rest = url.substr(scheme + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?# "));
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return false;
  const std::size_t colon = authority.find(':');
  if (colon == std::string_view::npos || colon + 1 >= at) return false;
  const std::string_view password = authority.substr(colon + 1, at - colon - 1);
  return !(password.starts_with("$(") && password.ends_with(')'));
}

bool is_reference(std::string_view value) {
  return value.size() > 3 && value.starts_with("$(") && value.find(')') == value.size() - 1;
}

bool names_a_file(std::string_view variable, std::string_view value) {
  std::string name(variable);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return value.starts_with('/') && (name.ends_with("_FILE") || name.ends_with("_PATH") || name.ends_with("_DIR"));
}

}  // namespace

bool looks_like_a_secret(std::string_view variable) {
  std::string words = "_";
  for (const char c : variable) words += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  words += '_';
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return words.find(word) != std::string::npos; });
}

bool is_known_form_of_secret(std::string_view value) {
  const std::size_t begin = value.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  value.remove_prefix(begin);
  return is_private_key(value) || has_password(value) ||
         std::any_of(std::begin(kForms), std::end(kForms), [&](const Form& form) { return has_form(value, form); });
}

std::string pattern_of_secret_names() {
  std::string words;
  for (const std::string_view word : kWords) words += (words.empty() ? "" : "|") + std::string(word);
  return words;
}

std::string pattern_of_secret_values() {
  std::string forms;
  for (const Form& form : kForms)
    forms += std::string(form.beginning) + "[A-Za-z0-9_-]{" + std::to_string(form.rest) + "}|";
  return "^[ \\t\\r\\n]*(" + forms + "-----BEGIN [^\\n]*PRIVATE KEY|[^:]{0,20}://[^:/?# ]*:[^$/?# @][^/?# ]*@)";
}

bool holds_a_secret(std::string_view variable, std::string_view value) {
  if (value.empty()) return false;
  if (is_known_form_of_secret(value)) return true;
  return looks_like_a_secret(variable) && !is_reference(value) && !names_a_file(variable, value);
}

}  // namespace berth
