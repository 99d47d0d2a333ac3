// Prices, bills, and the closing of months.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <limits>

#include "api/routes/access.h"
#include "api/routes/documents.h"
#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "base/checked.h"
#include "billing/opened_line.h"
#include "billing/rate.h"
#include "billing/render.h"
#include "model/queue_path.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

constexpr std::string_view kHiddenQueue = "another queue";

const std::vector<std::string> kPriceTypes = {"application/json", "application/yaml"};

ZoneSource zones_of(Service& service) {
  return [&service](const std::string& name) { return service.time_zone(name); };
}

struct PricesInForce {
  PriceBook book;
  std::uint64_t version = 0;
};

PricesInForce prices_in_force(Service& service) {
  PricesInForce in_force;
  service.read([&](const View& view) { in_force = {view.state.prices(), view.state.price_version()}; });
  return in_force;
}

void get_prices(Service& service, const Responder& responder) {
  const PricesInForce in_force = prices_in_force(service);
  json::object answer{{"version", in_force.version}};
  if (in_force.version > 0) answer["prices"] = price_document(in_force.book);
  answer["yaml"] = in_force.version > 0 ? price_yaml(in_force.book) : std::string();
  responder.send(json_answer(answer));
}

// Returns the book in the body, which can be put in force.
Result<PriceBook> good_prices(Service& service, const Request& request) {
  auto book = decode_prices(request, zones_of(service));
  if (!book) return book;
  const auto mistakes = service.price_mistakes(*book);
  if (!mistakes) return mistakes.error();
  if (!mistakes->empty()) return price_error(request, *mistakes);
  return book;
}

void put_prices(Service& service, const Request& request, const Responder& responder) {
  auto book = good_prices(service, request);
  if (!book) {
    responder.fail(book.error());
    return;
  }
  service.submit(
      origin_of(request), ApplyPrices{std::move(*book), request.subject},
      [responder](const Result<control::Reply>& reply) {
        if (reply)
          responder.send(json_answer(json::object{{"version", reply->version}, {"unchanged", reply->unchanged}}));
        else
          responder.fail(reply.error());
      });
}

void diff_prices(Service& service, const Request& request, const Responder& responder) {
  const auto book = good_prices(service, request);
  if (!book) {
    responder.fail(book.error());
    return;
  }
  const PricesInForce in_force = prices_in_force(service);
  json::array changes;
  for (const std::string& line : price_changes(in_force.book, *book)) changes.emplace_back(line);
  responder.send(json_answer(json::object{{"version", in_force.version}, {"changes", std::move(changes)}}));
}

json::object row_view(const billing::BillRow& row, billing::BillBy by) {
  json::object view{{"name", row.name}};
  if (by == billing::BillBy::kJob) view["job_name"] = row.job_name;
  view["floor_used_gpu_milli_ms"] = row.floor_used;
  view["floor_idle_gpu_milli_ms"] = row.floor_idle;
  view["floor_lent_gpu_milli_ms"] = row.floor_lent;
  view["burst_gpu_milli_ms"] = row.burst;
  view["amount"] = money_text(row.amount_micro);
  view["amount_micro"] = row.amount_micro;
  return view;
}

json::object accounts_view(const billing::FleetAccounts& one) {
  return {{"gpu_model", one.model},       {"floor_used", one.floor_used}, {"floor_idle", one.floor_idle},
          {"floor_lent", one.floor_lent}, {"burst", one.burst},           {"unowned", one.unowned},
          {"drained", one.drained},       {"failed", one.failed},         {"foreign", one.foreign},
          {"capacity", one.capacity}};
}

// What the month would cost if it went on as it did since it began, or since the cluster did. What was reported or
// corrected does not go on: it counts once.
std::int64_t expected_micro(const billing::Invoice& invoice, const Month& month) {
  const std::int64_t counted = invoice.to - std::max(invoice.from, invoice.began);
  if (counted <= 0) return invoice.total_micro;
  Int128 goes_on = 0;
  for (const billing::InvoiceLine& line : invoice.lines) {
    if (line.kind != billing::LineKind::kReported && line.kind != billing::LineKind::kCorrection)
      goes_on += line.amount_micro;
  }
  const Int128 rest = goes_on * (month.end - invoice.to) / counted;
  return invoice.total_micro + static_cast<std::int64_t>(rest);
}

