#include "cli/command/commands.h"
#include "cli/command/document_body.h"
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
  const auto answer = answer_of(session.server.post("/v1/prices/diff", body));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] {
    std::string text;
    for (const Json& change : items(*answer, "changes")) text += printable(show(change)) + "\n";
    return text;
  });
  return items(*answer, "changes").empty() ? kOk : kFailed;
}

Result<int> apply_prices(const PricesOptions& options, const std::string& body, Session& session) {
  const auto answer = answer_of(session.server.put("/v1/prices", body, ""));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] {
    const std::string version = show(*answer, "version");
    return is_true(*answer, "unchanged") ? "nothing changes: version " + version + " is in force already\n"
                                         : "prices are in force: version " + version + "\n";
  });
  return kOk;
}

}  // namespace

// The server looks the time zones up, which it bills by.
Result<std::string> price_body(const std::string& file) {
  return document_body(
      file, [](std::string_view text, std::string_view name) { return document::read_prices(text, name, nullptr); });
}

Result<int> run(const PricesOptions& options, Session& session) {
  if (options.action == "show") return show_prices(options, session);
  if (options.file.empty()) return invalid("FILE is missing: berth prices " + options.action + " prices.yaml");
  const auto body = price_body(options.file);
  if (!body) return body.error();
  return options.action == "diff" ? diff_prices(options, *body, session) : apply_prices(options, *body, session);
}

}  // namespace berth::cli
