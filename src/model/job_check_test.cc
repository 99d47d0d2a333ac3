#include "model/job_check.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace berth {
namespace {

JobSpec sound() {
  JobSpec spec;
  spec.queue = "a";
  spec.groups.resize(1);
  spec.groups.front().name = "main";
  spec.groups.front().command = {"true"};
  spec.groups.front().request.gpus = 1;
  return spec;
}

std::vector<std::string> mistakes_of(const JobSpec& spec) {
  std::vector<std::string> messages;
  for (const Error& one : check_job_alone(spec)) messages.push_back(one.message);
  return messages;
}

using Messages = std::vector<std::string>;

}  // namespace

TEST_CASE("a sound job has no mistakes, whatever its queue, models and pool are") {
  JobSpec spec = sound();
  spec.queue = "nowhere";
  spec.groups.front().pool = "nowhere";
  spec.groups.front().request.gpu_models = {"nothing"};
  CHECK(mistakes_of(spec).empty());
}

TEST_CASE("each part of a job tells its mistake, with its key first") {
  JobSpec spec = sound();
  spec.kind = JobKind::kArray;
  spec.groups.front().workdir = "here";
  spec.retries = -1;
  spec.ports = {22'000};
  spec.labels = {{"", "x"}};
  CHECK(mistakes_of(spec) ==
        Messages{"workdir must be an absolute path", "retries must be between 0 and " + std::to_string(kMaxRetries),
                 "array.size must be between 1 and 1000000",
                 "labels: '' is no label; keys have 1 to 63 characters without '=' and ',', values at most 253",
                 "ports: 22000 is reserved for MASTER_PORT of gangs (20000 to 29999); give another one"});
}

TEST_CASE("an interactive job has one task with one process, and ends with it") {
  JobSpec spec = sound();
  spec.kind = JobKind::kInteractive;
  CHECK(mistakes_of(spec).empty());
  const auto mistake_of = [&](auto change) {
    JobSpec wrong = spec;
    change(wrong);
    const auto mistakes = mistakes_of(wrong);
    return mistakes.empty() ? "" : mistakes.front();
  };
  CHECK_NE(mistake_of([](JobSpec& one) { one.groups.front().count = 2; }).find("exactly one task"), std::string::npos);
  CHECK_NE(mistake_of([](JobSpec& one) { one.groups.front().launch = Launch::kPerGpu; }).find("one process"),
           std::string::npos);
  CHECK_NE(mistake_of([](JobSpec& one) { one.retries = 1; }).find("retries:"), std::string::npos);
  CHECK_NE(mistake_of([](JobSpec& one) { one.checkpoint.on_signal = true; }).find("checkpoint:"), std::string::npos);
}

TEST_CASE("places, directories and amounts of mounts are judged without the queue that has the volumes") {
  JobSpec spec = sound();
  spec.mounts = {{"d", "/proc/x", false}, {"s", "/a", false}, {"s", "/a/b", false}};
  spec.checkpoint.place = {"s", "../x"};
  spec.outputs = {"", "x"};
  spec.shm_mib = 65;
  spec.groups.front().request.memory_mib = 64;
  const auto messages = mistakes_of(spec);
  REQUIRE(messages.size() == 5);
  CHECK(messages[0].starts_with("mounts[0]: '/proc/x' lies in /proc"));
  CHECK(messages[1].starts_with("mounts[2]: '/a/b' and '/a' lie in one another"));
  CHECK(messages[2].starts_with("checkpoint.path: '../x' is not a path within the volume"));
  CHECK(messages[3].starts_with("outputs.path is a directory in outputs.volume"));
  CHECK(messages[4].starts_with("shm (65 MiB) is more than the memory of a task (64 MiB)"));
  spec = sound();
  spec.mounts.assign(kMaxMounts + 1, {"s", "/a", false});
  CHECK(mistakes_of(spec) == Messages{"mounts and secrets list at most 32 each"});
}

TEST_CASE("a mistake in one of several groups names the group, and a job without groups is refused") {
  JobSpec spec = sound();
  spec.groups.push_back(spec.groups.front());
  spec.groups.back().name = "other";
  spec.groups.back().min_count = 2;
  CHECK(mistakes_of(spec) == Messages{"groups[1].min_tasks must be between 1 and tasks (1)"});
  spec.groups.clear();
  CHECK(mistakes_of(spec) == Messages{"groups is empty; a job has at least one task group"});
}

}  // namespace berth
