#include "api/http/router.h"

#include <algorithm>
#include <optional>
#include <set>

#include "api/http/url.h"
#include "base/check.h"

namespace berth::http {
namespace {

std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  path.remove_prefix(1);  // the leading slash
  while (true) {
    const std::size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

bool is_parameter(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

std::string_view parameter_name(std::string_view segment) { return segment.substr(1, segment.size() - 2); }

std::optional<std::map<std::string, std::string>> match_pattern(std::string_view pattern,
                                                                const std::vector<std::string_view>& path) {
  const auto wanted = segments_of(pattern);
  if (wanted.size() != path.size()) return std::nullopt;
  std::map<std::string, std::string> parameters;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto decoded = decode_segment(path[i]);
    if (!decoded) return std::nullopt;
    if (is_parameter(wanted[i])) {
      if (decoded->empty()) return std::nullopt;
      parameters.emplace(parameter_name(wanted[i]), *decoded);
    } else if (wanted[i] != *decoded) {
      return std::nullopt;
    }
  }
  return parameters;
}

bool serves(const Route& route, Method method) {
  return route.method == method || (route.method == Method::kGet && method == Method::kHead);
}

void allow(std::vector<Method>& allowed, Method method) {
  if (std::find(allowed.begin(), allowed.end(), method) == allowed.end()) allowed.push_back(method);
}

// Literal segments sort before parameters, so "/v1/jobs/summary" is asked before "/v1/jobs/{id}".
bool more_literal(const Route& a, const Route& b) {
  const auto left = segments_of(a.pattern);
  const auto right = segments_of(b.pattern);
  return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                      [](auto x, auto y) { return is_parameter(x) < is_parameter(y); });
}

std::string parameters_flaw(const Route& route) {
  std::set<std::string> in_pattern;
  for (const auto segment : segments_of(route.pattern)) {
    if (is_parameter(segment)) in_pattern.emplace(parameter_name(segment));
  }
  std::set<std::string> documented;
  for (const ParameterDoc& parameter : route.doc.parameters) {
    if (parameter.name.empty() || parameter.description.empty()) return "a parameter lacks its name or description";
    if (parameter.place == ParameterPlace::kPath) documented.insert(parameter.name);
  }
  if (in_pattern != documented) return "the documented path parameters are not those of the pattern";
  return {};
}

}  // namespace

ParameterDoc path_parameter(std::string name, std::string description) {
  return {
      .place = ParameterPlace::kPath, .name = std::move(name), .description = std::move(description), .required = true};
}

ParameterDoc query_parameter(std::string name, std::string description, ParameterType type) {
  return {
      .place = ParameterPlace::kQuery, .name = std::move(name), .description = std::move(description), .type = type};
}

ParameterDoc integer_parameter(std::string name, std::string description, std::int64_t low, std::int64_t high) {
  ParameterDoc parameter = query_parameter(std::move(name), std::move(description), ParameterType::kInteger);
  parameter.low = low;
  parameter.high = high;
  return parameter;
}

ParameterDoc header_parameter(std::string name, std::string description, std::string pattern) {
  return {.place = ParameterPlace::kHeader,
          .name = std::move(name),
          .description = std::move(description),
          .pattern = std::move(pattern)};
}

std::string documentation_flaw(const Route& route, const std::vector<Route>& others) {
  if (route.pattern.empty() || route.pattern.front() != '/') return "the pattern does not begin with a slash";
  if (route.method == Method::kHead || route.method == Method::kOptions || route.method == Method::kTrace)
    return "HEAD and OPTIONS follow from the table, and TRACE is not served";
  if (!route.handler) return "there is no handler";
  if (route.doc.operation_id.text.empty()) return "the operation id is empty";
  if (route.doc.summary.text.empty()) return "the summary is empty";
  if (route.doc.responses.empty()) return "no response is documented";
  for (const ResponseDoc& response : route.doc.responses) {
    if (response.description.empty()) return "a response lacks its description";
  }
  for (const Route& other : others) {
    if (other.doc.operation_id.text == route.doc.operation_id.text) return "the operation id is taken";
    if (other.method == route.method && other.pattern == route.pattern) return "the method and pattern are taken";
  }
  return parameters_flaw(route);
}

void Router::add(Route route) {
  const std::string flaw = documentation_flaw(route, routes_);
  BERTH_CHECK(flaw.empty());
  routes_.insert(std::upper_bound(routes_.begin(), routes_.end(), route, more_literal), std::move(route));
}

RouteMatch Router::match(Method method, std::string_view path) const {
  RouteMatch match;
  if (path.empty() || path.front() != '/') return match;
  const auto segments = segments_of(path);
  for (const Route& route : routes_) {
    auto parameters = match_pattern(route.pattern, segments);
    if (!parameters) continue;
    allow(match.allowed, route.method);
    if (route.method == Method::kGet) allow(match.allowed, Method::kHead);
    if (match.route == nullptr && serves(route, method)) {
      match.route = &route;
      match.path_params = std::move(*parameters);
    }
  }
  if (!match.allowed.empty()) allow(match.allowed, Method::kOptions);
  return match;
}

}  // namespace berth::http
