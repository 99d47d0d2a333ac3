#pragma once
// Job and configuration documents as bodies: JSON is read strictly (http/json_decode.h), YAML as files are.

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "api/http/message.h"
#include "base/result.h"
#include "model/cluster_config.h"
#include "model/event.h"
#include "model/job.h"
#include "model/price_book.h"

namespace berth::api {

Result<JobSpec> decode_job(const http::Request& request);
Result<ClusterConfig> decode_config(const http::Request& request);

Result<PriceBook> decode_prices(const http::Request& request, const ZoneSource& zones);
// The error that tells these mistakes of the book in the body, each with its place.
Error price_error(const http::Request& request, const std::vector<PriceMistake>& mistakes);

Result<std::vector<QuantityReported>> decode_quantities(const http::Request& request);

Result<std::vector<AdmissionRule>> decode_rules(const http::Request& request);
boost::json::value rule_document(const AdmissionRule& rule);

boost::json::value job_document(const JobSpec& spec);

// Replaces the values of the environment variables in a job, as a document or as an event has it, by kHidden. The
// names stay. They may be secrets: the view of a job shows them to a subject that may read its logs, and no event shows
// them.
void hide_environment(boost::json::value& job);
inline constexpr std::string_view kHidden = "(hidden)";
// An event as it is shown.
boost::json::object shown_event(const EventRecord& record);

boost::json::value config_document(const ClusterConfig& config);
std::string config_yaml(const ClusterConfig& config);
boost::json::value price_document(const PriceBook& book);
std::string price_yaml(const PriceBook& book);
std::vector<std::string> price_changes(const PriceBook& from, const PriceBook& to);
std::vector<std::string> config_changes(const ClusterConfig& from, const ClusterConfig& to);

}  // namespace berth::api
