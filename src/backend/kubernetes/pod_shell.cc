#include "backend/kubernetes/pod_shell.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <memory>
#include <random>
#include <utility>

#include "kube/json_reading.h"
#include "kube/pod_exec.h"

namespace berth::backend {
namespace {

constexpr std::chrono::milliseconds kLookAgain{5};  // while it connects
constexpr std::chrono::seconds kOpenPatience{10};   // to connect and to be upgraded
constexpr std::chrono::seconds kClosePatience{3};   // of silence, from the end of the command to that of the connection
// So that what stands between does not take it for idle. None is sent while output comes: an API server that has closed
// the connection behind the last of it answers any byte by a reset, and what it had not sent yet is lost.
constexpr std::chrono::seconds kPingPause{15};
constexpr std::size_t kMostServerMessage = 256 * 1024;
constexpr std::size_t kMostHead = 64 * 1024;
constexpr std::size_t kMostStatus = 16 * 1024;
constexpr std::size_t kMostUnsentPongs = 4 * 1024;
constexpr int kTurns = 8;  // reads of one shell at once, so that one that never stops printing does not keep the others
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kLastChunk = "\r\n0\r\n\r\n";

std::uint32_t random_mask() {
  thread_local std::random_device device;
  return device();
}

std::string random_socket_key() {
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t word = random_mask();
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((word >> shift) & 0xFF);
  }
  return base64_text(bytes);
}

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Returns the value of a line of a head; empty: there is none.
std::string line_of(std::string_view head, std::string_view name) {
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos;) {
    const std::size_t end = std::min(head.find("\r\n", at + 2), head.size());
    const std::string_view line = head.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && in_lower_case(line.substr(0, colon)) == name) {
      const std::size_t from = std::min(line.find_first_not_of(' ', colon + 1), line.size());
      return std::string(line.substr(from));
    }
    at = end == head.size() ? std::string_view::npos : end;
  }
  return {};
}

int status_of(std::string_view head) {
  int status = 0;
  const std::size_t space = std::min(head.find(' '), head.size());
  if (space < head.size()) std::from_chars(head.data() + space + 1, head.data() + head.size(), status);
  return status;
}

bool is_chunked(std::string_view head) { return in_lower_case(line_of(head, "transfer-encoding")) == "chunked"; }

// Returns the bytes of the chunks that are whole.
std::string of_chunks(std::string_view body) {
  std::string bytes;
  while (true) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), size, 16);
    const std::size_t line = body.find("\r\n");
    if (error != std::errc() || size == 0 || line == std::string_view::npos || size > body.size() - line - 2)
      return bytes;
    bytes += body.substr(line + 2, size);
    body.remove_prefix(std::min(line + 2 + size + 2, body.size()));
  }
}

Error refusal_of(const std::string& pod, const HttpAnswer& answer) {
  const std::string said = kube::shown(message_of(answer), 300);
  const bool lacks_right = said.find("pods/exec") != std::string::npos && said.find("cannot") != std::string::npos;
  switch (answer.status) {
    case 403:
      if (lacks_right)
        return {ErrorCode::kUnsupported,
                "this server has no right to open a shell in pod " + pod +
                    ": set shells.enabled in the chart (docs/kubernetes.md). The API server says: " + said};
      return {ErrorCode::kDenied, "the API server refuses a shell in pod " + pod + ": " + said};
    case 404:
      return conflict("pod " + pod + " is gone");
    case 400:
      return conflict("no shell can be opened in pod " + pod + ": " + said);
    default:
      return {ErrorCode::kUnavailable, "the API server opened no shell in pod " + pod + ": " + said};
  }
}

ShellStream shared_end(int descriptor) {
  return {new int(descriptor), [](const int* kept) {
            ::close(*kept);
            delete kept;
          }};
}

}  // namespace

PodShell::PodShell(const Credentials& credentials, std::string pod, std::string path, const ShellBegin& begin,
                   Clock::time_point now, ShellAnswer answer)
    : pod_(std::move(pod)),
      path_(std::move(path)),
      begin_(begin),
      answer_(std::move(answer)),
      server_reader_(false, kMostServerMessage),
      give_up_at_(now + kOpenPatience),
      due_at_(now) {
  server_.emplace(credentials);
}

