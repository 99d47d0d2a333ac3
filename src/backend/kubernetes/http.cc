// The adapter of libcurl for calls. server_connection.cc is the other one.

#include "backend/kubernetes/http.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "backend/kubernetes/curl_server.h"

namespace berth::backend {
namespace {

constexpr std::chrono::seconds kTokenAge{30};
constexpr long kMostConnections = 64;
constexpr std::size_t kMostMessage = 400;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::optional<std::int64_t> read_seconds(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || seconds < 0) return std::nullopt;
  return std::min<std::int64_t>(seconds, 3600);
}

// Failures that say something about the configuration: they are told at once, and not waited out.
bool is_refusal(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_SSL_ISSUER_ERROR;
}

struct EndList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// One call under way.
struct Transfer {
  std::uint64_t id = 0;
  HttpCall call;
  CURL* handle = nullptr;
  std::unique_ptr<curl_slist, EndList> headers;
  HttpAnswer answer;
  char failure[CURL_ERROR_SIZE] = {};

  int status() const {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }
  std::size_t take(std::string_view bytes) {
    const int now = status();
    if (call.on_bytes && now >= 200 && now < 300) {
      call.on_bytes(bytes);
      return bytes.size();
    }
    if (answer.body.size() + bytes.size() > kMostBodyBytes) return 0;
    answer.body.append(bytes);
    return bytes.size();
  }
  void take_header(std::string_view line) {
    if (line == "\r\n" && call.on_open && status() >= 200 && status() < 300) call.on_open();
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && lower(line.substr(0, colon)) == "retry-after")
      answer.retry_after_s = read_seconds(line.substr(colon + 1));
  }
};

std::size_t receive(char* bytes, std::size_t size, std::size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->take({bytes, size * count});
}

std::size_t receive_line(char* bytes, std::size_t size, std::size_t count, void* transfer) {
  static_cast<Transfer*>(transfer)->take_header({bytes, size * count});
  return size * count;
}

}  // namespace

struct Http::Transfers {
  explicit Transfers(Credentials& credentials) : who(credentials) {
    initialise_curl();
    multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, kMostConnections);
  }
  ~Transfers() {
    for (auto& [handle, transfer] : running) {
      curl_multi_remove_handle(multi, handle);
      curl_easy_cleanup(handle);
    }
    for (CURL* handle : idle) curl_easy_cleanup(handle);
    curl_multi_cleanup(multi);
  }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  CURL* take_handle();
  void prepare(Transfer& transfer);
  const std::string& token();
  void collect();
  void finish(CURL* handle, std::uint64_t id, CURLcode code);
  void release(CURL* handle);

  Credentials& who;
  CURLM* multi = nullptr;
  std::map<CURL*, std::unique_ptr<Transfer>> running;
  std::vector<CURL*> idle;
  std::uint64_t next_id = 1;
  std::string read_again;  // the token of the file
  Clock::time_point read_at{};
};

CURL* Http::Transfers::take_handle() {
  if (idle.empty()) return curl_easy_init();
  CURL* handle = idle.back();
  idle.pop_back();
  curl_easy_reset(handle);
  return handle;
}

const std::string& Http::Transfers::token() {
  if (who.token_file.empty()) return who.token;
  if (read_again.empty() || Clock::now() > read_at + kTokenAge) {
    if (auto fresh = read_token(who.token_file)) read_again = std::move(*fresh);
    read_at = Clock::now();
  }
  return read_again;
}

void Http::Transfers::prepare(Transfer& transfer) {
  CURL* handle = transfer.handle;
  const auto set = [handle](CURLoption option, auto value) { curl_easy_setopt(handle, option, value); };
  const HttpCall& call = transfer.call;
  const auto add_header = [&](const std::string& line) {
    transfer.headers.reset(curl_slist_append(transfer.headers.release(), line.c_str()));
  };
  add_header("Expect:");
  add_header("Accept: application/json");
  add_header("User-Agent: berth");
  if (!call.content_type.empty()) add_header("Content-Type: " + call.content_type);
  if (const std::string& secret = token(); !secret.empty()) add_header("Authorization: Bearer " + secret);
  set_server(handle, who, call.path);
  set(CURLOPT_HTTPHEADER, transfer.headers.get());
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
  set(CURLOPT_CUSTOMREQUEST, std::string(call.method).c_str());
  if (!call.content_type.empty()) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    set(CURLOPT_POSTFIELDS, call.body.data());
  }
  set(CURLOPT_WRITEFUNCTION, &receive);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_HEADERFUNCTION, &receive_line);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_ERRORBUFFER, transfer.failure);
}

