#include <string>
#include <vector>

#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"

namespace berth::cli {
namespace {

std::string invoice_text(const Json& bill, std::size_t width) {
  Table table({{"QUEUE", Align::kLeft, true, true},
               {"USER", Align::kLeft, true},
               {"JOB", Align::kLeft, true},
               {"KIND"},
               {"GPU", Align::kLeft, true},
               {"QUANTITY", Align::kRight},
               {"UNIT"},
               {"PRICE", Align::kRight},
               {"AMOUNT", Align::kRight},
               {"LINE"}});
  for (const Json& line : items(bill, "lines")) {
    const std::string job = integer(line, "job") > 0 ? show(line, "job") : "";
    const std::string cause = show(line, "cause");
    table.add({show(line, "queue"), show(line, "user"), job, show(line, "kind") + (cause.empty() ? "" : " " + cause),
               show(line, "gpu_model"), show(line, "quantity"), show(line, "unit"), show(line, "unit_price"),
               show(line, "amount"), show(line, "id")});
  }
  const std::string number = show(bill, "number");
  std::string head = number.empty() ? "not closed: amounts may change\n"
                                    : "number " + printable(number) + ", hash " + show(bill, "hash") + "\n";
  if (is_true(bill, "partial")) head = "a part: only the lines that you may see\n" + head;
  if (table.empty()) return head + "nothing is billed\n";
  return head + table.text(width) + "total " + show(bill, "total") + " " + show(bill, "currency") + "\n";
}

}  // namespace

Result<int> run(const InvoiceOptions& options, Session& session) {
  const bool document = options.form != "json" && options.form != "table" && !options.form.empty();
  const auto moment = moment_when(options.at, clock_now());
  if (!moment) return moment.error();
  const auto bill = get(session, query("/v1/bill", {{"queue", options.queue == "/" ? "" : options.queue},
                                                    {"month", options.month},
                                                    {"invoice", document ? options.form : "lines"},
                                                    {"at", *moment}}));
  if (!bill) return bill.error();
  if (document)
    session.out << show(*bill, "document");
  else
    session.out << formatted(*bill, options.form == "json" ? Format::kJson : Format::kTable,
                             [&] { return invoice_text(*bill, session.width); });
  return kOk;
}

}  // namespace berth::cli
