#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command/commands.h"
#include "cli/command/keyed_post.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/month.h"
#include "model/price_book.h"

namespace berth::cli {
namespace {

// Hours with two decimals, rounded; of thousandths of a GPU times milliseconds.
std::string gpu_hours(std::int64_t gpu_milli_ms) {
  constexpr std::int64_t kHundredth = 36'000'000;
  const std::int64_t hundredths = (gpu_milli_ms + kHundredth / 2) / kHundredth;
  const std::string decimals = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + std::string(2 - decimals.size(), '0') + decimals;
}

constexpr std::array kGpuColumns = {
    std::pair("USED", "floor_used_gpu_milli_ms"), std::pair("IDLE", "floor_idle_gpu_milli_ms"),
    std::pair("LENT", "floor_lent_gpu_milli_ms"), std::pair("BURST", "burst_gpu_milli_ms")};

Table bill_rows_table(const Json& bill) {
  std::string title = show(bill, "by");
  for (char& c : title) c = static_cast<char>(c - 'a' + 'A');
  std::vector<Column> columns{{title, Align::kLeft, true, true}};
  for (const auto& [heading, member] : kGpuColumns) columns.push_back({heading, Align::kRight});
  columns.push_back({"AMOUNT", Align::kRight});
  Table table(std::move(columns));
  for (const Json& row : items(bill, "items")) {
    const std::string job = show(row, "job_name");
    std::vector<std::string> cells{show(row, "name") + (job.empty() ? "" : " " + job)};
    for (const auto& [heading, member] : kGpuColumns) cells.push_back(gpu_hours(integer(row, member)));
    cells.push_back(show(row, "amount"));
    table.add(cells);
  }
  return table;
}

std::string fleet_text(const Json& bill, std::size_t width) {
  constexpr std::array kAccounts = {"floor_used", "floor_idle", "floor_lent", "burst",   "unowned",
                                    "drained",    "failed",     "foreign",    "capacity"};
  std::vector<Column> columns{{"GPU MODEL", Align::kLeft, true}};
  for (const char* title : {"USED", "IDLE", "LENT", "BURST", "UNOWNED", "DRAINED", "FAILED", "FOREIGN", "CAPACITY"})
    columns.push_back({title, Align::kRight});
  Table table(std::move(columns));
  for (const Json& one : items(bill, "fleet")) {
    std::vector<std::string> cells{show(one, "gpu_model")};
    for (const char* account : kAccounts) cells.push_back(gpu_hours(integer(one, account)));
    table.add(cells);
  }
  return table.empty() ? "" : "\nthe fleet, in GPU-hours:\n" + table.text(width);
}

// A month that is over goes on no more.
bool is_over(const Json& bill) {
  const auto month = month_of(show(bill, "month"));
  const auto to = from_iso8601(show(bill, "to"));
  return month && to && *to >= month->end;
}

std::string bill_text(const Json& bill, std::size_t width) {
  const std::string queue = show(bill, "queue");
  const std::string currency = show(bill, "currency");
  const bool partial = is_true(bill, "partial");
  std::string text = (partial ? "Part of the bill of " : "Bill of ") +
                     (queue.empty() ? "the whole cluster" : "queue " + printable(queue)) + " for " +
                     show(bill, "month") + ", until " + show(bill, "to") +
                     (is_true(bill, "simulated") ? " (simulated GPUs)" : "") + "\n";
  if (partial) text += "only the lines that you may see; the total is theirs alone\n";
  if (const std::string number = show(bill, "number"); !number.empty())
    text += "closed as " + printable(number) + ", hash " + show(bill, "hash") + "\n";
  const Table table = bill_rows_table(bill);
  if (table.empty()) return text + "\nnothing is billed\n";
  text += "\n" + table.text(width) + "\ntotal " + show(bill, "total") + " " + currency;
  if (show(bill, "number").empty() && !is_over(bill))
    text += "; if the month goes on like this: " + money_text(integer(bill, "expected_micro")) + " " + currency;
  return text + "\n" + fleet_text(bill, width);
}

// Returns a signed amount with at most six decimals, in micro units.
Result<std::int64_t> signed_micro(std::string_view text) {
  constexpr std::int64_t kMost = 100'000'000 * kMicro;  // as the server's schema BillCorrection says
  constexpr std::size_t kMostDigits = 9;                // of kMost
  const std::string given(text.substr(0, 80));
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  std::string decimals(text.substr(std::min(point + 1, text.size())));
  const bool plain = digits.find_first_not_of("0123456789") == std::string::npos &&
                     decimals.find_first_not_of("0123456789") == std::string::npos;
  if (digits.empty() || !plain || decimals.size() > 6 || (point < text.size() && decimals.empty()))
    return invalid("--correct: '" + given + "' is no amount such as -12.50");
  digits.erase(0, digits.find_first_not_of('0'));
  decimals.resize(6, '0');
  const bool fits = digits.size() <= kMostDigits;
  const std::int64_t micro = fits ? std::stoll(digits + decimals) : 0;
  if (!fits || micro > kMost)
    return invalid("--correct: " + given + " is more than a correction may be, 100000000 at most");
  return negative ? -micro : micro;
}

Result<int> correct(const BillOptions& options, Session& session) {
  if (options.month.empty()) return invalid("--correct needs --month, the month that is corrected");
  if (options.queue.empty()) return invalid("--correct needs the queue that gets or pays the amount");
  const auto amount = signed_micro(options.correct);
  if (!amount) return amount.error();
  boost::json::object body{{"queue", options.queue}, {"amount_micro", *amount}, {"reason", options.reason}};
  if (options.job > 0) body["job"] = options.job;
  const std::string key = options.key.empty() ? random_key() : options.key;
  const auto done =
      answer_of(post_until_answered("/v1/months/" + client::encode_segment(options.month) + "/corrections",
                                    boost::json::serialize(body), key, session));
  if (!done && done.error().code == ErrorCode::kUnavailable)
    return Error{done.error().code, done.error().message + "; it may have been taken: try again with --key " + key};
  if (!done) return done.error();
  session.out << formatted(*done, options.format, [&] {
    return show(*done, "amount") + " for " + printable(show(*done, "month")) + " is on the bill of queue " +
           printable(show(*done, "queue")) + (is_true(*done, "repeated") ? ", by an earlier request\n" : "\n");
  });
  return kOk;
}

// What the log says under this number, as "12 attempt-started"; with the job where it is told and not that of the line.
std::string event_text(const Json& opened, std::int64_t seq) {
  if (seq == 0) return "-";
  for (const Json& event : items(opened, "events")) {
    if (integer(event, "seq") != seq) continue;
    const std::int64_t job = integer(event, "job");
    const bool other = job != 0 && job != integer(at(opened, "line"), "job");
    return show(event, "seq") + " " + show(event, "event") + (other ? " of job " + std::to_string(job) : "");
  }
  return std::to_string(seq);
}

Table stretches_table(const Json& opened) {
  Table table({{"FROM"},
               {"TO"},
               {"GPUS", Align::kRight},
               {"QUANTITY", Align::kRight},
               {"AMOUNT", Align::kRight},
               {"BEGAN WITH EVENT", Align::kLeft, true},
               {"ENDED WITH EVENT", Align::kLeft, true}});
  for (const Json& one : items(opened, "stretches")) {
    table.add({show(one, "from"), show(one, "to"), show(one, "gpus"), show(one, "quantity"), show(one, "amount"),
               event_text(opened, integer(one, "began")), event_text(opened, integer(one, "ended"))});
  }
  return table;
}

Table events_table(const Json& opened) {
  Table table({{"EVENT", Align::kRight}, {"TIME"}, {"KIND"}, {"JOB", Align::kRight}});
  for (const Json& event : items(opened, "events")) {
    table.add({show(event, "seq"), show(event, "time"), show(event, "event"),
               integer(event, "job") == 0 ? "" : show(event, "job")});
  }
  return table;
}

std::string opened_text(const Json& opened, std::size_t width) {
  const Json& line = at(opened, "line");
  const std::string currency = show(opened, "currency");
  std::string text = show(line, "kind") + " of queue " + printable(show(line, "queue"));
  if (const std::string borrower = show(line, "borrower"); !borrower.empty()) text += " to " + printable(borrower);
  if (integer(line, "job") != 0)
    text +=
        ", job " + show(line, "job") + " " + printable(show(line, "job_name")) + " of " + printable(show(line, "user"));
  if (const std::string model = show(line, "gpu_model"); !model.empty()) text += ", " + printable(model);
  const bool counted = show(line, "unit") != "none";  // a correction is an amount alone
  if (const std::string note = show(line, "note"); !note.empty()) text += ", " + printable(note);
  text += ": ";
  if (counted)
    text += show(line, "quantity") + " " + printable(show(line, "unit")) + " at " + show(line, "unit_price") + " are ";
  text += show(line, "amount") + " " + currency + "\n";
  const Table stretches = stretches_table(opened);
  if (!stretches.empty()) {
    std::int64_t sum = 0;
    for (const Json& one : items(opened, "stretches")) sum += integer(one, "amount_micro");
    text += "\n" + stretches.text(width) + "together " + money_text(sum) + " " + currency + "\n";
  }
  if (const std::string next = show(opened, "next"); !next.empty())
    text += "there is more of this line: --after " + printable(next) + "\n";
  const Table events = events_table(opened);
  const bool by_events = stretches.empty() || integer(line, "job") != 0;  // else its stretches name them
  return events.empty() || !by_events ? text : text + "\n" + events.text(width);
}

Result<int> open_line(const BillOptions& options, Session& session) {
  const auto opened = get(session, query("/v1/bill/lines/" + client::encode_segment(options.line),
                                         {{"month", options.month}, {"after", options.after}}));
  if (!opened) return opened.error();
  session.out << formatted(*opened, options.format, [&] {
    return options.format == Format::kCsv ? stretches_table(*opened).csv()
                                          : opened_text(*opened, table_width(session, options.format));
  });
  return kOk;
}

// What would be passed over in silence is refused.
Result<void> check_together(const BillOptions& options) {
  const bool corrects = !options.correct.empty();
  const bool opens = !options.line.empty();
  const std::pair<const char*, bool> of_correction[] = {
      {"--reason", !options.reason.empty()}, {"--job", options.job > 0}, {"--key", !options.key.empty()}};
  for (const auto& [flag, given] : of_correction) {
    if (given && !corrects) return invalid(std::string(flag) + " needs --correct, the amount that it is about");
  }
  const std::pair<const char*, bool> of_bill[] = {{"--close", options.close},
                                                  {"--prices", !options.prices.empty()},
                                                  {"--by", !options.by.empty()},
                                                  {"--label", !options.label.empty()}};
  for (const auto& [flag, given] : of_bill) {
    if (given && (corrects || opens))
      return invalid(std::string(corrects ? "--correct" : "--line") + " and " + flag +
                     " do not go together; call berth bill for each");
  }
  if (corrects && opens) return invalid("--correct and --line do not go together; call berth bill for each");
  if (!options.after.empty() && !opens) return invalid("--after needs --line, the line that it is about");
  if (!options.label.empty() && !options.by.empty() && options.by != "label")
    return invalid("--label and --by " + options.by + " do not go together; --label needs --by label");
  return {};
}

Result<int> show_bill(const BillOptions& options, Session& session) {
  const std::string by = options.by.empty() && !options.label.empty() ? "label" : options.by;
  const auto moment = moment_when(options.at, clock_now());
  if (!moment) return moment.error();
  const std::string target = query(
      "/v1/bill",
      {{"queue", options.queue}, {"month", options.month}, {"by", by}, {"label", options.label}, {"at", *moment}});
  Result<Json> bill = Json();
  if (options.prices.empty()) {
    bill = get(session, target);
  } else {
    const auto body = price_body(options.prices);
    if (!body) return body.error();
    bill = answer_of(session.server.send_yaml("POST", target, *body));
    if (!bill) return in_file(bill.error(), options.prices);
  }
  if (!bill) return bill.error();
  const bool csv = options.format == Format::kCsv;
  if (csv && is_true(*bill, "partial"))
    session.err << "a part of the bill: only the lines that you may see; the total is theirs alone\n";
  session.out << formatted(*bill, options.format, [&] {
    return csv ? bill_rows_table(*bill).csv() : bill_text(*bill, table_width(session, options.format));
  });
  return kOk;
}

}  // namespace

Result<int> run(const BillOptions& given, Session& session) {
  BillOptions options = given;
  if (options.queue == "/") options.queue.clear();  // the root
  if (auto ok = check_together(options); !ok) return ok.error();
  if (!options.at.empty() && (options.close || !options.correct.empty()))
    return invalid("--at reads a past moment; --close and --correct are of now");
  if (!options.correct.empty()) return correct(options, session);
  if (!options.line.empty()) return open_line(options, session);
  if (options.close) {
    if (options.month.empty()) return invalid("--close needs --month, such as --month 2026-11");
    const auto closed =
        answer_of(session.server.post("/v1/months/" + client::encode_segment(options.month) + "/close", ""));
    if (!closed) return closed.error();
    session.err << "month " << printable(show(*closed, "month")) << " is closed, hash " << show(*closed, "hash")
                << "\n";
  }
  return show_bill(options, session);
}

}  // namespace berth::cli