// Takes what has ended, and only then calls back: a callback may begin or cancel calls.
void Http::Transfers::collect() {
  struct Ended {
    CURL* handle;
    std::uint64_t id;
    CURLcode code;
  };
  std::vector<Ended> ended;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    if (const auto found = running.find(message->easy_handle); found != running.end())
      ended.push_back({found->first, found->second->id, message->data.result});
  }
  for (const Ended& one : ended) finish(one.handle, one.id, one.code);
}

void Http::Transfers::finish(CURL* handle, std::uint64_t id, CURLcode code) {
  const auto found = running.find(handle);
  // A callback before may have cancelled it, and the handle may have another call now.
  if (found == running.end() || found->second->id != id) return;
  const std::unique_ptr<Transfer> transfer = std::move(found->second);
  running.erase(found);
  HttpAnswer& answer = transfer->answer;
  answer.status = transfer->status();
  if (code != CURLE_OK) {
    const bool only_too_long = code == CURLE_WRITE_ERROR && answer.status >= 300;
    if (!only_too_long) answer.status = 0;
    answer.failure = transfer->failure[0] != '\0' ? transfer->failure : curl_easy_strerror(code);
    answer.refused = is_refusal(code);
  }
  if (answer.status == 401) read_at = {};  // the token has changed before its file was read again
  release(handle);
  if (transfer->call.done) transfer->call.done(answer);
}

void Http::Transfers::release(CURL* handle) {
  curl_multi_remove_handle(multi, handle);
  idle.push_back(handle);
}

Http::Http(Credentials credentials)
    : credentials_(std::move(credentials)), transfers_(std::make_unique<Transfers>(credentials_)) {}
Http::~Http() = default;

std::uint64_t Http::send(HttpCall call) {
  auto transfer = std::make_unique<Transfer>();
  transfer->id = transfers_->next_id++;
  transfer->call = std::move(call);
  transfer->handle = transfers_->take_handle();
  transfers_->prepare(*transfer);
  const std::uint64_t id = transfer->id;
  CURL* handle = transfer->handle;
  transfers_->running.emplace(handle, std::move(transfer));
  curl_multi_add_handle(transfers_->multi, handle);
  return id;
}

void Http::cancel(std::uint64_t id) {
  auto& running = transfers_->running;
  const auto found =
      std::find_if(running.begin(), running.end(), [&](const auto& one) { return one.second->id == id; });
  if (found == running.end()) return;
  CURL* handle = found->first;
  const std::unique_ptr<Transfer> transfer = std::move(found->second);
  running.erase(found);
  transfers_->release(handle);
}

void Http::run(Clock::time_point until) {
  int active = 0;
  curl_multi_perform(transfers_->multi, &active);
  transfers_->collect();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  if (left <= 0) return;
  curl_multi_poll(transfers_->multi, nullptr, 0, static_cast<int>(std::min<std::int64_t>(left, 1000)), nullptr);
  curl_multi_perform(transfers_->multi, &active);
  transfers_->collect();
}

void Http::wake() { curl_multi_wakeup(transfers_->multi); }

std::string message_of(const HttpAnswer& answer) {
  if (answer.status == 0) return answer.failure;
  boost::json::error_code error;
  const boost::json::value status = boost::json::parse(answer.body, error);
  if (!error && status.is_object()) {
    const boost::json::value* message = status.get_object().if_contains("message");
    if (message != nullptr && message->is_string()) {
      std::string text(std::string_view(message->get_string()).substr(0, kMostMessage));
      for (char& c : text) {
        if (c >= 0 && c < ' ') c = ' ';
      }
      return text;
    }
  }
  return "status " + std::to_string(answer.status);
}

}  // namespace berth::backend
