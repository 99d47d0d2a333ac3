#pragma once
// For tests: whether a JSON value is what a schema of the OpenAPI document says. Stricter than the standard in one
// point: a member that the schema does not name is a fault, unless the schema says what else may be there.

#include <boost/json/value.hpp>
#include <string>

#include "base/timestamp.h"

namespace berth::api {

class SchemaCheck {
 public:
  explicit SchemaCheck(const boost::json::object& schemas) : schemas_(schemas) {}

  // What is wrong and where; empty if nothing.
  std::string fault(const boost::json::value& value, const boost::json::value& schema, const std::string& at = "$") {
    const auto& rules = schema.as_object();
    if (const auto* reference = rules.if_contains("$ref")) {
      const std::string name(reference->as_string().c_str());
      return fault(value, schemas_.at(name.substr(name.rfind('/') + 1)), at);
    }
    if (const auto* nullable = rules.if_contains("nullable"); nullable != nullptr && value.is_null()) return {};
    if (const auto* choices = rules.if_contains("anyOf")) {
      for (const auto& choice : choices->as_array()) {
        if (fault(value, choice, at).empty()) return {};
      }
      return at + ": is none of the choices";
    }
    if (const auto* type = rules.if_contains("type"); type != nullptr && !has_type(value, type->as_string().c_str())) {
      return at + ": is not of type " + type->as_string().c_str();
    }
    if (const auto* words = rules.if_contains("enum")) {
      bool found = false;
      for (const auto& word : words->as_array()) found = found || word == value;
      if (!found) return at + ": is not one of the words";
    }
    if (const auto* format = rules.if_contains("format"); format != nullptr && format->as_string() == "date-time") {
      if (!from_iso8601(value.as_string().c_str())) return at + ": is no time";
    }
    if (value.is_array()) return fault_in_items(value, rules, at);
    if (value.is_object()) return fault_in_members(value, rules, at);
    return {};
  }

 private:
  static bool has_type(const boost::json::value& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_bool();
    if (type == "integer") return value.is_int64() || value.is_uint64();
    return type == "number" && value.is_number();
  }

  std::string fault_in_items(const boost::json::value& value, const boost::json::object& rules, const std::string& at) {
    const auto* item = rules.if_contains("items");
    for (std::size_t i = 0; item != nullptr && i < value.as_array().size(); ++i) {
      auto found = fault(value.as_array()[i], *item, at + "[" + std::to_string(i) + "]");
      if (!found.empty()) return found;
    }
    return {};
  }

  std::string fault_in_members(const boost::json::value& value, const boost::json::object& rules,
                               const std::string& at) {
    if (const auto* required = rules.if_contains("required")) {
      for (const auto& name : required->as_array()) {
        if (!value.as_object().contains(name.as_string())) return at + ": lacks " + name.as_string().c_str();
      }
    }
    const auto* properties = rules.if_contains("properties");
    const auto* others = rules.if_contains("additionalProperties");
    if (properties == nullptr && others == nullptr) return {};  // anything
    for (const auto& [name, member] : value.as_object()) {
      const auto* known = properties == nullptr ? nullptr : properties->as_object().if_contains(name);
      const std::string inner = at + "." + std::string(name);
      if (known == nullptr && others != nullptr && others->is_bool() && others->as_bool()) continue;
      if (known == nullptr && others != nullptr && others->is_object()) known = others;
      if (known == nullptr) return inner + ": is not in the schema";
      auto found = fault(member, *known, inner);
      if (!found.empty()) return found;
    }
    return {};
  }

  const boost::json::object& schemas_;
};

}  // namespace berth::api
