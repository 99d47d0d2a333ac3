#include "backend/kubernetes/curl_server.h"

namespace berth::backend {
namespace {

constexpr long kConnectMs = 4000;

curl_blob blob_of(std::string& pem) { return {pem.data(), pem.size(), CURL_BLOB_NOCOPY}; }

}  // namespace

void initialise_curl() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(initialised);
}

void set_server(CURL* handle, Credentials& credentials, const std::string& path) {
  const auto set = [handle](CURLoption option, auto value) { curl_easy_setopt(handle, option, value); };
  set(CURLOPT_URL, (credentials.server + path).c_str());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOPROXY, "*");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  const auto set_pem = [handle](CURLoption option, std::string& pem) {
    if (pem.empty()) return;
    curl_blob blob = blob_of(pem);
    curl_easy_setopt(handle, option, &blob);
  };
  set_pem(CURLOPT_CAINFO_BLOB, credentials.ca_pem);
  if (!credentials.ca_pem.empty()) set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // these authorities alone
  set_pem(CURLOPT_SSLCERT_BLOB, credentials.certificate_pem);
  set_pem(CURLOPT_SSLKEY_BLOB, credentials.key_pem);
}

}  // namespace berth::backend
