#pragma once
// Invoices as documents. Each is a function of the invoice alone, and its amounts add up to the total of the invoice.
// What a tenant typed (names of jobs, queues, labels) is escaped as the document needs it.

#include <string>

#include "billing/invoice.h"

namespace berth::billing {

enum class InvoiceForm {
  kCsv,      // a row for each line, with a heading
  kHtml,     // one page, summed up by user
  kHledger,  // a journal with one balanced transaction, summed up by queue
  kFocus,    // CSV in the columns of FOCUS 1.0, a row for each line
};

std::string render(const Invoice& invoice, InvoiceForm form);

std::string invoice_csv(const Invoice& invoice);
std::string invoice_html(const Invoice& invoice);
std::string invoice_journal(const Invoice& invoice);
std::string invoice_focus(const Invoice& invoice);

// Returns the quantity in whole units for an hour, rounded to six decimals.
std::string hours_text(std::int64_t quantity, Unit unit);

}  // namespace berth::billing

namespace berth {
BERTH_ENUM_NAMES(billing::InvoiceForm, "csv", "html", "hledger", "focus");
}  // namespace berth
