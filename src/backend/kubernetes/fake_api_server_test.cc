#include "backend/kubernetes/fake_api_server.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace berth::backend {
namespace {

namespace json = boost::json;

constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/leases";

std::string text_of(const json::object& object, std::string_view part, std::string_view key) {
  const json::value* map = object.if_contains(part);
  const json::value* value = map == nullptr || !map->is_object() ? nullptr : map->get_object().if_contains(key);
  return value == nullptr || !value->is_string() ? "" : std::string(value->get_string());
}

std::string status_text(int status, const std::string& message) {
  return json::serialize(json::object{{"kind", "Status"}, {"code", status}, {"message", message}});
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string chunk(const std::string& bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + bytes + "\r\n";
}

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// "/api/v1/namespaces/team/pods/p/binding" gives kind /api/v1/pods, team, p, binding.
struct Place {
  std::string kind;
  std::string space;
  std::string name;
  std::string below;
};

Place place_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 1; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  Place place;
  std::size_t i = 0;
  const std::size_t group = parts[0] == "api" ? 2 : 3;
  for (; i < group && i < parts.size(); ++i) place.kind += "/" + parts[i];
  if (i + 2 < parts.size() && parts[i] == "namespaces") {
    place.space = parts[i + 1];
    i += 2;
  }
  if (i < parts.size()) place.kind += "/" + parts[i++];
  if (i < parts.size()) place.name = parts[i++];
  if (i < parts.size()) place.below = parts[i];
  return place;
}

}  // namespace

FakeApiServer::FakeApiServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto length = static_cast<socklen_t>(sizeof address);
  REQUIRE(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) == 0);
  REQUIRE(::listen(listener_, 64) == 0);
  REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

FakeApiServer::~FakeApiServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  changed_.notify_all();
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : sockets_) ::close(socket);
  ::close(listener_);
}

void FakeApiServer::accept_all() {
  while (true) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    if (stopping_) ::shutdown(socket, SHUT_RDWR);
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

bool FakeApiServer::read_request(int socket, std::string& buffer, Request& request) const {
  std::size_t head = std::string::npos;
  std::size_t body = 0;
  char bytes[16384];
  while (true) {
    head = buffer.find("\r\n\r\n");
    if (head != std::string::npos) {
      const std::size_t at = buffer.find("Content-Length: ");
      body = at < head ? std::stoul(buffer.substr(at + 16)) : 0;
      if (buffer.size() >= head + 4 + body) break;
    }
    const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    buffer.append(bytes, static_cast<std::size_t>(count));
  }
  const std::string line = buffer.substr(0, buffer.find("\r\n"));
  request.method = line.substr(0, line.find(' '));
  std::string target = line.substr(request.method.size() + 1);
  target.resize(target.find(' '));
  request.path = target.substr(0, target.find('?'));
  request.query = target.size() > request.path.size() ? target.substr(request.path.size() + 1) : "";
  request.body = buffer.substr(head + 4, body);
  const std::size_t key = buffer.find("Sec-WebSocket-Key: ");
  request.socket_key = key < head ? buffer.substr(key + 19, 24) : "";
  buffer.erase(0, head + 4 + body);
  return true;
}

std::string FakeApiServer::Request::value(const std::string& key) const {
  const std::string all = "&" + query;
  const std::size_t at = all.find("&" + key + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size() + 2;
  return decoded(std::string_view(all).substr(begin, all.find('&', begin) - begin));
}

void FakeApiServer::serve(int socket) {
  std::string buffer;
  Request request;
  while (read_request(socket, buffer, request)) {
    const std::string line = request.method + " " + request.path + (request.query.empty() ? "" : "?") + request.query;
    Answer out;
    std::chrono::milliseconds pause{0};
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(line);
      for (Fault& fault : faults_) {
        if (fault.times <= 0 || !line.starts_with(fault.beginning)) continue;
        --fault.times;
        pause = fault.delay;
        if (fault.status != 0)
          out = {fault.status, fault.body.empty() ? status_text(fault.status, "as the test says") : fault.body,
                 fault.header};
        break;
      }
    }
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, pause, [&] { return stopping_ || pause.count() == 0; });
    }
    if (out.body.empty() && request.value("watch") == "1") return watch(socket, request);
    if (out.body.empty() && !request.socket_key.empty()) return exec(socket, request, buffer);
    if (out.body.empty()) out = answer(request);
    const std::string head = "HTTP/1.1 " + std::to_string(out.status) + " X\r\nContent-Type: application/json\r\n" +
                             (out.header.empty() ? "" : out.header + "\r\n") +
                             "Content-Length: " + std::to_string(out.body.size()) + "\r\n\r\n";
    if (!send_all(socket, head + out.body)) return;
  }
}