// Keeps the lines that the subject may see: all of its queues, or those of its own jobs. Unless it sees the whole of
// what was asked for, the invoice is partial.
void keep_visible(const Request& request, billing::Invoice& invoice) {
  if (policy::authorize(request.principal, policy::Verb::kSeeUsage, {}).allowed) return;
  invoice.partial = !policy::authorize(request.principal, policy::Verb::kSeeUsage, {invoice.queue, {}}).allowed;
  std::erase_if(invoice.lines, [&](const billing::InvoiceLine& line) {
    return !policy::authorize(request.principal, policy::Verb::kSeeUsage, {line.queue, line.user}).allowed;
  });
  for (billing::InvoiceLine& line : invoice.lines) {  // whom its floor was lent to is not the lender's to know
    if (!line.borrower.empty() &&
        !policy::authorize(request.principal, policy::Verb::kSeeUsage, {line.borrower, {}}).allowed)
      line.borrower = kHiddenQueue;
  }
  invoice.fleet.clear();
  invoice.total_micro = 0;
  for (const billing::InvoiceLine& line : invoice.lines)
    invoice.total_micro = checked_add(invoice.total_micro, line.amount_micro);
}

// A line whose borrower is not told cannot be opened.
json::object line_view(const billing::InvoiceLine& line) {
  return {{"id", line.borrower == kHiddenQueue ? std::string() : billing::line_id(line)},
          {"queue", line.queue},
          {"kind", name_of(line.kind)},
          {"cause", line.cause},
          {"gpu_model", line.model},
          {"slice", line.slice},
          {"borrower", line.borrower},
          {"user", line.user},
          {"job", line.job.valid() ? line.job.value() : 0},
          {"job_name", line.job_name},
          {"from", to_iso8601(line.from)},
          {"to", to_iso8601(line.to)},
          {"unit", billing::unit_text(line)},
          {"quantity", billing::hours_text(line.quantity, line.unit)},
          {"unit_price", money_text(line.unit_price_micro)},
          {"amount", money_text(line.amount_micro)},
          {"amount_micro", line.amount_micro},
          {"note", line.note}};
}

// Adds the invoice to its bill: line by line, or as a document.
void add_invoice(json::object& view, const billing::Invoice& invoice, const std::string& form) {
  if (const auto document = enum_from_name<billing::InvoiceForm>(form)) {
    view["document"] = billing::render(invoice, *document);
    return;
  }
  json::array lines;
  for (const billing::InvoiceLine& line : invoice.lines) lines.push_back(line_view(line));
  view["lines"] = std::move(lines);
}

json::object bill_view(const billing::Invoice& invoice, billing::BillBy by, const std::string& label) {
  const auto month = month_of(invoice.month);
  json::array rows;
  for (const billing::BillRow& row : billing::bill_rows(invoice, by, label)) rows.push_back(row_view(row, by));
  json::array fleet;
  for (const billing::FleetAccounts& one : invoice.fleet) fleet.push_back(accounts_view(one));
  json::object view{{"month", invoice.month},           {"queue", invoice.queue},
                    {"from", to_iso8601(invoice.from)}, {"to", to_iso8601(invoice.to)},
                    {"currency", invoice.currency},     {"price_version", invoice.price_version},
                    {"simulated", invoice.simulated},   {"by", name_of(by)}};
  view["number"] = invoice.number;
  view["hash"] = invoice.hash;
  if (!invoice.number.empty()) view["closed"] = to_iso8601(invoice.closed);
  view["items"] = std::move(rows);
  view["total"] = money_text(invoice.total_micro);
  view["total_micro"] = invoice.total_micro;
  view["expected_micro"] = month ? expected_micro(invoice, *month) : invoice.total_micro;
  view["fleet"] = std::move(fleet);
  view["partial"] = invoice.partial;
  return view;
}

void answer_bill(Service& service, const Request& request, const Responder& responder, std::optional<PriceBook> book) {
  const auto by = enum_from_name<billing::BillBy>(request.query_value("by").value_or("queue"));
  const std::string label = text_of(request, "label");
  if (by == billing::BillBy::kLabel && label.empty()) {
    responder.fail(invalid("label is missing: give the key of the labels, such as label=model"));
    return;
  }
  auto invoice = service.bill({text_of(request, "queue"), text_of(request, "month"), std::move(book)});
  if (!invoice) {
    responder.fail(invoice.error());
    return;
  }
  keep_visible(request, *invoice);
  json::object view = bill_view(*invoice, *by, label);
  if (const std::string form = text_of(request, "invoice"); !form.empty()) add_invoice(view, *invoice, form);
  responder.send(json_answer(view));
}

