#pragma once
// What a command works with: the server, and where it writes. Tests give it a canned server and string streams.

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/answer.h"
#include "cli/client/client.h"
#include "cli/options.h"

namespace berth::cli {

struct Session {
  std::ostream& out;
  std::ostream& err;
  client::Client server;
  std::string address;    // of the server, for messages
  bool terminal = false;  // `out` is one
  std::size_t width = 0;  // of the terminal; 0: nothing is cut
  std::size_t height = 0;
  // Asks the user a question and returns true for yes; empty if there is no terminal to ask on.
  std::function<bool(const std::string& question)> confirm = {};
};

// The JSON of a good answer; an error status is the Error that the server tells of.
Result<Json> answer_of(const Result<client::Reply>& reply);
Result<Json> get(Session& session, std::string_view path);

// A path with the query values that are not empty: query("/v1/jobs", {{"queue", "a/b"}}) is "/v1/jobs?queue=a%2Fb".
struct QueryValue {
  std::string_view name;
  std::string value;
};
std::string query(std::string path, const std::vector<QueryValue>& values);

// A job's number; an Error says what would be right.
Result<std::string> job_path(std::string_view id, std::string_view rest = {});

// Shows what `render` gives; with --watch again and again, in place on a terminal and one after the other otherwise,
// until the program is interrupted. While watching, a server that is away is waited for.
Result<int> show_once_or_watch(Session& session, const ShowOptions& options,
                               const std::function<Result<std::string>()>& render);

// `value` in the format that was asked for, or what `table` makes of it.
std::string formatted(const Json& value, Format format, const std::function<std::string()>& table);

// How wide a table may be: -o wide is never cut.
std::size_t table_width(const Session& session, Format format);

}  // namespace berth::cli