FakeApiServer::Answer FakeApiServer::answer(const Request& request) {
  const std::lock_guard lock(mutex_);
  const Place place = place_of(request.path);
  if (place.below == "binding") return bind(request);
  if (place.kind == kLeases && request.method != "GET") return write_lease(request);
  if (request.method == "GET" && place.name.empty()) return list(request);
  const auto kind = objects_.find(place.kind);
  if (kind == objects_.end()) return {404, status_text(404, "no such kind")};
  const auto found = kind->second.find({place.space, place.name});
  if (found == kind->second.end()) return {404, status_text(404, "not found")};
  if (request.method == "DELETE") put_locked(place.kind, found->second, "DELETED");
  if (request.method == "DELETE") return {200, "{}"};
  return {200, json::serialize(found->second)};
}

FakeApiServer::Answer FakeApiServer::list(const Request& request) {
  const auto kind = objects_.find(request.path);
  if (kind == objects_.end()) return {404, status_text(404, "the server could not find the requested resource")};
  const std::string token = request.value("continue");  // VERSION/NUMBER
  const std::string version = token.empty() ? std::to_string(version_) : token.substr(0, token.find('/'));
  if (std::stoull(version) < compacted_) return {410, status_text(410, "the continue token is too old")};
  const std::size_t from = token.empty() ? 0 : std::stoul(token.substr(token.find('/') + 1));
  const std::size_t limit = request.value("limit").empty() ? 1'000'000 : std::stoul(request.value("limit"));
  json::array items;
  std::size_t at = 0;
  bool more = false;
  for (const auto& [key, object] : kind->second) {
    if (at++ < from) continue;
    more = items.size() == limit;
    if (more) break;
    items.push_back(object);
  }
  json::object metadata{{"resourceVersion", version}};
  if (more) metadata["continue"] = version + "/" + std::to_string(from + limit);
  json::object all{{"kind", "List"}, {"metadata", metadata}};
  all["items"] = std::move(items);
  return {200, json::serialize(all)};
}

FakeApiServer::Answer FakeApiServer::write_lease(const Request& request) {
  json::object lease = json::parse(request.body).as_object();
  auto& leases = objects_[kLeases];
  const Key key{text_of(lease, "metadata", "namespace"), text_of(lease, "metadata", "name")};
  const auto found = leases.find(key);
  if (request.method == "POST" && found != leases.end()) return {409, status_text(409, "already exists")};
  if (request.method == "PUT") {
    if (found == leases.end()) return {404, status_text(404, "not found")};
    if (text_of(lease, "metadata", "resourceVersion") != text_of(found->second, "metadata", "resourceVersion"))
      return {409, status_text(409, "the object has been modified")};
  }
  put_locked(kLeases, std::move(lease), "MODIFIED");
  return {request.method == "POST" ? 201 : 200, json::serialize(leases[key])};
}

FakeApiServer::Answer FakeApiServer::bind(const Request& request) {
  const Place place = place_of(request.path);
  auto& pods = objects_[place.kind];
  const auto found = pods.find({place.space, place.name});
  if (found == pods.end()) return {404, status_text(404, "pods \"" + place.name + "\" not found")};
  const json::object binding = json::parse(request.body).as_object();
  const std::string uid = text_of(binding, "metadata", "uid");
  json::object pod = found->second;
  if (!uid.empty() && uid != text_of(pod, "metadata", "uid"))
    return {409, status_text(409, "the UID in the precondition does not match")};
  if (!text_of(pod, "spec", "nodeName").empty())
    return {409, status_text(409, "pod " + place.name + " is already assigned to node")};
  pod["spec"].as_object()["nodeName"] = text_of(binding, "target", "name");
  if (const json::value* annotations = binding.at("metadata").as_object().if_contains("annotations"))
    pod["metadata"].as_object()["annotations"] = *annotations;
  put_locked(place.kind, std::move(pod), "MODIFIED");
  return {201, status_text(201, "")};
}

void FakeApiServer::watch(int socket, const Request& request) {
  const std::string kind = request.path;
  std::uint64_t seen = std::stoull(request.value("resourceVersion"));
  std::unique_lock lock(mutex_);
  const std::uint64_t cut = cut_;
  if (!send_all(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")) return;
  if (seen < compacted_) {
    send_all(socket, chunk(R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})"
                           "\n") +
                         chunk(""));
    ::shutdown(socket, SHUT_RDWR);
    return;
  }
  ++watching_[kind];
  std::size_t next = 0;
  while (!stopping_) {
    for (; next < changes_.size(); ++next) {
      const Change& change = changes_[next];
      if (change.version <= seen || change.kind != kind) continue;
      if (cut != cut_ && change.version > cut_at_) break;  // it came after the cut, before this thread had run
      if (!send_all(socket, chunk(change.bytes))) break;
    }
    seen = 0;
    if (cut != cut_) break;
    changed_.wait(lock);
  }
  if (cut != cut_) send_all(socket, chunk(R"({"type":"ADDED","object":{"metadata":{"na)"));
  ::shutdown(socket, SHUT_RDWR);
  --watching_[kind];
}

void FakeApiServer::exec(int socket, const Request& request, const std::string& received) {
  std::function<void(FakeExec&)> shell;
  std::string protocol;
  std::string instead;
  {
    const std::lock_guard lock(mutex_);
    shell = shell_;
    protocol = exec_protocol_;
    instead = exec_answer_;
  }
  FakeExec peer(socket, received, request.path + "?" + request.query);
  if (!instead.empty()) {
    send_all(socket, instead);
    while (peer.next()) {
    }
    return;
  }
  const bool begun =
      send_all(socket,
               "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Accept: " +
                   web_socket_accept(request.socket_key) + "\r\nSec-WebSocket-Protocol: " + protocol + "\r\n\r\n");
  if (begun && shell) shell(peer);
  ::shutdown(socket, SHUT_RDWR);
}

void FakeApiServer::answer_exec_with(std::string bytes) {
  const std::lock_guard lock(mutex_);
  exec_answer_ = std::move(bytes);
}

std::optional<std::string> FakeExec::next() {
  char bytes[16384];
  while (true) {
    auto message = reader_.next();
    if (!message) return std::nullopt;
    if (*message && (*message)->kind == WebSocketKind::kClose) return std::nullopt;
    if (*message && (*message)->kind == WebSocketKind::kBinary) return (*message)->bytes;
    if (*message && (*message)->kind == WebSocketKind::kPing) ++pings_;
    if (*message) continue;
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) return std::nullopt;
    reader_.feed({bytes, static_cast<std::size_t>(count)});
  }
}

