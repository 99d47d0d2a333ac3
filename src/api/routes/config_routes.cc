// The cluster's configuration: what is in force, a new one, and what a new one would change.

#include <algorithm>
#include <boost/json/array.hpp>
#include <limits>

#include "api/routes/documents.h"
#include "api/routes/json_text.h"
#include "api/routes/new_budgets.h"
#include "api/routes/queue_edit_view.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "control/config_change.h"
#include "control/envelope.h"
#include "model/document/quantity.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

constexpr std::int64_t kMostVersions = std::numeric_limits<std::int64_t>::max();
const std::vector<std::string> kDocumentTypes = {"application/json", "application/yaml"};

// What was applied, and the changes by command over it.
struct ConfigInForce {
  ClusterConfig config;
  std::uint64_t version = 0;
  QueueEdits edits;
};

ConfigInForce config_in_force(Service& service) {
  ConfigInForce in_force;
  service.read([&](const View& view) {
    in_force = {view.state.file_config(), view.state.config_version(), view.state.queue_edits()};
  });
  return in_force;
}

// The entity tag of a configuration is its version in quotes.
std::string etag_of(std::uint64_t version) { return "\"" + std::to_string(version) + "\""; }

http::Response versioned(const json::object& document, std::uint64_t version) {
  http::Response response = json_answer(document);
  response.headers.push_back({"ETag", etag_of(version)});
  return response;
}

void get_config(Service& service, const Responder& responder) {
  const ConfigInForce in_force = config_in_force(service);
  const json::object document{{"version", in_force.version},
                              {"config", config_document(in_force.config)},
                              {"yaml", config_yaml(in_force.config)},
                              {"changes", over_file_views(in_force.config, in_force.edits)}};
  responder.send(versioned(document, in_force.version));
}

// Returns the version that If-Match names, or nothing if any will do.
Result<std::optional<std::uint64_t>> version_to_match(const Request& request) {
  const std::string_view tag = request.header("if-match");
  if (tag.empty() || tag == "*") return std::optional<std::uint64_t>();
  const bool quoted = tag.size() > 2 && tag.front() == '"' && tag.back() == '"';
  const auto version = document::parse_integer(quoted ? tag.substr(1, tag.size() - 2) : "", 0, kMostVersions);
  if (!version) return invalid("If-Match: give the ETag of a configuration, which is its version in quotes: \"3\"");
  return std::optional(static_cast<std::uint64_t>(*version));
}

http::Response stale_answer(std::uint64_t expected, std::uint64_t in_force) {
  http::Response response =
      http::problem(412, "precondition-failed",
                    "version " + std::to_string(in_force) + " of the configuration is in force, not " +
                        std::to_string(expected) + ": it was changed in between; compare again before you apply");
  response.headers.push_back({"ETag", etag_of(in_force)});
  return response;
}

// Returns when the first event was stored, if the configuration has grants, which are checked against it.
std::optional<Timestamp> log_begin_for(const ClusterConfig& config, Service& service) {
  const bool asks = std::any_of(config.queues.begin(), config.queues.end(),
                                [](const QueueConfig& one) { return one.grant.has_value(); });
  if (!asks) return std::nullopt;
  const auto first = service.events(1, 1);
  return first && !first->empty() ? std::optional(first->front().time) : std::nullopt;
}

void put_config(Service& service, const Request& request, const Responder& responder) {
  auto config = decode_config(request);
  if (!config) {
    responder.fail(config.error());
    return;
  }
  const auto version = version_to_match(request);
  if (!version) {
    responder.fail(version.error());
    return;
  }
  if (const auto spent = check_new_budgets(service, *config); !spent) {
    responder.fail(spent.error());
    return;
  }
  const auto log_begins = log_begin_for(*config, service);
  service.submit(
      origin_of(request), ApplyConfig{std::move(*config), request.subject, *version, log_begins},
      [responder, expected = version->value_or(0)](const Result<control::Reply>& reply) {
        if (!reply) {
          responder.fail(reply.error());
        } else if (reply->stale) {
          responder.send(stale_answer(expected, reply->version));
        } else {
          responder.send(versioned({{"version", reply->version}, {"unchanged", reply->unchanged}}, reply->version));
        }
      });
}

