#include "cli/client/tls_failure.h"

#include <openssl/x509_vfy.h>

#include <string>

namespace berth::client {
namespace {

// Why the certificate of the server was not believed.
std::string distrust(long verified, std::string_view details, const ClientOptions& options) {
  if (details.find("subject name") != std::string_view::npos) {
    return "its certificate is for another name (" + std::string(details) +
           "); use the name that it has, or is this another server?";
  }
  switch (verified) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate has expired: its operator has to renew it, or the clock of this machine is wrong";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is not valid yet; is the clock of this machine right?";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return "its certificate is of an authority that " +
             (options.ca_file.empty() ? "this machine does not know; give that authority's certificate by --ca FILE or "
                                        "BERTH_CA"
                                      : "is not in " + options.ca_file + "; is that the right file?");
    default:
      return "its certificate is not believed: " + std::string(details);
  }
}

// Why the server did not take the connection, by the alert that it sent.
std::string refusal(std::string_view details) {
  const auto says = [&](std::string_view words) { return details.find(words) != std::string_view::npos; };
  if (says("alert unknown ca"))
    return "it does not know the authority that signed your client certificate (its --client-ca)";
  if (says("alert certificate expired")) return "your client certificate has expired";
  if (says("alert bad certificate") || says("alert unsupported certificate"))
    return "it refuses your client certificate; is it made for clients (extended key usage clientAuth)?";
  if (says("wrong version number") || says("packet length too long"))
    return "it does not speak TLS there; is its address http:// instead?";
  if (says("alert protocol version") || says("unsupported protocol"))
    return "it and this program have no version of TLS in common; 1.2 or 1.3 is needed";
  return {};
}

}  // namespace

std::optional<Error> tls_failure(CURL* handle, CURLcode code, std::string_view details, const ClientOptions& options) {
  const auto error = [&](const std::string& why) {
    return Error{ErrorCode::kUnavailable, "no answer from the berth server at " + options.base_url + ": " + why};
  };
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION: {
      long verified = 0;
      curl_easy_getinfo(handle, CURLINFO_SSL_VERIFYRESULT, &verified);
      return error(distrust(verified, details, options));
    }
    case CURLE_SSL_CACERT_BADFILE:
      return invalid("the authorities in " + options.ca_file + " cannot be read; give a file with certificates in PEM");
    case CURLE_SSL_CERTPROBLEM:
      return invalid("the client certificate " + options.cert_file +
                     (options.key_file.empty() ? "" : " and its key " + options.key_file) +
                     " cannot be used: " + std::string(details));
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR: {
      const std::string why = refusal(details);
      if (!why.empty()) return error(why);
      if (code == CURLE_SSL_CONNECT_ERROR) return error("TLS failed: " + std::string(details));
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace berth::client