void try_bill(Service& service, const Request& request, const Responder& responder) {
  auto book = decode_prices(request, zones_of(service));
  if (!book) {
    responder.fail(book.error());
    return;
  }
  answer_bill(service, request, responder, std::move(*book));
}

json::object stretch_view(const billing::BilledStretch& one, const billing::InvoiceLine& line) {
  json::object view{{"from", to_iso8601(one.stretch.from)}, {"to", to_iso8601(one.stretch.to)}};
  view["gpus"] = line.model.empty() ? 0 : from_thousandths(one.stretch.rate.gpu_milli_ms);
  view["quantity"] = billing::hours_text(one.quantity, line.unit);
  view["amount"] = money_text(one.amount_micro);
  view["amount_micro"] = one.amount_micro;
  view["began"] = one.stretch.began;
  view["ended"] = one.stretch.ended;
  return view;
}

// Which jobs used a floor, or gave way to others, is for a subject that sees all of them.
json::object opened_view(const billing::OpenedLine& opened, bool sees_all) {
  json::object view{{"month", opened.month},
                    {"currency", opened.currency},
                    {"price_version", opened.price_version},
                    {"line", line_view(opened.line)}};
  json::array stretches;
  for (const billing::BilledStretch& one : opened.stretches) stretches.push_back(stretch_view(one, opened.line));
  json::array events;
  for (const EventRecord& event : opened.events) {
    const JobId job = job_of(event.event);
    const bool told = job.valid() && (sees_all || job == opened.line.job);
    json::object one{{"seq", event.seq}, {"time", to_iso8601(event.time)}, {"event", kind_name(event.event)}};
    one["job"] = told ? job.value() : 0;
    events.push_back(std::move(one));
  }
  view["stretches"] = std::move(stretches);
  view["events"] = std::move(events);
  if (!opened.next.empty()) view["next"] = opened.next;
  return view;
}

void open_line(Service& service, const Request& request, const Responder& responder) {
  const std::string line = request.path_params.at("line");
  const auto opened = service.open_line({text_of(request, "month"), line, text_of(request, "after")});
  if (!opened) {
    responder.fail(opened.error());
    return;
  }
  const auto sees = [&](const policy::Object& object) {
    return policy::authorize(request.principal, policy::Verb::kSeeUsage, object).allowed;
  };
  const billing::InvoiceLine& of = opened->line;
  if (!sees({of.queue, of.user}) || (!of.borrower.empty() && !sees({of.borrower, {}}))) {
    responder.fail(not_found("the bill of " + opened->month + " has no line " + line.substr(0, 80)));
    return;
  }
  responder.send(json_answer(opened_view(*opened, sees({}))));
}

void close_month(Service& service, const Request& request, const Responder& responder) {
  auto closing = service.closing(request.path_params.at("month"));
  if (!closing) {
    responder.fail(closing.error());
    return;
  }
  closing->user = request.subject;
  json::object answer{{"month", closing->month},
                      {"number", closing->month},
                      {"hash", closing->hash},
                      {"total", money_text(closing->total_micro)},
                      {"price_version", closing->price_version}};
  service.submit(origin_of(request), CloseMonth{std::move(*closing)},
                 [responder, answer](const Result<control::Reply>& reply) {
                   if (reply)
                     responder.send(json_answer(answer));
                   else
                     responder.fail(reply.error());
                 });
}

constexpr std::int64_t kMostCorrectionMicro = 100'000'000 * kMicro;

Result<std::string> take_text(json::object& body, const std::string& name) {
  const json::value* const found = body.if_contains(name);
  if (found == nullptr || !found->is_string()) return invalid(name + " is missing: give it as a text");
  std::string text(found->get_string());
  body.erase(name);
  return text;
}

Result<BillCorrected> correction_in(const Request& request) {
  auto body = object_of(request);
  if (!body) return body.error();
  BillCorrected correction;
  correction.month = request.path_params.at("month");
  correction.user = request.subject;
  correction.key = request.idempotency_key;
  for (const auto& [name, member] :
       {std::pair("queue", &BillCorrected::queue), std::pair("reason", &BillCorrected::reason)}) {
    auto text = take_text(*body, name);
    if (!text) return text.error();
    correction.*member = std::move(*text);
  }
  const auto amount = take_integer(*body, "amount_micro", -kMostCorrectionMicro, kMostCorrectionMicro);
  if (!amount) return amount.error();
  correction.amount_micro = *amount;
  if (body->contains("job")) {
    const auto job = take_integer(*body, "job", 1, std::numeric_limits<std::int64_t>::max());
    if (!job) return job.error();
    correction.job = JobId(static_cast<std::uint64_t>(*job));
  }
  if (auto ok = refuse_rest(*body); !ok) return ok.error();
  return correction;
}

