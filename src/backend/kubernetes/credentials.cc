#include "backend/kubernetes/credentials.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "model/document/document.h"

namespace berth::backend {
namespace {

using document::Node;

constexpr std::size_t kMostFileBytes = 1 << 20;

Result<std::string> read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read " + path + ": " + std::error_code(errno, std::generic_category()).message());
  std::string text(kMostFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) return not_found("cannot read " + path);
  if (text.size() > kMostFileBytes) return Error{ErrorCode::kTooLarge, path + " is larger than 1 MiB"};
  return text;
}

// Nothing in it can end a header line.
bool is_header_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

std::optional<unsigned> base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<unsigned>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<unsigned>(c - 'a') + 26;
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0') + 52;
  if (c == '+') return 62U;
  if (c == '/') return 63U;
  return std::nullopt;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') continue;
    const auto digit = base64_digit(c);
    if (!digit) return std::nullopt;
    bits = (bits << 6U | *digit) & 0xffffffU;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU));
  }
  return bytes;
}

// One map of a kubeconfig, with the words that name it in a message.
struct Part {
  const Node* node = nullptr;
  std::string name;  // "FILE: user 'x'"

  // Returns the text at a key, or "".
  std::string text(std::string_view key) const {
    const Node* found = node == nullptr ? nullptr : node->find(key);
    return found == nullptr || found->kind != document::NodeKind::kScalar ? std::string() : found->text;
  }
  bool has(std::string_view key) const {
    const Node* found = node == nullptr ? nullptr : node->find(key);
    return found != nullptr && found->kind != document::NodeKind::kNull && found->text != "false";
  }
};

// Returns the map `key` of the entry called `name` in the list `list`, as in clusters: [{name: x, cluster: {...}}].
Result<Part> find_named(const Node& root, const std::string& file, std::string_view list, std::string_view key,
                        const std::string& name) {
  const std::string what = file + ": " + std::string(key) + " '" + name + "'";
  const Node* items = root.find(list);
  if (items != nullptr && items->kind == document::NodeKind::kList) {
    for (const Node& item : items->items) {
      const Part entry{&item, what};
      if (item.kind != document::NodeKind::kMap || entry.text("name") != name) continue;
      const Node* found = item.find(key);
      if (found == nullptr || found->kind != document::NodeKind::kMap)
        return invalid(what + " has no map `" + std::string(key) + "`");
      return Part{found, what};
    }
  }
  return invalid(what + " is named by the context but not listed under `" + std::string(list) + "`");
}

// Reads PEM text from KEY-data (base64) or from the file that KEY names. Neither: "".
Result<std::string> read_pem(const Part& part, const std::string& key, const std::filesystem::path& folder) {
  if (const std::string data = part.text(key + "-data"); !data.empty()) {
    auto pem = from_base64(data);
    if (!pem) return invalid(part.name + ": " + key + "-data is not base64");
    return std::move(*pem);
  }
  const std::string file = part.text(key);
  if (file.empty()) return std::string();
  auto text = read_small_file((folder / file).string());
  if (!text) return Error{text.error().code, part.name + ": " + key + ": " + text.error().message};
  return text;
}

struct Refused {
  std::string_view key;
  const char* instead;
};
constexpr std::array kRefusedOfCluster{
    Refused{"insecure-skip-tls-verify", "berth always verifies the server; give certificate-authority"},
    Refused{"proxy-url", "berth connects directly"},
    Refused{"tls-server-name", "give a server address that its certificate names"},
};
constexpr std::array kRefusedOfUser{
    Refused{"exec", "use a client certificate, tokenFile, or a service account"},
    Refused{"auth-provider", "use a client certificate, tokenFile, or a service account"},
    Refused{"as", "berth acts as itself"},
    Refused{"username", "use a client certificate or tokenFile"},
};

template <std::size_t N>
Result<void> refuse_keys(const Part& part, const std::array<Refused, N>& refused) {
  for (const Refused& one : refused) {
    if (part.has(one.key))
      return invalid(part.name + ": `" + std::string(one.key) + "` is not supported; " + one.instead);
  }
  return {};
}

constexpr std::array<std::string_view, 3> kLoopback{"http://127.0.0.1", "http://localhost", "http://[::1]"};

bool is_on_this_machine(std::string_view server) {
  return std::any_of(kLoopback.begin(), kLoopback.end(), [&](std::string_view host) {
    if (!server.starts_with(host)) return false;
    const std::string_view rest = server.substr(host.size());
    return rest.empty() || rest.front() == ':' || rest.front() == '/';
  });
}

