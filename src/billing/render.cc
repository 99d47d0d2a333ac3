#include "billing/render.h"

#include <array>

#include "base/checked.h"
#include "base/csv.h"
#include "model/price_book.h"

namespace berth::billing {
namespace {

constexpr const char* kCsvHeading =
    "invoice,queue,kind,cause,gpu_model,slice,borrower,user,job,job_name,job_class,labels,from,to,unit,quantity,"
    "unit_price,amount,currency,note\r\n";

std::string labels_text(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += (text.empty() ? "" : ";") + key + "=" + value;
  return text;
}

}  // namespace

std::string hours_text(std::int64_t quantity, Unit unit) {
  const Int128 per = per_hour(unit);
  return money_text(static_cast<std::int64_t>((Int128{quantity} * kMicro + per / 2) / per));
}

std::string invoice_csv(const Invoice& invoice) {
  std::string text = kCsvHeading;
  for (const InvoiceLine& line : invoice.lines) {
    const bool of_job = line.job.valid();
    const std::array typed = {
        invoice.partial ? invoice.number + (invoice.number.empty() ? "partial" : " (partial)") : invoice.number,
        line.queue,
        std::string(name_of(line.kind)),
        line.cause,
        line.model,
        line.slice,
        line.borrower,
        line.user,
        of_job ? std::to_string(line.job.value()) : "",
        line.job_name,
        of_job ? std::string(name_of(line.job_class)) : "",
        labels_text(line.labels)};
    for (const std::string& cell : typed) text += csv_text_cell(cell) + ",";
    text += to_iso8601(line.from) + "," + to_iso8601(line.to) + "," + std::string(unit_text(line)) + "," +
            hours_text(line.quantity, line.unit) + "," + money_text(line.unit_price_micro) + "," +
            money_text(line.amount_micro) + "," + csv_text_cell(invoice.currency) + "," + csv_text_cell(line.note) +
            "\r\n";
  }
  return text;
}

std::string render(const Invoice& invoice, InvoiceForm form) {
  switch (form) {
    case InvoiceForm::kCsv:
      return invoice_csv(invoice);
    case InvoiceForm::kHtml:
      return invoice_html(invoice);
    case InvoiceForm::kHledger:
      return invoice_journal(invoice);
    case InvoiceForm::kFocus:
      return invoice_focus(invoice);
  }
  return {};
}

}  // namespace berth::billing
