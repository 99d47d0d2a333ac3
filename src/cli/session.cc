#include "cli/session.h"

#include <boost/json/parse.hpp>
#include <chrono>
#include <thread>

#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

// A terminal is redrawn from its top left corner, line by line, so that it does not flicker.
void redraw(Session& session, const std::string& text) {
  std::string screen = "\x1b[H";
  for (const char c : text) screen += c == '\n' ? "\x1b[K\n" : std::string(1, c);
  session.out << screen << "\x1b[J" << std::flush;
}

std::string watch_line(const ShowOptions& options) {
  return "every " + span_text(options.every_s * 1000) + "  " + clock_text(to_iso8601(clock_now())) +
         "  (Ctrl-C ends)\n\n";
}

}  // namespace

Result<Json> answer_of(const Result<client::Reply>& reply) {
  if (!reply) return reply.error();
  if (!reply->ok()) return client::error_of(*reply);
  if (reply->body.empty()) return Json();
  boost::json::error_code ec;
  Json value = boost::json::parse(reply->body, ec);
  if (ec) return Error{ErrorCode::kIo, "the server's answer is not JSON; is this address berth's?"};
  return value;
}

Result<Json> get(Session& session, std::string_view path) { return answer_of(session.server.get(path)); }

std::string query(std::string path, const std::vector<QueryValue>& values) {
  char mark = '?';
  for (const QueryValue& value : values) {
    if (value.value.empty()) continue;
    path += mark + std::string(value.name) + "=" + client::encode_segment(value.value);
    mark = '&';
  }
  return path;
}

Result<std::string> job_path(std::string_view id, std::string_view rest) {
  const auto number = document::parse_integer(id, 0, std::int64_t{1} << 62U);
  if (!number) return invalid("'" + std::string(id.substr(0, 80)) + "' is not a job's number; `berth jobs` lists them");
  return "/v1/jobs/" + std::string(id) + std::string(rest);
}

Result<int> show_once_or_watch(Session& session, const ShowOptions& options,
                               const std::function<Result<std::string>()>& render) {
  if (!options.watch) {
    const auto text = render();
    if (!text) return text.error();
    session.out << *text;
    return kOk;
  }
  if (session.terminal) session.out << "\x1b[2J";
  while (session.out) {
    const auto text = render();
    if (!text && text.error().code != ErrorCode::kUnavailable) return text.error();
    const std::string shown = text ? *text : printable(text.error().message) + "\n";
    if (session.terminal) {
      const std::size_t rows = session.height > 1 ? session.height - 1 : 0;  // the cursor has the last one
      redraw(session, fitting(watch_line(options) + shown, session.width, rows));
    } else {
      session.out << shown << std::flush;
    }
    std::this_thread::sleep_for(std::chrono::seconds(options.every_s));
  }
  return kFailed;
}

std::string formatted(const Json& value, Format format, const std::function<std::string()>& table) {
  switch (format) {
    case Format::kJson:
      return json_text(value);
    case Format::kYaml:
      return yaml_text(value);
    case Format::kTable:
    case Format::kWide:
    case Format::kCsv:
    case Format::kHtml:
      return table();
  }
  return {};
}

std::size_t table_width(const Session& session, Format format) { return format == Format::kWide ? 0 : session.width; }

}  // namespace berth::cli
