// Everything at once, at one sequence number: where a follower of /v1/events begins.

#include <boost/json/array.hpp>

#include "api/routes/documents.h"
#include "api/routes/json_text.h"
#include "api/routes/route_groups.h"
#include "api/routes/views.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

// Copied under the lock; turned into JSON after it.
struct Snapshot {
  Seq seq = 0;
  Timestamp time;
  ClusterConfig config;
  json::array queues;
  std::vector<ShownNode> nodes;
  std::vector<ShownJob> jobs;
};

Snapshot take_snapshot(const View& view) {
  Snapshot snapshot{.seq = view.state.last_seq(),
                    .time = view.state.now(),
                    .config = view.state.config(),
                    .queues = queue_views(view.state, [](std::string_view) { return true; }),
                    .nodes = {},
                    .jobs = {}};
  for (const state::NodeState& node : view.state.nodes()) {
    if (!node.removed) snapshot.nodes.push_back(show_node(view.state, node));
  }
  snapshot.jobs.reserve(view.state.jobs().size());
  view.state.jobs().for_each([&](const state::JobState& job) { snapshot.jobs.push_back(show_job(view, job)); });
  return snapshot;
}

http::Response snapshot_answer(Service& service) {
  Snapshot snapshot;
  service.read([&](const View& view) { snapshot = take_snapshot(view); });
  json::array nodes;
  for (const ShownNode& node : snapshot.nodes) nodes.push_back(node_view(node));
  json::array jobs;
  for (const ShownJob& job : snapshot.jobs) {
    json::object view = job_in_full(job);
    hide_environment(view["spec"]);
    jobs.push_back(std::move(view));
  }
  return json_answer(json::object{{"seq", snapshot.seq},
                                  {"time", to_iso8601(snapshot.time)},
                                  {"config", config_document(snapshot.config)},
                                  {"queues", std::move(snapshot.queues)},
                                  {"nodes", std::move(nodes)},
                                  {"jobs", std::move(jobs)}});
}

}  // namespace

void add_snapshot_routes(http::Router& router, Service& service) {
  router.add({.method = Method::kGet,
              .pattern = "/v1/snapshot",
              .access = Access::kToken,
              .threads = http::Threads::kLongReads,
              .doc = {.operation_id = "getSnapshot",
                      .summary = "The configuration, queues, nodes and live jobs at one sequence number.",
                      .responses = {{.status = 200, .description = "All of it.", .schema = "Snapshot"}},
                      .description = "Follow /v1/events from seq + 1 to stay current.",
                      .tags = {"cluster"}},
              .handler = [&service](const Request&, const Responder& to) { to.send(snapshot_answer(service)); }});
}

}  // namespace berth::api
