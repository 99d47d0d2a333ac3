#pragma once
// What each handle of libcurl is told that speaks to the API server: TLS is verified, the certificate and key are those
// of the credentials, no proxy, no redirects. Included by the adapters of libcurl alone.

#include <curl/curl.h>

#include <string>

#include "backend/kubernetes/credentials.h"

namespace berth::backend {

// Initialises the library; any thread may call it, again and again.
void initialise_curl();

// The credentials must live as long as the handle uses them: their PEM texts are not copied.
void set_server(CURL* handle, Credentials& credentials, const std::string& path);

}  // namespace berth::backend
