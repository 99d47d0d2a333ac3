#include "backend/kubernetes/credentials.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

using namespace berth;
using namespace berth::backend;

namespace {

// A folder with files, which goes away with it.
struct Folder {
  Folder() {
    char name[] = "/tmp/berth-credentials-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name) << text;
    return path + "/" + name;
  }
  std::string path;
};

std::string kubeconfig(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: main\npreferences: {}\n"
         "clusters:\n- name: other\n  cluster: {server: \"https://other:1\"}\n- cluster:\n    " +
         cluster + "\n  name: c\n" + "users:\n- name: u\n  user:\n    " + user +
         "\ncontexts:\n- context:\n    cluster: c\n    user: u\n    namespace: gpu\n  name: main\n";
}

std::string refusal(const Folder& folder, const std::string& cluster, const std::string& user) {
  const auto read = read_kubeconfig(folder.put("config", kubeconfig(cluster, user)));
  return read ? "accepted" : read.error().message;
}

}  // namespace

TEST_CASE("a kubeconfig gives server, authority and client certificate, from data and from files beside it") {
  const Folder folder;
  folder.put("client.crt", "CERTIFICATE");
  folder.put("client.key", "KEY");
  const auto read = read_kubeconfig(folder.put(
      "config", kubeconfig("server: https://10.0.0.1:6443/\n    certificate-authority-data: Q0EgUEVN",
                           "client-certificate: client.crt\n    client-key: " + folder.path + "/client.key")));
  REQUIRE(read);
  CHECK(read->server == "https://10.0.0.1:6443");
  CHECK(read->ca_pem == "CA PEM");
  CHECK(read->certificate_pem == "CERTIFICATE");
  CHECK(read->key_pem == "KEY");
  CHECK(read->token.empty());
  CHECK(read->space == "gpu");
}

TEST_CASE("a kubeconfig gives a token, or names the file that has it") {
  const Folder folder;
  const auto token = read_kubeconfig(folder.put("config", kubeconfig("server: https://a:1", "token: abc")));
  REQUIRE(token);
  CHECK(token->token == "abc");
  folder.put("token", "def\n");
  const auto file =
      read_kubeconfig(folder.put("config", kubeconfig("server: https://a:1", "token: abc\n    tokenFile: token")));
  REQUIRE(file);
  CHECK(file->token.empty());
  CHECK(file->token_file == folder.path + "/token");
}

TEST_CASE("what a kubeconfig must not ask for is refused by name") {
  const Folder folder;
  const std::string good = "server: https://a:1";
  CHECK(refusal(folder, good, "token: t") == "accepted");
  CHECK(refusal(folder, good + "\n    insecure-skip-tls-verify: false", "token: t") == "accepted");
  CHECK(refusal(folder, good + "\n    insecure-skip-tls-verify: true", "token: t").find("always verifies") !=
        std::string::npos);
  CHECK(refusal(folder, good, "exec: {command: aws}").find("`exec` is not supported") != std::string::npos);
  CHECK(refusal(folder, "server: http://10.0.0.1:8080", "token: t").find("does not begin with https://") !=
        std::string::npos);
  CHECK(refusal(folder, "server: http://127.0.0.1.evil.org", "token: t").find("https://") != std::string::npos);
  CHECK(refusal(folder, "server: http://127.0.0.1:8001", "token: t") == "accepted");
  CHECK(refusal(folder, "proxy-url: http://p", "token: t").find("proxy-url") != std::string::npos);
  CHECK(refusal(folder, "certificate-authority: x", "token: t").find("has no `server`") != std::string::npos);
}

TEST_CASE("an error of a kubeconfig says where it is and has no secret in it") {
  const Folder folder;
  const std::string bad_data = refusal(folder, "server: https://a:1", "client-key-data: SECRET!!\n    token: t");
  CHECK(bad_data.find("user 'u': client-key-data is not base64") != std::string::npos);
  CHECK(bad_data.find("SECRET") == std::string::npos);
  CHECK(refusal(folder, "server: https://a:1", "client-key-data: S0VZ").find("go together") != std::string::npos);
  CHECK(refusal(folder, "server: https://a:1", "client-certificate: none.crt").find("none.crt") != std::string::npos);
  const auto absent = read_kubeconfig(folder.path + "/absent");
  REQUIRE(!absent);
  CHECK(absent.error().message.find("--kubeconfig: cannot read") == 0);
  const auto other = read_kubeconfig(folder.put("config", "queues: {}\n"));
  REQUIRE(!other);
  CHECK(other.error().message.find("no kubeconfig") != std::string::npos);
}

TEST_CASE("a pod's service account gives server, authority, token file and namespace") {
  const Folder folder;
  folder.put("ca.crt", "CA");
  folder.put("token", "abc\n");
  folder.put("namespace", "berth-system");
  const auto read = read_service_account(folder.path, "10.96.0.1", "443");
  REQUIRE(read);
  CHECK(read->server == "https://10.96.0.1:443");
  CHECK(read->ca_pem == "CA");
  CHECK(read->token_file == folder.path + "/token");
  CHECK(read->space == "berth-system");
  CHECK(read_service_account(folder.path, "fd00::1", "443")->server == "https://[fd00::1]:443");
  const auto outside = read_service_account(folder.path, "", "");
  REQUIRE(!outside);
  CHECK(outside.error().message.find("--kubeconfig FILE") != std::string::npos);
}

TEST_CASE("a token is one line of plain text") {
  const Folder folder;
  CHECK(read_token(folder.put("t", "abc\r\n")).value() == "abc");
  CHECK(!read_token(folder.put("t", "\n")));
  CHECK(!read_token(folder.put("t", "a\nX-Header: b")));
}