PodShell::~PodShell() {
  if (client_ >= 0) ::close(client_);
}

void PodShell::attend(Clock::time_point now) {
  is_busy_ = false;
  if (stage_ == Stage::kConnecting) connect(now);
  if (stage_ == Stage::kUpgrading) upgrade(now);
  if (stage_ == Stage::kOpen) pass(now);
  if (stage_ == Stage::kEnding) {
    flush_client();
    if (to_client_.empty() || client_is_gone()) leave();
  }
  due_at_ = Clock::time_point::max();
  if (stage_ == Stage::kConnecting) due_at_ = now + kLookAgain;
  if (stage_ == Stage::kUpgrading) due_at_ = give_up_at_;
  if (stage_ == Stage::kOpen) due_at_ = is_busy_ ? now : std::min(end_at_, ping_at_);
}

void PodShell::add_waited(std::vector<pollfd>& waited) const {
  const auto add = [&waited](int descriptor, int events) {
    waited.push_back({descriptor, static_cast<short>(events), 0});
  };
  const bool has_room = to_client_.size() < kMostShellBytes;
  if (stage_ == Stage::kUpgrading || stage_ == Stage::kOpen) {
    // One that is not asked for anything stays away: poll tells of its end again and again.
    const int events = (has_room ? POLLIN : 0) | (server_is_behind() ? POLLOUT : 0);
    if (events != 0) add(server_->descriptor(), events);
  }
  if (stage_ == Stage::kOpen || stage_ == Stage::kEnding) {
    const bool listens = stage_ == Stage::kOpen && !server_is_behind();
    add(client_, POLLRDHUP | (listens ? POLLIN : 0) | (to_client_.empty() ? 0 : POLLOUT));
  }
}

void PodShell::give_up(const std::string& why) {
  if (answer_) return refuse({ErrorCode::kUnavailable, why});
  if (stage_ == Stage::kOpen) finish({std::nullopt, why});
  leave();
}

// --- The beginning.

void PodShell::connect(Clock::time_point now) {
  const auto connected = server_->connect();
  if (!connected) return refuse(connected.error());
  if (!*connected && now >= give_up_at_)
    return refuse({ErrorCode::kUnavailable, "the API server was not reached in time"});
  if (!*connected) return;
  key_ = random_socket_key();
  to_server_ = server_->request_begin(path_) +
               "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key_ +
               "\r\nSec-WebSocket-Protocol: " + std::string(kube::kExecProtocol) + ", " +
               std::string(kube::kOlderExecProtocol) + "\r\n\r\n";
  stage_ = Stage::kUpgrading;
}

void PodShell::upgrade(Clock::time_point now) {
  flush_server();  // of a connection that is over, read_head tells
  const bool is_whole = read_head();
  const std::size_t end = head_.find(kHeadEnd);
  if (!is_whole) {
    if (now < give_up_at_) return;
    if (end == std::string::npos) return refuse({ErrorCode::kUnavailable, "the API server did not answer in time"});
  }
  if (end == std::string::npos)
    return refuse({ErrorCode::kUnavailable, "the API server closed the connection without an answer"});
  const std::string head = head_.substr(0, end);
  if (status_of(head) == 101) return open(head, now);
  HttpAnswer answer;
  answer.status = status_of(head);
  answer.body = head_.substr(end + kHeadEnd.size());
  if (is_chunked(head)) answer.body = of_chunks(answer.body);
  refuse(refusal_of(pod_, answer));
}

bool PodShell::read_head() {
  std::array<char, kShellChunkBytes> buffer;
  while (true) {
    const std::size_t end = head_.find(kHeadEnd);
    if (end != std::string::npos) {
      const std::string_view head = std::string_view(head_).substr(0, end);
      if (status_of(head) == 101) return true;
      const std::string_view body = std::string_view(head_).substr(end + kHeadEnd.size());
      if (is_chunked(head) && body.ends_with(kLastChunk)) return true;
      std::size_t length = kMostHead;
      const std::string stated = line_of(head, "content-length");
      std::from_chars(stated.data(), stated.data() + stated.size(), length);
      if (body.size() >= length) return true;
    }
    if (head_.size() >= kMostHead) return true;
    const auto count = server_->receive(buffer.data(), buffer.size());
    if (!count) return true;  // what has come says enough
    if (*count == 0) return false;
    head_.append(buffer.data(), *count);
  }
}

