#include "api/http/connection.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdio>
#include <optional>
#include <random>
#include <thread>

#include "api/http/dispatch.h"
#include "api/http/relay.h"
#include "api/http/screen.h"
#include "api/http/stream_queue.h"
#include "api/http/transport.h"
#include "api/http/wire.h"

namespace berth::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

constexpr const char* kHttpsAlone = "max-age=31536000";  // browsers ask this host by https alone, for a year
constexpr std::size_t kHeadReadBytes = 4 * 1024;
constexpr std::size_t kBodyReadBytes = 64 * 1024;
constexpr std::size_t kWriteBytes = 256 * 1024;  // at once; then other connections get a turn
constexpr std::size_t kLargeBodyBytes = 64 * 1024;
constexpr std::size_t kStreamWriteBytes = 64 * 1024;
// After each step of a stream that catches up: hundreds of them would else fill the I/O threads with their writes.
constexpr std::chrono::milliseconds kStepPause{1};
constexpr std::size_t kLingerBytes = 64 * 1024 * 1024;  // read and thrown away so that a refusal arrives
constexpr std::size_t kStreamChatterBytes = 64 * 1024;  // what a watcher may send without meaning
constexpr std::chrono::milliseconds kLingerTime{2'000};
constexpr std::chrono::milliseconds kKeysTime{5'000};  // that a request waits for the keys of its token

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

void report(const Site& site, const std::string& fault) {
  if (site.options.on_fault) site.options.on_fault(fault);
}

void run_handler(const Site& site, const Admitted& admitted, const Responder& responder) {
  try {
    admitted.route->handler(admitted.request, responder);
  } catch (const std::exception& exception) {
    report(site, admitted.route->doc.operation_id.text + ": " + exception.what());
    responder.send(problem(500, "internal", "the request failed within the server"));
  }
}

Carrier carrier_of(const Site& site, const Accepted& accepted) {
  if (accepted.family == AF_UNIX) return Carrier::kSocket;
  return site.options.tls != nullptr ? Carrier::kTls : Carrier::kPlain;
}

// Closed with the last copy.
class Descriptor {
 public:
  explicit Descriptor(int number)
      : number_(new int(number), [](int* open) {
          ::close(*open);
          delete open;
        }) {}
  int get() const { return *number_; }

 private:
  std::shared_ptr<int> number_;
};

class HttpConnection;

// The slot that a Responder answers through. Whoever claims it first (an answer, a stream, the deadline) has it.
class Exchange : public AnswerSlot {
 public:
  Exchange(std::shared_ptr<IoQueue> posted, std::shared_ptr<Site> site, std::weak_ptr<HttpConnection> connection)
      : posted_(std::move(posted)), site_(std::move(site)), connection_(std::move(connection)) {}

  bool claim() { return !claimed_.exchange(true); }
  bool claimed() const { return claimed_; }
  bool answer(Response response) override;
  std::shared_ptr<StreamSink> answer_with_stream(StreamFormat format) override;
  bool answer_with_relay(RelayOffer offer) override;

 private:
  std::shared_ptr<IoQueue> posted_;  // outlives the server for as long as a late answer may come
  std::shared_ptr<Site> site_;
  std::weak_ptr<HttpConnection> connection_;
  std::atomic<bool> claimed_ = false;
};

class HttpConnection : public Connection, public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::shared_ptr<asio::io_context> io, std::shared_ptr<IoQueue> posted, std::shared_ptr<Site> site,
                 std::unique_ptr<Transport> transport, Accepted accepted)
      : io_(std::move(io)),
        posted_(std::move(posted)),
        site_(std::move(site)),
        transport_(std::move(transport)),
        accepted_(std::move(accepted)),
        carrier_(carrier_of(*site_, accepted_)) {
    peer_.address = accepted_.peer;
  }

  void begin() override;
  void begin_refused() override;
  void tick(Clock::time_point now) override;
  void drain() override;
  void kill() override { close(); }
  bool closed() const override { return state_ == State::kClosed; }
  bool authenticated() const override { return authenticated_; }

  void deliver(Response response);
  void begin_stream(std::shared_ptr<StreamQueue> queue, StreamFormat format);
  void pump_stream();
  void begin_relay(RelayOffer offer);

 private:
  enum class State : std::uint8_t {
    kOpening,
    kIdle,
    kHead,
    kKeys,
    kBody,
    kHandling,
    kWriting,
    kStreaming,
    kRelaying,  // the transport is the relay's
    kLingering,
    kClosed
  };
  using Step = void (HttpConnection::*)();

  void enter(State state, std::chrono::milliseconds time);
  void read(std::size_t at_most, Step next);
  void write(std::string bytes, Step next);
  void write_rest();

  void opened();
  void handshake_ended(Handshake outcome);
  void ask_for_peer();
  void await_request();
  void read_head();
  void parse_head(std::size_t size);
  void begin_body();
  void await_keys(const Waiting& waiting);
  void keys_are_late();
  void begin_admitted_body();
  void read_body();
  void feed_body();
  void refuse_body(error_code ec);
  void handle();
  void answer_finished();

  void refuse(const Refusal& refusal);
  void refuse_late(std::string_view what);
  void answer_unread(Response response);  // the rest of the request is not read
  void send_response(Response response);
  void write_large_body();
  Response sendable(Response response) const;
  void deadline_passed();

  void watch_stream_reader();
  void stream_chatter();
  void stream_written();
  void write_stream(std::string bytes);
  void tick_stream(Clock::time_point now);
  bool lost_access() const;
  // Whose turn it is on threads that several clients share.
  const std::string& client() const { return principal_.name.empty() ? accepted_.peer : principal_.name; }
  void end_stream();

  void linger();
  void linger_read();
  void linger_on();
  void close();

  std::shared_ptr<asio::io_context> io_;
  std::shared_ptr<IoQueue> posted_;
  std::shared_ptr<Site> site_;
  std::unique_ptr<Transport> transport_;
  Accepted accepted_;
  Carrier carrier_;
  Peer peer_;                  // as the connection proves it
  std::string authorization_;  // of the request that is handled or streams, and whose it was then
  std::string cookies_;
  policy::Subject principal_;

  State state_ = State::kOpening;
  Clock::time_point deadline_ = Clock::time_point::max();

  std::string in_;           // received and not yet parsed
  std::size_t scanned_ = 0;  // of in_, in search of the end of the head
  std::string out_;
  std::string large_body_;
  std::size_t out_sent_ = 0;
  Step after_write_ = nullptr;
  std::uint64_t read_ticket_ = 0;  // a read that was given up finds another one here

  std::optional<beast::http::request_parser<beast::http::string_body>> parser_;
  Admitted admitted_{.route = nullptr, .request = {}};
  std::shared_ptr<Exchange> exchange_;
  std::string path_;  // of the request, once it is known to be one
  std::string request_id_;
  bool authenticated_ = false;
  bool refused_ = false;  // there are too many connections
  bool keep_alive_ = false;
  bool head_only_ = false;
  bool http_1_0_ = false;

  std::shared_ptr<Relay> relay_;
  std::shared_ptr<StreamQueue> queue_;
  StreamFormat stream_format_ = StreamFormat::kServerSentEvents;
  bool stream_writing_ = false;
  bool stream_ending_ = false;
  Clock::time_point next_heartbeat_;
  std::size_t discarded_bytes_ = 0;
};

