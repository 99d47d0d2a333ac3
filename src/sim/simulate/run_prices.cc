#include "sim/simulate/run_prices.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/checked.h"
#include "billing/rate.h"
#include "model/document/price_document.h"
#include "sim/trace/bytes.h"
#include "timezone/time_zones.h"

namespace berth::sim {
namespace {

constexpr std::size_t kMostPriceBytes = std::size_t{1} << 20U;
// No run is longer than twenty years.
const Month kAllOfRun{"the run", Timestamp{0}, Timestamp{std::int64_t{20} * 365 * 86'400'000}};

std::int64_t& part_of(QueueBill& bill, billing::LineKind kind) {
  switch (kind) {
    case billing::LineKind::kFloorUsed:
    case billing::LineKind::kFloorIdle:
    case billing::LineKind::kFloorLent:
      return bill.floor_micro;
    case billing::LineKind::kBurst:
      return bill.burst_micro;
    case billing::LineKind::kLendingCredit:
      return bill.credit_micro;
    case billing::LineKind::kPremium:
    case billing::LineKind::kDiscount:
    case billing::LineKind::kCpu:
    case billing::LineKind::kMemory:
    case billing::LineKind::kCorrection:
    case billing::LineKind::kReported:
      break;
  }
  return bill.other_micro;
}

}  // namespace

Result<RunPrices> read_run_prices(const std::string& path, std::string& note) {
  const auto text = read_file(path, kMostPriceBytes);
  if (!text) return text.error();
  auto book = document::read_prices(*text, path, timezone::zone_of);
  if (!book) return book.error();
  RunPrices prices{path, {book->currency, {std::move(book->periods.back())}, std::move(book->zones)}};
  note = path + ": its last prices, those from " + to_iso8601(prices.book.periods.front().valid_from).substr(0, 10) +
         " on, are taken for the whole run";
  prices.book.periods.front().valid_from = kAllOfRun.begin;
  return prices;
}

Result<void> check_models(const RunPrices& prices, const std::vector<std::string>& models) {
  for (const std::string& model : models) {
    if (prices.book.periods.front().gpu(model) != nullptr) continue;
    return invalid("--prices " + prices.file + ": its last prices have none for GPU model " + model +
                   " of the fleet; add it under gpus");
  }
  return {};
}

RunBiller::RunBiller(const std::vector<RunPrices>& prices, const Workload& workload)
    : prices_(prices), workload_(workload) {
  for (const RunPrices& one : prices) ledgers_.emplace_back(billing::window_of(kAllOfRun, one.book));
}

void RunBiller::apply(const EventRecord& record) {
  for (billing::Ledger& ledger : ledgers_) ledger.apply(record);
}

Result<std::vector<BookBill>> RunBiller::bills(Timestamp now) {
  std::map<std::string, std::string> tenants;
  for (const WorkloadQueue& queue : workload_.queues) tenants.emplace(queue.path, queue.tenant);
  std::vector<BookBill> bills;
  for (std::size_t i = 0; i < ledgers_.size(); ++i) {
    ledgers_[i].advance(now);
    const auto invoice = billing::make_invoice(ledgers_[i], {"", kAllOfRun, prices_[i].book, 0});
    if (!invoice) return invoice.error();
    std::map<std::string, QueueBill> queues;
    for (const billing::InvoiceLine& line : invoice->lines) {
      const auto tenant = tenants.find(line.queue);
      const std::string& name = tenant == tenants.end() ? line.queue : tenant->second;
      QueueBill& bill = queues[name];
      bill.queue = name;
      std::int64_t& part = part_of(bill, line.kind);
      part = checked_add(part, line.amount_micro);
      bill.total_micro = checked_add(bill.total_micro, line.amount_micro);
    }
    BookBill& of_book = bills.emplace_back(BookBill{prices_[i].file, prices_[i].book.currency, {}});
    for (auto& [name, bill] : queues) of_book.queues.push_back(std::move(bill));
  }
  return bills;
}

}  // namespace berth::sim
