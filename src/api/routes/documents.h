#pragma once
// Job and configuration documents as bodies: JSON is read strictly (http/json_decode.h), YAML as files are.

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "api/http/message.h"
#include "base/result.h"
#include "model/cluster_config.h"
#include "model/job.h"

namespace berth::api {

Result<JobSpec> decode_job(const http::Request& request);
Result<ClusterConfig> decode_config(const http::Request& request);

boost::json::value job_document(const JobSpec& spec);
boost::json::value config_document(const ClusterConfig& config);
std::string config_yaml(const ClusterConfig& config);
std::vector<std::string> config_changes(const ClusterConfig& from, const ClusterConfig& to);

}  // namespace berth::api
