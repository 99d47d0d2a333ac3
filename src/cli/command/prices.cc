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

// The document as the server takes it. It is read here first, so that a mistake is told with its file and line.
Result<std::string> price_body(const std::string& file) {
  const auto text = read_file(file, document::kMaxBytes);
  if (!text) return text.error();
  if (const auto book = document::read_prices(*text, file); !book) return book.error();
  const auto tree = document::parse(*text, file);
  if (!tree) return tree.error();
  return document::to_json_text(*tree);
}

Result<int> run(const PricesOptions& options, Session& session) {
  if (options.action == "show") return show_prices(options, session);
  if (options.file.empty()) return invalid("FILE is missing: berth prices " + options.action + " prices.yaml");
  const auto body = price_body(options.file);
  if (!body) return body.error();
  return options.action == "diff" ? diff_prices(options, *body, session) : apply_prices(options, *body, session);
}

}  // namespace berth::cli
