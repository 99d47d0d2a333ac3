// Jobs: submit, list, look at, cancel, hold, release, reprioritise, move, explain; and checkpoints that a job reports.

#include <algorithm>
#include <boost/json/array.hpp>
#include <limits>

#include "api/routes/access.h"
#include "api/routes/documents.h"
#include "api/routes/job_list.h"
#include "api/routes/job_submission.h"
#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "api/routes/views.h"
#include "model/priority.h"
#include "model/reason.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::ParameterDoc;
using http::ParameterType;
using http::query_parameter;
using http::Request;
using http::Responder;
using http::ResponseDoc;

// --- submit ---

http::Response submitted_answer(const control::Reply& reply, const std::string& name) {
  json::object body{
      {"id", reply.job.value()}, {"name", name}, {"repeated", reply.repeated}, {"updated", reply.updated}};
  if (!reply.warnings.empty()) body["warnings"] = json::array(reply.warnings.begin(), reply.warnings.end());
  http::Response response =
      json_answer(std::move(body), reply.repeated || reply.updated || reply.unchanged ? 200 : 201);
  response.headers.push_back({"Location", "/v1/jobs/" + std::to_string(reply.job.value())});
  return response;
}

void submit_job(Service& service, const Request& request, const Responder& responder) {
  auto submission = submission_of(service, request);
  if (!submission) {
    responder.fail(submission.error());
    return;
  }
  submission->key = request.idempotency_key;
  const std::string name = submission->spec.name;
  const AccessDenied denied = denial_of(request, policy::Verb::kSubmit, {submission->spec.queue, {}});
  service.submit(origin_of(request), std::move(*submission),
                 [&service, responder, name, denied](const Result<control::Reply>& reply) {
                   if (reply) {
                     responder.send(submitted_answer(reply.value(), name));
                   } else {
                     note_if_denied(service, denied, reply.error());
                     responder.fail(reply.error());
                   }
                 });
}

// --- list ---

template <class E>
std::optional<E> word_of(const Request& request, const std::string& name) {
  return enum_from_name<E>(text_of(request, name));
}

// Reads "team=vision,run=7".
Result<Labels> labels_in(std::string_view text) {
  Labels labels;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const std::size_t equals = one.find('=');
    if (equals == 0 || equals == std::string_view::npos)
      return invalid("label: '" + std::string(one.substr(0, 80)) + "' is not KEY=VALUE");
    labels.emplace_back(one.substr(0, equals), one.substr(equals + 1));
  }
  return labels;
}

// Returns which jobs the subject may see; nothing: all.
std::function<bool(std::string_view, std::string_view)> visible_to(const Request& request) {
  if (policy::authorize(request.principal, policy::Verb::kSeeJob, {}).allowed) return {};
  return [principal = request.principal](std::string_view queue, std::string_view user) {
    return policy::authorize(principal, policy::Verb::kSeeJob, {queue, user}).allowed;
  };
}

Result<JobQuery> job_query_of(const Request& request) {
  JobQuery query;
  query.filter = {.queue = text_of(request, "queue"),
                  .user = flag_of(request, "mine") ? request.principal.user : text_of(request, "user"),
                  .name = text_of(request, "name"),
                  .node = text_of(request, "node"),
                  .phase = word_of<JobPhase>(request, "phase"),
                  .kind = word_of<JobKind>(request, "kind"),
                  .parent = {}};
  query.filter.visible = visible_to(request);
  const std::int64_t parent = integer_of(request, "parent", 0);
  if (parent != 0) query.filter.parent = JobId(static_cast<std::uint64_t>(parent));
  auto labels = labels_in(text_of(request, "label"));
  if (!labels) return labels.error();
  query.filter.labels = std::move(*labels);
  for (const auto& [name, bound] : {std::pair("since", &query.filter.since), std::pair("until", &query.filter.until)}) {
    if (request.query_value(name)) *bound = time_of(request, name, {});
  }
  query.limit = static_cast<std::size_t>(integer_of(request, "limit", kDefaultLimit));
  std::string sort = request.query_value("sort").value_or("id");
  query.descending = sort.front() == '-';
  query.sort = enum_from_name<JobSort>(query.descending ? sort.substr(1) : sort).value_or(JobSort::kId);
  const bool only_finished = query.filter.phase == JobPhase::kFinished;
  query.live = !only_finished;
  const bool also_finished = flag_of(request, "finished") || query.filter.since;
  query.finished = only_finished || (also_finished && !query.filter.phase);
  if (const auto cursor = request.query_value("cursor")) {
    auto position = decode_cursor(*cursor, query.sort, query.descending);
    if (!position) return position.error();
    query.after = std::move(*position);
  }
  return query;
}

