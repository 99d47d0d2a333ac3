// Nodes: what they have, what is bound on them, and what operators do to them.

#include <algorithm>
#include <boost/json/array.hpp>

#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "api/routes/views.h"
#include "control/validate.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

constexpr std::int64_t kMaxNodes = 1'000'000;

struct NodePage {
  std::vector<ShownNode> nodes;  // by name
  Seq seq = 0;
  bool more = false;
};

NodePage nodes_after(const View& view, const std::string& after, std::size_t limit) {
  std::vector<const state::NodeState*> nodes;
  for (const state::NodeState& node : view.state.nodes()) {
    if (!node.removed && node.spec.name > after) nodes.push_back(&node);
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto* a, const auto* b) { return a->spec.name < b->spec.name; });
  NodePage page{.nodes = {}, .seq = view.state.last_seq(), .more = nodes.size() > limit};
  if (page.more) nodes.resize(limit);
  const GpuUtilization gpu_utilization = view.measured();
  for (const state::NodeState* node : nodes) page.nodes.push_back(show_node(view.state, *node, gpu_utilization));
  return page;
}

void list_nodes(Service& service, const Request& request, const Responder& responder) {
  const auto limit = static_cast<std::size_t>(integer_of(request, "limit", kMaxNodes));
  NodePage page;
  service.read([&](const View& view) { page = nodes_after(view, text_of(request, "cursor"), limit); });
  json::array items;
  for (const ShownNode& node : page.nodes) items.push_back(node_view(node));
  std::optional<std::string> next;
  if (page.more) next = page.nodes.back().node.spec.name;
  json::object body{{"items", std::move(items)}, {"next_cursor", nullptr}, {"seq", page.seq}};
  if (next) body["next_cursor"] = *next;
  body["tasks_kept_apart"] = service.facts().tasks_kept_apart;
  responder.send(json_answer(body));
}

void get_node(Service& service, const Request& request, const Responder& responder) {
  const std::string& name = request.path_params.at("name");
  std::optional<ShownNode> shown;
  bool removed = false;
  service.read([&](const View& view) {
    const state::NodeState* node = view.state.node_named(name);
    removed = node != nullptr && node->removed;
    if (node != nullptr && !removed) shown = show_node(view.state, *node, view.measured());
  });
  if (!shown) {
    responder.fail(not_found(removed ? "node '" + name + "' is no more part of the fleet; it was removed"
                                     : "no such node '" + name.substr(0, 200) + "'"));
    return;
  }
  responder.send(json_answer(node_view_with_images(*shown)));
}

json::array drained_view(const std::vector<control::DrainedJob>& jobs) {
  json::array view;
  for (const control::DrainedJob& job : jobs) {
    json::object one{{"id", job.job.value()},      {"user", job.user},
                     {"leaves", job.leaves},       {"loses_work", job.loses_work},
                     {"unsaved_s", job.unsaved_s}, {"gpus", from_thousandths(job.gpu_milli)}};
    if (!job.ends.is_never()) one["ends"] = to_iso8601(job.ends);
    view.push_back(std::move(one));
  }
  return view;
}

void command_node(Service& service, const Request& request, Command command, const std::string& name,
                  const Responder& responder) {
  const auto* cordon = std::get_if<CordonNode>(&command);
  const bool drains = cordon != nullptr && cordon->drain;
  service.submit(origin_of(request), std::move(command),
                 [responder, name, drains](const Result<control::Reply>& reply) {
                   if (!reply) {
                     responder.fail(reply.error());
                     return;
                   }
                   json::object answer{{"name", name}, {"unchanged", reply.value().unchanged}};
                   if (drains) answer["jobs"] = drained_view(reply.value().drained);
                   responder.send(json_answer(std::move(answer)));
                 });
}

struct NodeAction {
  const char* name;
  const char* operation_id;
  const char* summary;
  Command (*command)(const std::string& node, const std::string& user);
};

