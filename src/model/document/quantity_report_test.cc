#include "model/document/quantity_report.h"

#include <doctest/doctest.h>

#include <string>

namespace berth::document {
namespace {

std::string report_error(const std::string& report) {
  const auto read = read_quantities("quantities:\n  - " + report + "\n", "q.yaml");
  return read ? "" : read.error().message;
}

}  // namespace

TEST_CASE("reports are read from YAML and from JSON") {
  const auto yaml = read_quantities(
      "quantities:\n"
      "  - {id: nas-7, queue: research/nlp, kind: storage, quantity: 1200, from: 2026-11-01, to: 2026-11-02}\n",
      "q.yaml");
  REQUIRE(yaml.has_value());
  REQUIRE_EQ(yaml->size(), 1);
  const QuantityReported wanted{"nas-7",
                                "research/nlp",
                                "storage",
                                "",
                                1200,
                                from_iso8601("2026-11-01").value(),
                                from_iso8601("2026-11-02").value(),
                                ""};
  CHECK(yaml->front() == wanted);
  const auto json = read_quantities(
      R"({"quantities": [{"id": "nas-7", "queue": "research/nlp", "kind": "storage", "quantity": 1200,
          "from": "2026-11-01T00:00:00Z", "to": "2026-11-02"}]})",
      "body");
  REQUIRE(json.has_value());
  CHECK(json->front() == wanted);
}

TEST_CASE("every mistake in reports is told with its place") {
  const std::string head = "{id: a, queue: q, kind: storage, ";
  CHECK(report_error(head + "quantity: -5, from: 2026-11-01, to: 2026-11-02}")
            .starts_with("q.yaml:2:48: quantities[0].quantity"));
  CHECK(report_error(head + "quantity: 99999999999999999999, from: 2026-11-01, to: 2026-11-02}")
            .starts_with("q.yaml:2:48"));
  CHECK(report_error(head + "quantity: 1.5, from: 2026-11-01, to: 2026-11-02}").starts_with("q.yaml:2:48"));
  CHECK(report_error(head + "from: 2026-11-01, to: 2026-11-02}").find("quantity is missing") != std::string::npos);
  const std::string leap = report_error(head + "quantity: 1, from: '2026-11-01T23:59:60Z', to: 2026-11-02}");
  CHECK(leap.find("leap seconds are not counted, so give 2026-11-01T23:59:59Z") != std::string::npos);
  CHECK(report_error(head + "quantitty: 1}").find("did you mean 'quantity'") != std::string::npos);
  CHECK_FALSE(read_quantities("quantities: []", "q").has_value());
  CHECK_FALSE(read_quantities("reports: []", "q").has_value());
}

}  // namespace berth::document
