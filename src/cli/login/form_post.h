#pragma once
// Requests to an identity provider: a document by GET, a form by POST. No redirects; 1 MiB at most.

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::cli {

struct ProviderReply {
  int status = 0;
  std::string body;
};

// How to reach the provider.
struct ProviderLine {
  std::string ca_file = {};  // certificates that its TLS is checked with; empty: those of the system
  std::string user = {};     // HTTP Basic; empty: none
  std::string password = {};
};

Result<ProviderReply> get_document(const std::string& url, const ProviderLine& line);
Result<ProviderReply> post_form(const std::string& url, const std::vector<std::pair<std::string, std::string>>& fields,
                                const ProviderLine& line);

// As forms and HTTP Basic of OAuth want it (RFC 6749, appendix B).
std::string form_encoded(std::string_view text);

}  // namespace berth::cli
