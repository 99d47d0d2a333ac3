#include "identity/fetch.h"

#include <curl/curl.h>

#include <memory>

namespace berth::identity {
namespace {

constexpr std::size_t kMostBytes = 1024 * 1024;
constexpr long kConnectTimeoutMs = 5'000;

struct Cleanup {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

std::size_t receive(char* bytes, std::size_t size, std::size_t count, void* into) {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() + size * count > kMostBytes) return 0;
  body.append(bytes, size * count);
  return size * count;
}

int progress(void* stopping, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return *static_cast<const std::atomic<bool>*>(stopping) ? 1 : 0;
}

// What a request has beyond its address.
struct Sent {
  const std::string* form = nullptr;  // null: GET
  const std::string* user = nullptr;
  const std::string* password = nullptr;
};

Result<PostAnswer> request(const std::string& url, const Sent& sent, const std::string& ca_file,
                           const std::atomic<bool>& stopping) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, Cleanup> handle(initialised == CURLE_OK ? curl_easy_init() : nullptr);
  if (handle == nullptr) return Error{ErrorCode::kIo, "libcurl cannot be used"};
  CURL* const curl = handle.get();
  PostAnswer answer;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, url.starts_with("https:") ? "https" : "http");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, kFetchTimeoutMs);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &receive);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, const_cast<std::atomic<bool>*>(&stopping));
  if (!ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file.c_str());
  if (sent.user != nullptr && !sent.user->empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    curl_easy_setopt(curl, CURLOPT_USERNAME, sent.user->c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, sent.password->c_str());
  }
  if (sent.form != nullptr) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(sent.form->size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, sent.form->data());
  }
  const CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_WRITE_ERROR) return Error{ErrorCode::kTooLarge, url + ": the answer is larger than 1 MiB"};
  if (code != CURLE_OK) return Error{ErrorCode::kUnavailable, url + ": " + curl_easy_strerror(code)};
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  return answer;
}

}  // namespace

Result<std::string> fetch(const std::string& url, const std::string& ca_file, const std::atomic<bool>& stopping) {
  auto answer = request(url, {}, ca_file, stopping);
  if (!answer) return answer.error();
  if (answer->status != 200) return Error{ErrorCode::kUnavailable, url + " answers " + std::to_string(answer->status)};
  return std::move(answer->body);
}

Result<PostAnswer> post(const std::string& url, const std::string& form, const std::string& user,
                        const std::string& password, const std::string& ca_file, const std::atomic<bool>& stopping) {
  return request(url, {.form = &form, .user = &user, .password = &password}, ca_file, stopping);
}

}  // namespace berth::identity
