#pragma once
// What routes read of a request beyond what the router has checked already, and the parameters that several share.

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/router.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "control/handle.h"
#include "model/ids.h"
#include "model/origin.h"

namespace berth::api {

inline constexpr std::int64_t kDefaultLimit = 100;
inline constexpr std::int64_t kMaxLimit = 1000;

// Who asks, how it was authenticated and from where, for the log.
Origin origin_of(const http::Request& request);
// "10.2.0.7" of "10.2.0.7:40112"; "unix" of "unix".
std::string without_port(std::string_view peer);

// The {id} of the path.
Result<JobId> job_id_of(const http::Request& request);
// A query parameter that is documented as an integer or a time: the router has let pass only what its document says.
std::int64_t integer_of(const http::Request& request, const std::string& name, std::int64_t fallback);
Timestamp time_of(const http::Request& request, const std::string& name, Timestamp fallback);
bool flag_of(const http::Request& request, const std::string& name);
std::string text_of(const http::Request& request, const std::string& name);

// The JSON object that is the body.
Result<boost::json::object> object_of(const http::Request& request);
// A member of such an object that is an integer within [low, high]; takes it out.
Result<std::int64_t> take_integer(boost::json::object& object, const std::string& name, std::int64_t low,
                                  std::int64_t high);
// Refuses what was not taken.
Result<void> refuse_rest(const boost::json::object& object);

http::ParameterDoc job_parameter();
http::ParameterDoc node_parameter();
http::ParameterDoc queue_parameter();
http::ParameterDoc limit_parameter();
http::ParameterDoc cursor_parameter();

// Answers a command about a job: {id, unchanged}.
std::function<void(Result<control::Reply>)> answer_job_command(const http::Responder& responder, JobId job,
                                                               int status = 200);

}  // namespace berth::api
