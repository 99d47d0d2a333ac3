#include "api/routes/schema.h"

namespace berth::api::schema {

namespace json = boost::json;

namespace {

Schema typed(std::string_view type, std::string_view description) {
  return {{"type", type}, {"description", description}};
}

}  // namespace

Schema text(std::string_view description) { return typed("string", description); }

Schema matching(std::string_view description, std::string_view pattern) {
  Schema schema = text(description);
  schema["pattern"] = pattern;
  return schema;
}

Schema time(std::string_view description) {
  Schema schema = typed("string", description);
  schema["format"] = "date-time";
  return schema;
}

Schema integer(std::string_view description) {
  Schema schema = typed("integer", description);
  schema["format"] = "int64";
  return schema;
}

Schema integer(std::string_view description, std::int64_t low, std::int64_t high) {
  Schema schema = integer(description);
  schema["minimum"] = low;
  schema["maximum"] = high;
  return schema;
}

Schema number(std::string_view description) { return typed("number", description); }

Schema boolean(std::string_view description) { return typed("boolean", description); }

Schema word(std::string_view description, json::array words) {
  Schema schema = typed("string", description);
  schema["enum"] = std::move(words);
  return schema;
}

Schema list(std::string_view description, Schema item) {
  Schema schema = typed("array", description);
  schema["items"] = std::move(item);
  return schema;
}

Schema map(std::string_view description, Schema value) {
  Schema schema = typed("object", description);
  schema["additionalProperties"] = std::move(value);
  return schema;
}

Schema nullable(Schema schema) {
  schema["nullable"] = true;
  return schema;
}

Schema either(std::string_view description, std::initializer_list<Schema> schemas) {
  json::array all;
  for (const Schema& one : schemas) all.push_back(one);
  return {{"description", description}, {"anyOf", std::move(all)}};
}

Schema reference(std::string_view name) { return {{"$ref", "#/components/schemas/" + std::string(name)}}; }

Schema object(std::string_view description, std::initializer_list<std::pair<std::string_view, Schema>> members) {
  Schema schema = typed("object", description);
  json::array required;
  json::object properties;
  for (const auto& [name, member] : members) {
    const bool optional = name.ends_with('?');
    const std::string_view plain = name.substr(0, name.size() - (optional ? 1 : 0));
    if (!optional) required.emplace_back(plain);
    properties[plain] = member;
  }
  if (!required.empty()) schema["required"] = std::move(required);
  schema["properties"] = std::move(properties);
  return schema;
}

Schema closed(Schema object) {
  object["additionalProperties"] = false;
  return object;
}

}  // namespace berth::api::schema
