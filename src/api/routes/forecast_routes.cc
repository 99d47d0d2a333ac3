// Forecasts: what a submission or another priority would do now. Nothing is stored.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <functional>
#include <set>
#include <variant>
#include <vector>

#include "api/routes/access.h"
#include "api/routes/job_submission.h"
#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "api/routes/views.h"
#include "billing/rate.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

json::object victim_view(const Forecast::Victim& victim) {
  json::object view{{"job", victim.job.value()},
                    {"user", victim.user},
                    {"queue", victim.queue},
                    {"cause", json::string(name_of(victim.cause))},
                    {"gpus", from_thousandths(victim.gpu_milli)},
                    {"unsaved_s", victim.unsaved_s}};
  if (victim.keep > 0) view["keep"] = victim.keep;
  return view;
}

json::object forecast_view(const Forecast& forecast) {
  json::object view{{"id", forecast.job.value()},
                    {"repeated", forecast.repeated},
                    {"phase", json::string(name_of(forecast.phase))},
                    {"started", forecast.started}};
  if (forecast.within) view["within"] = *forecast.within;
  json::array places;
  for (const Forecast::Place& place : forecast.places) {
    places.push_back(
        json::object{{"node", place.node}, {"tasks", place.tasks}, {"gpus", from_thousandths(place.gpu_milli)}});
  }
  view["places"] = std::move(places);
  json::array victims;
  for (const Forecast::Victim& victim : forecast.victims) victims.push_back(victim_view(victim));
  view["victims_not_shown"] = forecast.victims_not_shown;
  view["victims"] = std::move(victims);
  if (forecast.start) view["start"] = to_iso8601(*forecast.start);
  view["warnings"] = json::array(forecast.warnings.begin(), forecast.warnings.end());
  if (forecast.explained) view["why"] = why_view(*forecast.explained, forecast.phase);
  return view;
}

// What the job costs by the prices of now, on each GPU model that it may use; empty where there are no prices.
json::array cost_view(Service& service, const JobSpec& spec) {
  std::vector<billing::CostEstimate> estimates;
  service.read([&](const View& view) {
    std::set<std::string> models;
    for (const auto& node : view.state.nodes()) {
      for (const Gpu& gpu : node.spec.gpus) models.insert(gpu.model);
    }
    estimates = billing::estimate_cost(spec, {models.begin(), models.end()}, view.state.prices(), view.now);
  });
  json::array views;
  for (const billing::CostEstimate& one : estimates) {
    json::object row{{"gpu_model", one.model},
                     {"currency", one.currency},
                     {"floor_per_hour", money_text(one.floor_per_hour_micro)},
                     {"burst_per_hour", money_text(one.burst_per_hour_micro)},
                     {"time_limit_s", one.time_limit_s}};
    if (one.time_limit_s > 0) {
      row["floor"] = money_text(one.floor_micro);
      row["burst"] = money_text(one.burst_micro);
    }
    views.push_back(std::move(row));
  }
  return views;
}

void answer_forecast(Service& service, const Command& command, const policy::Subject& viewer,
                     const Responder& responder, const std::function<void(const Error&)>& refused = {}) {
  const auto forecast = service.forecast(command, viewer);
  if (!forecast) {
    if (refused) refused(forecast.error());
    responder.fail(forecast.error());
    return;
  }
  json::object view = forecast_view(*forecast);
  if (const auto* submission = std::get_if<SubmitJob>(&command)) view["cost"] = cost_view(service, submission->spec);
  responder.send(json_answer(view));
}

void forecast_submission(Service& service, const Request& request, const Responder& responder) {
  auto submission = submission_of(service, request);
  if (!submission) {
    responder.fail(submission.error());
    return;
  }
  const AccessDenied denied = denial_of(request, policy::Verb::kSubmit, {submission->spec.queue, {}});
  const auto refused = [&](const Error& error) { note_if_denied(service, denied, error); };
  answer_forecast(service, std::move(*submission), request.principal, responder, refused);
}

void forecast_priority(Service& service, const Request& request, const Responder& responder) {
  const auto id = job_id_of(request);
  if (!id) {
    responder.fail(id.error());
    return;
  }
  const auto priority = priority_in(request);
  if (!priority) {
    responder.fail(priority.error());
    return;
  }
  answer_forecast(service, PrioritizeJob{id.value(), priority.value(), request.subject}, request.principal, responder);
}

}  // namespace

void add_forecast_routes(http::Router& router, Service& service) {
  router.add({.method = Method::kPost,
              .pattern = "/v1/forecast",
              .access = Access::kToken,
              .threads = http::Threads::kLongReads,
              .doc = {.operation_id = "forecastJob",
                      .summary = "What would become of a job if it were submitted now; nothing is stored.",
                      .responses = {{.status = 200, .description = "What it would do.", .schema = "Forecast"},
                                    {.status = 400, .description = "The document is malformed or breaks a rule."},
                                    {.status = 403,
                                     .description = "The token may not submit for this user, or an admission rule "
                                                    "refuses the job."},
                                    {.status = 409, .description = "The job contradicts what is there."},
                                    {.status = 422, .description = "Understood, and not there yet."}},
                      .description = "The job is tried on a copy of the state by the code that decides. What others "
                                     "do until it is submitted may change the answer.",
                      .tags = {"jobs"},
                      .request_schema = "JobDocument",
                      .request_types = {"application/json", "application/yaml"}},
              .handler = [&service](const Request& request, const Responder& to) {
                forecast_submission(service, request, to);
              }});
  router.add({.method = Method::kPost,
              .pattern = "/v1/jobs/{id}/forecast",
              .access = Access::kToken,
              .threads = http::Threads::kLongReads,
              .doc = {.operation_id = "forecastPriority",
                      .summary = "What another priority of a job would do now; nothing is stored.",
                      .responses = {{.status = 200, .description = "What it would do.", .schema = "Forecast"},
                                    {.status = 404, .description = "There is no such job."},
                                    {.status = 409, .description = "The job has ended."}},
                      .tags = {"jobs"},
                      .parameters = {job_parameter()},
                      .request_schema = "PriorityChange"},
              .handler = [&service](const Request& request, const Responder& to) {
                forecast_priority(service, request, to);
              }});
}

}  // namespace berth::api