bool Exchange::answer(Response response) {
  if (!claim()) return false;
  posted_->dispatch([connection = connection_, response = std::move(response)]() mutable {
    if (const auto alive = connection.lock()) alive->deliver(std::move(response));
  });
  return true;
}

std::shared_ptr<StreamSink> Exchange::answer_with_stream(StreamFormat format) {
  if (!claim()) return nullptr;
  if (++site_->streams > site_->options.limits.streams) {
    --site_->streams;
    posted_->dispatch([connection = connection_] {
      const Error full{ErrorCode::kUnavailable, "this server has as many open streams as it allows"};
      if (const auto alive = connection.lock()) alive->deliver(problem(full));
    });
    return nullptr;
  }
  auto wake = [posted = posted_, connection = connection_] {
    posted->post([connection] {
      if (const auto alive = connection.lock()) alive->pump_stream();
    });
  };
  auto queue = std::make_shared<StreamQueue>(site_->options.limits.stream_pending_bytes, std::move(wake));
  queue->on_close([site = site_] { --site->streams; });
  posted_->dispatch([connection = connection_, queue, format] {
    if (const auto alive = connection.lock()) {
      alive->begin_stream(queue, format);
    } else {
      queue->reader_gone();
    }
  });
  return queue;
}

bool Exchange::answer_with_relay(RelayOffer offer) {
  if (!claim()) return false;
  const bool is_full = ++site_->streams > site_->options.limits.streams;
  if (is_full) --site_->streams;
  posted_->dispatch([connection = connection_, site = site_, is_full, offer = std::move(offer)]() mutable {
    const auto alive = connection.lock();
    if (alive && !is_full) return alive->begin_relay(std::move(offer));
    if (offer.ended) offer.ended({});
    if (!is_full) --site->streams;
    if (alive) alive->deliver(problem({ErrorCode::kUnavailable, "this server has as many open streams as it allows"}));
  });
  return true;
}

