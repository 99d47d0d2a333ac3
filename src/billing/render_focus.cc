// The invoice in the columns of FOCUS 1.0 (FinOps Open Cost and Usage Specification,
// focus.finops.org/focus-specification/v1-0). The floor of a queue is a commitment discount of usage; what is credited
// for lending it is a Credit; premiums and discounts are Adjustments; a correction has the charge class Correction.

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/csv.h"
#include "billing/render.h"
#include "model/month.h"
#include "model/price_book.h"

namespace berth::billing {
namespace {

using Row = std::vector<std::pair<const char*, std::string>>;

bool is_floor(LineKind kind) {
  return kind == LineKind::kFloorUsed || kind == LineKind::kFloorIdle || kind == LineKind::kFloorLent;
}

bool is_usage(LineKind kind) {
  return is_floor(kind) || kind == LineKind::kBurst || kind == LineKind::kCpu || kind == LineKind::kMemory ||
         kind == LineKind::kReported;
}

std::string category_of(LineKind kind) {
  if (is_usage(kind)) return "Usage";
  return kind == LineKind::kLendingCredit ? "Credit" : "Adjustment";
}

// FOCUS has times to the second.
std::string second_of(Timestamp time) { return to_iso8601(time).substr(0, 19) + "Z"; }

std::string unit_of(const InvoiceLine& line) {
  switch (line.unit) {
    case Unit::kGpuHour:
      return "GPU-Hours";
    case Unit::kMigHour:
      return "MIG-Instance-Hours";
    case Unit::kCoreHour:
      return "Core-Hours";
    case Unit::kGibHour:
      return "GiB-Hours";
    case Unit::kNone:
      return {};
    case Unit::kReported:
      return line.reported_unit;
  }
  return {};
}

// FOCUS has a list of services. What is reported under the names that docs/billing.md proposes is in it.
std::string service_of(const InvoiceLine& line) {
  if (line.kind != LineKind::kReported) return "Compute";
  if (line.cause == "storage") return "Storage";
  return line.cause == "egress" ? "Networking" : "Other";
}

std::string sku_of(const InvoiceLine& line) {
  std::string sku(name_of(line.kind));
  for (const std::string& part : {line.model, line.slice, line.cause}) sku += part.empty() ? "" : ":" + part;
  return sku;
}

std::string described(const InvoiceLine& line) {
  std::string text = sku_of(line) + " of " + (line.queue.empty() ? "/" : line.queue);
  if (!line.borrower.empty()) text += ", lent to " + line.borrower;
  if (line.job.valid()) text += ", job " + std::to_string(line.job.value());
  if (!line.note.empty()) text += ": " + line.note;
  return text;
}

std::string tags_of(const Invoice& invoice, const InvoiceLine& line) {
  boost::json::object tags;
  for (const auto& [key, value] : line.labels) tags[key] = value;
  if (!line.user.empty()) tags["berth/user"] = line.user;
  if (line.job.valid()) tags["berth/class"] = name_of(line.job_class);
  if (invoice.partial) tags["berth/partial"] = "true";
  return boost::json::serialize(tags);
}

void add_period(const Invoice& invoice, const InvoiceLine& line, Row& row) {
  const auto month = month_of(invoice.month);
  row.emplace_back("BillingPeriodStart", second_of(month ? month->begin : invoice.from));
  row.emplace_back("BillingPeriodEnd", second_of(month ? month->end : invoice.to));
  row.emplace_back("ChargePeriodStart", second_of(line.from));
  row.emplace_back("ChargePeriodEnd", second_of(line.to));
}

void add_commitment(const InvoiceLine& line, Row& row) {
  const bool floor = is_floor(line.kind);
  row.emplace_back("CommitmentDiscountCategory", floor ? "Usage" : "");
  row.emplace_back("CommitmentDiscountId", floor ? "floor:" + (line.queue.empty() ? "/" : line.queue) : "");
  row.emplace_back("CommitmentDiscountName", floor ? "Guarantee of " + (line.queue.empty() ? "/" : line.queue) : "");
  row.emplace_back("CommitmentDiscountStatus", !floor ? "" : line.kind == LineKind::kFloorUsed ? "Used" : "Unused");
  row.emplace_back("CommitmentDiscountType", floor ? "Floor" : "");
}

void add_costs(const InvoiceLine& line, Row& row) {
  const bool usage = is_usage(line.kind);
  const std::string amount = money_text(line.amount_micro);
  const std::string quantity = usage ? hours_text(line.quantity, line.unit) : "";
  const std::string price = usage ? money_text(line.unit_price_micro) : "";
  const bool consumed = usage && line.kind != LineKind::kFloorIdle && line.kind != LineKind::kFloorLent;
  for (const char* cost : {"BilledCost", "ContractedCost", "EffectiveCost", "ListCost"}) row.emplace_back(cost, amount);
  row.emplace_back("ConsumedQuantity", consumed ? quantity : "");
  row.emplace_back("ConsumedUnit", consumed ? unit_of(line) : "");
  row.emplace_back("ContractedUnitPrice", price);
  row.emplace_back("ListUnitPrice", price);
  row.emplace_back("PricingCategory", !usage ? "" : is_floor(line.kind) ? "Committed" : "Standard");
  row.emplace_back("PricingQuantity", quantity);
  row.emplace_back("PricingUnit", usage ? unit_of(line) : "");
}

void add_names(const Invoice& invoice, const InvoiceLine& line, Row& row) {
  const std::string issuer = invoice.cluster.empty() ? "berth" : invoice.cluster;
  const bool of_job = line.job.valid();
  row.emplace_back("BillingAccountId", issuer);
  row.emplace_back("BillingAccountName", issuer);
  row.emplace_back("BillingCurrency", invoice.currency);
  for (const char* name : {"InvoiceIssuerName", "ProviderName", "PublisherName"}) row.emplace_back(name, issuer);
  for (const char* name : {"AvailabilityZone", "RegionId", "RegionName"}) row.emplace_back(name, "");
  row.emplace_back("ResourceId", of_job ? "job:" + std::to_string(line.job.value()) : "queue:" + line.queue);
  row.emplace_back("ResourceName", of_job ? line.job_name : line.queue);
  row.emplace_back("ResourceType", of_job ? "Job" : "Queue");
  row.emplace_back("ServiceCategory", service_of(line));
  row.emplace_back("ServiceName", "GPU cluster");
  row.emplace_back("SkuId", sku_of(line));
  row.emplace_back("SkuPriceId", sku_of(line) + "@" + money_text(line.unit_price_micro));
  row.emplace_back("SubAccountId", line.queue.empty() ? "/" : line.queue);
  row.emplace_back("SubAccountName", line.queue.empty() ? "/" : line.queue);
  row.emplace_back("Tags", tags_of(invoice, line));
}

Row row_of(const Invoice& invoice, const InvoiceLine& line) {
  Row row;
  const bool usage = is_usage(line.kind);
  row.emplace_back("ChargeCategory", category_of(line.kind));
  row.emplace_back("ChargeClass", line.kind == LineKind::kCorrection ? "Correction" : "");
  row.emplace_back("ChargeDescription", described(line));
  row.emplace_back("ChargeFrequency", usage ? "Usage-Based" : "One-Time");
  add_period(invoice, line, row);
  add_commitment(line, row);
  add_costs(line, row);
  add_names(invoice, line, row);
  return row;
}

}  // namespace

std::string invoice_focus(const Invoice& invoice) {
  std::string text;
  for (const auto& [name, unused] : row_of(invoice, {})) text += (text.empty() ? "" : ",") + std::string(name);
  text += "\r\n";
  for (const InvoiceLine& line : invoice.lines) {
    bool first = true;
    for (const auto& [name, value] : row_of(invoice, line)) {
      text += first ? "" : ",";
      // A credit's amount begins with '-', which would be taken for the beginning of a formula in text.
      const bool number =
          !value.empty() && value.find_first_not_of(".0123456789", value.front() == '-' ? 1 : 0) == std::string::npos;
      text += number ? value : csv_text_cell(value);
      first = false;
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace berth::billing