json::array ids_of(const std::vector<JobId>& jobs) {
  json::array ids;
  for (const JobId id : jobs) ids.emplace_back(id.value());
  return ids;
}

void add_consequences(const state::State& state, const control::ConfigConsequences& all, json::object& document) {
  if (all.refusal) document["refusal"] = all.refusal->message;
  json::array queues;
  for (const control::QueueConsequence& one : all.queues) {
    queues.push_back(json::object{{"queue", state.queue(one.queue).path},
                                  {"become_borrowed", ids_of(one.borrowed)},
                                  {"become_guaranteed", ids_of(one.guaranteed)},
                                  {"above_max", one.above_max}});
  }
  document["consequences"] = std::move(queues);
}

// Names the queues of the old configuration as the new one does, so that a rename is one change.
void follow(const std::vector<QueueMove>& moves, ClusterConfig& config) {
  for (QueueConfig& queue : config.queues) queue.path = moved_path(queue.path, moves);
  for (PoolConfig& pool : config.pools) {
    for (std::string& path : pool.queues) path = moved_path(path, moves);
  }
  for (RoleBinding& binding : config.roles) binding.queue = moved_path(binding.queue, moves);
}

// The limits that were set by command and that the configuration takes over, because it gives them another value than
// the former one.
json::array replaced_views(const ClusterConfig& config, const QueueEdits& before, const QueueEdits& after,
                           const std::vector<QueueMove>& moves) {
  QueueEdits gone;
  for (const auto& [path, edits] : before) {
    const std::string now = moved_path(path, moves);
    const auto kept = after.find(now);
    for (QueueEdit edit : edits) {
      if (kept != after.end()) {
        for (const QueueEdit& one : kept->second) {
          if (one.version != edit.version) continue;
          std::erase_if(edit.limits, [&](const LimitChange& limit) {
            return std::find(one.limits.begin(), one.limits.end(), limit) != one.limits.end();
          });
        }
      }
      if (!edit.limits.empty()) gone[now].push_back(std::move(edit));
    }
  }
  return over_file_views(config, gone);
}

void diff_config(Service& service, const Request& request, const Responder& responder) {
  auto config = decode_config(request);
  if (!config) {
    responder.fail(config.error());
    return;
  }
  ConfigInForce in_force;
  json::object document;
  const auto log_begins = log_begin_for(*config, service);
  const auto spent = check_new_budgets(service, *config);
  service.read([&](const View& view) {
    in_force = {view.state.file_config(), view.state.config_version(), view.state.queue_edits()};
    const std::vector<QueueMove> moves = control::moves_of(view.state, *config);
    const QueueEdits kept = view.state.edits_after(*config, moves);
    follow(moves, in_force.config);
    control::ConfigConsequences consequences =
        control::consequences_of(view.state, with_edits(*config, kept), log_begins);
    if (auto ok = control::check_file_under(kept, *config, view.now); !ok && !consequences.refusal)
      consequences.refusal = ok.error();
    if (!spent && !consequences.refusal) consequences.refusal = spent.error();
    add_consequences(view.state, consequences, document);
    document["kept"] = over_file_views(*config, kept);
    document["replaced"] = replaced_views(*config, in_force.edits, kept, moves);
  });
  json::array changes;
  for (const std::string& line : config_changes(in_force.config, *config)) changes.emplace_back(line);
  document["version"] = in_force.version;
  document["changes"] = std::move(changes);
  responder.send(versioned(document, in_force.version));
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
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "putConfig",
               .summary = "Puts a configuration in force, as a whole.",
               .responses = {{.status = 200, .description = "It is in force.", .schema = "ConfigApplied"},
                             {.status = 400, .description = "The document is malformed or breaks a rule."},
                             {.status = 409, .description = "Jobs live in queues that it would take away."},
                             {.status = 412, .description = "Another version than that of If-Match is in force."}},
               .description = "The document is that of docs/configuration.md. Applying the configuration that "
                              "is in force changes nothing.",
               .tags = {"config"},
               .parameters = {http::header_parameter(
                   "If-Match",
                   "The ETag of the configuration that this one was made from, which is its version in quotes. If "
                   "another one is in force, nothing changes.",
                   "^\"[0-9]{1,18}\"$")},
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