// --- The plumbing: one read, one write or one wait at a time.

void HttpConnection::enter(State state, std::chrono::milliseconds time) {
  state_ = state;
  deadline_ = Clock::now() + time;
}

void HttpConnection::read(std::size_t at_most, Step next) {
  const std::size_t had = in_.size();
  in_.resize(had + at_most);
  transport_->read(in_.data() + had, at_most,
                   [self = shared_from_this(), had, next, ticket = read_ticket_](error_code ec, std::size_t count) {
                     if (self->closed() || self->read_ticket_ != ticket) return;
                     self->in_.resize(had + count);
                     if (ec) return self->close();
                     (self.get()->*next)();
                   });
}

void HttpConnection::write(std::string bytes, Step next) {
  out_ = std::move(bytes);
  out_sent_ = 0;
  after_write_ = next;
  write_rest();
}

void HttpConnection::write_rest() {
  deadline_ = Clock::now() + site_->options.timeouts.write;
  transport_->write(out_.data() + out_sent_, std::min(out_.size() - out_sent_, kWriteBytes),
                    [self = shared_from_this()](error_code ec, std::size_t count) {
                      if (self->closed()) return;
                      if (ec) return self->close();
                      self->out_sent_ += count;
                      if (self->out_sent_ < self->out_.size()) return self->write_rest();
                      self->out_.clear();
                      (self.get()->*self->after_write_)();
                    });
}

// --- Requests.

void HttpConnection::begin() {
  enter(State::kOpening, site_->options.timeouts.handshake);
  switch (carrier_) {
    case Carrier::kPlain:
      return opened();
    case Carrier::kTls:
      return transport_->handshake([self = shared_from_this()](Handshake outcome) { self->handshake_ended(outcome); });
    case Carrier::kSocket:
      return ask_for_peer();
  }
}

void HttpConnection::begin_refused() {
  refused_ = true;
  begin();
}

void HttpConnection::opened() {
  if (refused_) {
    keep_alive_ = false;
    return send_response(problem({ErrorCode::kUnavailable, "this server has as many connections as it allows"}));
  }
  enter(State::kIdle, site_->options.timeouts.head);
  read(kHeadReadBytes, &HttpConnection::read_head);
}

void HttpConnection::handshake_ended(Handshake outcome) {
  if (state_ != State::kOpening) return;
  switch (outcome) {
    case Handshake::kDone:
      peer_ = transport_->peer();
      peer_.address = accepted_.peer;
      return opened();
    case Handshake::kNotTls:
      return refuse({400, "tls-required", "this port speaks TLS: the address of this server begins with https://"});
    case Handshake::kFailed:
      ++site_->handshakes_failed;
      return linger();  // so that the client sees why
  }
}

// With a descriptor of its own: that of the connection may be closed meanwhile, and its number be of another socket.
void HttpConnection::ask_for_peer() {
  const int socket = ::fcntl(accepted_.socket, F_DUPFD_CLOEXEC, 0);
  if (socket < 0) return close();
  site_->peers.post([site = site_, posted = posted_, self = weak_from_this(), asked = Descriptor(socket)] {
    posted->post([self, peer = site->options.peer_of_socket(asked.get())]() mutable {
      const auto asking = self.lock();
      if (asking == nullptr || asking->state_ != State::kOpening) return;
      asking->peer_ = std::move(peer);
      asking->peer_.address = asking->accepted_.peer;
      asking->opened();
    });
  });
}