// The month is one of the log, and the job one whose lines are on the bill of the queue.
Result<void> check_correction(Service& service, const BillCorrected& correction) {
  const auto month = month_of(correction.month);
  const auto first = service.events(1, 1);
  if (month && first && !first->empty() && month->end <= first->front().time)
    return invalid("month " + month->name + " was over before the first event of the log, of " +
                   to_iso8601(first->front().time) + "; nothing was billed then");
  if (!correction.job.valid()) return {};
  const auto job = job_object(service, correction.job);
  if (!job) return not_found("job: no such job " + std::to_string(correction.job.value()));
  bool still_there = false;  // a finished job is known by what its queue was called then
  service.read([&](const View& view) { still_there = view.state.queue_at(job->queue) != nullptr; });
  if (still_there && !is_at_or_below(job->queue, correction.queue))
    return invalid("job: job " + std::to_string(correction.job.value()) + " is of queue " + job->queue +
                   ", which is not below " + correction.queue + "; correct the bill of its queue");
  return {};
}

void correct_bill(Service& service, const Request& request, const Responder& responder) {
  auto correction = correction_in(request);
  if (!correction) {
    responder.fail(correction.error());
    return;
  }
  if (auto ok = check_correction(service, *correction); !ok) {
    responder.fail(ok.error());
    return;
  }
  json::object answer{
      {"month", correction->month}, {"queue", correction->queue}, {"amount", money_text(correction->amount_micro)}};
  service.submit(origin_of(request), CorrectBill{std::move(*correction)},
                 [responder, answer](const Result<control::Reply>& reply) {
                   if (!reply) {
                     responder.fail(reply.error());
                     return;
                   }
                   json::object taken = answer;
                   if (reply->repeated) taken["repeated"] = true;
                   responder.send(json_answer(taken, reply->repeated ? 200 : 201));
                 });
}

std::vector<http::ParameterDoc> bill_parameters() {
  http::ParameterDoc by = http::query_parameter("by", "What the rows have in common; queue if absent.");
  by.values = {"queue", "user", "job", "model", "label", "kind"};
  http::ParameterDoc form = http::query_parameter("invoice", "Adds the invoice, as lines or as a document.");
  form.values = {"lines", "csv", "html", "hledger", "focus"};
  return {http::query_parameter("queue", "The queue that is billed with all below it; the root if absent."),
          http::query_parameter("month", "A month of UTC, such as 2026-11; the present one if absent."), by,
          http::query_parameter("label", "With by=label: the key of the labels."), form};
}

std::vector<http::ResponseDoc> bill_responses() {
  return {{.status = 200, .description = "The bill.", .schema = "Bill"},
          {.status = 400, .description = "The month is none, or a GPU model that was used has no price."},
          {.status = 404, .description = "There is no such queue."},
          {.status = 409, .description = "No prices are in force."}};
}

void add_price_routes(http::Router& router, Service& service) {
  router.add({.method = Method::kGet,
              .pattern = "/v1/prices",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "getPrices",
                      .summary = "The price book in force, as JSON and as YAML.",
                      .responses = {{.status = 200, .description = "The prices.", .schema = "Prices"}},
                      .tags = {"billing"}},
              .handler = [&service](const Request&, const Responder& to) { get_prices(service, to); }});
  router.add(
      {.method = Method::kPut,
       .pattern = "/v1/prices",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "putPrices",
               .summary = "Puts a price book in force, as a whole.",
               .responses = {{.status = 200, .description = "It is in force.", .schema = "ConfigApplied"},
                             {.status = 400, .description = "The document is malformed or breaks a rule."}},
               .description = "The document is that of docs/billing.md. A closed month keeps its prices; a book that "
                              "leaves something of another month without a price is refused.",
               .tags = {"billing"},
               .request_schema = "PriceDocument",
               .request_types = kPriceTypes},
       .handler = [&service](const Request& request, const Responder& to) { put_prices(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/prices/diff",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "diffPrices",
               .summary = "What putting a price book in force would change.",
               .responses = {{.status = 200, .description = "One line per change.", .schema = "PriceDiff"},
                             {.status = 400, .description = "The document is malformed or breaks a rule."}},
               .tags = {"billing"},
               .request_schema = "PriceDocument",
               .request_types = kPriceTypes},
       .handler = [&service](const Request& request, const Responder& to) { diff_prices(service, request, to); }});
}

}  // namespace

