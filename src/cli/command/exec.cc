// `berth exec`, `berth attach` and `berth run -it`.

#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>

#include "cli/command/commands.h"
#include "cli/command/interactive.h"
#include "cli/command/shell_line.h"
#include "cli/exit_code.h"

namespace berth::cli {
namespace {

Result<std::unique_ptr<client::WebSocketLink>> open_shell_line(Session& session, const std::string& path) {
  return session.server.open_web_socket(path, kShellProtocol, kMostShellBytes + 16);
}

Result<void> check_terminal(const char* what) {
  if (::isatty(STDIN_FILENO) == 1) return {};
  return invalid(std::string(what) + " needs a terminal as standard input; berth exec ID -i -- COMMAND takes a pipe");
}

std::vector<QueryValue> size_values() {
  const WindowSize size = window_size_here();
  return {{"columns", std::to_string(size.columns)}, {"rows", std::to_string(size.rows)}};
}

}  // namespace

Attachment attach_terminal(const std::string& id, Session& session) {
  const auto path = job_path(id, "/attach");
  if (!path) return {false, path.error()};
  auto line = open_shell_line(session, query(*path, size_values()));
  if (!line) return {false, line.error()};
  auto code = follow_shell(**line, {true, true}, session);
  if (!code && code.error().code == ErrorCode::kUnavailable)
    code = Error{ErrorCode::kUnavailable, code.error().message + "; the job goes on for a while: berth attach " + id};
  return {true, std::move(code)};
}

Result<int> run(const AttachOptions& options, Session& session) {
  if (auto ok = check_terminal("berth attach"); !ok) return ok.error();
  return attach_terminal(options.id, session).code;
}

Result<int> run(const ExecOptions& options, Session& session) {
  if (options.terminal) {
    if (auto ok = check_terminal("-t"); !ok) return ok.error();
  }
  const auto path = job_path(options.id, "/exec");
  if (!path) return path.error();
  boost::json::array words;
  for (const std::string& word : options.command) words.push_back(boost::json::string(word));
  std::vector<QueryValue> values{{"command", boost::json::serialize(words)}};
  if (options.task != 0) values.push_back({"task", std::to_string(options.task)});
  if (options.terminal) {
    values.push_back({"terminal", "true"});
    for (QueryValue& one : size_values()) values.push_back(std::move(one));
    if (const char* term = std::getenv("TERM")) values.push_back({"term", term});
  } else if (options.input) {
    values.push_back({"input", "true"});
  }
  auto line = open_shell_line(session, query(*path, values));
  if (!line) return line.error();
  return follow_shell(**line, {options.terminal || options.input, options.terminal}, session);
}

}  // namespace berth::cli
