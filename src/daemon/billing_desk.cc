#include "daemon/billing_desk.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "store/event_codec.h"
#include "store/hash_chain.h"

namespace berth::daemon {
namespace {

constexpr std::int64_t kSettledMs = 60'000;  // no event is stored as late as this after its time

std::string number_of(const std::string& month, const std::string& queue) {
  return queue.empty() ? month : month + "/" + queue;
}

Result<Month> month_asked(const std::string& name, Timestamp now) {
  if (name.empty()) return month_at(now);
  const auto month = month_of(name);
  if (!month) return invalid("month: '" + name.substr(0, 80) + "' is no month; give one such as 2026-11");
  if (month->begin > now)
    return invalid("month: " + name + " is still to come; it is " + to_iso8601(now).substr(0, 10));
  return *month;
}

std::string hash_of(const billing::Invoice& invoice) {
  return store::to_hex(store::sha256(billing::canonical_text(invoice)));
}

}  // namespace

BillingFacts billing_facts(const state::State& state, Timestamp now) {
  return {state.prices(), state.price_version(), state.closed_months(), now, std::numeric_limits<Seq>::max()};
}

Result<void> BillingDesk::read_on(Kept& kept, Seq last_seq) const {
  if (kept.next_seq > std::min(log_.last().seq, last_seq)) return {};
  if (kept.next_seq < log_.first_seq())
    return not_found("the log begins at event " + std::to_string(log_.first_seq()) +
                     "; bills need it from the first one on");
  return log_.read(kept.next_seq, [&](const store::Record& record) -> Result<bool> {
    if (record.time >= kept.month.end || record.seq > last_seq) return false;
    auto event = store::to_event(record);
    if (!event) return event.error();
    kept.ledger.apply(*event);
    kept.next_seq = record.seq + 1;
    return true;
  });
}

Result<std::unique_ptr<BillingDesk::Kept>> BillingDesk::fold(const Month& month, billing::Window window,
                                                             const BillingFacts& facts) {
  auto fresh = std::make_unique<Kept>(Kept{month, billing::Ledger(std::move(window))});
  if (auto read = read_on(*fresh, facts.last_seq); !read) return read.error();
  if (facts.now - month.end >= kSettledMs)
    fresh->ledger.advance(month.end);
  else
    fresh->ledger.look_ahead(facts.now);
  return fresh;
}

Result<billing::Invoice> BillingDesk::invoice(const Month& month, const std::string& queue, const PriceBook& book,
                                              std::uint64_t version, const BillingFacts& facts) {
  const billing::InvoiceQuestion question{queue, month, book, version};
  billing::Window window = billing::window_of(month, book);
  if (facts.now >= month.end) {
    const auto past = fold(month, std::move(window), facts);
    if (!past) return past.error();
    return billing::make_invoice((*past)->ledger, question);
  }
  const std::lock_guard lock(mutex_);
  const bool is_beyond = kept_ && kept_->next_seq - 1 > facts.last_seq;
  if (!kept_ || is_beyond || kept_->month.name != month.name || kept_->ledger.window().cuts != window.cuts) {
    auto fresh = fold(month, std::move(window), facts);
    if (!fresh) return fresh.error();
    kept_ = std::move(*fresh);
  } else if (auto read = read_on(*kept_, facts.last_seq); !read) {
    kept_.reset();  // half an answer is kept by nobody
    return read.error();
  }
  kept_->ledger.look_ahead(facts.now);
  return billing::make_invoice(kept_->ledger, question);
}

// The log has all books; the state has the one in force.
Result<PriceBook> BillingDesk::book_of(std::uint64_t version, const BillingFacts& facts) const {
  if (version == facts.price_version) return facts.prices;
  std::optional<PriceBook> book;
  const auto read = log_.read(log_.first_seq(), [&](const store::Record& record) -> Result<bool> {
    static const std::uint16_t kind = kind_of(PricesApplied{});
    if (record.kind != kind) return true;
    auto event = store::to_event(record);
    if (!event) return event.error();
    auto& applied = std::get<PricesApplied>(event->event);
    if (applied.version == version) book = std::move(applied.book);
    return !book.has_value();
  });
  if (!read) return read.error();
  if (!book) return not_found("version " + std::to_string(version) + " of the prices is not in the log any more");
  return std::move(*book);
}

Result<billing::Invoice> BillingDesk::bill(const api::BillQuestion& question, const BillingFacts& facts) {
  const auto month = month_asked(question.month, facts.now);
  if (!month) return month.error();
  const auto closed = facts.closed.find(month->name);
  if (question.prices) return invoice(*month, question.queue, *question.prices, 0, facts);
  if (facts.price_version == 0)
    return conflict("no prices are in force yet; apply a price book first (berth prices apply FILE)");
  if (closed == facts.closed.end()) return invoice(*month, question.queue, facts.prices, facts.price_version, facts);
  const auto book = book_of(closed->second.price_version, facts);
  if (!book) return book.error();
  auto made = invoice(*month, question.queue, *book, closed->second.price_version, facts);
  if (!made) return made;
  made->closed = closed->second.closed;
  made->number = number_of(month->name, question.queue);
  made->hash = hash_of(*made);
  if (question.queue.empty() && made->hash != closed->second.hash)
    return Error{ErrorCode::kCorrupt, "the invoice " + month->name + " comes out otherwise than it was closed: hash " +
                                          made->hash + ", not " + closed->second.hash +
                                          "; check the log (berth verify)"};
  return made;
}

Result<MonthClosed> BillingDesk::closing(const std::string& name, const BillingFacts& facts) {
  const auto month = month_asked(name, facts.now);
  if (!month) return month.error();
  if (facts.now < month->end + kSettledMs)
    return conflict("month " + month->name + " ends at " + to_iso8601(month->end) +
                    "; close it a minute later, when all its events are stored");
  if (facts.closed.contains(month->name)) return conflict("month " + month->name + " is closed already");
  const auto made = bill({"", month->name}, facts);
  if (!made) return made.error();
  return MonthClosed{month->name, facts.price_version, made->last_seq, hash_of(*made), made->total_micro, ""};
}

Result<billing::Invoice> BillingDesk::of_now(const BillingFacts& facts) {
  return invoice(month_at(facts.now), "", facts.prices, facts.price_version, facts);
}

}  // namespace berth::daemon
