#pragma once
// The table of routes. The same table serves requests, refuses undocumented parameters, and generates /openapi.json
// (openapi.h), so what is documented is what is served. A route without documentation does not compile, and add()
// CHECKs what the type system cannot see (documentation_flaw).

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/http/message.h"
#include "api/http/responder.h"

namespace berth::http {

// Runs on the threads that its route names; exceptions that escape become a 500 problem. The Request lives only as long
// as the call: copy what a later answer needs.
using Handler = std::function<void(const Request&, Responder)>;

enum class ParameterPlace : std::uint8_t { kPath, kQuery, kHeader };
// A moment is the number of an event, from 1 on, or a time.
enum class ParameterType : std::uint8_t { kString, kInteger, kBoolean, kTime, kMoment };

struct ParameterDoc {
  ParameterPlace place;
  std::string name;
  std::string description;
  ParameterType type = ParameterType::kString;
  bool required = false;                 // path parameters always are
  bool repeated = false;                 // a query parameter that may be given several times
  std::vector<std::string> values = {};  // the allowed values; empty for any
  // Of an integer: the least and the most that is taken.
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  std::string pattern =
      {};  // of a text: an ECMAScript regular expression for the document; the handler checks the text
};

ParameterDoc path_parameter(std::string name, std::string description);
ParameterDoc query_parameter(std::string name, std::string description, ParameterType type = ParameterType::kString);
// An integer of the query, within [low, high].
ParameterDoc integer_parameter(std::string name, std::string description, std::int64_t low, std::int64_t high);
ParameterDoc header_parameter(std::string name, std::string description, std::string pattern);

struct ResponseDoc {
  int status;
  std::string description;
  std::string schema = {};  // a name among the schemas of the document; empty for no body, or one that is not JSON
  std::string content_type = "application/json";
};

// A text that has to be stated: without a default constructor, leaving it out of a RouteDoc does not compile.
struct Stated {
  Stated(const char* stated) : text(stated) {}             // NOLINT(google-explicit-constructor)
  Stated(std::string stated) : text(std::move(stated)) {}  // NOLINT(google-explicit-constructor)
  std::string text;
};

struct RouteDoc {
  Stated operation_id;  // unique in the table
  Stated summary;
  std::vector<ResponseDoc> responses;  // successes, and failures with a meaning of their own; the common ones are added
  std::string description = {};
  std::vector<std::string> tags = {};
  std::vector<ParameterDoc> parameters = {};
  std::map<std::string, std::string> refused_parameters = {};  // query parameters of other routes: why not of this one
  std::string request_schema = {};  // a name among the schemas; empty if the route takes no body
  std::vector<std::string> request_types = {"application/json"};  // what the body may be
  // A name among the schemas: what each item of the stream is with which the route answers as server-sent events or
  // NDJSON, by Accept. Empty if it does not stream.
  std::string streamed_schema = {};
};

enum class Access : std::uint8_t { kToken, kPublic };

// Where a handler runs. On an I/O thread it must not block: it holds up all connections of the thread. Reads wait for
// each other, for files and for the log's database, so they have threads of their own; those that look at all jobs or
// try placements have others, at lower priority, so that they hold up neither short reads nor anything else.
enum class Threads : std::uint8_t { kIo, kReads, kLongReads };

struct Route {
  Method method;        // GET serves HEAD too; OPTIONS is answered from the table
  std::string pattern;  // "/v1/jobs/{id}": literal segments and whole-segment parameters
  Access access;
  Threads threads = Threads::kIo;
  RouteDoc doc;
  Handler handler;
};

struct RouteMatch {
  const Route* route = nullptr;  // null if nothing serves this method and path
  std::map<std::string, std::string> path_params;
  std::vector<Method> allowed;  // the methods that the path has; empty if the path is unknown
};

class Router {
 public:
  void add(Route route);

  // `path` as sent: it is split first and decoded then, so that %2F stays inside its segment. Literal segments win over
  // parameters. Segments must be decodable (see url.h); one that is not matches nothing.
  RouteMatch match(Method method, std::string_view path) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

// What the documentation of a route lacks, beside the routes already there; empty if nothing.
std::string documentation_flaw(const Route& route, const std::vector<Route>& others);

}  // namespace berth::http