// Jobs that have finished may be of queues, nodes and parents that are no longer known.
Result<void> check_known(Service& service, const Request& request, const JobQuery& query) {
  Result<void> known;
  bool parent_lives = false;
  if (query.finished) return known;
  service.read([&](const View& view) {
    const JobFilter& filter = query.filter;
    const auto may = [&](policy::Verb verb, std::string_view queue) {
      return policy::authorize(request.principal, verb, {queue}).allowed;
    };
    if (!filter.queue.empty() &&
        (view.state.queue_at(filter.queue) == nullptr || !may(policy::Verb::kSeeQueue, filter.queue)))
      known = not_found("no such queue '" + filter.queue.substr(0, 200) + "'");
    else if (!filter.node.empty() && may(policy::Verb::kSeeNodes, {}) && view.state.node_named(filter.node) == nullptr)
      known = not_found("no such node '" + filter.node.substr(0, 253) + "'");
    else if (filter.parent && view.state.job(*filter.parent) != nullptr)
      parent_lives = true;
  });
  if (known && query.filter.parent && !may_see_job(service, request, *query.filter.parent))
    return not_found("no such job " + std::to_string(query.filter.parent->value()));
  if (!known || !query.filter.parent || parent_lives) return known;
  if (const auto past = service.past_job(*query.filter.parent); !past) return past.error();
  return known;
}

void get_jobs(Service& service, const Request& request, const Responder& responder) {
  const auto query = job_query_of(request);
  if (!query) {
    responder.fail(query.error());
    return;
  }
  if (const auto known = check_known(service, request, query.value()); !known) {
    responder.fail(known.error());
    return;
  }
  const auto page = list_jobs(service, query.value());
  if (!page) {
    responder.fail(page.error());
    return;
  }
  json::array items;
  for (const ShownJob& job : page.value().jobs) items.push_back(job_summary(job));
  if (query.value().filter.visible) {
    for (json::value& item : items) hide_others(service, request, item);
  }
  std::optional<std::string> next;
  if (page.value().next) next = encode_cursor(*page.value().next, query.value().sort, query.value().descending);
  responder.send(page_answer(std::move(items), next, page.value().seq, page.value().time));
}

// --- one job ---

http::Response job_answer(Service& service, const Request& request, json::value view) {
  if (!policy::authorize(request.principal, policy::Verb::kSeeJob, {}).allowed) hide_others(service, request, view);
  return json_answer(view);
}

void get_job(Service& service, const Request& request, const Responder& responder) {
  const auto id = job_id_of(request);
  if (!id) {
    responder.fail(id.error());
    return;
  }
  std::optional<ShownJob> shown;
  service.read([&](const View& view) {
    if (const state::JobState* job = view.state.job(id.value())) shown = show_by_itself(view, *job);
  });
  if (!shown) {
    auto past = service.past_job(id.value());
    if (!past) {
      responder.fail(past.error());
      return;
    }
    service.read([&](const View& view) { shown = show_past_job(view.state, std::move(*past)); });
  }
  json::object full = job_in_full(*shown);
  const auto about = job_object(service, id.value());
  const bool may_read =
      about &&
      policy::authorize(request.principal, policy::Verb::kReadLog, {about->queue, about->owner, id.value()}).allowed;
  if (!may_read) hide_environment(full["spec"]);
  responder.send(job_answer(service, request, std::move(full)));
}