void HttpConnection::await_request() {
  parser_.reset();
  exchange_.reset();
  scanned_ = 0;
  if (in_.empty()) {
    in_.shrink_to_fit();
    enter(State::kIdle, site_->options.timeouts.idle);
    return read(kHeadReadBytes, &HttpConnection::read_head);
  }
  read_head();
}

void HttpConnection::read_head() {
  // RFC 9112, section 2.2: an empty line before the request line is passed over.
  while (in_.starts_with("\r\n")) in_.erase(0, 2);
  if (state_ != State::kHead) enter(State::kHead, site_->options.timeouts.head);
  if (in_ == "\r") return read(kHeadReadBytes, &HttpConnection::read_head);
  const HeadScan scan = scan_head(in_, scanned_, site_->options.limits);
  if (scan.refusal) return refuse(*scan.refusal);
  if (scan.size > 0) return parse_head(scan.size);
  scanned_ = in_.size();
  read(kHeadReadBytes, &HttpConnection::read_head);
}

void HttpConnection::parse_head(std::size_t size) {
  ++site_->requests;
  if (const auto refusal = screen_head(std::string_view(in_).substr(0, size), site_->options.limits)) {
    return refuse(*refusal);
  }
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(2 * site_->options.limits.head_bytes));  // the head, and a trailer
  parser_->body_limit(site_->options.limits.body_bytes);
  error_code ec;
  const std::size_t consumed = parser_->put(asio::buffer(in_.data(), size), ec);
  if (ec == beast::http::error::body_limit) return refuse_body(ec);
  if (ec || !parser_->is_header_done()) return refuse({400, "bad-request", "the head is malformed: " + ec.message()});
  in_.erase(0, consumed);
  scanned_ = 0;
  begin_body();
}

void HttpConnection::begin_body() {
  const auto& message = parser_->get();
  if (request_id_.empty()) request_id_ = site_->id_prefix + "-" + std::to_string(++site_->ids);
  keep_alive_ = parser_->keep_alive() && !site_->stopping;
  http_1_0_ = message.version() == 10;
  head_only_ = message.method() == beast::http::verb::head;
  Head head{.method = message.method_string(),
            .target = message.target(),
            .headers = {},
            .has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0,
            .fresh_id = request_id_};
  for (const auto& field : message)
    head.headers.push_back({lower_case(field.name_string()), std::string(field.value())});
  request_id_ = request_id_of(head);
  auto decision = admit(std::move(head), site_->router, site_->authenticator, peer_, site_->options.gate);
  if (auto* answer = std::get_if<Response>(&decision)) {
    if (parser_->is_done()) return send_response(std::move(*answer));
    return answer_unread(std::move(*answer));
  }
  if (const auto* waiting = std::get_if<Waiting>(&decision)) return await_keys(*waiting);
  admitted_ = std::move(std::get<Admitted>(decision));
  path_ = admitted_.request.path;
  // A login name or a certificate alone is no word of an admin: without a role it makes no room for itself.
  const policy::Subject& who = admitted_.request.principal;
  if (!who.name.empty() && (who.proof == kByToken || !who.roles.empty())) authenticated_ = true;
  if (parser_->is_done()) return handle();
  parser_->eager(true);
  if (admitted_.expects_continue && in_.empty() && !http_1_0_) {
    enter(State::kWriting, site_->options.timeouts.write);
    return write(std::string(kContinue), &HttpConnection::begin_admitted_body);
  }
  begin_admitted_body();
}

// The head is judged again when keys have come, and nothing else waits for them.
void HttpConnection::await_keys(const Waiting& waiting) {
  if (state_ != State::kKeys) enter(State::kKeys, kKeysTime);
  waiting.until_known([posted = posted_, connection = weak_from_this()] {
    posted->post([connection] {
      const auto alive = connection.lock();
      if (alive && alive->state_ == State::kKeys) alive->begin_body();
    });
  });
}

void HttpConnection::keys_are_late() {
  answer_unread(problem({ErrorCode::kUnavailable, "the keys of the token's issuer could not be fetched in time"}));
}

void HttpConnection::begin_admitted_body() {
  enter(State::kBody, site_->options.timeouts.body);
  feed_body();
}

void HttpConnection::read_body() {
  // Whatever the parser left over is the beginning of a chunk line; one this long is an attack by chunk extensions.
  if (in_.size() > kHeadReadBytes) return refuse({400, "bad-request", "a chunk line is too long"});
  read(kBodyReadBytes, &HttpConnection::feed_body);
}

