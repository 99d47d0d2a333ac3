#include "cli/login/form_post.h"

#include <curl/curl.h>

#include <memory>

#include "model/issuer_url.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLargestDocument = 1024 * 1024;

struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

std::size_t receive_document(char* bytes, std::size_t size, std::size_t count, void* into) {
  auto& body = static_cast<ProviderReply*>(into)->body;
  if (body.size() + size * count > kLargestDocument) return 0;
  body.append(bytes, size * count);
  return size * count;
}

// `form` null: GET.
Result<ProviderReply> ask_provider(const std::string& url, const std::string* form, const ProviderLine& line) {
  if (const std::string flaw = flaw_of_issuer_url(url); !flaw.empty()) return invalid(url + ": " + flaw);
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, FreeHandle> handle(initialised == CURLE_OK ? curl_easy_init() : nullptr);
  if (handle == nullptr) return Error{ErrorCode::kIo, "libcurl cannot be used"};
  CURL* const curl = handle.get();
  ProviderReply reply;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, url.starts_with("https:") ? "https" : "http");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 10'000L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 30'000L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &receive_document);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply);
  if (!line.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, line.ca_file.c_str());
  if (!line.user.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    curl_easy_setopt(curl, CURLOPT_USERNAME, form_encoded(line.user).c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, form_encoded(line.password).c_str());
  }
  if (form != nullptr) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(form->size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, form->data());
  }
  if (const CURLcode code = curl_easy_perform(curl); code != CURLE_OK)
    return Error{ErrorCode::kUnavailable, url + ": " + curl_easy_strerror(code)};
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  reply.status = static_cast<int>(status);
  return reply;
}

}  // namespace

std::string form_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    const auto byte = static_cast<unsigned char>(c);
    if (plain) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return encoded;
}

Result<ProviderReply> get_document(const std::string& url, const ProviderLine& line) {
  return ask_provider(url, nullptr, line);
}

Result<ProviderReply> post_form(const std::string& url, const std::vector<std::pair<std::string, std::string>>& fields,
                                const ProviderLine& line) {
  std::string form;
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    form += (form.empty() ? "" : "&") + form_encoded(name) + "=" + form_encoded(value);
  }
  return ask_provider(url, &form, line);
}

}  // namespace berth::cli
