#include "model/admission.h"

#include <doctest/doctest.h>

namespace berth {
namespace {

JobSpec job_of(std::int32_t tasks, std::int32_t gpus) {
  JobSpec spec;
  TaskGroup group;
  group.count = tasks;
  group.request.gpus = gpus;
  group.image = "registry.example.com/train:1";
  spec.groups = {group};
  return spec;
}

AdmissionRule rule_of(void (*change)(AdmissionRule&)) {
  AdmissionRule rule;
  rule.name = "r";
  change(rule);
  return rule;
}

const std::string kByDigest = "registry.example.com/train@sha256:" + std::string(64, 'a');

struct Case {
  const char* what;
  AdmissionRule rule;
  void (*good)(JobSpec&);
  void (*bad)(JobSpec&);
  const char* told;
};

void as_it_is(JobSpec& /*spec*/) {}

}  // namespace

TEST_CASE("admission rules: each key lets the job through that keeps to it, and names what breaks it") {
  const Case cases[] = {
      {"an image of the list", rule_of([](auto& r) { r.images = {"registry.example.com/*"}; }), as_it_is,
       [](JobSpec& s) { s.groups[0].image = "registry.example.org/train:1"; },
       "image: 'registry.example.org/train:1' is not allowed; allowed are registry.example.com/*"},
      {"an image by its whole name", rule_of([](auto& r) { r.images = {"registry.example.com/train:1"}; }), as_it_is,
       [](JobSpec& s) { s.groups[0].image += "0"; },
       "image: 'registry.example.com/train:10' is not allowed; allowed are registry.example.com/train:1"},
      {"a digest", rule_of([](auto& r) { r.digest = true; }), [](JobSpec& s) { s.groups[0].image = kByDigest; },
       as_it_is, "image: 'registry.example.com/train:1' is not named by its digest; write it as NAME@sha256:DIGEST"},
      {"a whole digest", rule_of([](auto& r) { r.digest = true; }), [](JobSpec& s) { s.groups[0].image = kByDigest; },
       [](JobSpec& s) { s.groups[0].image = "a@sha256:00"; },
       "image: 'a@sha256:00' is not named by its digest; write it as NAME@sha256:DIGEST"},
      {"most GPUs", rule_of([](auto& r) { r.max_gpu_milli = 16'500; }), as_it_is,
       [](JobSpec& s) { s.groups.push_back(s.groups[0]); }, "gpus: the job asks for 32 GPUs; at most 16.5 are allowed"},
      {"a time limit", rule_of([](auto& r) { r.max_time_s = 7 * 86'400; }),
       [](JobSpec& s) { s.time_limit_s = 604'800; }, [](JobSpec& s) { s.time_limit_s = 604'801; },
       "time_limit: it is longer than allowed; give at most 7d"},
      {"any time limit", rule_of([](auto& r) { r.max_time_s = 3600; }), [](JobSpec& s) { s.time_limit_s = 1; },
       as_it_is, "time_limit: none is given; give one of at most 1h"},
      {"the checkpoint contract", rule_of([](auto& r) { r.checkpoint = true; }),
       [](JobSpec& s) { s.checkpoint.on_signal = true; }, as_it_is,
       "checkpoint.on_signal: it is not set; the job has to save its work when it is asked to stop"},
      {"no whole nodes", rule_of([](auto& r) { r.forbid = {ForbiddenOption::kExclusive}; }), as_it_is,
       [](JobSpec& s) { s.exclusive = true; }, "exclusive: whole nodes are not allowed; leave it out"},
      {"no whole racks", rule_of([](auto& r) { r.forbid = {ForbiddenOption::kRequiredTopology}; }),
       [](JobSpec& s) { s.topology.preferred = "rack"; }, [](JobSpec& s) { s.groups[0].topology.required = "rack"; },
       "topology.required is not allowed; use topology.preferred"},
      {"no plain processes", rule_of([](auto& r) { r.forbid = {ForbiddenOption::kNoImage}; }), as_it_is,
       [](JobSpec& s) { s.groups[0].image = ""; }, "image: none is given; plain processes are not allowed"},
      {"a label", rule_of([](auto& r) { r.labels = {"cost-center"}; }),
       [](JobSpec& s) {
         s.labels = {{"cost-center", "42"}};
       },
       [](JobSpec& s) {
         s.labels = {{"cost-center", ""}};
       },
       "labels: 'cost-center' is missing; give it a value"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.what);
    JobSpec good = job_of(2, 8);
    one.good(good);
    CHECK(broken_by(one.rule, good).empty());
    JobSpec bad = job_of(2, 8);
    one.bad(bad);
    const auto broken = broken_by(one.rule, bad);
    REQUIRE_EQ(broken.size(), 1);
    CHECK_EQ(broken.front(), one.told);
    CHECK(mistakes_in({one.rule}).empty());
  }
}

TEST_CASE("admission rules: a rule is for jobs of its classes, its roles and above its size") {
  const JobSpec spec = job_of(2, 8);
  AdmissionRule rule = rule_of([](auto& r) { r.digest = true; });
  CHECK(applies(rule, spec, Role::kLead));
  rule.classes = {JobClass::kDev};
  CHECK_FALSE(applies(rule, spec, Role::kLead));
  rule.classes = {JobClass::kDev, JobClass::kTraining};
  CHECK(applies(rule, spec, Role::kLead));
  rule.roles = {Role::kMember};
  CHECK_FALSE(applies(rule, spec, Role::kLead));
  CHECK(applies(rule, spec, Role::kMember));
  CHECK(applies(rule, spec, std::nullopt));
  rule.above_gpu_milli = 16'000;
  CHECK_FALSE(applies(rule, spec, Role::kMember));
  rule.above_gpu_milli = 15'999;
  CHECK(applies(rule, spec, Role::kMember));
}

TEST_CASE("admission rules: a rule that cannot be meant is refused by its name") {
  const auto mistake = [](void (*change)(AdmissionRule&)) {
    const auto mistakes = mistakes_in({rule_of(change)});
    return mistakes.empty() ? "" : mistakes.front();
  };
  CHECK_EQ(
      mistake([](auto& /*r*/) {}),
      "rule 'r': it asks for nothing; give images, digest, max_gpus, max_time, checkpoint, forbid, use, host_paths or "
      "labels");
  CHECK_NE(mistake([](auto& r) { r.name = "a b", r.digest = true; }), "");
  CHECK_NE(mistake([](auto& r) { r.images = {"*"}; }), "");
  CHECK_NE(mistake([](auto& r) { r.images = {"a b"}; }), "");
  CHECK_NE(mistake([](auto& r) { r.labels = {""}; }), "");
  CHECK_NE(mistake([](auto& r) { r.labels = {"a", "a"}; }), "");
  CHECK_NE(mistake([](auto& r) { r.max_gpu_milli = -1; }), "");
  CHECK_NE(mistake([](auto& r) { r.max_time_s = 367LL * 86'400; }), "");
  CHECK_EQ(mistake([](auto& r) { r.images = std::vector<std::string>(257, "a"); }),
           "rule 'r': a list has more than 256 items");
  const AdmissionRule rule = rule_of([](auto& r) { r.digest = true; });
  CHECK_EQ(mistakes_in({rule, rule}), std::vector<std::string>{"rule 'r' is listed twice; keep one"});
  CHECK_EQ(mistakes_in(std::vector<AdmissionRule>(65, rule)).front(), "there are more than 64 admission rules");
}

}  // namespace berth
