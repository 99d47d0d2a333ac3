#include "backend/kubernetes/job_namespace.h"

#include <doctest/doctest.h>

#include <utility>

namespace berth::backend {

TEST_CASE("the namespace of jobs is one, with others for some queues, or none") {
  CHECK_EQ(read_job_namespace("berth-jobs")->space, "berth-jobs");
  const auto own = read_job_namespace("jobs,research/nlp=nlp-jobs,product=p");
  REQUIRE(own);
  CHECK_EQ(own->space, "jobs");
  CHECK_EQ(own->spaces.at(0), std::pair<std::string, std::string>{"research/nlp", "nlp-jobs"});
  CHECK_EQ(own->spaces.at(1).second, "p");
  CHECK_EQ(read_job_namespace("none")->space, "");
  for (const char* wrong : {"", "Jobs", "a,b", "=a", "a=", "q=jobs", "jobs,", "jobs,q=a=b"})
    CHECK_MESSAGE(!read_job_namespace(wrong), wrong);
}

}  // namespace berth::backend