void explain_job(Service& service, const Request& request, const Responder& responder) {
  const auto id = job_id_of(request);
  if (!id) {
    responder.fail(id.error());
    return;
  }
  std::optional<JobPhase> phase;
  service.read([&](const View& view) {
    if (const state::JobState* job = view.state.job(id.value())) phase = phase_of(view.state, *job);
  });
  if (!phase) {
    const auto past = service.past_job(id.value());
    if (!past) {
      responder.fail(past.error());
      return;
    }
    WhyAnswer over;
    over.job = id.value();
    over.headline =
        "Job " + std::to_string(over.job.value()) + " is over: " + std::string(name_of(past.value().outcome)) + ".";
    responder.send(json_answer(why_view(over, JobPhase::kFinished)));
    return;
  }
  responder.send(json_answer(why_view(service.explain(id.value(), request.principal), *phase)));
}

// --- commands ---

void cancel_job(Service& service, const Request& request, const Responder& responder) {
  const auto id = job_id_of(request);
  if (!id) {
    responder.fail(id.error());
    return;
  }
  service.submit(origin_of(request), CancelJob{id.value(), request.subject},
                 answer_job_command(responder, id.value(), 202));
}

void hold_job(Service& service, const Request& request, const Responder& responder, bool held) {
  const auto id = job_id_of(request);
  if (!id) {
    responder.fail(id.error());
    return;
  }
  service.submit(origin_of(request), HoldJob{id.value(), held, request.subject},
                 answer_job_command(responder, id.value()));
}

void prioritize_job(Service& service, const Request& request, const Responder& responder) {
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
  service.submit(origin_of(request), PrioritizeJob{id.value(), priority.value(), request.subject},
                 answer_job_command(responder, id.value()));
}

Result<MoveJob> move_in(const Request& request, JobId job) {
  auto body = object_of(request);
  if (!body) return body.error();
  MoveJob move{job, {}, false, request.subject};
  if (const json::value* off = body->if_contains("off")) {
    if (!off->is_array()) return invalid("off: the names of nodes are a list");
    for (const json::value& name : off->get_array()) {
      if (!name.is_string()) return invalid("off: a node's name is a text");
      move.off.emplace_back(name.get_string().c_str());
    }
    body->erase("off");
  }
  if (const json::value* lose_work = body->if_contains("lose_work")) {
    if (!lose_work->is_bool()) return invalid("lose_work must be true or false");
    move.lose_work = lose_work->get_bool();
    body->erase("lose_work");
  }
  if (auto ok = refuse_rest(*body); !ok) return ok.error();
  return move;
}

void move_job(Service& service, const Request& request, const Responder& responder) {
  const auto id = job_id_of(request);
  if (!id) {
    responder.fail(id.error());
    return;
  }
  auto move = move_in(request, id.value());
  if (!move) {
    responder.fail(move.error());
    return;
  }
  service.submit(origin_of(request), std::move(move.value()), [responder](const Result<control::Reply>& reply) {
    if (!reply) {
      responder.fail(reply.error());
      return;
    }
    responder.send(json_answer(json::object{{"id", reply->job.value()},
                                            {"unchanged", reply->unchanged},
                                            {"moves_to", json::array(reply->to.begin(), reply->to.end())},
                                            {"deadline", to_iso8601(reply->deadline)}},
                               202));
  });
}

Result<std::int32_t> signal_in(const Request& request) {
  auto body = object_of(request);
  if (!body) return body.error();
  const auto signal = take_integer(*body, "signal", 1, 64);
  if (!signal) return signal.error();
  if (auto ok = refuse_rest(*body); !ok) return ok.error();
  constexpr std::int64_t kKill = 9;
  constexpr std::int64_t kStop = 19;
  if (signal.value() == kKill || signal.value() == kStop) {
    return invalid("signal: a task cannot catch this one; cancel the job instead");
  }
  return static_cast<std::int32_t>(signal.value());
}