void add_billing_routes(http::Router& router, Service& service) {
  add_price_routes(router, service);
  router.add({.method = Method::kGet,
              .pattern = "/v1/bill",
              .access = Access::kToken,
              .threads = http::Threads::kLongReads,
              .doc = {.operation_id = "getBill",
                      .summary = "The bill of a queue for a month, summed up.",
                      .responses = bill_responses(),
                      .description = "Amounts are exact in millionths of the currency. A member sees its own jobs.",
                      .tags = {"billing"},
                      .parameters = bill_parameters()},
              .handler = [&service](const Request& request, const Responder& to) {
                answer_bill(service, request, to, std::nullopt);
              }});
  router.add({.method = Method::kPost,
              .pattern = "/v1/bill",
              .access = Access::kToken,
              .threads = http::Threads::kLongReads,
              .doc = {.operation_id = "tryBill",
                      .summary = "The same by another price book; nothing is stored.",
                      .responses = bill_responses(),
                      .tags = {"billing"},
                      .parameters = bill_parameters(),
                      .request_schema = "PriceDocument",
                      .request_types = kPriceTypes},
              .handler = [&service](const Request& request, const Responder& to) { try_bill(service, request, to); }});
  router.add({.method = Method::kGet,
              .pattern = "/v1/bill/lines/{line}",
              .access = Access::kToken,
              .threads = http::Threads::kLongReads,
              .doc = {.operation_id = "getBillLine",
                      .summary = "The stretches of time and the events that a line of a bill is made of.",
                      .responses = {{.status = 200, .description = "They add up to the line.", .schema = "OpenedLine"},
                                    {.status = 400, .description = "The line, the month or `after` is malformed."},
                                    {.status = 404, .description = "The bill has no such line."},
                                    {.status = 409, .description = "No prices are in force."}},
                      .tags = {"billing"},
                      .parameters = {http::path_parameter("line", "The `id` of a line of GET /v1/bill?invoice=lines."),
                                     http::query_parameter("month", "A month of UTC; the present one if absent."),
                                     http::query_parameter("after",
                                                           "The `next` of the answer before; then what follows it.")}},
              .handler = [&service](const Request& request, const Responder& to) { open_line(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/months/{month}/close",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "closeMonth",
               .summary = "Closes a month: its bills are those of these prices for good.",
               .responses = {{.status = 200, .description = "It is closed.", .schema = "MonthClosed"},
                             {.status = 400, .description = "It is no month, or cannot be billed."},
                             {.status = 409, .description = "It is not over, is closed, or there are no prices."}},
               .tags = {"billing"},
               .parameters = {http::path_parameter("month", "A month of UTC, such as 2026-11.")}},
       .handler = [&service](const Request& request, const Responder& to) { close_month(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/months/{month}/corrections",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "correctBill",
               .summary =
                   "Refunds or charges an amount for a month since the log begins, on the bill of the present one.",
               .responses = {{.status = 201, .description = "It is on the bill.", .schema = "BillCorrected"},
                             {.status = 200, .description = "It was taken before.", .schema = "BillCorrected"},
                             {.status = 400, .description = "The month, the amount or the reason breaks a rule."},
                             {.status = 404, .description = "There is no such queue or job."},
                             {.status = 409,
                              .description = "The key was used for another correction, or there are no prices."}},
               .description = "What was billed is never edited. With an Idempotency-Key the same correction may be "
                              "sent again and counts once; without one, each call is a correction of its own.",
               .tags = {"billing"},
               .parameters = {http::path_parameter("month", "The month that is corrected, such as 2026-11."),
                              http::header_parameter(
                                  "Idempotency-Key",
                                  "Visible ASCII characters; the same key of a user is the same correction.",
                                  "^[!-~]{1,255}$")},
               .request_schema = "BillCorrection"},
       .handler = [&service](const Request& request, const Responder& to) { correct_bill(service, request, to); }});
}

}  // namespace berth::api
