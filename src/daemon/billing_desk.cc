#include "daemon/billing_desk.h"

#include <algorithm>
#include <charconv>
#include <set>
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

const std::vector<TaskPlacement>& placements_in(const Event& event) {
  static const std::vector<TaskPlacement> none;
  if (const auto* started = std::get_if<AttemptStarted>(&event)) return started->placements;
  if (const auto* grown = std::get_if<AttemptGrown>(&event)) return grown->placements;
  return none;
}

// How far the stretches of a line were told: until when, and what they came to.
struct Cursor {
  Timestamp from;
  std::int64_t quantity = 0;
};

Result<Cursor> cursor_of(const std::string& after, Timestamp begin) {
  if (after.empty()) return Cursor{begin, 0};
  Cursor cursor;
  const char* const end = after.data() + after.size();
  const auto time = std::from_chars(after.data(), end, cursor.from.ms);
  const bool more = time.ec == std::errc() && time.ptr != end && *time.ptr == '.';
  const auto quantity = more ? std::from_chars(time.ptr + 1, end, cursor.quantity) : time;
  constexpr std::int64_t kMost = std::int64_t{1} << 60U;
  if (!more || quantity.ec != std::errc() || quantity.ptr != end || cursor.from < begin || cursor.quantity < 0 ||
      cursor.quantity > kMost || cursor.from.ms > kMost)
    return invalid("after: '" + after.substr(0, 80) + "' is not the `next` of an answer about this line");
  return cursor;
}

std::string hash_of(const billing::Invoice& invoice) {
  return store::to_hex(store::sha256(billing::canonical_text(invoice)));
}

}  // namespace

std::size_t reports_before(const state::State& state, Timestamp month) {
  const auto& reports = state.quantity_reports();
  return static_cast<std::size_t>(
      std::count_if(reports.begin(), reports.end(), [&](const auto& one) { return one.second.from < month; }));
}

BillingFacts billing_facts(const state::State& state, Timestamp now) {
  return {state.prices(), state.price_version(), state.closed_months(), now, std::numeric_limits<Seq>::max(), 0};
}

Result<void> BillingDesk::read_on(Kept& kept, Seq last_seq) const {
  const bool more = kept.next_seq <= std::min(log_.last().seq, last_seq);
  if (more && kept.next_seq < log_.first_seq())
    return not_found("the log begins at event " + std::to_string(log_.first_seq()) +
                     "; bills need it from the first one on");
  if (more) {
    auto read = log_.read(kept.next_seq, [&](const store::Record& record) -> Result<bool> {
      if (record.time >= kept.month.end || record.seq > last_seq) return false;
      auto event = store::to_event(record);
      if (!event) return event.error();
      const bool inside = record.time >= kept.month.begin;
      if (inside && (kept.marks.empty() || record.seq - kept.marks.back().next_seq >= kept.mark_every))
        mark(kept, record.seq);
      kept.ledger.apply(*event);
      kept.last_time = record.time;
      kept.next_seq = record.seq + 1;
      return true;
    });
    if (!read) return read;
  }
  if (kept.marks.empty()) mark(kept, kept.next_seq);
  return {};
}

// Where they become too many, every other one goes.
void BillingDesk::mark(Kept& kept, std::uint64_t next_seq) const {
  if (kept.marks.size() >= limits_.most_marks) {
    kept.mark_every *= 2;
    std::size_t index = 0;
    std::erase_if(kept.marks, [&](const Mark&) { return index++ % 2 == 1; });
  }
  kept.marks.push_back({next_seq, kept.last_time, kept.ledger.resumed()});
}

Result<std::unique_ptr<BillingDesk::Kept>> BillingDesk::fold(const Month& month, billing::Window window,
                                                             const BillingFacts& facts) const {
  auto fresh = std::make_unique<Kept>(Kept{.month = month, .ledger = billing::Ledger(std::move(window))});
  fresh->mark_every = limits_.mark_every;
  fresh->last_seq = facts.last_seq;
  if (auto read = read_on(*fresh, facts.last_seq); !read) return read.error();
  fresh->settled = facts.now - month.end >= kSettledMs;
  if (fresh->settled) fresh->ledger.advance(month.end);
  if (facts.now >= month.end) {
    if (auto read = read_late_reports(*fresh, facts.last_seq); !read) return read.error();
  }
  return fresh;
}

