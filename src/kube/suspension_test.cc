// Suspended objects: admitted by lifting `suspend`, sent away by setting it.

#include "kube/suspension.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>

#include "kube/api_stand_in.h"

namespace berth::kube {
namespace {

// A team with a suspended Job of two pods, whose `suspend` the API server sets as it is asked.
struct SuspendedJob : ApiStandIn {
  boost::json::object job;
  std::vector<bool> patches;  // what `suspend` was set to

  explicit SuspendedJob(const std::string& labels = R"("kueue.x-k8s.io/queue-name":"research")",
                        const std::string& spec = R"("parallelism":2,"completions":2,"completionMode":"Indexed")") {
    node("n1", 8);
    name_space("team", "research");
    job = json(
        R"({"metadata":{"uid":"J","name":"train","namespace":"team","generation":1,"labels":{)" + labels +
        R"(}},"spec":{"suspend":true,)" + spec +
        R"(,"template":{"spec":{"schedulerName":"berth","containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":4}}}]}}}})");
    fault = [this](const Request& request) {
      if (request.path != "/apis/batch/v1/namespaces/team/jobs/train") return serve(request);
      if (lost > 0) return --lost, Answer{0, ""};
      const boost::json::object patch = json(request.body);
      job["spec"].as_object()["suspend"] = true_at(patch, {"spec", "suspend"});
      job["metadata"].as_object()["generation"] = integer_at(job, {"metadata", "generation"}, 0) + 1;
      if (const auto* notes = object_at(patch, {"metadata", "annotations"}))
        job["metadata"].as_object()["annotations"] = *notes;
      patches.push_back(true_at(patch, {"spec", "suspend"}));
      show_job();
      return Answer{200, "{}"};
    };
    list();
    show_job();
    settle();
  }
  int lost = 0;  // requests that have no answer and no effect
  void show_job() { owner(Kind::kJob, boost::json::serialize(job)); }
  void make_pods(const std::string& name) {
    for (const char* index : {"0", "1"})
      pod(name + index, 4, "", "",
          R"("ownerReferences":[{"kind":"Job","name":"train","uid":"J","controller":true}],"annotations":{"batch.kubernetes.io/job-completion-index":")" +
              std::string(index) + "\"}");
    settle();
  }
  static TaskKey rank(std::uint32_t number, std::uint32_t attempt = 1) { return {JobId(1), attempt, number, 1}; }
  std::string events() const {
    std::string all;
    for (const Request& request : requests) {
      if (request.path.ends_with("/events")) all += request.body;
    }
    return all;
  }
};

}  // namespace

