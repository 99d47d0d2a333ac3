#include "api/routes/documents.h"

#include "api/http/json_decode.h"
#include "base/check.h"
#include "model/document/admission_document.h"
#include "model/document/config_document.h"
#include "model/document/job_document.h"
#include "model/document/price_document.h"
#include "model/document/quantity_report.h"
#include "model/json.h"

namespace berth::api {
namespace {

constexpr std::string_view kFile = "body";

// What readers of JSON could understand differently is refused before the document is read.
Result<void> check_json(const http::Request& request) {
  if (request.header("content-type").find("json") == std::string_view::npos) return {};
  if (auto value = http::decode_json(request.body); !value) return value.error();
  return {};
}

boost::json::value to_value(const document::Node& node) {
  auto value = http::decode_json(document::to_json_text(node), {.bytes = 64 * 1024 * 1024, .depth = 64});
  BERTH_CHECK(value.has_value());
  return std::move(*value);
}

}  // namespace

Result<JobSpec> decode_job(const http::Request& request) {
  if (auto ok = check_json(request); !ok) return ok.error();
  return document::read_job(request.body, kFile);
}

Result<ClusterConfig> decode_config(const http::Request& request) {
  if (auto ok = check_json(request); !ok) return ok.error();
  return document::read_config(request.body, kFile);
}

boost::json::value job_document(const JobSpec& spec) { return to_value(document::job_node(spec)); }

void hide_environment(boost::json::value& job) {
  if (auto* array = job.if_array()) {
    for (boost::json::value& one : *array) hide_environment(one);
  }
  auto* object = job.if_object();
  if (object == nullptr) return;
  for (auto& member : *object) {
    auto* variables = member.key() == "env" ? member.value().if_object() : nullptr;
    if (variables == nullptr) {
      hide_environment(member.value());
    } else {
      for (auto& variable : *variables) variable.value() = kHidden;
    }
  }
}

boost::json::object shown_event(const EventRecord& record) {
  boost::json::object event = event_json(record);
  if (auto* spec = event.if_contains("spec")) hide_environment(*spec);
  return event;
}

boost::json::value config_document(const ClusterConfig& config) { return to_value(document::config_node(config)); }

Result<PriceBook> decode_prices(const http::Request& request, const ZoneSource& zones) {
  if (auto ok = check_json(request); !ok) return ok.error();
  return document::read_prices(request.body, kFile, zones);
}

Error price_error(const http::Request& request, const std::vector<PriceMistake>& mistakes) {
  return document::price_error(request.body, kFile, mistakes);
}

Result<std::vector<QuantityReported>> decode_quantities(const http::Request& request) {
  if (auto ok = check_json(request); !ok) return ok.error();
  return document::read_quantities(request.body, kFile);
}

Result<std::vector<AdmissionRule>> decode_rules(const http::Request& request) {
  if (auto ok = check_json(request); !ok) return ok.error();
  return document::read_rules(request.body, kFile);
}

boost::json::value rule_document(const AdmissionRule& rule) { return to_value(document::rule_node(rule)); }

boost::json::value price_document(const PriceBook& book) { return to_value(document::price_node(book)); }

std::string price_yaml(const PriceBook& book) { return document::prices_to_yaml(book); }

std::vector<std::string> price_changes(const PriceBook& from, const PriceBook& to) {
  return document::diff_prices(from, to);
}

std::string config_yaml(const ClusterConfig& config) { return document::config_to_yaml(config); }

std::vector<std::string> config_changes(const ClusterConfig& from, const ClusterConfig& to) {
  return document::diff_configs(from, to);
}

}  // namespace berth::api
