// Shells in the tasks of running jobs, by WebSocket (docs/shell.md). A page in a browser opens none: it could be a page
// of another site, which asks with the browser's session or certificate.

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "api/http/screen.h"
#include "api/routes/access.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "base/web_socket.h"
#include "model/queue_volumes.h"
#include "model/shell_message.h"
#include "policy/audit.h"

namespace berth::api {
namespace {

using http::Access;
using http::integer_parameter;
using http::Method;
using http::query_parameter;
using http::Request;
using http::Responder;

constexpr std::size_t kMostTermBytes = 64;
constexpr std::chrono::seconds kLongestNote{10};

using ShellQuery = Service::ShellQuery;

http::Response upgrade_required(const std::string& detail) {
  http::Response response = http::problem(426, "upgrade-required", detail);
  response.headers.push_back({"Upgrade", "websocket"});
  response.headers.push_back({"Sec-WebSocket-Version", "13"});
  return response;
}

// True if `word` is among those that commas separate.
bool lists(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t comma = words.find(',');
    if (http::equals_ignoring_case(http::trim_whitespace(words.substr(0, comma)), word)) return true;
    words = comma == std::string_view::npos ? std::string_view() : words.substr(comma + 1);
  }
  return false;
}

// Returns the answer to a request that is no WebSocket's, or one of a browser.
std::optional<http::Response> refuse_client(const Request& request) {
  if (!request.header("origin").empty() || request.principal.proof == http::kBySession)
    return http::problem(403, "cross-site", "a page in a browser opens no shell; use berth exec");
  if (request.method != Method::kGet || !lists(request.header("upgrade"), "websocket") ||
      !lists(request.header("connection"), "upgrade") || request.header("sec-websocket-version") != "13" ||
      !is_web_socket_key(request.header("sec-websocket-key")))
    return upgrade_required("this route is a WebSocket (RFC 6455); use berth exec, or a client of WebSockets");
  if (!lists(request.header("sec-websocket-protocol"), kShellProtocol))
    return upgrade_required("the subprotocol of this WebSocket is " + std::string(kShellProtocol));
  return std::nullopt;
}

Result<std::vector<std::string>> shell_command_of(const Request& request) {
  const auto text = request.query_value("command");
  boost::json::error_code ec;
  const boost::json::value words = boost::json::parse(text.value_or("[]"), ec);
  const Error wrong = invalid("command is a JSON array of one or more texts, such as [\"sh\",\"-l\"]");
  if (ec || !words.is_array() || words.get_array().empty()) return wrong;
  std::vector<std::string> command;
  for (const boost::json::value& word : words.get_array()) {
    if (!word.is_string()) return wrong;
    command.emplace_back(word.get_string());
    if (command.back().find('\0') != std::string::npos) return invalid("command: a word holds a NUL byte");
  }
  if (command.front().empty()) return wrong;
  return command;
}

Result<ShellQuery> query_of(const Request& request, bool attach) {
  const auto job = job_id_of(request);
  if (!job) return job.error();
  ShellQuery query{*job, static_cast<std::uint32_t>(integer_of(request, "task", 0)), {}};
  ShellBegin& begin = query.begin;
  begin.attach = attach;
  begin.size = {static_cast<std::uint16_t>(integer_of(request, "columns", begin.size.columns)),
                static_cast<std::uint16_t>(integer_of(request, "rows", begin.size.rows))};
  if (attach) return query;
  auto command = shell_command_of(request);
  if (!command) return command.error();
  begin.command = std::move(*command);
  begin.terminal = flag_of(request, "terminal");
  begin.input = begin.terminal || flag_of(request, "input");
  begin.term = text_of(request, "term");
  if (begin.term.size() > kMostTermBytes)
    return invalid("term has at most " + std::to_string(kMostTermBytes) + " bytes");
  return query;
}

std::string job_text(JobId job) { return "job " + std::to_string(job.value()); }

// Returns the first notes of the audit, or why no shell is opened in the task.
Result<ShellOpened> find_place(Service& service, const Request& request, const ShellQuery& query) {
  Result<ShellOpened> found = not_found("no such " + job_text(query.job));
  bool is_live = false;
  service.read([&](const View& view) {
    const state::JobState* job = view.state.job(query.job);
    if (job == nullptr) return;
    is_live = true;
    const std::string& queue = view.state.queue(job->queue).path;
    found = ShellOpened{query.job, query.task, queue, job->spec.user, request.subject, {}};
    if (job->is_parent()) {
      found = conflict(job_text(query.job) + " has parts, which are jobs of their own: berth jobs --parent " +
                       std::to_string(query.job.value()));
    } else if (const auto without = queue_without_shell(view.state.config(), queue)) {
      found = Error{ErrorCode::kDenied, *without == "/"
                                            ? "this cluster opens no shells in jobs (shell: false in its configuration)"
                                            : "queue '" + *without + "' opens no shells in its jobs (shell: false)"};
    } else if (!job->attempt) {
      found = conflict(job_text(query.job) + " does not run now; berth why " + std::to_string(query.job.value()) +
                       " says why");
    } else if (query.task >= job->attempt->tasks.size()) {
      const std::size_t last = job->attempt->tasks.size() - 1;
      found = not_found(job_text(query.job) + " has no task " + std::to_string(query.task) + "; " +
                        (last == 0 ? "its only one is 0" : "its tasks are 0 to " + std::to_string(last)));
    } else if (job->attempt->tasks[query.task].phase != TaskPhase::kRunning) {
      found = conflict(
          "task " + std::to_string(query.task) + " of " + job_text(query.job) +
          (job->attempt->tasks[query.task].phase == TaskPhase::kBound ? " is just starting; try again" : " has ended"));
    } else if (query.begin.attach && job->spec.kind != JobKind::kInteractive) {
      found = conflict(job_text(query.job) + " has no terminal; berth exec " + std::to_string(query.job.value()) +
                       " -it -- bash opens one, and berth logs shows what it writes");
    }
  });
  if (!is_live && service.past_job(query.job)) return conflict(job_text(query.job) + " has finished");
  if (!found && found.error().code == ErrorCode::kDenied) {
    const auto job = job_object(service, query.job);
    if (job) note_denied(service, request, policy::Verb::kOpenShell, {job->queue, job->owner, query.job}, query.job);
  }
  return found;
}

// Waits until it is durable.
Result<void> note_opened(Service& service, const Request& request, const ShellOpened& opened) {
  const auto noted = std::make_shared<std::promise<Result<void>>>();
  auto answer = noted->get_future();
  service.submit(origin_of(request), NoteShell{opened}, [noted](const Result<control::Reply>& reply) {
    noted->set_value(reply ? Result<void>() : Result<void>(reply.error()));
  });
  if (answer.wait_for(kLongestNote) != std::future_status::ready)
    return Error{ErrorCode::kUnavailable, "that a shell is opened could not be written down in time; try again"};
  return answer.get();
}

void note_ended(Service& service, const Origin& by, const ShellOpened& opened, const ShellEnd& end) {
  service.submit(by,
                 NoteShell{ShellEnded{opened.job, opened.task, opened.queue, opened.owner, opened.subject,
                                      opened.program, end.code, end.message}},
                 [](const Result<control::Reply>&) {});
}

// How the shell has ended, by the last message of its stream.
ShellEnd end_of(std::string_view last) {
  if (channel_of(last) == ShellChannel::kEnd) {
    if (auto end = shell_end_of(last.substr(1))) return *end;
  }
  return {std::nullopt, "its client went away, or the server stopped"};
}

void open_shell(Service& service, const Request& request, const Responder& responder, bool attach) {
  if (auto refusal = refuse_client(request)) {
    responder.send(std::move(*refusal));
    return;
  }
  const auto query = query_of(request, attach);
  if (!query) {
    responder.fail(query.error());
    return;
  }
  auto opened = find_place(service, request, *query);
  if (!opened) {
    responder.fail(opened.error());
    return;
  }
  if (!attach) opened->program = policy::audit_text(query->begin.command.front());
  const auto ended = [&service, by = origin_of(request), place = *opened](const ShellEnd& end) {
    note_ended(service, by, place, end);
  };
  if (const auto noted = note_opened(service, request, *opened); !noted) {
    if (noted.error().code == ErrorCode::kUnavailable) ended({std::nullopt, "it was not opened"});
    responder.fail(noted.error());
    return;
  }
  service.open_shell(*query, [responder, ended, key = std::string(request.header("sec-websocket-key"))](
                                 const Result<std::shared_ptr<const int>>& stream) {
    if (!stream) {
      ended({std::nullopt, stream.error().message});
      responder.fail(stream.error());
      return;
    }
    const bool joined = responder.relay(
        {*stream, key, std::string(kShellProtocol), [ended](std::string_view last) { ended(end_of(last)); }});
    if (!joined) ended(end_of({}));
  });
}

http::Route shell_route(Service& service, bool attach) {
  http::Route route{
      .method = Method::kGet,
      .pattern = attach ? "/v1/jobs/{id}/attach" : "/v1/jobs/{id}/exec",
      .access = Access::kToken,
      .threads = http::Threads::kReads,
      .doc = {.operation_id = attach ? "attachTerminal" : "openShell",
              .summary = attach ? "Attach the terminal of an interactive job." : "Run a command in a task of a job.",
              .responses = {{.status = 101,
                             .description =
                                 "A WebSocket with the subprotocol v1.shell.berth. Its binary messages are a "
                                 "channel, one byte, and bytes: 0 input, 1 output, 2 errors, 3 the end as "
                                 "JSON {code, message}, 4 the size COLUMNSxROWS, 5 a signal, 6 no more "
                                 "input."},
                            {.status = 404, .description = "There is no such job or task."},
                            {.status = 409, .description = "The task does not run now, or has no terminal."},
                            {.status = 422, .description = "No shells are opened where the task runs."},
                            {.status = 426, .description = "The request is no WebSocket's with that subprotocol."}},
              .description = "It is in the audit. A request of a page in a browser is refused.",
              .tags = {"jobs"},
              .parameters = {job_parameter(), integer_parameter("columns", "Of the terminal; 80 if absent.", 1, 65535),
                             integer_parameter("rows", "Of the terminal; 24 if absent.", 1, 65535)}},
      .handler = [&service, attach](const Request& request, const Responder& to) {
        open_shell(service, request, to, attach);
      }};
  if (attach) return route;
  http::ParameterDoc command =
      query_parameter("command", "The command: a JSON array of texts, such as [\"sh\",\"-l\"].");
  command.required = true;
  auto& parameters = route.doc.parameters;
  parameters.push_back(std::move(command));
  parameters.push_back(integer_parameter("task", "Which task; 0 if absent.", 0, 2'147'483'647));
  parameters.push_back(query_parameter("terminal", "True: it gets a terminal.", http::ParameterType::kBoolean));
  parameters.push_back(query_parameter("input", "True: what is sent is its standard input; else that is empty.",
                                       http::ParameterType::kBoolean));
  parameters.push_back(query_parameter("term", "TERM of the command, at most 64 bytes."));
  return route;
}

}  // namespace

void add_shell_routes(http::Router& router, Service& service) {
  router.add(shell_route(service, false));
  router.add(shell_route(service, true));
}

}  // namespace berth::api
