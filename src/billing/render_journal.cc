#include <algorithm>
#include <map>

#include "base/checked.h"
#include "billing/rate.h"
#include "billing/render.h"
#include "model/price_book.h"

namespace berth::billing {
namespace {

// A part of an account name: letters, digits, '-', '_' and '.' stay, also those of other scripts.
std::string account_part(std::string_view name) {
  std::string part;
  for (const char c : name) {
    const bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || static_cast<unsigned char>(c) >= 0x80;
    part.push_back(stays ? c : '_');
  }
  return part;
}

std::string account_of(const InvoiceLine& line) {
  std::string account = "expenses:compute";
  std::string_view rest = line.queue;
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find('/'), rest.size());
    account += ":" + account_part(rest.substr(0, length));
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  account += ":" + std::string(name_of(line.kind));
  if (line.kind == LineKind::kReported) account += ":" + account_part(line.cause);
  if (!line.model.empty()) account += ":" + account_part(line.model);
  return account;
}

std::string journal_posting(const std::string& account, std::int64_t micro, const std::string& currency) {
  return "    " + account + "  " + money_text(micro) + " " + currency + "\n";
}

}  // namespace

std::string invoice_journal(const Invoice& invoice) {
  constexpr const char* kPayable = "liabilities:berth";
  std::map<std::string, std::int64_t> sums;
  for (const InvoiceLine& line : invoice.lines) {
    std::int64_t& sum = sums[account_of(line)];
    sum = checked_add(sum, line.amount_micro);
  }
  std::string text = "commodity 1000.000000 " + invoice.currency + "\n";
  for (const auto& [account, sum] : sums) text += "account " + account + "\n";
  text += std::string("account ") + kPayable + "\n\n";
  const Timestamp last = invoice.to > invoice.from ? Timestamp{invoice.to.ms - 1} : invoice.from;
  text += to_iso8601(last).substr(0, 10);
  text += invoice.number.empty() ? " !" : " * (" + account_part(invoice.number) + ")";
  text += std::string(" berth | ") + (invoice.partial ? "part of " : "") +
          (invoice.queue.empty() ? std::string("whole cluster") : account_part(invoice.queue)) + " " + invoice.month +
          (invoice.simulated ? " with simulated GPUs" : "") + "\n";
  if (invoice.partial) text += "    ; partial: only the lines that its reader may see\n";
  if (!invoice.hash.empty()) text += "    ; sha256 " + invoice.hash + "\n";
  for (const auto& [account, sum] : sums) text += journal_posting(account, sum, invoice.currency);
  return text + journal_posting(kPayable, -invoice.total_micro, invoice.currency);
}

}  // namespace berth::billing
