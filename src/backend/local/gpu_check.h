#pragma once
// No task starts on a dirty GPU. Before a start and after an end the driver is asked which processes use the GPUs of
// the task and how much of their memory is in use. What an ended task of berth has left is killed. A GPU that is not
// clean after that, or whose driver does not answer in time, is fenced: nothing starts on it until an operator lifts
// the fence.
//
// 1. `begin` returns at once. The driver is asked on threads of their own, one for each look at a GPU, so that a driver
//    that hangs delays nothing but the check, and that by `patience_ms` at most.
// 2. A GPU that is shared has processes of its other tasks. They are no orphans, and their memory is no leak.
// 3. `poll` is called on one thread, when `wake` was called or `next_look_ms` has passed.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/executor.h"

namespace berth::backend {

// One look at one GPU. What the driver does not tell is absent.
struct GpuLook {
  struct Process {
    std::int64_t pid = 0;
    std::optional<std::int64_t> memory_mib;
  };
  std::optional<std::vector<Process>> processes;
  std::optional<std::int64_t> memory_used_mib;  // without what the driver reserves for itself
  std::string fault;                            // why there is no answer; empty: there is one
};

// What an idle GPU may have in use, of persistence mode and the like.
inline constexpr std::int64_t kIdleMemoryMib = 64;

struct GpuVerdict {
  // kill: what `orphans` has, then look again. wait: look again. fence: at once.
  enum class What { kClean, kKill, kWait, kFence };
  What what = What::kClean;
  std::vector<executor::ProcessSeen> orphans;
  std::string why;  // why it is not clean; it names processes by number, and the job that they are of
};

// Returns what one look says. `owners` has the owner of each process of the look, in its order; `shared` says that a
// task has the GPU.
GpuVerdict judge_gpu(const GpuLook& look, std::span<const executor::ProcessOwner> owners, bool shared);

struct GpuFault {
  std::string gpu;  // its UUID
  std::string why;
};

struct GpuCheckOptions {
  // Asks the driver; any thread may call it, and it may hang. It refers to nothing that ends before the process.
  std::function<GpuLook(const std::string& gpu)> look;
  std::function<executor::ProcessOwner(std::int64_t pid, const std::string& gpu)> owner_of;
  std::function<bool(const std::string& gpu)> has_holder;
  std::function<void(const executor::ProcessSeen&)> kill;
  std::function<void()> wake;  // an answer has come; called on any thread until the check is destroyed
  std::int64_t patience_ms = 10'000;
  std::int64_t pause_ms = 50;  // between two looks at a GPU that is not clean
};

class GpuCheck {
 public:
  explicit GpuCheck(GpuCheckOptions options);
  ~GpuCheck();  // a thread that hangs in the driver is left alone
  GpuCheck(const GpuCheck&) = delete;
  GpuCheck& operator=(const GpuCheck&) = delete;

  // Begins to check the GPUs. `ticket` is named in the answer; each is used once.
  void begin(std::uint64_t ticket, std::vector<std::string> gpus, std::int64_t now_ms);

  struct Checked {
    std::uint64_t ticket = 0;
    std::vector<GpuFault> faults;  // empty: all are clean
  };
  // Returns the checks that have ended since the last call.
  std::vector<Checked> poll(std::int64_t now_ms);

  // Returns when poll has something to do without a wake, in ms from now; at most `most_ms`.
  std::int64_t next_look_ms(std::int64_t now_ms, std::int64_t most_ms) const;

 private:
  struct Answers;
  struct Gpu;
  struct Check;
  void ask(std::uint64_t ticket, Gpu& gpu);
  void attend(const Check& check, Gpu& gpu, std::int64_t now_ms);

  GpuCheckOptions options_;
  std::shared_ptr<Answers> answers_;  // shared with the threads, which a stuck driver may keep
  std::vector<Check> checks_;
};

}  // namespace berth::backend
