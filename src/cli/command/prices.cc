#include "cli/command/commands.h"
#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "model/document/price_document.h"

namespace berth::cli {
namespace {

Result<int> show_prices(const PricesOptions& options, Session& session) {
  const auto answer = get(session, "/v1/prices");
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] {
    if (show(*answer, "version") == "0") return std::string("no prices are in force; berth prices apply FILE\n");
    return "# version " + show(*answer, "version") + "\n" + show(*answer, "yaml");
  });
  return kOk;
}

Result<int> diff_prices(const PricesOptions& options, const std::string& body, Session& session) {
  const auto answer = answer_of(session.server.send_yaml("POST", "/v1/prices/diff", body));
  if (!answer) return in_file(answer.error(), options.file);
  session.out << formatted(*answer, options.format, [&] {
    std::string text;
    for (const Json& change : items(*answer, "changes")) text += printable(show(change)) + "\n";
    return text;
  });
  return items(*answer, "changes").empty() ? kOk : kFailed;
}

Result<int> apply_prices(const PricesOptions& options, const std::string& body, Session& session) {
  const auto answer = answer_of(session.server.send_yaml("PUT", "/v1/prices", body));
  if (!answer) return in_file(answer.error(), options.file);
  session.out << formatted(*answer, options.format, [&] {
    const std::string version = show(*answer, "version");
    return is_true(*answer, "unchanged") ? "nothing changes: version " + version + " is in force already\n"
                                         : "prices are in force: version " + version + "\n";
  });
  return kOk;
}

}  // namespace

// The server looks the time zones up, which it bills by. It gets the text as it is, so that its places are those of the
// file.
Result<std::string> price_body(const std::string& file) {
  auto text = read_file(file, document::kMaxBytes);
  if (!text) return text;
  if (const auto book = document::read_prices(*text, file, nullptr); !book) return book.error();
  return text;
}

Error in_file(Error error, const std::string& file) {
  constexpr std::string_view kPlace = "body:";  // at the begin of a line, as the server calls it
  for (std::size_t at = 0; at != std::string::npos && at < error.message.size(); at = error.message.find('\n', at)) {
    if (error.message[at] == '\n') ++at;
    if (error.message.compare(at, kPlace.size(), kPlace) == 0) error.message.replace(at, kPlace.size() - 1, file);
  }
  return error;
}

Result<int> run(const PricesOptions& options, Session& session) {
  if (options.action == "show") return show_prices(options, session);
  if (options.file.empty()) return invalid("FILE is missing: berth prices " + options.action + " prices.yaml");
  const auto body = price_body(options.file);
  if (!body) return body.error();
  return options.action == "diff" ? diff_prices(options, *body, session) : apply_prices(options, *body, session);
}

}  // namespace berth::cli