void HttpConnection::feed_body() {
  while (!parser_->is_done() && !in_.empty()) {
    error_code ec;
    const std::size_t consumed = parser_->put(asio::buffer(in_), ec);
    in_.erase(0, consumed);
    if (ec == beast::http::error::need_more) break;
    if (ec) return refuse_body(ec);
    if (consumed == 0) break;
  }
  if (!parser_->is_done()) return read_body();
  handle();
}

void HttpConnection::refuse_body(error_code ec) {
  if (ec == beast::http::error::body_limit) {
    return refuse(
        {413, "body-too-large", "the body is over " + std::to_string(site_->options.limits.body_bytes) + " bytes"});
  }
  refuse({400, "bad-request", "the body is malformed: " + ec.message()});
}

void HttpConnection::handle() {
  const auto admitted = std::make_shared<Admitted>(std::move(admitted_));
  admitted->request.body = std::move(parser_->get().body());
  admitted->request.peer = accepted_.peer;
  admitted->request.carrier = carrier_;
  parser_.reset();
  enter(State::kHandling, site_->options.timeouts.handler);
  exchange_ = std::make_shared<Exchange>(posted_, site_, weak_from_this());
  authorization_ = std::string(admitted->request.header("authorization"));
  cookies_ = std::string(admitted->request.header("cookie"));
  principal_ = admitted->request.principal;
  // Whether a subject may do it can depend on a job, which is looked up; an admin needs no look.
  Threads threads = admitted->route->threads;
  const bool has_token = admitted->route->access == Access::kToken;
  if (has_token && threads == Threads::kIo && !policy::may_do_everything(principal_)) threads = Threads::kReads;
  site_->run_on(threads, client(), [site = site_, exchange = exchange_, admitted, has_token, peer = peer_] {
    if (exchange->claimed()) return;  // the client has gone, or has waited too long
    if (has_token) {  // it may have ended, or lost a role, while the body was read or the request waited
      auto now = site->authenticator.identify(admitted->request.header("authorization"),
                                              admitted->request.header("cookie"), peer);
      if (!now.subject) {
        Responder(exchange).send(unauthenticated(peer, now.refusal));
        return;
      }
      admitted->request.principal = std::move(*now.subject);
    }
    run_handler(*site, *admitted, Responder(exchange));
  });
}

void HttpConnection::deliver(Response response) {
  if (state_ == State::kHandling) send_response(std::move(response));
}

Response HttpConnection::sendable(Response response) const {
  if (!can_be_sent(response)) {
    report(*site_, "an answer on " + path_ + " has a status or header that cannot be sent");
    response = problem(500, "internal", "the request failed within the server");
  }
  if (!path_.empty()) state_instance(response, path_);
  return response;
}

void HttpConnection::send_response(Response response) {
  if (site_->stopping) keep_alive_ = false;
  enter(State::kWriting, site_->options.timeouts.write);
  response = sendable(std::move(response));
  if (!request_id_.empty()) response.headers.push_back({"X-Request-Id", request_id_});
  if (carrier_ == Carrier::kTls) response.headers.push_back({"Strict-Transport-Security", kHttpsAlone});
  const WireOptions options{.head_only = head_only_, .keep_alive = keep_alive_};
  if (head_only_ || response.body.size() < kLargeBodyBytes) {
    return write(to_wire(response, options), &HttpConnection::answer_finished);
  }
  std::string head = head_to_wire(response, options);
  large_body_ = std::move(response.body);
  write(std::move(head), &HttpConnection::write_large_body);
}

// Without copying it behind its head: that would hold up the other connections.
void HttpConnection::write_large_body() { write(std::move(large_body_), &HttpConnection::answer_finished); }

void HttpConnection::answer_finished() {
  path_.clear();
  request_id_.clear();
  out_.shrink_to_fit();
  if (!keep_alive_ || site_->stopping) return linger();
  await_request();
}

void HttpConnection::refuse(const Refusal& refusal) {
  answer_unread(problem(refusal.status, refusal.code, refusal.detail));
}

void HttpConnection::refuse_late(std::string_view what) {
  ++read_ticket_;
  transport_->cancel();
  refuse({408, "request-timeout", std::string(what) + " did not arrive in time"});
}