void signal_job(Service& service, const Request& request, const Responder& responder) {
  const auto id = job_id_of(request);
  if (!id) {
    responder.fail(id.error());
    return;
  }
  const auto signal = signal_in(request);
  if (!signal) {
    responder.fail(signal.error());
    return;
  }
  service.submit(origin_of(request), SignalJob{id.value(), signal.value(), request.subject},
                 answer_job_command(responder, id.value()));
}

Result<ReportCheckpoint> checkpoint_in(const Request& request, JobId job) {
  auto body = object_of(request);
  if (!body) return body.error();
  const auto attempt = take_integer(*body, "attempt", 1, std::numeric_limits<std::int32_t>::max());
  if (!attempt) return attempt.error();
  const auto step = take_integer(*body, "step", 0, std::numeric_limits<std::int64_t>::max());
  if (!step) return step.error();
  if (auto ok = refuse_rest(*body); !ok) return ok.error();
  return ReportCheckpoint{job, static_cast<std::uint32_t>(attempt.value()), step.value()};
}

// A supervisor's news of an attempt that is over is passed over; whoever asks here is told.
Result<void> check_attempt(Service& service, const ReportCheckpoint& report) {
  const std::string job = "job " + std::to_string(report.job.value());
  Result<void> found;
  bool live = false;
  service.read([&](const View& view) {
    const state::JobState* state = view.state.job(report.job);
    live = state != nullptr;
    if (!live || (state->attempt && state->attempt->number == report.attempt)) return;
    const std::string now = state->attempt ? "attempt " + std::to_string(state->attempt->number) : "nothing of it";
    found = conflict("attempt " + std::to_string(report.attempt) + " of " + job + " does not run; " + now + " does");
  });
  if (live) return found;
  if (const auto past = service.past_job(report.job); !past) return past.error();
  return conflict(job + " has finished");
}

void report_checkpoint(Service& service, const Request& request, const Responder& responder) {
  const auto id = job_id_of(request);
  if (!id) {
    responder.fail(id.error());
    return;
  }
  const auto report = checkpoint_in(request, id.value());
  if (!report) {
    responder.fail(report.error());
    return;
  }
  if (const auto ok = check_attempt(service, report.value()); !ok) {
    responder.fail(ok.error());
    return;
  }
  service.submit(origin_of(request), report.value(), answer_job_command(responder, id.value()));
}

// --- the table ---

ParameterDoc one_of(ParameterDoc parameter, std::vector<std::string> values) {
  parameter.values = std::move(values);
  return parameter;
}

template <class E>
std::vector<std::string> words() {
  return {EnumNames<E>::kNames.begin(), EnumNames<E>::kNames.end()};
}

std::vector<std::string> sortings() {
  std::vector<std::string> all = words<JobSort>();
  for (const std::string& word : words<JobSort>()) all.push_back("-" + word);
  return all;
}

std::vector<ParameterDoc> list_parameters() {
  return {query_parameter("queue", "Only jobs of this queue and the queues below it."),
          query_parameter("user", "Only jobs of this user."),
          query_parameter("name", "Only jobs of this name."),
          query_parameter("node", "Only jobs that run, or ran, on this node."),
          one_of(query_parameter("phase", "Only jobs in this phase."), words<JobPhase>()),
          one_of(query_parameter("kind", "Only jobs of this kind."), words<JobKind>()),
          query_parameter("label", "Only jobs with these labels: KEY=VALUE, several joined by commas."),
          query_parameter("mine", "Only jobs of the token's subject.", ParameterType::kBoolean),
          query_parameter("since", "Also jobs that finished at this time or later.", ParameterType::kTime),
          query_parameter("until", "Only jobs that were submitted before this time.", ParameterType::kTime),
          http::integer_parameter("parent", "Only the replicas or elements of this job.", 1,
                                  std::numeric_limits<std::int64_t>::max()),
          query_parameter("finished", "Also jobs that have finished, after the others, newest first.",
                          ParameterType::kBoolean),
          one_of(query_parameter("sort", "The order of the live jobs; - before it turns it round."), sortings()),
          limit_parameter(),
          cursor_parameter()};
}

