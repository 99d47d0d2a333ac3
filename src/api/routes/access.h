#pragma once
// Who may do what by the API: the rule of each operation, and the guard that holds every request to it. A table of
// routes with an operation that has no rule ends the server at start (make_router).

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/router.h"
#include "api/service.h"
#include "policy/authorize.h"

namespace berth::api {

// The subject of the token in the data directory: an admin at the root.
policy::Subject admin_subject();

// Counts the request among those that were denied (Service::note_denial).
void note_denied(Service& service, const http::Request& request, policy::Verb verb, const policy::Object& object,
                 JobId job = JobId::none());

// Counts the request if the error is kDenied, as the loop says where the state decides (an admission rule, the terms of
// a queue). For a request that is over by then: `denied` is made of it before, by denial_of.
AccessDenied denial_of(const http::Request& request, policy::Verb verb, const policy::Object& object,
                       JobId job = JobId::none());
void note_if_denied(Service& service, const AccessDenied& denied, const Error& error);

// Counts it likewise, and returns what is said to a subject that is denied: verb, object, and the least role that
// could.
Error denial(Service& service, const http::Request& request, policy::Verb verb, const policy::Object& object,
             const policy::Decision& decision, JobId job = JobId::none());

// The queue and the owner of a job, whether it lives or has finished; nothing if there is none.
struct JobObject {
  std::string queue;
  std::string owner;
  bool owner_blocked = false;  // the owner's access is ended
};
std::optional<JobObject> job_object(Service& service, JobId id);

// Returns true if the subject may see the job, whether it lives or has finished. False also if there is none, but for a
// subject that sees all jobs.
bool may_see_job(Service& service, const http::Request& request, JobId id);

// Takes out of the view of a job the ids of jobs that the subject may not see: its victims and its preemptors.
void hide_others(Service& service, const http::Request& request, boost::json::value& view);

// Returns the same table with every handler behind the rule of its operation. Where a rule leaves the decision to the
// handler (each row of a list, the queue of a submission), a subject that could be allowed nothing is denied already.
http::Router guarded(const http::Router& open, Service& service);

}  // namespace berth::api