void PodShell::open(std::string_view head, Clock::time_point now) {
  const std::string protocol = line_of(head, "sec-websocket-protocol");
  if (line_of(head, "sec-websocket-accept") != web_socket_accept(key_) ||
      (protocol != kube::kExecProtocol && protocol != kube::kOlderExecProtocol))
    return refuse({ErrorCode::kUnavailable, "what the API server answered is no shell's WebSocket"});
  if (protocol != kube::kExecProtocol && begin_.input && !begin_.terminal)
    return refuse(
        {ErrorCode::kUnsupported,
         "the API server cannot tell a command that its input has ended; Kubernetes can from 1.30 on. Leave -i "
         "out, or give the command a terminal (-it)"});
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return refuse({ErrorCode::kUnavailable, "this server has no descriptors left for a shell"});
  client_ = ends[0];
  stage_ = Stage::kOpen;
  ping_at_ = now + kPingPause;
  server_reader_.feed(std::string_view(head_).substr(head.size() + kHeadEnd.size()));
  head_.clear();
  if (begin_.terminal) {
    if (const auto size = kube::exec_message(shell_message(begin_.size))) say(WebSocketKind::kBinary, *size);
  }
  std::exchange(answer_, nullptr)(shared_end(ends[1]));
}

// --- While it is open.

void PodShell::pass(Clock::time_point now) {
  if (client_is_gone()) return leave();
  flush_server();  // of a connection that is over, take_from_server tells
  take_from_client();
  if (stage_ == Stage::kOpen) take_from_server(now);
  flush_client();
  if (stage_ != Stage::kOpen) return;
  // What has been read from the API server already is in no descriptor that poll could tell of.
  if (is_held_ && to_client_.size() < kMostShellBytes) is_busy_ = true;
  if (now >= end_at_) return server_ended({});
  flush_server();  // the answers to its pings
  if (now < ping_at_) return;
  ping_at_ = now + kPingPause;
  if (server_->is_silent()) return server_ended("the API server is silent");
  if (!server_is_behind()) say(WebSocketKind::kPing, {});
  flush_server();
}

void PodShell::take_from_client() {
  std::array<char, kShellChunkBytes> buffer;
  for (int turn = 0; !server_is_behind();) {
    const auto message = client_reader_.next();
    if (!message) return leave();
    if (*message) {
      obey(**message);
      if (!flush_server()) return;
      continue;
    }
    if (turn++ == kTurns) {
      is_busy_ = true;
      return;
    }
    const ssize_t count = ::recv(client_, buffer.data(), buffer.size(), 0);
    if (count <= 0) return;  // pass looks whether it is gone
    client_reader_.feed({buffer.data(), static_cast<std::size_t>(count)});
  }
}

void PodShell::obey(std::string_view message) {
  const auto channel = channel_of(message);
  const bool types = begin_.terminal || begin_.input;
  if ((channel == ShellChannel::kInput || channel == ShellChannel::kNoInput) && !types) return;
  if (channel == ShellChannel::kNoInput && begin_.terminal) return;  // a terminal has no end of input but what is typed
  if (channel == ShellChannel::kSignal) {
    int signo = 0;
    std::from_chars(message.data() + 1, message.data() + message.size(), signo);
    if (begin_.terminal && signo == SIGINT)
      return say(WebSocketKind::kBinary, shell_message(ShellChannel::kInput, "\x03"));
    if (begin_.terminal && signo == SIGQUIT)
      return say(WebSocketKind::kBinary, shell_message(ShellChannel::kInput, "\x1c"));
    if (!std::exchange(told_of_signals_, true))
      show(begin_.terminal ? ShellChannel::kOutput : ShellChannel::kErrors,
           "berth: no signal reaches a command in a pod. The third one leaves it, and it may run on; with -t Ctrl-C "
           "interrupts it\n");
    return;
  }
  if (const auto sent = kube::exec_message(message)) say(WebSocketKind::kBinary, *sent);
}