const ResponseDoc kNoSuchJob = {.status = 404, .description = "There is no such job."};
const ResponseDoc kWrongMoment = {.status = 409,
                                  .description = "The job has finished, or its phase does not allow it."};

void add_submit(http::Router& router, Service& service) {
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/jobs",
       .access = Access::kToken,
       .doc = {.operation_id = "submitJob",
               .summary = "Submits a job; answered when it is durable.",
               .responses =
                   {{.status = 201, .description = "A new job.", .schema = "JobSubmitted"},
                    {.status = 200, .description = "The same submission was taken before.", .schema = "JobSubmitted"},
                    {.status = 400, .description = "The document is malformed or breaks a rule."},
                    {.status = 403,
                     .description = "The token may not submit for this user, or an admission rule refuses the job."},
                    {.status = 409, .description = "The key was used for another submission."},
                    {.status = 422, .description = "Understood, and not there yet."}},
               .description = "The document is that of docs/jobs.md. Without `user` the job belongs to the token's "
                              "subject; only the subject admin may name somebody else. With an Idempotency-Key the "
                              "same document may be sent again and stays one job, for seven days.",
               .tags = {"jobs"},
               .parameters = {http::header_parameter(
                   "Idempotency-Key", "Visible ASCII characters; the same key of a user is the same job.",
                   "^[!-~]{1,255}$")},
               .request_schema = "JobDocument",
               .request_types = {"application/json", "application/yaml"}},
       .handler = [&service](const Request& request, const Responder& to) { submit_job(service, request, to); }});
}

void add_reads(http::Router& router, Service& service) {
  router.add({.method = Method::kGet,
              .pattern = "/v1/jobs",
              .access = Access::kToken,
              .threads = http::Threads::kLongReads,
              .doc = {.operation_id = "listJobs",
                      .summary = "Jobs, filtered, sorted and by pages.",
                      .responses = {{.status = 200, .description = "A page of jobs.", .schema = "JobList"}},
                      .description = "A job that is there all the time is in exactly one page. One that finishes "
                                     "while pages are read may be in two: as live and as finished. A page among the "
                                     "finished may be short or empty and still have a next_cursor.",
                      .tags = {"jobs"},
                      .parameters = list_parameters()},
              .handler = [&service](const Request& request, const Responder& to) { get_jobs(service, request, to); }});
  router.add({.method = Method::kGet,
              .pattern = "/v1/jobs/{id}",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "getJob",
                      .summary = "One job in full, also when it has finished.",
                      .responses = {{.status = 200, .description = "The job.", .schema = "Job"}, kNoSuchJob},
                      .tags = {"jobs"},
                      .parameters = {job_parameter()}},
              .handler = [&service](const Request& request, const Responder& to) { get_job(service, request, to); }});
  router.add(
      {.method = Method::kGet,
       .pattern = "/v1/jobs/{id}/why",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "explainJob",
               .summary = "Why a job waits, with the numbers of now.",
               .responses = {{.status = 200, .description = "The reason.", .schema = "Explanation"}, kNoSuchJob},
               .tags = {"jobs"},
               .parameters = {job_parameter()}},
       .handler = [&service](const Request& request, const Responder& to) { explain_job(service, request, to); }});
}