const NodeAction kActions[] = {
    {"cordon", "cordonNode", "Nothing new is started on the node.",
     [](const std::string& node, const std::string& user) -> Command {
       return CordonNode{node, true, false, user, 0};
     }},
    {"uncordon", "uncordonNode", "The node takes tasks again.",
     [](const std::string& node, const std::string& user) -> Command {
       return CordonNode{node, false, false, user, 0};
     }},
    {"drain", "drainNode",
     "Nothing new is started on the node. Jobs that save are asked to leave; others run to their end.",
     [](const std::string& node, const std::string& user) -> Command {
       return CordonNode{node, true, true, user, 0};
     }},
    {"fence", "fenceNode", "An operator vouches that nothing runs on the node any more.",
     [](const std::string& node, const std::string& user) -> Command {
       return FenceNode{node, user};
     }},
};

// A drain may say when the node goes away, and whether jobs may lose their work or all may finish.
Command command_of(const NodeAction& action, const Request& request) {
  Command command = action.command(request.path_params.at("name"), request.subject);
  if (auto* cordon = std::get_if<CordonNode>(&command)) {
    cordon->gone_in_s = integer_of(request, "gone_in_s", 0);
    cordon->deadline_s = integer_of(request, "deadline_s", 0);
    cordon->lose_work = flag_of(request, "lose_work");
    cordon->when_idle = flag_of(request, "when_idle");
    if (!cordon->cordoned && request.query.contains("gpu"))
      return LiftGpuFence{cordon->node, integer_of(request, "gpu", 0), cordon->user};
  }
  return command;
}

void add_action(http::Router& router, Service& service, const NodeAction& action) {
  std::vector<http::ParameterDoc> parameters{node_parameter()};
  if (std::string_view(action.name) == "uncordon") {
    parameters.push_back(http::integer_parameter(
        "gpu", "The fence of this GPU is lifted, by its index; the node stays cordoned if it is.", 0, 1000));
  }
  if (std::string_view(action.name) == "drain") {
    parameters.push_back(http::integer_parameter("gone_in_s",
                                                 "The node goes away in so many seconds: what runs there has no longer "
                                                 "to save; absent: it stays.",
                                                 1, control::kMaxSeconds));
    parameters.push_back(http::query_parameter("lose_work",
                                               "Jobs that do not save when they are asked to leave are asked, too.",
                                               http::ParameterType::kBoolean));
    parameters.push_back(
        http::integer_parameter("deadline_s", "What still runs in so many seconds is asked to leave one grace before.",
                                1, control::kMaxSeconds));
    parameters.push_back(http::query_parameter("when_idle", "No job is asked to leave: all run to their end.",
                                               http::ParameterType::kBoolean));
  }
  router.add({.method = Method::kPost,
              .pattern = std::string("/v1/nodes/{name}/") + action.name,
              .access = Access::kToken,
              .doc = {.operation_id = action.operation_id,
                      .summary = action.summary,
                      .responses = {{.status = 200, .description = "Done.", .schema = "NodeChanged"},
                                    {.status = 404, .description = "There is no such node."},
                                    {.status = 409, .description = "The node's status does not allow it."}},
                      .tags = {"nodes"},
                      .parameters = parameters},
              .handler = [&service, action](const Request& request, const Responder& to) {
                command_node(service, request, command_of(action, request), request.path_params.at("name"), to);
              }});
}

}  // namespace

void add_node_routes(http::Router& router, Service& service) {
  const http::ParameterDoc limit =
      http::integer_parameter("limit", "At most so many items; all if absent.", 1, kMaxNodes);
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/nodes",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "listNodes",
               .summary = "All nodes, by name.",
               .responses = {{.status = 200, .description = "The nodes.", .schema = "NodeList"}},
               .tags = {"nodes"},
               .parameters = {limit, cursor_parameter()}},
       .handler = [&service](const Request& request, const Responder& to) { list_nodes(service, request, to); }});
  router.add({.method = Method::kGet,
              .pattern = "/v1/nodes/{name}",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "getNode",
                      .summary = "One node.",
                      .responses = {{.status = 200, .description = "The node.", .schema = "Node"},
                                    {.status = 404, .description = "There is no such node."}},
                      .tags = {"nodes"},
                      .parameters = {node_parameter()}},
              .handler = [&service](const Request& request, const Responder& to) { get_node(service, request, to); }});
  for (const NodeAction& action : kActions) add_action(router, service, action);
}

}  // namespace berth::api
