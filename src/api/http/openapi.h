#pragma once
// The OpenAPI 3.0.3 document of a table of routes.

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/router.h"

namespace berth::http {

// `schemas` maps names to JSON schemas (OpenAPI 3.0 dialect), which refer to each other by "#/components/schemas/NAME".
// A schema "Problem" is added. CHECKs that every schema a route names is there.
boost::json::value openapi_document(std::string_view title, std::string_view version, const std::vector<Route>& routes,
                                    boost::json::object schemas);

// A JSON response of the value.
Response json_response(const boost::json::value& value, int status = 200);

}  // namespace berth::http
