#include "identity/job_claims.h"

namespace berth::identity {

std::string job_subject(const RunningJob& job) {
  return "queue:" + job.queue + ":job:" + std::to_string(job.job.value()) + ":attempt:" + std::to_string(job.attempt);
}

boost::json::object job_claims(const RunningJob& job, const std::string& issuer, const std::string& audience,
                               const std::string& id, Timestamp now) {
  const std::int64_t now_s = now.ms / 1000;
  return {{"iss", issuer},
          {"sub", job_subject(job)},
          {"aud", audience},
          {"iat", now_s},
          {"nbf", now_s},
          {"exp", (now + kJobTokenLifetimeMs).ms / 1000},
          {"jti", id},
          {"berth_queue", job.queue},
          {"berth_job", job.job.value()},
          {"berth_attempt", job.attempt},
          {"berth_user", job.user}};
}

}  // namespace berth::identity
