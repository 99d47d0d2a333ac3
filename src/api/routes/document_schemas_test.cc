#include <doctest/doctest.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "api/routes/schemas.h"
#include "model/document/job_keys.h"

namespace berth::api {
namespace {

std::string text_of(const boost::json::value& value) { return value.as_string().c_str(); }

}  // namespace

TEST_CASE("each key of the job document has its schema, with what its row says") {
  boost::json::object schemas;
  add_document_schemas(schemas);
  for (const document::JobKey& key : document::job_keys()) {
    CAPTURE(key.path);
    const bool of_group = key.path.starts_with(document::kGroupKeys);
    const boost::json::object* map = &schemas.at(of_group ? "TaskGroupDocument" : "JobDocument").as_object();
    std::string_view rest = key.path.substr(of_group ? document::kGroupKeys.size() : 0);
    for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      map = &map->at("properties").at(std::string(rest.substr(0, dot))).as_object();
      rest = rest.substr(dot + 1);
    }
    REQUIRE(map->at("properties").as_object().contains(rest));
    const auto& schema = map->at("properties").at(std::string(rest)).as_object();
    CHECK((schema.contains("type") || schema.contains("anyOf")));
    CHECK(text_of(schema.at("description")).starts_with(document::description_of(key)));
    CHECK_FALSE(map->at("additionalProperties").as_bool());
  }
}

TEST_CASE("at the top of a job document a name that is the job's is not the group's") {
  boost::json::object schemas;
  add_document_schemas(schemas);
  const auto& members = schemas.at("JobDocument").at("properties").as_object();
  CHECK(text_of(members.at("name").at("description")) == document::description_of(document::job_key("name")));
  CHECK(members.contains("gpus"));
  CHECK(boost::json::serialize(members.at("array").at("required")) == R"(["size"])");
  CHECK(members.at("retries").at("maximum").as_int64() == kMaxRetries);
}

// Generators of clients make no class of a schema that may be null, and then lose all that refers to it.
TEST_CASE("no schema that has a name may be null") {
  for (const auto& one : all_schemas()) {
    CAPTURE(std::string(one.key()));
    CHECK_FALSE(one.value().as_object().contains("nullable"));
  }
}

}  // namespace berth::api
