#include "base/html.h"
#include "billing/rate.h"
#include "billing/render.h"
#include "model/price_book.h"

namespace berth::billing {
namespace {

constexpr const char* kStyle =
    "body{font:11pt/1.4 sans-serif;margin:2em auto;max-width:60em;padding:0 1em;color:#111;background:#fff}"
    "table{border-collapse:collapse;width:100%;margin:1em 0}thead{display:table-header-group}"
    "tr{break-inside:avoid}th,td{text-align:left;padding:.2em .5em;border-bottom:1px solid #bbb}"
    ".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}tfoot td{font-weight:bold}"
    ".hash{overflow-wrap:anywhere}@page{size:A4 landscape;margin:15mm}@media print{body{margin:0;max-width:none}}";

std::string html_cell(std::string_view text) { return "<td>" + escaped_html(text) + "</td>"; }
std::string html_number(std::string_view text) { return "<td class=\"n\">" + escaped_html(text) + "</td>"; }

// What the line is for, beyond its kind.
std::string detail_of(const InvoiceLine& line) {
  std::string text = line.model;
  if (!line.slice.empty()) text += " " + line.slice;
  if (!line.cause.empty()) text += (text.empty() ? "" : ", ") + line.cause;
  if (!line.borrower.empty()) text += (text.empty() ? "" : ", ") + std::string("used by ") + line.borrower;
  if (!line.note.empty()) text += (text.empty() ? "" : ", ") + line.note;
  return text;
}

std::string line_rows(const Invoice& invoice) {
  std::string rows;
  for (const InvoiceLine& line : at_detail(invoice, Detail::kUser).lines) {
    const bool counted = line.unit != Unit::kNone;
    rows += "<tr>" + html_cell(line.queue) + html_cell(line.user) + html_cell(name_of(line.kind)) +
            html_cell(detail_of(line)) + html_number(counted ? hours_text(line.quantity, line.unit) : "") +
            html_cell(!counted                       ? ""
                      : line.unit == Unit::kReported ? line.reported_unit
                                                     : std::string(name_of(line.unit)) + "s") +
            html_number(counted ? money_text(line.unit_price_micro) : "") + html_number(money_text(line.amount_micro)) +
            "</tr>\n";
  }
  return rows;
}

std::string fleet_html(const Invoice& invoice) {
  if (invoice.fleet.empty()) return {};
  std::string text = "<h2>The fleet, in GPU-hours</h2>\n<table>\n<thead><tr><th>GPU model</th>";
  for (const char* title :
       {"floor used", "floor idle", "floor lent", "burst", "unowned", "drained", "failed", "foreign", "capacity"})
    text += std::string("<th class=\"n\">") + title + "</th>";
  text += "</tr></thead>\n<tbody>\n";
  for (const FleetAccounts& one : invoice.fleet) {
    text += "<tr>" + html_cell(one.model);
    for (const std::int64_t sum : {one.floor_used, one.floor_idle, one.floor_lent, one.burst, one.unowned, one.drained,
                                   one.failed, one.foreign, one.capacity})
      text += html_number(hours_text(sum, Unit::kGpuHour));
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table>\n";
}

std::string head_html(const Invoice& invoice, const std::string& title) {
  std::string text = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" + title +
                     "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" + title + "</h1>\n<p>Cluster " +
                     escaped_html(invoice.cluster) + ". From " + to_iso8601(invoice.from) + " until " +
                     to_iso8601(invoice.to) + ", in UTC. Price book version " + std::to_string(invoice.price_version) +
                     "." + (invoice.simulated ? " Some GPUs are simulated." : "") + "</p>\n";
  if (invoice.partial)
    text +=
        "<p><strong>This is a part: only the lines that its reader may see. The total is theirs alone.</strong></p>\n";
  if (invoice.number.empty()) return text + "<p><strong>The month is not closed: amounts may change.</strong></p>\n";
  return text + "<p class=\"hash\">Number " + escaped_html(invoice.number) + ", closed at " +
         to_iso8601(invoice.closed) + ", SHA-256 " + escaped_html(invoice.hash) + "</p>\n";
}

}  // namespace

std::string invoice_html(const Invoice& invoice) {
  const std::string title = (invoice.partial ? "Part of the invoice of " : "Invoice of ") +
                            (invoice.queue.empty() ? std::string("the whole cluster") : escaped_html(invoice.queue)) +
                            " for " + escaped_html(invoice.month);
  return head_html(invoice, title) +
         "<table>\n<thead><tr><th>queue</th><th>user</th><th>what</th><th></th><th class=\"n\">quantity</th>"
         "<th>unit</th><th class=\"n\">price</th><th class=\"n\">amount</th></tr></thead>\n<tbody>\n" +
         line_rows(invoice) + "</tbody>\n<tfoot><tr><td colspan=\"7\">Total in " + escaped_html(invoice.currency) +
         "</td>" + html_number(money_text(invoice.total_micro)) + "</tr></tfoot>\n</table>\n" + fleet_html(invoice) +
         "</body>\n</html>\n";
}

}  // namespace berth::billing