bool FakeExec::send(const std::string& message) { return send_raw(web_socket_frame(WebSocketKind::kBinary, message)); }

bool FakeExec::send_raw(const std::string& bytes) { return send_all(socket_, bytes); }

void FakeApiServer::on_exec(std::function<void(FakeExec&)> shell, std::string protocol) {
  const std::lock_guard lock(mutex_);
  shell_ = std::move(shell);
  exec_protocol_ = std::move(protocol);
}

void FakeApiServer::put_locked(const std::string& kind, json::object object, const std::string& type) {
  const Key key{text_of(object, "metadata", "namespace"), text_of(object, "metadata", "name")};
  object["metadata"].as_object()["resourceVersion"] = std::to_string(++version_);
  const json::object event{{"type", type}, {"object", object}};
  changes_.push_back({version_, kind, json::serialize(event) + "\n"});
  if (type == "DELETED") {
    objects_[kind].erase(key);
  } else {
    objects_[kind][key] = std::move(object);
  }
  changed_.notify_all();
}

void FakeApiServer::put(const std::string& kind, json::object object) {
  const std::lock_guard lock(mutex_);
  if (object.empty()) {
    objects_[kind];  // the kind is served, and has no object
    return;
  }
  const Key key{text_of(object, "metadata", "namespace"), text_of(object, "metadata", "name")};
  put_locked(kind, std::move(object), objects_[kind].contains(key) ? "MODIFIED" : "ADDED");
}

void FakeApiServer::remove(const std::string& kind, const std::string& space, const std::string& name) {
  const std::lock_guard lock(mutex_);
  put_locked(kind, objects_[kind].at({space, name}), "DELETED");
}

json::object FakeApiServer::get(const std::string& kind, const std::string& space, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_[kind].find({space, name});
  return found == objects_[kind].end() ? json::object() : found->second;
}

void FakeApiServer::compact() {
  const std::lock_guard lock(mutex_);
  compacted_ = ++version_;
  changes_.clear();
}

void FakeApiServer::bookmark(const std::string& kind) {
  const std::lock_guard lock(mutex_);
  ++version_;
  changes_.push_back({version_, kind,
                      R"({"type":"BOOKMARK","object":{"kind":"X","metadata":{"resourceVersion":")" +
                          std::to_string(version_) + "\"}}}\n"});
  changed_.notify_all();
}

void FakeApiServer::send_raw(const std::string& kind, const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  changes_.push_back({++version_, kind, bytes});
  changed_.notify_all();
}

void FakeApiServer::cut_watches() {
  const std::lock_guard lock(mutex_);
  ++cut_;
  cut_at_ = version_;
  changed_.notify_all();
}

void FakeApiServer::fail(const std::string& beginning, int status, int times, const std::string& header,
                         const std::string& body) {
  const std::lock_guard lock(mutex_);
  Fault fault{beginning, status, times, header};
  fault.body = body;
  faults_.push_back(std::move(fault));
}

void FakeApiServer::deny_rights(int times) {
  const std::lock_guard lock(mutex_);
  Fault no{"POST /apis/authorization.k8s.io/", 201, times, ""};
  no.body = R"({"status":{"allowed":false}})";
  faults_.push_back(std::move(no));
}

void FakeApiServer::mend() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
}

void FakeApiServer::delay(const std::string& beginning, std::chrono::milliseconds time, int times) {
  const std::lock_guard lock(mutex_);
  faults_.push_back({beginning, 0, times, "", time});
}

std::vector<std::string> FakeApiServer::requests(const std::string& beginning) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> some;
  for (const std::string& line : requests_) {
    if (line.starts_with(beginning)) some.push_back(line);
  }
  return some;
}

int FakeApiServer::watches(const std::string& kind) {
  const std::lock_guard lock(mutex_);
  return watching_[kind];
}

}  // namespace berth::backend
