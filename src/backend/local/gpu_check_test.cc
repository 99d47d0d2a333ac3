#include "backend/local/gpu_check.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <mutex>

#include "support/eventually.h"

namespace berth::backend {

namespace {

using executor::Belonging;
using executor::ProcessOwner;
using What = GpuVerdict::What;

ProcessOwner owner(Belonging belongs, std::uint64_t job = 12) {
  ProcessOwner one;
  one.belongs = belongs;
  one.uid = 1000;
  if (belongs != Belonging::kNoTask && belongs != Belonging::kUnseen) one.task = executor::TaskKey{job, 1, 0, 1};
  one.process.pid = 4711;
  return one;
}

GpuVerdict judge(Belonging belongs, bool shared = false) {
  const std::vector<ProcessOwner> owners{owner(belongs)};
  return judge_gpu({{{{4711, 512}}}, 512, ""}, owners, shared);
}

// A check of one GPU whose looks the test answers in their order; the last answer is given again and again.
class Asked {
 public:
  explicit Asked(std::vector<GpuLook> answers) : answers_(std::move(answers)), check(options()) {}

  // Returns what the check says of the GPU, as soon as it ends by the clock of the test.
  std::string outcome() {
    check.begin(1, {"g"}, 0);
    std::string text;
    support::eventually("the check ends", [&] {
      const auto ended = check.poll(now_ms);
      now_ms = std::min<std::int64_t>(now_ms + 10, 999);
      if (ended.empty()) return false;
      text = ended[0].faults.empty() ? "clean" : ended[0].faults[0].why;
      return true;
    });
    return text;
  }

 private:
  GpuCheckOptions options() {
    GpuCheckOptions one;
    one.look = [this](const std::string&) {
      const std::size_t at = std::min<std::size_t>(looks++, answers_.size() - 1);
      return answers_[at];
    };
    one.owner_of = [this](std::int64_t, const std::string&) { return owner(belongs); };
    one.has_holder = [](const std::string&) { return false; };
    one.kill = [this](const executor::ProcessSeen&) { ++kills; };
    one.wake = [] {};
    one.patience_ms = 900;
    return one;
  }
  std::vector<GpuLook> answers_;

 public:
  Belonging belongs = Belonging::kEnded;
  std::int64_t now_ms = 0;
  std::atomic<std::size_t> looks{0};
  int kills = 0;
  GpuCheck check;
};

const GpuLook kNothing{std::vector<GpuLook::Process>{}, 3, ""};
const GpuLook kOneProcess{{{{4711, 512}}}, 512, ""};

}  // namespace

TEST_CASE("what a look at a GPU says depends on the owner of each process") {
  CHECK(judge_gpu(kNothing, {}, false).what == What::kClean);
  CHECK(judge(Belonging::kHolder, true).what == What::kClean);
  const GpuVerdict ended = judge(Belonging::kEnded);
  CHECK(ended.what == What::kKill);
  REQUIRE(ended.orphans.size() == 1);
  CHECK(ended.orphans[0].pid == 4711);
  CHECK(ended.why == "process 4711 of job 12 uses it with 512 MiB, although its task is over, and does not end");
  CHECK(judge(Belonging::kLeaving).what == What::kWait);
  CHECK(judge(Belonging::kUnseen).what == What::kWait);
  const GpuVerdict other = judge(Belonging::kOther);
  CHECK(other.what == What::kFence);
  CHECK(other.why == "process 4711 of job 12 uses it with 512 MiB, and the job does not have this GPU");
  const GpuVerdict stranger = judge(Belonging::kNoTask);
  CHECK(stranger.what == What::kFence);
  CHECK(stranger.why == "process 4711 of uid 1000, which is of no task, uses it with 512 MiB");
}

TEST_CASE("an orphan beside a stranger is killed, and the GPU is fenced for the stranger") {
  const std::vector<ProcessOwner> owners{owner(Belonging::kEnded), owner(Belonging::kNoTask)};
  const GpuVerdict verdict = judge_gpu({{{{4711, {}}, {4712, {}}}}, {}, ""}, owners, true);
  CHECK(verdict.what == What::kFence);
  CHECK(verdict.orphans.size() == 1);
  CHECK(verdict.why == "process 4712 of uid 1000, which is of no task, uses it");
}

TEST_CASE("memory that no process has is a leak, but on a GPU that a task has") {
  const GpuLook leak{std::vector<GpuLook::Process>{}, 2048, ""};
  CHECK(judge_gpu(leak, {}, false).what == What::kWait);
  CHECK(judge_gpu(leak, {}, false).why == "2048 MiB of it are in use, and no process has them");
  CHECK(judge_gpu(leak, {}, true).what == What::kClean);
  const GpuLook untold{std::vector<GpuLook::Process>{}, {}, ""};
  CHECK(judge_gpu(untold, {}, false).what == What::kClean);
}

TEST_CASE("a driver that does not tell is no clean GPU") {
  CHECK(judge_gpu({{}, 3, ""}, {}, false).why == "the driver does not tell which processes use it");
  CHECK(judge_gpu({{}, {}, "GPU is lost"}, {}, false).why == "the driver does not answer for it: GPU is lost");
}

TEST_CASE("an orphan is killed, and the GPU is clean once it has ended") {
  Asked gpu({kOneProcess, kNothing});
  CHECK(gpu.outcome() == "clean");
  CHECK(gpu.kills == 1);
  CHECK(gpu.looks == 2);
}

TEST_CASE("an orphan that does not end fences the GPU and names its job") {
  Asked gpu({kOneProcess});
  CHECK(gpu.outcome() == "process 4711 of job 12 uses it with 512 MiB, although its task is over, and does not end");
  CHECK(gpu.kills > 1);
}

TEST_CASE("a process that ends between the look and the question of its owner fences nothing") {
  Asked gpu({kOneProcess, kNothing});
  gpu.belongs = Belonging::kUnseen;
  CHECK(gpu.outcome() == "clean");
}

TEST_CASE("a process that cannot be seen from here fences the GPU in the end") {
  Asked gpu({kOneProcess});
  gpu.belongs = Belonging::kUnseen;
  CHECK(gpu.outcome() == "process 4711, which cannot be seen from here, uses it with 512 MiB");
}

TEST_CASE("a driver that hangs fences its GPU after the patience, and delays no other check") {
  std::promise<void> end;
  const auto ended = std::make_shared<std::shared_future<void>>(end.get_future().share());
  GpuCheckOptions options;
  options.look = [ended](const std::string& gpu) {
    if (gpu == "stuck") ended->wait();
    return GpuLook{std::vector<GpuLook::Process>{}, 0, ""};
  };
  options.has_holder = [](const std::string&) { return false; };
  options.wake = [] {};
  options.patience_ms = 500;
  GpuCheck check(std::move(options));
  check.begin(1, {"stuck", "well"}, 0);
  check.begin(2, {"well"}, 0);
  std::vector<GpuCheck::Checked> first;
  support::eventually("the other check ends", [&] { return !(first = check.poll(100)).empty(); });
  REQUIRE(first.size() == 1);
  CHECK(first[0].ticket == 2);
  CHECK(first[0].faults.empty());
  support::eventually("the healthy GPU of the first has answered", [&] {
    check.poll(499);
    return check.next_look_ms(499, 1000) == 0;
  });
  const auto second = check.poll(500);
  REQUIRE(second.size() == 1);
  REQUIRE(second[0].faults.size() == 1);
  CHECK(second[0].faults[0].gpu == "stuck");
  CHECK(second[0].faults[0].why == "the driver did not answer for it within 500 ms");
  end.set_value();
}

}  // namespace berth::backend