// What was reported for the month after its end, until it was closed.
Result<void> BillingDesk::read_late_reports(Kept& kept, Seq last_seq) const {
  if (kept.next_seq > std::min(log_.last().seq, last_seq)) return {};
  return log_.read(kept.next_seq, [&](const store::Record& record) -> Result<bool> {
    static const std::uint16_t reported = kind_of(QuantityReported{});
    static const std::uint16_t closed = kind_of(MonthClosed{});
    if (record.seq > last_seq) return false;
    if (record.kind != reported && record.kind != closed) return true;
    const auto event = store::to_event(record);
    if (!event) return event.error();
    if (const auto* report = std::get_if<QuantityReported>(&event->event)) kept.ledger.add_report(*report, record.seq);
    const auto* closing = std::get_if<MonthClosed>(&event->event);
    return closing == nullptr || closing->month != kept.month.name;
  });
}

// A month that is over is read again for each bill, so that a change of the log is seen; not for its lines.
template <class Use>
auto BillingDesk::with_ledger(const Month& month, const PriceBook& book, const BillingFacts& facts, Freshness freshness,
                              Use&& use) -> decltype(use(std::declval<Kept&>())) {
  billing::Window window = billing::window_of(month, book);
  const bool past = facts.now >= month.end;
  const std::lock_guard lock(past ? past_mutex_ : mutex_);
  std::unique_ptr<Kept>& kept = past ? past_ : kept_;
  const bool same = kept && kept->month.begin == month.begin && kept->month.end == month.end &&
                    kept->ledger.window() == window &&
                    (past ? kept->last_seq == facts.last_seq : kept->next_seq - 1 <= facts.last_seq);
  if (!same || (past && (freshness == Freshness::kReadAgain || !kept->settled))) {
    kept.reset();  // two months are never in memory together
    auto fresh = fold(month, std::move(window), facts);
    if (!fresh) return fresh.error();
    kept = std::move(*fresh);
  } else if (!past) {
    if (auto read = read_on(*kept, facts.last_seq); !read) {
      kept.reset();  // half an answer is kept by nobody
      return read.error();
    }
  }
  if (!kept->settled) kept->ledger.look_ahead(std::min(facts.now, month.end));
  return use(*kept);
}

