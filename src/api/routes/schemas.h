#pragma once
// The schemas of everything that the API takes and gives, by name: components/schemas of /openapi.json.

#include <boost/json/object.hpp>

namespace berth::api {

void add_job_schemas(boost::json::object& schemas);
void add_cluster_schemas(boost::json::object& schemas);
void add_document_schemas(boost::json::object& schemas);
void add_billing_schemas(boost::json::object& schemas);
void add_policy_schemas(boost::json::object& schemas);
void add_delegation_schemas(boost::json::object& schemas);
void add_audit_schemas(boost::json::object& schemas);

inline boost::json::object all_schemas() {
  boost::json::object schemas;
  add_cluster_schemas(schemas);
  add_job_schemas(schemas);
  add_document_schemas(schemas);
  add_billing_schemas(schemas);
  add_policy_schemas(schemas);
  add_delegation_schemas(schemas);
  add_audit_schemas(schemas);
  return schemas;
}

}  // namespace berth::api