void PodShell::take_from_server(Clock::time_point now) {
  std::array<char, kShellChunkBytes> buffer;
  is_held_ = false;
  for (int turn = 0; to_client_.size() < kMostShellBytes;) {
    const auto message = server_reader_.next();
    if (!message) return finish({std::nullopt, "the API server: " + message.error().message});
    if (*message) {
      heed(**message);
      if (stage_ != Stage::kOpen) return;
      continue;
    }
    if (turn++ == kTurns) {
      is_busy_ = true;
      return;
    }
    const auto count = server_->receive(buffer.data(), buffer.size());
    if (!count) return server_ended(count.error().message);
    if (*count == 0) {
      if (!status_.empty()) end_at_ = std::min(end_at_, now + kClosePatience);
      return;
    }
    server_reader_.feed({buffer.data(), *count});
    hear(now);
  }
  is_held_ = true;
  hear(now);  // there may be more, which the user has no room for
}

void PodShell::hear(Clock::time_point now) {
  end_at_ = Clock::time_point::max();
  ping_at_ = now + kPingPause;
}

// What the command has written may come behind its end: another stream carries it from the node.
void PodShell::heed(const WebSocketMessage& message) {
  if (message.kind == WebSocketKind::kClose) return server_ended("the API server has closed the connection");
  if (message.kind == WebSocketKind::kPing && to_server_.size() < kMostUnsentPongs)
    say(WebSocketKind::kPong, message.bytes);
  if (message.kind == WebSocketKind::kPing || message.kind == WebSocketKind::kPong || message.bytes.size() < 2) return;
  const auto channel = channel_of(message.bytes);
  const std::string_view bytes = std::string_view(message.bytes).substr(1);
  if (channel == ShellChannel::kOutput || channel == ShellChannel::kErrors) show(*channel, bytes);
  if (channel == ShellChannel::kEnd && status_.empty()) status_ = bytes.substr(0, kMostStatus);
}

void PodShell::show(ShellChannel channel, std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kShellChunkBytes)
    to_client_ += framed(shell_message(channel, bytes.substr(at, kShellChunkBytes)));
}

void PodShell::say(WebSocketKind kind, std::string_view bytes) {
  if (!is_deaf_) to_server_ += web_socket_frame(kind, bytes, random_mask());
}

bool PodShell::flush_server() {
  while (true) {
    if (!server_is_behind()) {
      sending_ = std::exchange(to_server_, {});
      sent_ = 0;
      if (sending_.empty()) return true;
    }
    const auto count = server_->send(std::string_view(sending_).substr(sent_));
    if (!count) {  // nothing is left to be sent, so that nobody waits for room
      is_deaf_ = true;
      sending_.clear();
      to_server_.clear();
      sent_ = 0;
      return false;
    }
    if (*count == 0) return true;
    sent_ += *count;
  }
}

void PodShell::flush_client() {
  while (client_ >= 0 && !to_client_.empty()) {
    const ssize_t count = ::send(client_, to_client_.data(), to_client_.size(), MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return to_client_.clear();
    to_client_.erase(0, static_cast<std::size_t>(count));
  }
}

// Bytes of it may still be unread: they are of no use.
bool PodShell::client_is_gone() const {
  pollfd asked{client_, POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// --- The end.

void PodShell::refuse(Error why) {
  std::exchange(answer_, nullptr)(std::move(why));
  leave();
}

void PodShell::server_ended(const std::string& why) {
  if (!status_.empty()) return finish(kube::end_of_exec(status_));
  finish({std::nullopt, why + "; how the command ends is not known"});
}

void PodShell::finish(const ShellEnd& end) {
  server_.reset();
  to_client_ += framed(shell_message(end));
  stage_ = Stage::kEnding;
  flush_client();
}

void PodShell::leave() {
  if (server_ && stage_ == Stage::kOpen && !server_is_behind()) {
    say(WebSocketKind::kClose, close_bytes(kCloseNormal));
    flush_server();
  }
  stage_ = Stage::kOver;
  server_.reset();
  if (client_ >= 0) ::close(std::exchange(client_, -1));
}

}  // namespace berth::backend
