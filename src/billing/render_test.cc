#include "billing/render.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace berth::billing {
namespace {

// A queue that uses 1 of its GPUs for an hour and lends another; the names are what a tenant could try.
Invoice small_invoice() {
  Invoice invoice;
  invoice.month = "1970-01";
  invoice.to = Timestamp{3'600'000};
  invoice.cluster = "test";
  invoice.queue = "a";
  invoice.currency = "EUR";
  InvoiceLine used;
  used.queue = "a/b";
  used.kind = LineKind::kFloorUsed;
  used.model = "H100";
  used.user = "ann";
  used.job = JobId(7);
  used.job_name = "=1+1<script>";
  used.to = invoice.to;
  used.quantity = per_hour(Unit::kGpuHour);
  used.unit_price_micro = 2'500'000;
  used.amount_micro = 2'500'000;
  InvoiceLine credit = used;
  credit.kind = LineKind::kLendingCredit;
  credit.user = "<b>&'";
  credit.job = JobId::none();
  credit.job_name.clear();
  credit.amount_micro = -1'250'001;
  invoice.lines = {used, credit};
  invoice.total_micro = 1'249'999;
  return invoice;
}

}  // namespace

TEST_CASE("an invoice as CSV has a row for each line, and no formulas") {
  CHECK_EQ(invoice_csv(small_invoice()),
           "invoice,queue,kind,cause,gpu_model,slice,borrower,user,job,job_name,job_class,labels,from,to,unit,quantity,"
           "unit_price,amount,currency,note\r\n"
           ",a/b,floor-used,,H100,,,ann,7,'=1+1<script>,training,,1970-01-01T00:00:00.000Z,1970-01-01T01:00:00.000Z,"
           "gpu-hour,1.0000,2.5000,2.5000,EUR,\r\n"
           ",a/b,lending-credit,,H100,,,<b>&',,,,,1970-01-01T00:00:00.000Z,1970-01-01T01:00:00.000Z,"
           "gpu-hour,1.0000,2.5000,-1.250001,EUR,\r\n");
}

TEST_CASE("an invoice as a journal is one transaction that balances") {
  CHECK_EQ(invoice_journal(small_invoice()),
           "commodity 1000.000000 EUR\n"
           "account expenses:compute:a:b:floor-used:H100\n"
           "account expenses:compute:a:b:lending-credit:H100\n"
           "account liabilities:berth\n\n"
           "1970-01-01 ! berth | a 1970-01\n"
           "    expenses:compute:a:b:floor-used:H100  2.5000 EUR\n"
           "    expenses:compute:a:b:lending-credit:H100  -1.250001 EUR\n"
           "    liabilities:berth  -1.249999 EUR\n");
}

TEST_CASE("an invoice as a page escapes what was typed, and says whether the month is closed") {
  Invoice invoice = small_invoice();
  const std::string open = invoice_html(invoice);
  CHECK_NE(open.find("<td>&lt;b&gt;&amp;&#39;</td>"), std::string::npos);
  CHECK_EQ(open.find("<b>"), std::string::npos);
  CHECK_NE(open.find("<td class=\"n\">1.249999</td>"), std::string::npos);
  CHECK_NE(open.find("is not closed"), std::string::npos);
  invoice.number = "1970-01/a";
  CHECK_NE(invoice_html(invoice).find("Number 1970-01/a, closed at"), std::string::npos);
}

TEST_CASE("an invoice as FOCUS has a row of 43 columns for each line; a floor is a commitment, and lending a credit") {
  const std::string text = invoice_focus(small_invoice());
  std::vector<std::string> rows;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find("\r\n", begin);
    rows.push_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  REQUIRE_EQ(rows.size(), 3);
  CHECK_EQ(std::count(rows[0].begin(), rows[0].end(), ','), 42);
  CHECK_NE(
      rows[1].find("Usage,,\"floor-used:H100 of a/b, job 7\",Usage-Based,1970-01-01T00:00:00Z,1970-02-01T00:00:00Z,"
                   "1970-01-01T00:00:00Z,1970-01-01T01:00:00Z,Usage,floor:a/b,Guarantee of a/b,Used,Floor,"
                   "2.5000,2.5000,2.5000,2.5000,1.0000,GPU-Hours,2.5000,2.5000,Committed,1.0000,GPU-Hours,"),
      std::string::npos);
  CHECK_NE(rows[1].find(",'=1+1<script>,"), std::string::npos);
  CHECK_NE(rows[2].find("Credit,,lending-credit:H100 of a/b,One-Time,"), std::string::npos);
  CHECK_NE(rows[2].find(",-1.250001,-1.250001,-1.250001,-1.250001,"), std::string::npos);
}

TEST_CASE("an invoice that holds only what its reader may see says so in every form") {
  Invoice invoice = small_invoice();
  invoice.partial = true;
  const auto has = [](const std::string& document, const std::string& text) {
    CAPTURE(document);
    CHECK(document.find(text) != std::string::npos);
  };
  has(invoice_html(invoice), "<h1>Part of the invoice of a for 1970-01</h1>");
  has(invoice_html(invoice), "only the lines that its reader may see");
  has(invoice_csv(invoice), "\r\npartial,a/b,floor-used");
  has(invoice_journal(invoice), " berth | part of a 1970-01\n    ; partial: only the lines");
  has(invoice_focus(invoice), "berth/partial");
  invoice.number = "1970-01";
  has(invoice_csv(invoice), "\r\n1970-01 (partial),a/b,floor-used");
  invoice.partial = false;
  for (const InvoiceForm form : {InvoiceForm::kHtml, InvoiceForm::kCsv, InvoiceForm::kHledger, InvoiceForm::kFocus})
    CHECK(render(invoice, form).find("part") == std::string::npos);
}

}  // namespace berth::billing