void HttpConnection::answer_unread(Response response) {
  keep_alive_ = false;
  send_response(std::move(response));
}

// --- Deadlines and the end.

void HttpConnection::tick(Clock::time_point now) {
  if (state_ == State::kStreaming) tick_stream(now);
  if (state_ == State::kRelaying) {
    if (lost_access()) return close();
    return relay_->tick(now);
  }
  if (now >= deadline_) deadline_passed();
}

void HttpConnection::deadline_passed() {
  if (state_ != State::kIdle && state_ != State::kLingering && state_ != State::kClosed) ++site_->timeouts;
  switch (state_) {
    case State::kHead:
      return refuse_late("the head of the request");
    case State::kKeys:
      return keys_are_late();
    case State::kBody:
      return refuse_late("the body of the request");
    case State::kHandling:
      if (exchange_->claim()) send_response(problem({ErrorCode::kUnavailable, "the answer took too long"}));
      return;
    case State::kOpening:
    case State::kIdle:
    case State::kWriting:
    case State::kStreaming:
    case State::kRelaying:
    case State::kLingering:
      return close();
    case State::kClosed:
      return;
  }
}

void HttpConnection::drain() {
  if (state_ == State::kIdle || state_ == State::kOpening) return close();
  if (state_ == State::kStreaming) queue_->close();
  if (state_ == State::kRelaying) relay_->end(kCloseGoingAway, "the server is stopping");
}

// A socket closed with bytes unread is reset, and a reset may overtake the answer. So the answer is followed by an end
// of sending, and what still comes is read for a while and thrown away.
void HttpConnection::linger() {
  error_code ec;
  transport_->end_sending(ec);
  if (ec) return close();
  enter(State::kLingering, kLingerTime);
  discarded_bytes_ = 0;
  linger_read();
}

void HttpConnection::linger_read() {
  in_.clear();
  read(kBodyReadBytes, &HttpConnection::linger_on);
}

void HttpConnection::linger_on() {
  discarded_bytes_ += in_.size();
  if (discarded_bytes_ > kLingerBytes) return close();
  linger_read();
}

void HttpConnection::close() {
  if (closed()) return;
  state_ = State::kClosed;
  if (exchange_ != nullptr) exchange_->claim();
  if (transport_ != nullptr) transport_->close();
  if (relay_ != nullptr) {
    relay_->close();
    --site_->streams;
  }
  site_->connection_closed();
  if (queue_ != nullptr) queue_->reader_gone();
}

// --- Streams.

void HttpConnection::begin_stream(std::shared_ptr<StreamQueue> queue, StreamFormat format) {
  if (state_ != State::kHandling) return queue->reader_gone();
  keep_alive_ = false;
  if (head_only_ || site_->stopping) {
    queue->reader_gone();
    enter(State::kWriting, site_->options.timeouts.write);
    std::string whole = stream_head(format, !http_1_0_);
    if (!head_only_ && !http_1_0_) whole += kLastChunk;
    return write(std::move(whole), &HttpConnection::answer_finished);
  }
  queue_ = std::move(queue);
  stream_format_ = format;
  state_ = State::kStreaming;
  in_.clear();
  in_.shrink_to_fit();
  watch_stream_reader();
  write_stream(stream_head(format, !http_1_0_));
}

void HttpConnection::write_stream(std::string bytes) {
  stream_writing_ = true;
  next_heartbeat_ = Clock::now() + site_->options.timeouts.heartbeat;
  write(std::move(bytes), &HttpConnection::stream_written);
}

void HttpConnection::stream_written() {
  stream_writing_ = false;
  deadline_ = Clock::time_point::max();
  out_.shrink_to_fit();
  queue_->taken_is_sent();
  if (stream_ending_) return linger();
  pump_stream();
}

// Returns true if the token of the stream has ended, or has other roles than when the stream began.
bool HttpConnection::lost_access() const {
  const auto now = site_->authenticator.identify(authorization_, cookies_, peer_);
  return !principal_.name.empty() && (!now.subject || *now.subject != principal_);
}

