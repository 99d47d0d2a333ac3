#include "model/document/quantity_report.h"

#include <limits>
#include <string>

#include "model/document/document.h"
#include "model/document/reading.h"

namespace berth::document {
namespace {

QuantityReported read_report(const Value& body) {
  QuantityReported report;
  body.map({
      {"id", [&](const Value& v) { report.id = v.string(); }},
      {"queue", [&](const Value& v) { report.queue = v.string(); }},
      {"kind", [&](const Value& v) { report.kind = v.string(); }},
      {"unit", [&](const Value& v) { report.unit = v.string(); }},
      {"quantity", [&](const Value& v) { report.quantity = v.integer(1, std::numeric_limits<std::int64_t>::max()); }},
      {"from", [&](const Value& v) { report.from = v.time().value_or(Timestamp{}); }},
      {"to", [&](const Value& v) { report.to = v.time().value_or(Timestamp{}); }},
  });
  for (const char* key : {"id", "queue", "kind", "quantity", "from", "to"}) {
    if (body.node().find(key) == nullptr)
      body.refuse(std::string(key) +
                  " is missing; write {id: nas-7, queue: research, kind: storage, quantity: 1200, from: 2026-11-01, "
                  "to: 2026-11-02}");
  }
  return report;
}

}  // namespace

Result<std::vector<QuantityReported>> read_quantities(std::string_view text, std::string_view file) {
  const auto tree = parse(text, file);
  if (!tree) return tree.error();
  std::vector<QuantityReported> reports;
  Reading reading;
  const Value root(reading, *tree, "");
  root.map({{"quantities", [&](const Value& v) {
               v.each_item([&](const Value& one) { reports.push_back(read_report(one)); });
               if (reports.empty() || reports.size() > kMostReportsAtOnce)
                 v.refuse("has to have 1 to " + std::to_string(kMostReportsAtOnce) +
                          " reports at once; split a longer file, since a report that comes twice counts once");
             }}});
  if (tree->find("quantities") == nullptr) root.refuse("the list quantities is missing");
  if (!reading.mistakes().empty()) return error_of(file, reading.take_mistakes());
  return reports;
}

}  // namespace berth::document
