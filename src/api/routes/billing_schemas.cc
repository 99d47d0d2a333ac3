// Schemas of prices and bills; the objects are made in billing_routes.cc.

#include <limits>

#include "api/routes/schema.h"
#include "api/routes/schemas.h"
#include "billing/rate.h"
#include "model/quantity_report.h"

namespace berth::api {
namespace {

using namespace schema;

constexpr const char* kMoney = "^[0-9]{1,6}(\\.[0-9]{1,4})?$";

Schema price(std::string_view description) {
  return either(description, {matching("As a text.", kMoney), number("As a number.")});
}

Schema price_document_schema() {
  const Schema gpu = closed(object("Prices of an hour of one GPU.",
                                   {{"floor", price("Held by a guarantee.")},
                                    {"burst", price("Used beyond guarantees.")},
                                    {"mig?", map("An hour of one MIG instance, by profile.", price("Its price."))}}));
  const auto percent = [] { return integer("Percent; negative: a discount.", -100, kMostAdjustmentPercent); };
  const Schema adjustments = closed(object("Premiums and discounts.", {{"exclusive?", percent()},
                                                                       {"required_topology?", percent()},
                                                                       {"training?", percent()},
                                                                       {"inference?", percent()},
                                                                       {"dev?", percent()},
                                                                       {"batch?", percent()}}));
  constexpr const char* kClock = "^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$";
  const Schema off_peak =
      closed(object("A discount at times of the week, by the clock of a zone.",
                    {{"days?", list("On which it begins; all if absent.", word_of<Weekday>("A day."))},
                     {"from?", matching("00:00 if absent.", kClock)},
                     {"to?", matching("24:00 if absent; before from: on the next day.", kClock)},
                     {"zone", text("Such as Europe/Paris.")},
                     {"discount", integer("Percent of the price of a job's GPUs.", 1, 100)}}));
  constexpr const char* kFineMoney = "^[0-9]{1,4}(\\.[0-9]{1,6})?$";
  const Schema quantity =
      closed(object("What one unit of it costs.",
                    {{"unit", matching("Such as GiB-hours.", "^[!-~]{1,40}$")},
                     {"price", either("Of one unit.", {matching("As a text.", kFineMoney), number("As a number.")})}}));
  const Schema period =
      closed(object("The prices from one day on.",
                    {{"valid_from", matching("The day, in UTC.", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")},
                     {"gpus", map("By GPU model.", gpu)},
                     {"cpu_core?", price("An hour of one core.")},
                     {"memory_gib?", price("An hour of one GiB.")},
                     {"lending_credit?", integer("Percent of the burst price that a lender is credited.", 0, 100)},
                     {"adjustments?", adjustments},
                     {"off_peak?", list("Windows that do not overlap.", off_peak)},
                     {"quantities?", map("What is reported, by kind.", quantity)}}));
  return closed(object("A price book (docs/billing.md).", {{"currency", matching("ISO 4217.", "^[A-Z]{3}$")},
                                                           {"prices", list("In the order of their days.", period)}}));
}

Schema invoice_line() {
  return object("A line of an invoice.", {{"id", text("Opens it (getBillLine); empty: it cannot be opened.")},
                                          {"queue", text("The queue that pays.")},
                                          {"kind", word_of<billing::LineKind>("What it is for.")},
                                          {"cause", text("Of a premium or discount; the kind of a reported quantity.")},
                                          {"gpu_model", text("Empty: none.")},
                                          {"slice", text("The MIG profile; empty: whole GPUs.")},
                                          {"borrower", text("The queue that used the floor.")},
                                          {"user", text("Empty: the line belongs to the queue as such.")},
                                          {"job", integer("0: none.")},
                                          {"job_name", text("Its name.")},
                                          {"from", time("When these prices began, or the month.")},
                                          {"to", time("When they ended.")},
                                          {"unit", text("Of the quantity.")},
                                          {"quantity", text("With at most six decimals.")},
                                          {"unit_price", text("Of one unit.")},
                                          {"amount", text("In the currency; negative: a credit or discount.")},
                                          {"amount_micro", integer("The same in millionths.")},
                                          {"note", text("Of a correction; of a reported quantity, its id.")}});
}

Schema opened_line() {
  const Schema stretch = object("A stretch of time in which it was used evenly.",
                                {{"from", time("Its begin.")},
                                 {"to", time("Its end.")},
                                 {"gpus", number("At each instant.")},
                                 {"quantity", text("With at most six decimals.")},
                                 {"amount", text("In the currency; negative: a credit or discount.")},
                                 {"amount_micro", integer("The same in millionths.")},
                                 {"began", integer("The event; 0: the month or these prices began.")},
                                 {"ended", integer("The event; 0: they ended, or it goes on.")}});
  const Schema event =
      object("An event of the log.", {{"seq", integer("Its number.")},
                                      {"time", time("Its time.")},
                                      {"event", text("Its kind.")},
                                      {"job", integer("The job that it is about; 0: none, or hidden.")}});
  return object("A line of a bill, opened.",
                {{"month", text("The month.")},
                 {"currency", text("ISO 4217.")},
                 {"price_version", integer("Of the price book.")},
                 {"line", invoice_line()},
                 {"stretches", list("They add up to the line, together with those of the other answers.", stretch)},
                 {"events", list("Of the job; or those that began and ended the stretches.", event)},
                 {"next?", text("There are more: pass it on as `after`.")}});
}

Schema bill() {
  const auto gpu_time = [](std::string_view what) { return integer(what); };
  const Schema row = object("A row.", {{"name", text("What its lines have in common; empty: nothing.")},
                                       {"job_name?", text("By job: its name.")},
                                       {"floor_used_gpu_milli_ms", gpu_time("Thousandths of a GPU times ms.")},
                                       {"floor_idle_gpu_milli_ms", gpu_time("Held, and used by no job.")},
                                       {"floor_lent_gpu_milli_ms", gpu_time("Held, and used by others.")},
                                       {"burst_gpu_milli_ms", gpu_time("Used beyond guarantees.")},
                                       {"amount", text("In the currency.")},
                                       {"amount_micro", integer("The same in millionths.")}});
  const Schema accounts = object("Every thousandth of a GPU times ms of a model is in one account.",
                                 {{"gpu_model", text("The model.")},
                                  {"floor_used", integer("Used within guarantees.")},
                                  {"floor_idle", integer("Backs a guarantee, and is not used.")},
                                  {"floor_lent", integer("Backs a guarantee, and is used by a job beyond one.")},
                                  {"burst", integer("Backs no guarantee, and is used.")},
                                  {"unowned", integer("Backs no guarantee, and is not used.")},
                                  {"drained", integer("Not used, on a cordoned node.")},
                                  {"failed", integer("Not used, and unhealthy or out of contact.")},
                                  {"foreign", integer("Not used, and others than berth use it.")},
                                  {"capacity", integer("The sum.")}});
  return object("A bill.",
                {{"month", text("The month.")},
                 {"queue", text("The queue; empty: the root.")},
                 {"from", time("Its begin.")},
                 {"to", time("Until when it is counted.")},
                 {"currency", text("ISO 4217.")},
                 {"price_version", integer("Of the price book; 0: one that is not in force.")},
                 {"simulated", boolean("Some GPUs are simulated.")},
                 {"partial", boolean("Only the lines that the subject may see; the sums are theirs.")},
                 {"by", word_of<billing::BillBy>("What the rows have in common.")},
                 {"number", text("Of the invoice; empty: the month is not closed.")},
                 {"hash", text("SHA-256 of the invoice; empty: the month is not closed.")},
                 {"closed?", time("When it was closed.")},
                 {"items", list("The rows, the largest amount first.", row)},
                 {"total", text("The sum.")},
                 {"total_micro", integer("The same in millionths.")},
                 {"expected_micro",
                  integer("What the month would cost if it went on like this; reports and corrections count once.")},
                 {"fleet", list("The accounts, for the root only.", accounts)},
                 {"lines?", list("With invoice=lines.", invoice_line())},
                 {"document?", text("With invoice=csv, html or hledger: the document.")}});
}

}  // namespace

void add_billing_schemas(boost::json::object& schemas) {
  schemas["PriceDocument"] = price_document_schema();
  schemas["Prices"] = object("The price book in force.", {{"version", integer("Its version; 0: none yet.")},
                                                          {"prices?", reference("PriceDocument")},
                                                          {"yaml", text("The same as a YAML document.")}});
  schemas["PriceDiff"] = object("What would change.", {{"version", integer("The version in force.")},
                                                       {"changes", list("By day and path.", text("A change."))}});
  schemas["Bill"] = bill();
  schemas["OpenedLine"] = opened_line();
  schemas["BillCorrection"] =
      closed(object("An amount for a month since the log begins.",
                    {{"queue", text("The queue that gets or pays it.")},
                     {"amount_micro", integer("In millionths of the currency; negative: a refund. Not 0.",
                                              -100'000'000 * kMicro, 100'000'000 * kMicro)},
                     {"reason", text("1 to 200 characters on one line; it is on the bill.")},
                     {"job?", integer("The job that it is about, at or below the queue.", 1,
                                      std::numeric_limits<std::int64_t>::max())}}));
  schemas["BillCorrected"] =
      object("A correction that was taken.", {{"month", text("That is corrected.")},
                                              {"queue", text("The queue.")},
                                              {"amount", text("Negative: a refund.")},
                                              {"repeated?", boolean("The key was given before; it counts once.")}});
  constexpr const char* kReportId = "^[!-~]{1,100}$";
  const Schema report =
      closed(object("A reported quantity.", {{"id", matching("Of this report: the same one counts once.", kReportId)},
                                             {"queue", text("The queue that pays.")},
                                             {"kind", text("As the prices name it.")},
                                             {"unit?", text("That of the prices; another one is refused.")},
                                             {"quantity", integer("Whole units.", 1, kMostQuantity)},
                                             {"from", time("The begin of the time.")},
                                             {"to", time("Its end, in the same month, until now at most.")}}));
  schemas["QuantityReports"] =
      closed(object("Reported quantities.", {{"quantities", list("1 to 1000 reports.", report)}}));
  schemas["QuantitiesReported"] = object("What was reported.", {{"reported", integer("Reports that are new.")},
                                                                {"repeated", integer("Reports that were known.")}});
  const Schema known = object("A reported quantity.", {{"id", text("Of this report.")},
                                                       {"queue", text("The queue that pays.")},
                                                       {"kind", text("As the prices name it.")},
                                                       {"quantity", integer("Whole units.")},
                                                       {"unit", text("Of the quantity.")},
                                                       {"from", time("The begin of the time.")},
                                                       {"to", time("Its end.")},
                                                       {"user", text("That has reported it.")}});
  schemas["QuantityList"] = object("Reported quantities.", {{"items", list("By id.", known)}});
  schemas["MonthClosed"] = object("A month that was closed.", {{"month", text("The month.")},
                                                               {"number", text("Of the invoice of the root.")},
                                                               {"hash", text("SHA-256 of that invoice.")},
                                                               {"total", text("Its total.")},
                                                               {"price_version", integer("Of the price book.")}});
}

}  // namespace berth::api