// After each write, and whenever the queue wakes the connection.
void HttpConnection::pump_stream() {
  if (state_ != State::kStreaming) return;
  if (lost_access()) return close();
  if (queue_->overflowed()) {
    ++site_->streams_dropped;
    return close();
  }
  if (stream_writing_) return;
  std::string bytes = queue_->take(kStreamWriteBytes);
  if (!bytes.empty()) return write_stream(http_1_0_ ? std::move(bytes) : to_chunk(bytes));
  if (queue_->ended()) return end_stream();
  if (auto next_step = queue_->take_drained()) {
    const auto pausing_step = [step = std::move(next_step)] {
      step();
      std::this_thread::sleep_for(kStepPause);
    };
    site_->stream_steps.post(pausing_step, client());
  }
}

void HttpConnection::tick_stream(Clock::time_point now) {
  if (lost_access()) return close();
  if (stream_writing_ || now < next_heartbeat_) return;
  queue_->write(std::make_shared<const std::string>(heartbeat(stream_format_)));
}

void HttpConnection::end_stream() {
  queue_->reader_gone();
  if (http_1_0_) return linger();
  stream_ending_ = true;
  write_stream(std::string(kLastChunk));
}

// --- WebSockets.

void HttpConnection::begin_relay(RelayOffer offer) {
  const int own = ::fcntl(*offer.stream, F_DUPFD_CLOEXEC, 0);
  auto stream = own < 0 ? nullptr : make_transport(*io_, own, AF_UNIX, nullptr);
  if (state_ != State::kHandling || site_->stopping || stream == nullptr) {
    if (stream != nullptr) stream->close();
    if (offer.ended) offer.ended({});
    --site_->streams;
    return deliver(problem({ErrorCode::kUnavailable, "the connection cannot be upgraded now; try again"}));
  }
  keep_alive_ = false;
  state_ = State::kRelaying;
  deadline_ = Clock::time_point::max();
  relay_ = std::make_shared<Relay>(std::move(transport_), std::move(stream), std::exchange(in_, {}), std::move(offer),
                                   site_->options.timeouts.heartbeat, [connection = weak_from_this()] {
                                     if (const auto alive = connection.lock()) alive->close();
                                   });
  relay_->begin();
}

// Nothing is expected from a watcher but its end. Waiting instead of reading keeps no buffer for a thousand of them.
void HttpConnection::watch_stream_reader() {
  transport_->await_input([self = shared_from_this()](error_code ec) {
    if (self->state_ != State::kStreaming) return;
    if (ec) return self->close();
    self->stream_chatter();
  });
}

void HttpConnection::stream_chatter() {
  std::array<char, 1024> scrap;
  error_code ec;
  discarded_bytes_ += transport_->take_input(scrap.data(), scrap.size(), ec);
  const bool gone = ec && ec != asio::error::would_block;
  if (gone || discarded_bytes_ > kStreamChatterBytes) return close();
  watch_stream_reader();
}

}  // namespace

std::string draw_id_prefix() {
  std::random_device device;
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", device());
  return text.data();
}

void Site::run_on(Threads threads, const std::string& client, std::function<void()> work) {
  switch (threads) {
    case Threads::kIo:
      return work();
    case Threads::kReads:
      return reads.post(std::move(work), client);
    case Threads::kLongReads:
      return long_reads.post(std::move(work), client);
  }
}

void Site::stop_workers() {
  for (Workers* workers : {&reads, &long_reads, &stream_steps, &peers}) workers->stop();
}

void Site::connection_closed() {
  const std::lock_guard lock(mutex_);
  if (--open == 0) emptied_.notify_all();
}

bool Site::wait_until_empty(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  return emptied_.wait_for(lock, at_most, [this] { return open == 0; });
}

std::shared_ptr<Connection> make_connection(std::shared_ptr<asio::io_context> io, std::shared_ptr<IoQueue> posted,
                                            std::shared_ptr<Site> site, Accepted accepted) {
  const bool is_local = accepted.family == AF_UNIX;
  const TlsCredentials* tls = is_local ? nullptr : site->options.tls.get();
  auto transport = make_transport(*io, accepted.socket, accepted.family, tls);
  if (transport == nullptr) return nullptr;
  const int yes = 1;
  if (!is_local) {
    ::setsockopt(accepted.socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    // A client that takes nothing for so long is gone: what is sent to it would hold up its shell.
    const unsigned most_ms = 45'000;
    ::setsockopt(accepted.socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
  }
  return std::make_shared<HttpConnection>(std::move(io), std::move(posted), std::move(site), std::move(transport),
                                          std::move(accepted));
}

}  // namespace berth::http