Result<void> check_server(Credentials& credentials, const std::string& where) {
  std::string& server = credentials.server;
  while (server.ends_with('/')) server.pop_back();
  if (server.empty()) return invalid(where + ": has no `server`, such as https://10.0.0.1:6443");
  if (server.find_first_of(" \t\r\n@?#") != std::string::npos)
    return invalid(where + ": server: this is no address such as https://10.0.0.1:6443");
  if (server.starts_with("https://")) return {};
  if (is_on_this_machine(server)) return {};
  return invalid(where + ": server: " + server +
                 " does not begin with https://; without TLS berth talks to this machine " +
                 "alone (http://127.0.0.1:8001, as `kubectl proxy` serves)");
}

Result<void> read_user(const Part& user, const std::filesystem::path& folder, Credentials& credentials) {
  if (auto ok = refuse_keys(user, kRefusedOfUser); !ok) return ok;
  auto certificate = read_pem(user, "client-certificate", folder);
  if (!certificate) return certificate.error();
  auto key = read_pem(user, "client-key", folder);
  if (!key) return key.error();
  if (certificate->empty() != key->empty())
    return invalid(user.name + ": client-certificate and client-key go together; one of them is missing");
  credentials.certificate_pem = std::move(*certificate);
  credentials.key_pem = std::move(*key);
  credentials.token = user.text("token");
  if (!is_header_text(credentials.token)) return invalid(user.name + ": token is not one line of text");
  if (const std::string file = user.text("tokenFile"); !file.empty()) {
    credentials.token.clear();  // as kubectl has it: the file counts
    credentials.token_file = (folder / file).string();
    if (auto token = read_token(credentials.token_file); !token)
      return Error{token.error().code, user.name + ": tokenFile: " + token.error().message};
  }
  return {};
}

}  // namespace

Result<Credentials> read_kubeconfig(const std::string& file) {
  auto text = read_small_file(file);
  if (!text) return Error{text.error().code, "--kubeconfig: " + text.error().message};
  auto root = document::parse(*text, file);
  if (!root) return root.error();
  const Part top{&*root, file};
  if (root->kind != document::NodeKind::kMap || root->find("clusters") == nullptr)
    return invalid(file + ": this is no kubeconfig; it has no `clusters`");
  const std::string context_name = top.text("current-context");
  if (context_name.empty())
    return invalid(file + ": `current-context` is empty; choose one with `kubectl config use-context NAME`");
  auto context = find_named(*root, file, "contexts", "context", context_name);
  if (!context) return context.error();
  auto cluster = find_named(*root, file, "clusters", "cluster", context->text("cluster"));
  if (!cluster) return cluster.error();
  auto user = find_named(*root, file, "users", "user", context->text("user"));
  if (!user) return user.error();
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  if (auto ok = refuse_keys(*cluster, kRefusedOfCluster); !ok) return ok.error();
  Credentials credentials;
  credentials.server = cluster->text("server");
  credentials.space = context->text("namespace");
  if (auto ok = check_server(credentials, cluster->name); !ok) return ok.error();
  auto authority = read_pem(*cluster, "certificate-authority", folder);
  if (!authority) return authority.error();
  credentials.ca_pem = std::move(*authority);
  if (auto ok = read_user(*user, folder, credentials); !ok) return ok.error();
  return credentials;
}

Result<Credentials> read_service_account(const std::string& directory, const std::string& host,
                                         const std::string& port) {
  if (host.empty() || port.empty()) {
    return invalid(
        "--backend kubernetes: this is no pod of a cluster (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
        "not "
        "set); give --kubeconfig FILE");
  }
  Credentials credentials;
  credentials.server = "https://" + (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
  if (auto ok = check_server(credentials, "KUBERNETES_SERVICE_HOST"); !ok) return ok.error();
  auto authority = read_small_file(directory + "/ca.crt");
  if (!authority) return authority.error();
  credentials.ca_pem = std::move(*authority);
  credentials.token_file = directory + "/token";
  if (auto token = read_token(credentials.token_file); !token) return token.error();
  if (auto space = read_token(directory + "/namespace")) credentials.space = std::move(*space);
  return credentials;
}

Result<std::string> read_token(const std::string& file) {
  auto text = read_small_file(file);
  if (!text) return text;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r' || text->back() == ' ')) text->pop_back();
  if (text->empty()) return invalid(file + " is empty");
  if (!is_header_text(*text)) return invalid(file + " is not one line of text");
  return text;
}

}  // namespace berth::backend