Result<billing::Invoice> BillingDesk::invoice(const billing::InvoiceQuestion& question, const BillingFacts& facts) {
  return with_ledger(question.month, question.book, facts, Freshness::kReadAgain,
                     [&](Kept& kept) { return billing::make_invoice(kept.ledger, question); });
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

// The prices that the month is billed by: a closed month keeps those that it was closed with.
Result<BillingDesk::BookInForce> BillingDesk::book_for(const Month& month, const BillingFacts& facts) const {
  if (facts.price_version == 0)
    return conflict("no prices are in force yet; apply a price book first (berth prices apply FILE)");
  const auto closed = facts.closed.find(month.name);
  if (closed == facts.closed.end()) return BookInForce{facts.prices, facts.price_version};
  auto book = book_of(closed->second.price_version, facts);
  if (!book) return book.error();
  return BookInForce{std::move(*book), closed->second.price_version};
}

Result<billing::Invoice> BillingDesk::bill(const api::BillQuestion& question, const BillingFacts& facts) {
  const auto month = month_asked(question.month, facts.now);
  if (!month) return month.error();
  const auto closed = facts.closed.find(month->name);
  const auto known = [&](Result<billing::Invoice> made) {
    if (made && made->lines.empty() && facts.queue_is_gone)
      return Result<billing::Invoice>(not_found("no such queue '" + question.queue.substr(0, 200) +
                                                "', neither now nor in " + month->name +
                                                "; a past month has the names of that time"));
    return made;
  };
  if (question.prices) return known(invoice({question.queue, *month, *question.prices, 0}, facts));
  const auto in_force = book_for(*month, facts);
  if (!in_force) return in_force.error();
  auto made = known(invoice({question.queue, *month, in_force->book, in_force->version}, facts));
  if (!made || closed == facts.closed.end()) return made;
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
  if (made->began.is_never())
    return invalid("month " + month->name + " was over before the first event of the log; there is nothing to close");
  MonthClosed closed{month->name, facts.price_version, made->last_seq, hash_of(*made), made->total_micro, ""};
  closed.reports = std::count_if(made->lines.begin(), made->lines.end(), [](const billing::InvoiceLine& line) {
    return line.kind == billing::LineKind::kReported;
  });
  return closed;
}

Result<billing::OpenedLine> BillingDesk::open(const api::LineQuestion& question, const BillingFacts& facts) {
  const auto month = month_asked(question.month, facts.now);
  if (!month) return month.error();
  const auto job = billing::job_of_line(question.line);
  if (!job) return job.error();
  const auto in_force = book_for(*month, facts);
  if (!in_force) return in_force.error();
  return with_ledger(*month, in_force->book, facts, Freshness::kKeep, [&](Kept& kept) -> Result<billing::OpenedLine> {
    // A correction may name a job of an earlier month; its line stands beside those of no job.
    const JobId beside = job->valid() && kept.ledger.knows(*job) ? *job : JobId::none();
    const auto made = billing::make_invoice(kept.ledger, {"", *month, in_force->book, in_force->version, beside});
    if (!made) return made.error();
    return open_in(kept, *made, in_force->book, question);
  });
}

Result<billing::OpenedLine> BillingDesk::open_in(const Kept& kept, const billing::Invoice& invoice,
                                                 const PriceBook& book, const api::LineQuestion& question) const {
  auto found = billing::find_line(invoice, question.line);
  if (!found) return found.error();
  found->spans = billing::spans_of_line(found->line, kept.ledger.window(), book);
  billing::OpenedLine opened{invoice.month, invoice.currency, invoice.price_version, found->line, {}, {}, {}};
  Result<void> followed;
  if (found->line.kind == billing::LineKind::kCorrection) {
    for (const billing::Correction& one : kept.ledger.corrections()) {
      if (!found->line.note.starts_with("event " + std::to_string(one.seq) + " ")) continue;
      auto events = events_at({one.seq});
      if (!events) return events.error();
      opened.events = std::move(*events);
    }
  } else if (found->line.kind == billing::LineKind::kReported) {
    for (const billing::Report& one : kept.ledger.reports()) {
      if (one.id != found->line.note) continue;
      auto events = events_at({one.seq});
      if (!events) return events.error();
      opened.events = std::move(*events);
    }
  } else if (found->line.job.valid()) {
    followed = follow_job(kept, opened, *found);
  } else {
    followed = follow_floor(kept, opened, *found, question.after);
  }
  if (!followed) return followed.error();
  return opened;
}

Result<std::vector<EventRecord>> BillingDesk::events_at(const std::vector<Seq>& seqs) const {
  std::vector<EventRecord> events;
  for (const Seq seq : seqs) {
    const auto read = log_.read(seq, [&](const store::Record& record) -> Result<bool> {
      auto event = store::to_event(record);
      if (!event) return event.error();
      events.push_back(std::move(*event));
      return false;
    });
    if (!read) return read.error();
  }
  return events;
}

// The events of the job and of its nodes say what it used; nothing else of the month is read.
Result<void> BillingDesk::follow_job(const Kept& kept, billing::OpenedLine& opened,
                                     const billing::FoundLine& found) const {
  auto events = events_at(kept.ledger.events_of(found.line.job));
  if (!events) return events.error();
  std::set<NodeId> nodes;
  for (const EventRecord& event : *events) {
    for (const TaskPlacement& task : placements_in(event.event)) nodes.insert(task.node);
  }
  std::vector<Seq> registrations;
  for (const NodeId node : nodes) {
    const std::vector<Seq> of_node = kept.ledger.registrations_of(node);
    registrations.insert(registrations.end(), of_node.begin(), of_node.end());
  }
  auto causes = events_at(registrations);
  if (!causes) return causes.error();
  causes->insert(causes->end(), events->begin(), events->end());
  std::sort(causes->begin(), causes->end(), [](const EventRecord& a, const EventRecord& b) { return a.seq < b.seq; });
  billing::Ledger ledger(kept.ledger.window());
  ledger.follow(billing::followed_by(found.line, kept.ledger));
  for (const EventRecord& event : *causes) ledger.apply(event);
  ledger.advance(kept.ledger.counted_until());
  ledger.end_stretch();
  opened.stretches = billing::bill_stretches(found, 0, ledger.stretches());
  opened.events = std::move(*events);
  return {};
}

// Reads on from the last mark before the first stretch, and at most so far that an answer takes a second or two.
Result<void> BillingDesk::follow_floor(const Kept& kept, billing::OpenedLine& opened, const billing::FoundLine& found,
                                       const std::string& after) const {
  const auto cursor = cursor_of(after, found.line.from);
  if (!cursor) return cursor.error();
  auto from =
      std::find_if(kept.marks.rbegin(), kept.marks.rend(), [&](const Mark& one) { return one.time < cursor->from; });
  const Mark& begin = from == kept.marks.rend() ? kept.marks.front() : *from;
  billing::Ledger ledger = begin.ledger.resumed();
  ledger.follow(billing::followed_by(found.line, kept.ledger));
  std::int64_t events = 0;
  Timestamp cut = Timestamp::never();  // where this answer ends before the line does
  const auto many = [&] {
    return ledger.stretches().size() > limits_.most_stretches && ledger.stretches().back().to > cursor->from;
  };
  if (begin.next_seq < kept.next_seq) {
    const auto read = log_.read(begin.next_seq, [&](const store::Record& record) -> Result<bool> {
      if (record.seq >= kept.next_seq || record.time >= found.line.to) return false;
      if (many() || (events >= limits_.most_events && record.time > cursor->from)) {
        cut = many() ? ledger.stretches().back().to : record.time;
        return false;
      }
      auto event = store::to_event(record);
      if (!event) return event.error();
      ledger.apply(*event);
      events += record.time >= cursor->from ? 1 : 0;
      return true;
    });
    if (!read) return read.error();
  }
  const Timestamp until = std::min(cut, found.line.to);
  ledger.advance(until);
  ledger.end_stretch();
  std::vector<billing::Stretch> stretches;
  std::set<Seq> seqs;
  for (billing::Stretch one : ledger.stretches()) {
    if (one.from < cursor->from) one.began = 0;
    if (one.to > until) one.ended = 0;
    one.from = std::max(one.from, cursor->from);
    one.to = std::min(one.to, until);
    if (one.to <= one.from) continue;
    for (const Seq seq : {one.began, one.ended}) {
      if (seq != 0) seqs.insert(seq);
    }
    stretches.push_back(one);
  }
  opened.stretches = billing::bill_stretches(found, cursor->quantity, stretches);
  auto causes = events_at({seqs.begin(), seqs.end()});
  if (!causes) return causes.error();
  opened.events = std::move(*causes);
  if (cut.is_never()) return {};
  std::int64_t quantity = cursor->quantity;
  for (const billing::BilledStretch& one : opened.stretches) quantity += one.quantity;
  opened.next = std::to_string(until.ms) + "." + std::to_string(quantity);
  return {};
}

Result<std::string> BillingDesk::corrected_open_month(const BillingFacts& facts) const {
  std::string corrected;
  const auto read = log_.read(log_.first_seq(), [&](const store::Record& record) -> Result<bool> {
    static const std::uint16_t kind = kind_of(BillCorrected{});
    if (record.kind != kind) return true;
    const std::string month = month_at(record.time).name;
    if (!facts.closed.contains(month)) corrected = month;
    return corrected.empty();
  });
  if (!read) return read.error();
  return corrected;
}

void BillingDesk::set_unwatched(std::string warning) {
  const std::lock_guard lock(unwatched_mutex_);
  unwatched_ = std::move(warning);
}

std::string BillingDesk::unwatched() const {
  const std::lock_guard lock(unwatched_mutex_);
  return unwatched_;
}

// The time of the first event.
Result<Timestamp> BillingDesk::first_time() const {
  Timestamp first = Timestamp::never();
  const auto read = log_.read(log_.first_seq(), [&](const store::Record& record) -> Result<bool> {
    first = record.time;
    return false;
  });
  if (!read) return read.error();
  return first;
}

// Reads the slice on, or from the first event if it is new or its prices have changed.
Result<void> BillingDesk::read_slice(Slice& slice, const Month& span, const BookInForce& in_force,
                                     const BillingFacts& facts) {
  billing::Window window = billing::window_of(span, in_force.book);
  const bool over = facts.now - span.end >= kSettledMs;
  if (!slice.kept || slice.kept->ledger.window() != window || over) {
    slice.kept.reset();  // two ledgers of it are never in memory together
    auto fresh = fold(span, std::move(window), facts);
    if (!fresh) return fresh.error();
    slice.kept = std::move(*fresh);
  } else if (auto read = read_on(*slice.kept, facts.last_seq); !read) {
    slice.kept.reset();
    return read;
  }
  if (!slice.kept->settled) slice.kept->ledger.look_ahead(std::min(facts.now, span.end));
  return {};
}

// A ledger names queues as they were called at its end.
Result<void> BillingDesk::follow_renames(Slice& slice) const {
  const std::uint64_t last = log_.last().seq;
  if (slice.next_seq > last) return {};
  const auto read = log_.read(slice.next_seq, [&](const store::Record& record) -> Result<bool> {
    static const std::uint16_t configured = kind_of(ClusterConfigured{});
    slice.next_seq = record.seq + 1;
    if (record.kind != configured) return true;
    const auto event = store::to_event(record);
    if (!event) return event.error();
    billing::rename_queues(slice.use.uses, std::get<ClusterConfigured>(event->event).moves);
    return true;
  });
  return read;
}

// `span` is the part of the month that counts.
Result<billing::PeriodUse> BillingDesk::used_in_slice(const Month& month, const Month& span,
                                                      const BillingFacts& facts) {
  BookInForce in_force{facts.prices, facts.price_version};
  if (facts.closed.contains(month.name)) {
    auto book = book_for(month, facts);
    if (!book) return book.error();
    in_force = std::move(*book);
  }
  billing::InvoiceQuestion question{"", span, in_force.book, in_force.version};
  question.unpriced = billing::Unpriced::kCountAsNothing;
  const bool present = facts.now < month.end;
  if (present && span.begin == month.begin && span.end == month.end) {
    const auto made = invoice(question, facts);
    if (!made) return made.error();
    return billing::PeriodUse{billing::uses_of(*made), made->unpriced};
  }
  Slice& slice = slices_[{span.begin, span.end}];
  slice.asked_for = true;
  const bool read =
      slice.next_seq != 0 && slice.version == in_force.version && slice.past_reports == facts.past_reports;
  if (!read || slice.kept) {
    if (auto ok = read_slice(slice, span, in_force, facts); !ok) return ok.error();
    const auto made = billing::make_invoice(slice.kept->ledger, question);
    if (!made) return made.error();
    slice.use = {billing::uses_of(*made), made->unpriced};
    slice.version = in_force.version;
    slice.past_reports = facts.past_reports;
    slice.next_seq = slice.kept->next_seq;
    if (slice.kept->settled) slice.kept.reset();
  }
  if (auto ok = follow_renames(slice); !ok) return ok.error();
  return slice.use;
}

Result<std::vector<billing::PeriodUse>> BillingDesk::used_in(const std::vector<Month>& periods,
                                                             const BillingFacts& facts) {
  const std::lock_guard lock(slices_mutex_);
  const auto first = first_time();
  if (!first) return first.error();
  for (auto& [span, slice] : slices_) slice.asked_for = false;
  std::vector<billing::PeriodUse> all;
  for (const Month& period : periods) {
    billing::PeriodUse sum;
    const Timestamp end = std::min(period.end, facts.now + 1);
    // Before the first event nothing was used.
    for (Timestamp at = std::max(period.begin, *first); at < end;) {
      const Month month = month_at(at);
      const Month span{month.name, std::max(month.begin, period.begin), std::min(month.end, period.end)};
      const auto use = used_in_slice(month, span, facts);
      if (!use) return use.error();
      billing::add_to(sum.uses, use->uses);
      if (sum.unpriced.empty()) sum.unpriced = use->unpriced;
      at = month.end;
    }
    all.push_back(std::move(sum));
  }
  std::erase_if(slices_, [](const auto& one) { return !one.second.asked_for; });
  return all;
}

}  // namespace berth::daemon
