#include "sim/report/bills.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>

#include "base/checked.h"
#include "model/price_book.h"
#include "sim/report/escape.h"
#include "sim/trace/fields.h"

namespace berth::sim {
namespace {

std::int64_t total_of(const BookBill& bill, const std::string& queue) {
  const auto found =
      std::find_if(bill.queues.begin(), bill.queues.end(), [&](const QueueBill& one) { return one.queue == queue; });
  return found == bill.queues.end() ? 0 : found->total_micro;
}

QueueBill sum_of(const BookBill& bill) {
  QueueBill sum;
  for (const QueueBill& one : bill.queues) {
    for (const auto part : {&QueueBill::floor_micro, &QueueBill::burst_micro, &QueueBill::credit_micro,
                            &QueueBill::other_micro, &QueueBill::total_micro})
      sum.*part = checked_add(sum.*part, one.*part);
  }
  return sum;
}

// `first` is the bill by the first price book, or null for that itself.
BillTable table_of(const std::string& policy, const BookBill& bill, const BookBill* first) {
  BillTable table{policy + " by " + bill.book + ", " + bill.currency, {}};
  table.rows.push_back({"queue", "floor", "burst", "lending credit", "other", "total"});
  if (first != nullptr) table.rows.front().push_back("more than by " + first->book);
  const auto add = [&](const QueueBill& one, const std::string& name, std::int64_t before) {
    std::vector<std::string> row{name};
    for (const auto part : {&QueueBill::floor_micro, &QueueBill::burst_micro, &QueueBill::credit_micro,
                            &QueueBill::other_micro, &QueueBill::total_micro})
      row.push_back(money_text(one.*part));
    if (first != nullptr) row.push_back(money_text(one.total_micro - before));
    table.rows.push_back(std::move(row));
  };
  for (const QueueBill& one : bill.queues) add(one, one.queue, first == nullptr ? 0 : total_of(*first, one.queue));
  add(sum_of(bill), "all", first == nullptr ? 0 : sum_of(*first).total_micro);
  return table;
}

}  // namespace

std::vector<BillTable> bill_tables(const std::vector<MeasuredRun>& runs) {
  std::vector<BillTable> tables;
  for (const std::string& policy : policies_of(runs)) {
    const auto run =
        std::find_if(runs.begin(), runs.end(), [&](const MeasuredRun& one) { return one.result->policy == policy; });
    const std::vector<BookBill>& bills = run->result->bills;
    for (const BookBill& bill : bills) {
      const bool alike = &bill != &bills.front() && bill.currency == bills.front().currency;
      tables.push_back(table_of(policy, bill, alike ? &bills.front() : nullptr));
    }
  }
  return tables;
}

std::string bills_section(const std::vector<MeasuredRun>& runs) {
  const std::vector<BillTable> tables = bill_tables(runs);
  if (tables.empty()) return {};
  std::string html = "<section><h2>Bills</h2><p class=\"note\">Of the first run of each policy.</p>";
  for (const BillTable& table : tables) {
    html += "<h3>" + html_text(table.title) + "</h3><div class=\"scroll\"><table class=\"figures\">";
    for (const std::vector<std::string>& row : table.rows) {
      const bool head = &row == &table.rows.front();
      html += head ? "<thead><tr>" : "<tr>";
      for (const std::string& cell : row) {
        const bool name = head || &cell == &row.front();
        html += (name ? "<th scope=\"" + std::string(head ? "col" : "row") + "\">" : std::string("<td>")) +
                html_text(cell) + (name ? "</th>" : "</td>");
      }
      html += head ? "</tr></thead><tbody>" : "</tr>";
    }
    html += "</tbody></table></div>";
  }
  return html + "</section>";
}

boost::json::array bills_array(const RunResult& run) {
  boost::json::array bills;
  for (const BookBill& bill : run.bills) {
    boost::json::array queues;
    for (const QueueBill& one : bill.queues)
      queues.push_back(boost::json::object{{"queue", with_valid_utf8(one.queue)},
                                           {"floor", money_text(one.floor_micro)},
                                           {"burst", money_text(one.burst_micro)},
                                           {"lending_credit", money_text(one.credit_micro)},
                                           {"other", money_text(one.other_micro)},
                                           {"total", money_text(one.total_micro)}});
    bills.push_back(boost::json::object{{"book", with_valid_utf8(bill.book)},
                                        {"currency", bill.currency},
                                        {"queues", std::move(queues)},
                                        {"total", money_text(sum_of(bill).total_micro)}});
  }
  return bills;
}

}  // namespace berth::sim
