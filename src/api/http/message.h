#pragma once
// What a handler sees of HTTP: a request whose path, query and headers were already checked and decoded, and a response
// that is plain data. Framing, limits and authentication are settled before a handler is called (see dispatch.h).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/peer.h"
#include "policy/authorize.h"

namespace berth::http {

enum class Method : std::uint8_t { kGet, kHead, kPost, kPut, kPatch, kDelete, kOptions, kTrace };

const char* name_of(Method method);
std::optional<Method> method_named(std::string_view name);

struct Header {
  std::string name;
  std::string value;
};

// How a stream is written: server-sent events (with id: lines), or one JSON document per line.
enum class StreamFormat : std::uint8_t { kServerSentEvents, kNdjson };

struct Request {
  Method method = Method::kGet;
  std::string path;                                // as sent, without the query
  std::map<std::string, std::string> path_params;  // decoded; valid UTF-8 without control characters
  std::multimap<std::string, std::string> query;   // decoded likewise; only parameters that the route documents
  std::vector<Header> headers;                     // names in lower case, values as sent
  std::string body;
  std::string id;    // of the request: the client's X-Request-Id, or one that the server made
  std::string peer;  // "127.0.0.1:40112"; "unix" on the Unix socket
  Carrier carrier = Carrier::kPlain;
  std::string subject;          // the name of the principal, for the log; empty on public routes
  policy::Subject principal;    // whose request it is
  std::string idempotency_key;  // the Idempotency-Key header, or empty
  std::string last_event_id;    // the Last-Event-ID header of a resumed stream, or empty
  StreamFormat stream_format = StreamFormat::kServerSentEvents;  // what Accept asks for

  // The value of the header with this lower-case name; empty when it is absent.
  std::string_view header(std::string_view lower_case_name) const;
  // The value of a query parameter that may be given once.
  std::optional<std::string> query_value(const std::string& name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<Header> headers =
      {};  // beyond Content-Type, Content-Length, Date and Connection, which the server writes
  std::string body;
};

// The standard phrase of a status: 404 gives "Not Found".
const char* reason_phrase(int status);

}  // namespace berth::http
