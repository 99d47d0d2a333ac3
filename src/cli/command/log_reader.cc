#include "cli/command/log_reader.h"

#include <charconv>

namespace berth::cli {
namespace {

constexpr std::int64_t kPartBytes = 256 * 1024;

std::int64_t header_number(const client::Reply& reply, const char* name) {
  const auto found = reply.headers.find(name);
  std::int64_t value = 0;
  if (found != reply.headers.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  }
  return value;
}

}  // namespace

Result<LogPart> read_log(const LogSource& source, std::int64_t from, Session& session) {
  const auto path = job_path(source.job, "/logs");
  if (!path) return path.error();
  auto reply = session.server.get(query(*path, {{"attempt", source.attempt == 0 ? "" : std::to_string(source.attempt)},
                                                {"task", std::to_string(source.task)},
                                                {"stream", source.error_stream ? "stderr" : "stdout"},
                                                {"from", std::to_string(from)},
                                                {"limit", std::to_string(kPartBytes)},
                                                {"break_glass", source.break_glass}}));
  if (!reply) return reply.error();
  if (!reply->ok()) return client::error_of(*reply);
  LogPart part;
  part.from = header_number(*reply, "berth-log-from");
  part.next = header_number(*reply, "berth-log-next");
  part.attempt = header_number(*reply, "berth-log-attempt");
  const auto complete = reply->headers.find("berth-log-complete");
  part.complete = complete != reply->headers.end() && complete->second == "true";
  part.bytes = std::move(reply->body);
  return part;
}

std::size_t tail_begin(std::string_view text, std::int64_t lines) {
  if (lines <= 0) return text.size();
  std::size_t end = text.size();
  if (text.ends_with('\n')) --end;
  for (std::int64_t seen = 0; end > 0; --end) {
    if (text[end - 1] == '\n' && ++seen == lines) return end;
  }
  return 0;
}

// Looks at the last part; a part that holds fewer lines is looked for twice as far back.
Result<std::int64_t> find_tail(const LogSource& source, std::int64_t lines, Session& session) {
  for (std::int64_t back = 16 * 1024;; back *= 2) {
    std::string text;
    auto part = read_log(source, -back, session);
    if (!part) return part.error();
    const std::int64_t first = part->from;
    while (true) {
      text += part->bytes;
      if (part->bytes.empty() || static_cast<std::int64_t>(text.size()) >= back) break;
      part = read_log(source, part->next, session);
      if (!part) return part.error();
    }
    const std::size_t begin = tail_begin(text, lines);
    if (begin > 0 || first == 0 || static_cast<std::int64_t>(text.size()) < back) {
      return first + static_cast<std::int64_t>(begin);
    }
  }
}

}  // namespace berth::cli
