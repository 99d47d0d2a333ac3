#include "api/http/openapi.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <limits>

#include "base/check.h"

namespace berth::http {
namespace {

namespace json = boost::json;

json::object reference_to(std::string_view schema) { return {{"$ref", "#/components/schemas/" + std::string(schema)}}; }

json::object content_of(std::string_view content_type, json::object schema) {
  return {{content_type, json::object{{"schema", std::move(schema)}}}};
}

const char* place_name(ParameterPlace place) {
  switch (place) {
    case ParameterPlace::kPath:
      return "path";
    case ParameterPlace::kQuery:
      return "query";
    case ParameterPlace::kHeader:
      return "header";
  }
  return "?";
}

const char* type_name(ParameterType type) {
  switch (type) {
    case ParameterType::kString:
      return "string";
    case ParameterType::kInteger:
      return "integer";
    case ParameterType::kBoolean:
      return "boolean";
    case ParameterType::kTime:
    case ParameterType::kMoment:
      return "string";
  }
  return "?";
}

json::object time_or_date() {
  return {{"anyOf", json::array{json::object{{"type", "string"}, {"format", "date-time"}},
                                json::object{{"type", "string"}, {"format", "date"}}}}};
}

json::object event_or_time() {
  json::object moment = time_or_date();
  moment["anyOf"].as_array().push_back(json::object{{"type", "integer"}, {"format", "int64"}, {"minimum", 1}});
  return moment;
}

// A path or query with a control character is refused before a route sees it (url.h).
std::string pattern_of(const ParameterDoc& parameter) {
  if (!parameter.pattern.empty() || parameter.type != ParameterType::kString || !parameter.values.empty()) {
    return parameter.pattern;
  }
  const std::string character = "[^\\u0000-\\u001f\\u007f]";
  if (parameter.place == ParameterPlace::kPath) return "^" + character + "+$";
  return parameter.place == ParameterPlace::kQuery ? "^" + character + "*$" : "";
}

json::object schema_of(const ParameterDoc& parameter) {
  if (parameter.type == ParameterType::kTime) return time_or_date();
  if (parameter.type == ParameterType::kMoment) return event_or_time();
  json::object schema{{"type", type_name(parameter.type)}};
  if (parameter.type == ParameterType::kInteger) {
    schema["format"] = "int64";
    if (parameter.low != std::numeric_limits<std::int64_t>::min()) schema["minimum"] = parameter.low;
    if (parameter.high != std::numeric_limits<std::int64_t>::max()) schema["maximum"] = parameter.high;
  }
  if (const std::string pattern = pattern_of(parameter); !pattern.empty()) schema["pattern"] = pattern;
  if (!parameter.values.empty()) {
    json::array values;
    for (const std::string& value : parameter.values) values.emplace_back(value);
    schema["enum"] = std::move(values);
  }
  if (!parameter.repeated) return schema;
  return {{"type", "array"}, {"items", std::move(schema)}};
}

json::object document_of(const ParameterDoc& parameter) {
  json::object document{{"name", parameter.name},
                        {"in", place_name(parameter.place)},
                        {"description", parameter.description},
                        {"required", parameter.required || parameter.place == ParameterPlace::kPath},
                        {"schema", schema_of(parameter)}};
  if (parameter.repeated) document["explode"] = true;
  return document;
}

json::object problem_response(std::string_view description) {
  return {{"description", description}, {"content", content_of("application/problem+json", reference_to("Problem"))}};
}

// OpenAPI 3.0 has no word for a stream: the schema is that of one item, of which a stream has any number. The page
// stands first, because generators of clients take the first content that they can read.
json::object stream_content(const ResponseDoc& response, const std::string& item) {
  const auto text = [](const std::string& description) {
    return json::object{{"type", "string"}, {"description", description}};
  };
  json::object message{{"type", "object"},
                       {"description", "One message of the stream."},
                       {"required", json::array{"id", "event", "data"}},
                       {"properties", json::object{{"id", text("For Last-Event-ID.")},
                                                   {"event", text("Its kind.")},
                                                   {"data", text("JSON after the schema " + item + ".")}}}};
  json::object content = content_of(response.content_type, reference_to(response.schema));
  content["text/event-stream"] = json::object{{"schema", std::move(message)}};
  content["application/x-ndjson"] = json::object{{"schema", reference_to(item)}};
  return content;
}

// Bytes and texts that are not JSON.
json::object plain_content(const std::string& content_type) {
  json::object schema{{"type", "string"}};
  if (content_type == "application/octet-stream") schema["format"] = "binary";
  return content_of(content_type, std::move(schema));
}

json::object document_of(const ResponseDoc& response, const std::string& streamed) {
  if (response.status >= 400) return problem_response(response.description);
  json::object document{{"description", response.description}};
  if (!streamed.empty()) {
    document["content"] = stream_content(response, streamed);
  } else if (!response.schema.empty()) {
    document["content"] = content_of(response.content_type, reference_to(response.schema));
  } else if (response.content_type != "application/json") {
    document["content"] = plain_content(response.content_type);
  }
  return document;
}

json::object responses_of(const Route& route) {
  json::object responses;
  for (const ResponseDoc& response : route.doc.responses) {
    responses[std::to_string(response.status)] = document_of(response, route.doc.streamed_schema);
  }
  if (route.access == Access::kToken && !responses.contains("401")) {
    responses["401"] = problem_response("The bearer token is missing or unknown.");
  }
  if (!responses.contains("default")) {
    responses["default"] = problem_response("Any other refusal: malformed, over a limit, or not now.");
  }
  return responses;
}

json::object operation_of(const Route& route) {
  json::object operation{{"operationId", route.doc.operation_id.text}, {"summary", route.doc.summary.text}};
  if (!route.doc.description.empty()) operation["description"] = route.doc.description;
  if (!route.doc.tags.empty()) operation["tags"] = json::array(route.doc.tags.begin(), route.doc.tags.end());
  json::array parameters;
  for (const ParameterDoc& parameter : route.doc.parameters) parameters.push_back(document_of(parameter));
  if (!parameters.empty()) operation["parameters"] = std::move(parameters);
  if (!route.doc.request_schema.empty()) {
    json::object content;
    for (const std::string& type : route.doc.request_types) {
      content[type] = json::object{{"schema", reference_to(route.doc.request_schema)}};
    }
    operation["requestBody"] = json::object{{"required", true}, {"content", std::move(content)}};
  }
  operation["responses"] = responses_of(route);
  if (route.access == Access::kPublic) operation["security"] = json::array{};
  return operation;
}

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

json::object problem_schema() {
  const auto text = [](std::string_view description) {
    return json::object{{"type", "string"}, {"description", description}};
  };
  return {{"type", "object"},
          {"description", "A problem document after RFC 9457."},
          {"required", json::array{"type", "title", "status", "detail", "code"}},
          {"properties",
           json::object{{"type", text("A URN that ends in the code.")},
                        {"title", text("The phrase of the status.")},
                        {"status", json::object{{"type", "integer"}}},
                        {"detail", text("What is wrong, and what would be right.")},
                        {"instance", text("The path of the request.")},
                        {"code", text("A stable word for programs.")},
                        {"mistakes",
                         json::object{{"type", "array"},
                                      {"description", "Of a document with several mistakes: each; absent otherwise."},
                                      {"items", text("A mistake, with its place.")}}}}}};
}

void check_schemas_exist(const Route& route, const json::object& schemas) {
  BERTH_CHECK(route.doc.request_schema.empty() || schemas.contains(route.doc.request_schema));
  BERTH_CHECK(route.doc.streamed_schema.empty() || schemas.contains(route.doc.streamed_schema));
  for (const ResponseDoc& response : route.doc.responses) {
    BERTH_CHECK(response.schema.empty() || schemas.contains(response.schema));
  }
}

}  // namespace

json::value openapi_document(std::string_view title, std::string_view version, const std::vector<Route>& routes,
                             json::object schemas) {
  schemas["Problem"] = problem_schema();
  json::object paths;
  for (const Route& route : routes) {
    check_schemas_exist(route, schemas);
    if (!paths.contains(route.pattern)) paths[route.pattern] = json::object{};
    paths[route.pattern].as_object()[lower_case(name_of(route.method))] = operation_of(route);
  }
  json::object bearer{{"type", "http"}, {"scheme", "bearer"}};
  return json::object{{"openapi", "3.0.3"},
                      {"info", json::object{{"title", title}, {"version", version}}},
                      {"security", json::array{json::object{{"bearer", json::array{}}}}},
                      {"paths", std::move(paths)},
                      {"components", json::object{{"securitySchemes", json::object{{"bearer", std::move(bearer)}}},
                                                  {"schemas", std::move(schemas)}}}};
}

Response json_response(const json::value& value, int status) {
  return {.status = status, .content_type = "application/json", .headers = {}, .body = json::serialize(value)};
}

}  // namespace berth::http
