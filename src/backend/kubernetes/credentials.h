#pragma once
// Where an API server is and how a client proves who it is: read from a kubeconfig file, or from what Kubernetes mounts
// into each pod (the service account). Certificates and keys are held as PEM text. A file of a token is named and not
// read here, because it changes.
//
// TLS is always verified. A file that asks for something else (insecure-skip-tls-verify, exec plugins, a proxy) is
// refused with the name of the key. No message has the content of a key or token.

#include <string>

#include "base/result.h"

namespace berth::backend {

struct Credentials {
  std::string server;           // https://host:port, without a slash at the end; http:// on this machine alone
  std::string ca_pem;           // empty: the authorities that the system trusts
  std::string certificate_pem;  // with key_pem: a client certificate
  std::string key_pem;
  std::string token;
  std::string token_file;  // read again while it is used
  std::string space;       // the namespace that the file or the pod names; empty: none
};

inline constexpr const char* kServiceAccountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";

// Reads the cluster and user of the current context. File names in it are relative to its folder.
Result<Credentials> read_kubeconfig(const std::string& file);

// Reads ca.crt, token and namespace of a service account; host and port are those of the environment variables
// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
Result<Credentials> read_service_account(const std::string& directory, const std::string& host,
                                         const std::string& port);

// Reads a token from its file, without the line break at its end.
Result<std::string> read_token(const std::string& file);

}  // namespace berth::backend
