#pragma once
// What a request says of a job, as far as its subject may say it: a submission, and another priority.

#include <cstdint>

#include "api/http/message.h"
#include "api/service.h"
#include "base/result.h"
#include "model/command.h"

namespace berth::api {

// Returns the command that submits the job of the body, without a key. The job belongs to the user of the subject,
// unless the subject may submit for others. The role is the highest with which the subject may submit to the queue.
// Error: the document is malformed, the subject may not submit there, or a dependency is no job that it may see.
Result<SubmitJob> submission_of(Service& service, const http::Request& request);

// Returns the priority of the body.
Result<std::int32_t> priority_in(const http::Request& request);

}  // namespace berth::api
