// The cluster's configuration: what is in force, a new one, and what a new one would change.

#include <boost/json/array.hpp>

#include "api/routes/documents.h"
#include "api/routes/json_text.h"
#include "api/routes/route_groups.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

const std::vector<std::string> kDocumentTypes = {"application/json", "application/yaml"};

struct ConfigInForce {
  ClusterConfig config;
  std::uint64_t version = 0;
};

ConfigInForce config_in_force(Service& service) {
  ConfigInForce in_force;
  service.read([&](const View& view) { in_force = {view.state.config(), view.state.config_version()}; });
  return in_force;
}

void get_config(Service& service, const Responder& responder) {
  const ConfigInForce in_force = config_in_force(service);
  responder.send(json_answer(json::object{{"version", in_force.version},
                                          {"config", config_document(in_force.config)},
                                          {"yaml", config_yaml(in_force.config)}}));
}

void put_config(Service& service, const Request& request, const Responder& responder) {
  auto config = decode_config(request);
  if (!config) {
    responder.fail(config.error());
    return;
  }
  service.submit(ApplyConfig{std::move(*config), request.subject}, [responder](const Result<control::Reply>& reply) {
    if (!reply) {
      responder.fail(reply.error());
      return;
    }
    responder.send(
        json_answer(json::object{{"version", reply.value().version}, {"unchanged", reply.value().unchanged}}));
  });
}

void diff_config(Service& service, const Request& request, const Responder& responder) {
  auto config = decode_config(request);
  if (!config) {
    responder.fail(config.error());
    return;
  }
  json::array changes;
  for (const std::string& line : config_changes(config_in_force(service).config, *config)) changes.emplace_back(line);
  responder.send(json_answer(json::object{{"changes", std::move(changes)}}));
}

}  // namespace

void add_config_routes(http::Router& router, Service& service) {
  router.add({.method = Method::kGet,
              .pattern = "/v1/config",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "getConfig",
                      .summary = "The configuration in force, as JSON and as YAML.",
                      .responses = {{.status = 200, .description = "The configuration.", .schema = "Config"}},
                      .tags = {"config"}},
              .handler = [&service](const Request&, const Responder& to) { get_config(service, to); }});
  router.add(
      {.method = Method::kPut,
       .pattern = "/v1/config",
       .access = Access::kToken,
       .doc = {.operation_id = "putConfig",
               .summary = "Puts a configuration in force, as a whole.",
               .responses = {{.status = 200, .description = "It is in force.", .schema = "ConfigApplied"},
                             {.status = 400, .description = "The document is malformed or breaks a rule."},
                             {.status = 409, .description = "Jobs live in queues that it would take away."}},
               .description = "The document is that of docs/configuration.md. Applying the configuration that "
                              "is in force changes nothing.",
               .tags = {"config"},
               .request_schema = "ConfigDocument",
               .request_types = kDocumentTypes},
       .handler = [&service](const Request& request, const Responder& to) { put_config(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/config/diff",
       .access = Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "diffConfig",
               .summary = "What putting a configuration in force would change.",
               .responses = {{.status = 200, .description = "One line per change.", .schema = "ConfigDiff"},
                             {.status = 400, .description = "The document is malformed or breaks a rule."}},
               .tags = {"config"},
               .request_schema = "ConfigDocument",
               .request_types = kDocumentTypes},
       .handler = [&service](const Request& request, const Responder& to) { diff_config(service, request, to); }});
}

}  // namespace berth::api