void add_commands(http::Router& router, Service& service) {
  router.add(
      {.method = Method::kDelete,
       .pattern = "/v1/jobs/{id}",
       .access = Access::kToken,
       .doc = {.operation_id = "cancelJob",
               .summary = "Cancels a job: it is taken off the queue, or asked to stop.",
               .responses = {{.status = 202, .description = "It will end.", .schema = "JobChanged"},
                             kNoSuchJob,
                             kWrongMoment},
               .tags = {"jobs"},
               .parameters = {job_parameter()}},
       .handler = [&service](const Request& request, const Responder& to) { cancel_job(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/jobs/{id}/hold",
       .access = Access::kToken,
       .doc = {.operation_id = "holdJob",
               .summary = "Keeps a waiting job from starting.",
               .responses = {{.status = 200, .description = "It is held.", .schema = "JobChanged"},
                             kNoSuchJob,
                             kWrongMoment},
               .tags = {"jobs"},
               .parameters = {job_parameter()}},
       .handler = [&service](const Request& request, const Responder& to) { hold_job(service, request, to, true); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/jobs/{id}/release",
       .access = Access::kToken,
       .doc = {.operation_id = "releaseJob",
               .summary = "Lets a held job start.",
               .responses = {{.status = 200, .description = "It is not held.", .schema = "JobChanged"},
                             kNoSuchJob,
                             kWrongMoment},
               .tags = {"jobs"},
               .parameters = {job_parameter()}},
       .handler = [&service](const Request& request, const Responder& to) { hold_job(service, request, to, false); }});
  router.add(
      {.method = Method::kPut,
       .pattern = "/v1/jobs/{id}/priority",
       .access = Access::kToken,
       .doc = {.operation_id = "prioritizeJob",
               .summary = "Gives a job another priority.",
               .responses = {{.status = 200, .description = "It has it.", .schema = "JobChanged"},
                             kNoSuchJob,
                             kWrongMoment},
               .tags = {"jobs"},
               .parameters = {job_parameter()},
               .request_schema = "PriorityChange"},
       .handler = [&service](const Request& request, const Responder& to) { prioritize_job(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/jobs/{id}/move",
       .access = Access::kToken,
       .doc = {.operation_id = "moveJob",
               .summary = "Moves a running job to other nodes.",
               .responses = {{.status = 202, .description = "It will leave, and start there.", .schema = "JobMoved"},
                             {.status = 404, .description = "There is no such job or node."},
                             {.status = 409,
                              .description = "It does not run, would lose by it, or finds no places elsewhere now."}},
               .description = "Places elsewhere are kept for it from now on; it is asked to save and leave, and starts "
                              "there when it has left. Refused where none are free, where it does not save, and where "
                              "its service can spare no replica.",
               .tags = {"jobs"},
               .parameters = {job_parameter()},
               .request_schema = "JobMove"},
       .handler = [&service](const Request& request, const Responder& to) { move_job(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/jobs/{id}/signal",
       .access = Access::kToken,
       .doc = {.operation_id = "signalJob",
               .summary = "Passes a signal on to every process that a job runs now.",
               .responses = {{.status = 200, .description = "It was passed on.", .schema = "JobChanged"},
                             kNoSuchJob,
                             kWrongMoment},
               .tags = {"jobs"},
               .parameters = {job_parameter()},
               .request_schema = "JobSignal"},
       .handler = [&service](const Request& request, const Responder& to) { signal_job(service, request, to); }});
  router.add({.method = Method::kPost,
              .pattern = "/v1/jobs/{id}/checkpoint",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "reportCheckpoint",
                      .summary = "Reports that a running attempt has saved its work up to a step.",
                      .responses = {{.status = 200,
                                     .description = "Noted; unchanged if that was said before.",
                                     .schema = "JobChanged"},
                                    kNoSuchJob,
                                    kWrongMoment},
                      .tags = {"jobs"},
                      .parameters = {job_parameter()},
                      .request_schema = "CheckpointReport"},
              .handler = [&service](const Request& request, const Responder& to) {
                report_checkpoint(service, request, to);
              }});
}

}  // namespace

void add_job_routes(http::Router& router, Service& service) {
  add_submit(router, service);
  add_reads(router, service);
  add_commands(router, service);
}

}  // namespace berth::api
