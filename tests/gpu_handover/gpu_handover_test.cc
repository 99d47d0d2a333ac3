// GPUs pass from task to task 10,000 times, on the fake driver of tests/fake_nvml, and at 500 of the hand-overs
// something is left on the GPU. The test keeps its own account of what is there, and counts the starts on a GPU that is
// not clean.

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "backend/local/gpu_check.h"
#include "base/planted.h"
#include "base/random.h"
#include "daemon/gpu_look.h"

namespace berth::daemon {

namespace {

using executor::Belonging;

constexpr unsigned kHandoverGpus = 8;
constexpr const char* kHandoverUuid = "GPU-fa4e0000-0000-4000-8000-00000000000";

// What may be left: a process of a task that is over, of none, of another GPU's, one that cannot be seen; memory that
// no process has; a driver that says the GPU is lost, and one that hangs.
enum class Left { kEnded, kStranger, kOther, kUnseen, kMemory, kLost, kHangs };
constexpr std::array kLeftKinds{Left::kEnded, Left::kEnded,  Left::kEnded,  Left::kStranger,
                                Left::kOther, Left::kUnseen, Left::kMemory, Left::kLost};

struct HandoverCounts {
  int handovers = 0;
  int planted = 0;
  int killed = 0;  // orphans of ended tasks, which the check ends
  int fenced = 0;
  int dirty_starts = 0;
};

class HandoverMachine {
 public:
  HandoverMachine() {
    std::string name = "/tmp/berth-handover-test-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    ::setenv("BERTH_NVML_PATH", FAKE_NVML, 1);
    ::setenv("BERTH_FAKE_NVML", (directory_ + "/settings").c_str(), 1);
    say("");
    backend::GpuCheckOptions options;
    options.look = gpu_look();
    options.owner_of = [this](std::int64_t pid, const std::string&) { return owner_of(static_cast<pid_t>(pid)); };
    options.has_holder = [](const std::string&) { return false; };
    options.kill = [](const executor::ProcessSeen& orphan) { ::kill(orphan.pid, SIGKILL); };
    options.wake = [this] {
      const std::lock_guard guard(mutex_);
      ++wakes_;
      woken_.notify_one();
    };
    check_.emplace(std::move(options));
  }
  ~HandoverMachine() {
    check_.reset();
    ::unsetenv("BERTH_NVML_PATH");
    ::unsetenv("BERTH_FAKE_NVML");
    std::filesystem::remove_all(directory_);
  }
  HandoverMachine(const HandoverMachine&) = delete;
  HandoverMachine& operator=(const HandoverMachine&) = delete;

  // One hand-over of a GPU, on which `left` has been left if it is given.
  void hand_over(unsigned gpu, std::optional<Left> left) {
    ++counts.handovers;
    if (left) plant(gpu, *left);
    const bool clean = is_found_clean(gpu, left == Left::kHangs);
    const bool is_dirty = left && is_there(*left);
    if (clean && is_dirty) ++counts.dirty_starts;
    counts.fenced += clean ? 0 : 1;
    counts.killed += left == Left::kEnded && !is_dirty ? 1 : 0;
    if (left) clear();  // an operator mends it, and lifts the fence
  }

  HandoverCounts counts;

 private:
  void say(const std::string& settings) {
    std::ofstream(directory_ + "/new") << "count=" << kHandoverGpus << "\n" << settings;
    std::filesystem::rename(directory_ + "/new", directory_ + "/settings");
  }

  void plant(unsigned gpu, Left left) {
    ++counts.planted;
    const std::string number = std::to_string(gpu);
    kind_ = left;
    switch (left) {
      case Left::kEnded:
      case Left::kStranger:
      case Left::kOther:
      case Left::kUnseen:
        child_ = ::fork();
        if (child_ == 0) {
          ::pause();
          ::_exit(0);
        }
        return say("gpu" + number + "=" + std::to_string(child_) + ":512\n");
      case Left::kMemory:
        return say("left" + number + "=2048\n");
      case Left::kLost:
        return say("lost=" + number + "\n");
      case Left::kHangs:
        return say("hangs=" + number + "\n");
    }
  }

  void reap() {
    if (child_ > 0 && ::waitpid(child_, nullptr, WNOHANG) == child_) child_ = 0;
  }

  // The account of the test: is what was planted still there?
  bool is_there(Left left) {
    reap();
    return left > Left::kUnseen || child_ > 0;
  }

  void clear() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
      child_ = 0;
    }
    say("");
  }

  executor::ProcessOwner owner_of(pid_t pid) const {
    constexpr std::array kBelongs{Belonging::kEnded, Belonging::kNoTask, Belonging::kOther, Belonging::kUnseen};
    executor::ProcessOwner owner;
    owner.belongs = kBelongs[static_cast<std::size_t>(kind_)];
    owner.process.pid = pid;
    if (kind_ == Left::kEnded || kind_ == Left::kOther) owner.task = executor::TaskKey{7, 1, 0, 1};
    return owner;
  }

  // The clock of the check is the test's: it goes on to the next thing to do once the driver has answered, and past the
  // patience where the driver hangs.
  bool is_found_clean(unsigned gpu, bool hangs) {
    check_->begin(++tickets_, {kHandoverUuid + std::to_string(gpu)}, now_ms_);
    while (true) {
      const auto ended = check_->poll(now_ms_);
      if (!ended.empty()) return ended[0].faults.empty();
      if (hangs) {
        now_ms_ += 10'000;
        continue;
      }
      const std::int64_t next = check_->next_look_ms(now_ms_, 10'000);
      if (next <= 50) {  // it looks again, or its patience is over
        reap();
        now_ms_ += next;
        continue;
      }
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [this] { return wakes_ > 0; });
      wakes_ = 0;
    }
  }

  std::string directory_;
  std::optional<backend::GpuCheck> check_;
  std::mutex mutex_;
  std::condition_variable woken_;
  int wakes_ = 0;
  std::uint64_t tickets_ = 0;
  std::int64_t now_ms_ = 0;
  pid_t child_ = 0;
  Left kind_ = Left::kEnded;
};

// Every twentieth hand-over leaves something, eight of them a driver that hangs.
HandoverCounts hand_over(int handovers) {
  HandoverMachine machine;
  Random random(47);
  for (int i = 0; i < handovers; ++i) {
    const auto gpu = static_cast<unsigned>(random.below(kHandoverGpus));
    std::optional<Left> left;
    if (i % 20 == 19) left = kLeftKinds[random.below(kLeftKinds.size())];
    if (i % 1'240 == 1'239) left = Left::kHangs;
    machine.hand_over(gpu, left);
  }
  return machine.counts;
}

}  // namespace

TEST_CASE("10,000 hand-overs with 500 leftovers: no start on a dirty GPU") {
  const HandoverCounts counts = hand_over(10'000);
  MESSAGE("hand-overs " << counts.handovers << ", planted " << counts.planted << ", orphans killed " << counts.killed
                        << ", fenced " << counts.fenced << ", dirty_starts_on_fake " << counts.dirty_starts);
  CHECK(counts.planted == 500);
  CHECK(counts.killed > 100);
  CHECK(counts.fenced + counts.killed == counts.planted);
  CHECK(counts.dirty_starts == 0);
}

#ifndef BERTH_NO_PLANTABLE_BUGS
TEST_CASE("the planted bug that skips the check is found") {
  planted_bug = Bug::kGpuUnchecked;
  const HandoverCounts counts = hand_over(400);
  planted_bug = Bug::kNone;
  CHECK(counts.planted == 20);
  CHECK(counts.dirty_starts == 20);
}
#endif

}  // namespace berth::daemon