TEST_CASE("a suspended Job with a queue label is a job by its template, and runs when the core starts it") {
  SuspendedJob api;
  REQUIRE_EQ(api.jobs().size(), 1);
  const JobSpec& spec = api.jobs()[0].spec;
  CHECK_EQ(spec.queue, "research");
  CHECK_EQ(spec.name, "train");
  REQUIRE_EQ(spec.groups.size(), 1);
  CHECK_EQ(spec.groups[0].count, 2);
  CHECK_EQ(spec.groups[0].request.gpus, 4);
  api.pass(120);  // it has no pods, and is not given up
  CHECK_EQ(api.jobs().size(), 1);
  CHECK(api.patches.empty());
  CHECK(std::none_of(api.commands.begin(), api.commands.end(),
                     [](const Command& one) { return std::holds_alternative<CancelJob>(one); }));
  api.lost = 1;
  for (std::uint32_t number : {0U, 1U}) api.start(SuspendedJob::rank(number), "n1", 4, 4 * static_cast<int>(number));
  CHECK(api.patches.empty());
  api.pass(6);
  CHECK(api.patches == std::vector<bool>{false});
  api.make_pods("a");
  api.run_all();
  api.settle();
  CHECK_EQ(api.node_of("a0"), "n1");
  CHECK_EQ(api.node_of("a1"), "n1");
  CHECK(api.is_running(SuspendedJob::rank(1)));

  SUBCASE("after a restart nothing changes") {
    api.restart();
    api.pass(40);
    CHECK_EQ(api.patches.size(), 1);
    CHECK_EQ(api.jobs_of_core_.size(), 1);
    CHECK(api.deleted.empty());
  }
  SUBCASE("it leaves by being suspended, its controller deletes the pods, and it comes back") {
    for (std::uint32_t number : {0U, 1U}) api.perform(KillTask{SuspendedJob::rank(number), "", 30'000});
    CHECK(api.patches == std::vector<bool>{false, true});
    CHECK(api.deleted.empty());
    for (const char* name : {"a0", "a1"}) api.remove(api.uid_of(name));
    api.settle();
    for (std::uint32_t number : {0U, 1U}) REQUIRE(api.exit_of(SuspendedJob::rank(number)));
    for (std::uint32_t number : {0U, 1U}) api.perform(ForgetTask{SuspendedJob::rank(number), ""});
    api.pass(120);
    CHECK_EQ(api.patches.size(), 2);
    CHECK_EQ(api.jobs().size(), 1);
    api.start(SuspendedJob::rank(0, 2), "n1", 4);
    CHECK(api.patches == std::vector<bool>{false, true, false});
  }
  SUBCASE("pods that its controller does not delete are deleted by berth") {
    api.perform(KillTask{SuspendedJob::rank(0), "", 30'000});
    api.pass(7);
    CHECK_EQ(api.deleted.size(), 1);
  }
}

TEST_CASE("a Job that is suspended while its job waits stays suspended, whoever lifts it") {
  SuspendedJob api;
  api.job["spec"].as_object()["suspend"] = false;
  api.show_job();
  api.settle();
  CHECK(api.patches.empty());  // the core may be about to name its tasks
  api.pass(31);
  CHECK(api.patches == std::vector<bool>{true});
}

TEST_CASE("a suspended Job whose job was cancelled stays suspended, and says so") {
  SuspendedJob api;
  api.cluster().finished(JobId(1), true, api.now());
  api.settle();
  CHECK_EQ(annotation_at(api.job, kCancelledAnnotation), "job 1");
  api.pass(120);
  CHECK_EQ(api.jobs().size(), 1);
  api.job["metadata"].as_object().erase("annotations");
  api.show_job();
  api.settle();
  CHECK_EQ(api.jobs().size(), 2);
}

TEST_CASE("what may not be admitted says so on the object, and is left suspended") {
  SUBCASE("no label names a queue: it is not for berth") {
    SuspendedJob api("");
    CHECK(api.jobs().empty());
    CHECK_EQ(api.events(), "");
  }
  SUBCASE("the namespace may not use the queue") {
    SuspendedJob api(R"("berth.dev/queue":"product")");
    CHECK(api.jobs().empty());
    CHECK_NE(api.events().find("queue 'product' is not one that namespace team may use"), std::string::npos);
    CHECK_NE(api.events().find(R"("kind":"Job")"), std::string::npos);
  }
  SUBCASE("more completions than pods at a time") {
    SuspendedJob api(R"("berth.dev/queue":"research")", R"("parallelism":2,"completions":9)");
    CHECK(api.jobs().empty());
    CHECK_NE(api.events().find("more completions than parallelism"), std::string::npos);
  }
}

TEST_CASE("a JobSet is admitted at once; one that a TrainJob owns is so by the TrainJob") {
  const std::string spec =
      R"("spec":{"suspend":true,"replicatedJobs":[{"name":"w","replicas":2,"template":{"spec":{"parallelism":3,"template":{"spec":{"schedulerName":"berth"}}}}}]}})";
  const std::string metadata =
      R"({"metadata":{"name":"s","namespace":"team","uid":"S","labels":{"berth.dev/queue":"q"})";
  const auto of = [&](const std::string& owners) {
    return read_suspension(Kind::kJobSet, boost::json::parse(metadata + owners + "}," + spec).as_object(), "berth");
  };
  REQUIRE(of(""));
  CHECK_EQ(of("")->path, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets/s");
  CHECK_EQ(of("")->roles.at(0).count, 6);
  const auto train = of(
      R"(,"ownerReferences":[{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","name":"t","controller":true}])");
  REQUIRE(train);
  CHECK_EQ(train->path, "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/t");
  CHECK_FALSE(
      of(R"(,"ownerReferences":[{"apiVersion":"example.com/v1","kind":"TrainJob","name":"t","controller":true}])"));
  CHECK_FALSE(read_suspension(Kind::kJobSet, boost::json::parse(metadata + "}," + spec).as_object(), "another"));
}

}  // namespace berth::kube
