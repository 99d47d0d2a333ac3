// Which idle nodes could go, and which further nodes would start jobs that wait: what an autoscaler asks.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "api/routes/views.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

constexpr std::int64_t kDefaultIdleForS = 600;
constexpr std::int64_t kMostIdleForS = 366LL * 86'400;  // as every duration

json::object idle_view(const CapacityReport::Idle& idle) {
  json::object view{
      {"node", idle.node}, {"since", to_iso8601(idle.since)}, {"cordoned", idle.cordoned}, {"kept_for", idle.kept_for}};
  if (idle.job.valid()) view["job"] = idle.job.value();
  return view;
}

json::object wanted_view(const CapacityReport::Wanted& wanted) {
  json::array jobs;
  for (const JobId job : wanted.jobs) jobs.emplace_back(job.value());
  return {{"nodes", wanted.nodes}, {"jobs", std::move(jobs)}, {"gpus", from_thousandths(wanted.gpu_milli)}};
}

json::object kind_view(const CapacityReport::Kind& kind) {
  json::array taints;
  for (const Taint& taint : kind.taints) taints.push_back(taint_view(taint));
  json::array idle;
  for (const CapacityReport::Idle& one : kind.idle) idle.push_back(idle_view(one));
  json::object view{{"pool", kind.pool},
                    {"gpu_model", kind.gpu_model},
                    {"gpus", kind.gpus},
                    {"cpus", from_thousandths(kind.cpu_milli)},
                    {"memory_mib", kind.memory_mib},
                    {"taints", std::move(taints)},
                    {"containers", kind.containers},
                    {"nodes", kind.nodes},
                    {"releasable", kind.releasable},
                    {"idle", std::move(idle)}};
  if (kind.wanted) view["wanted"] = wanted_view(*kind.wanted);
  return view;
}

void get_capacity(Service& service, const Request& request, const Responder& responder) {
  const std::int64_t idle_for_s = integer_of(request, "idle_for_s", kDefaultIdleForS);
  const CapacityReport report = service.capacity(idle_for_s);
  json::array kinds;
  for (const CapacityReport::Kind& kind : report.kinds) kinds.push_back(kind_view(kind));
  responder.send(json_answer(json::object{{"time", to_iso8601(report.time)},
                                          {"idle_for_s", idle_for_s},
                                          {"items", std::move(kinds)},
                                          {"complete", report.complete},
                                          {"seq", report.seq}}));
}

}  // namespace

void add_capacity_routes(http::Router& router, Service& service) {
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/capacity",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "getCapacity",
               .summary = "Which idle nodes could go, and which further nodes would start jobs that wait.",
               .responses = {{.status = 200, .description = "By kind of node.", .schema = "Capacity"},
                             {.status = 400, .description = "The time is not one."}},
               .description = "All idle nodes with kept_for nothing could go together. What is wanted of each kind "
                              "was tried by itself: kinds are alternatives.",
               .tags = {"nodes"},
               .parameters = {http::integer_parameter(
                   "idle_for_s", "A node that is idle for fewer seconds stays; 600 if absent.", 0, kMostIdleForS)}},
       .handler = [&service](const Request& request, const Responder& to) { get_capacity(service, request, to); }});
}

}  // namespace berth::api
