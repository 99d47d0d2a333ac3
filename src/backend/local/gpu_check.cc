#include "backend/local/gpu_check.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/planted.h"

namespace berth::backend {

namespace {

using executor::Belonging;
using executor::ProcessOwner;

std::string with_memory(const GpuLook::Process& process) {
  return process.memory_mib ? " with " + std::to_string(*process.memory_mib) + " MiB" : "";
}

// "process 4711 of job 12 uses it with 512 MiB, although its task is over"
std::string words_of(const GpuLook::Process& process, const ProcessOwner& owner) {
  const std::string number = "process " + std::to_string(process.pid);
  const std::string of_job = owner.task ? " of job " + std::to_string(owner.task->job) : "";
  switch (owner.belongs) {
    case Belonging::kHolder:
      return number + of_job + " uses it";
    case Belonging::kOther:
      return number + of_job + " uses it" + with_memory(process) + ", and the job does not have this GPU";
    case Belonging::kEnded:
      return number + of_job + " uses it" + with_memory(process) + ", although its task is over, and does not end";
    case Belonging::kNoTask:
      return number + " of uid " + std::to_string(owner.uid) + ", which is of no task, uses it" + with_memory(process);
    case Belonging::kLeaving:
      return number + ", which has ended, uses it" + with_memory(process) + " still";
    case Belonging::kUnseen:
      return number + ", which cannot be seen from here, uses it" + with_memory(process);
  }
  return number;
}

// What is done about a process of this owner.
GpuVerdict::What action_for(Belonging belongs) {
  switch (belongs) {
    case Belonging::kHolder:
      return GpuVerdict::What::kClean;
    case Belonging::kOther:
    case Belonging::kNoTask:
      return GpuVerdict::What::kFence;
    case Belonging::kEnded:
      return GpuVerdict::What::kKill;
    case Belonging::kLeaving:
    case Belonging::kUnseen:  // it may have ended since the look
      return GpuVerdict::What::kWait;
  }
  return GpuVerdict::What::kFence;
}

}  // namespace

GpuVerdict judge_gpu(const GpuLook& look, std::span<const ProcessOwner> owners, bool shared) {
  using What = GpuVerdict::What;
  if (!look.fault.empty()) return {What::kFence, {}, "the driver does not answer for it: " + look.fault};
  if (!look.processes) return {What::kFence, {}, "the driver does not tell which processes use it"};
  GpuVerdict verdict;
  const auto rank = [](What what) { return what == What::kFence ? 3 : what == What::kKill ? 2 : what == What::kWait; };
  for (std::size_t i = 0; i < look.processes->size(); ++i) {
    const What what = action_for(owners[i].belongs);
    if (what == What::kKill) verdict.orphans.push_back(owners[i].process);
    if (rank(what) <= rank(verdict.what)) continue;
    verdict.what = what;
    verdict.why = words_of((*look.processes)[i], owners[i]);
  }
  if (verdict.what != What::kClean || shared || !look.processes->empty()) return verdict;
  const std::int64_t used = look.memory_used_mib.value_or(0);
  if (used > kIdleMemoryMib)
    return {What::kWait, {}, std::to_string(used) + " MiB of it are in use, and no process has them"};
  return verdict;
}

struct GpuCheck::Answers {
  std::mutex mutex = {};
  std::function<void()> wake = {};  // empty: the check is gone
  std::map<std::pair<std::uint64_t, std::string>, GpuLook> come = {};
};

struct GpuCheck::Gpu {
  std::string uuid;
  bool asked = false;           // and the answer has not come
  std::int64_t look_at_ms = 0;  // when it is looked at again
  std::string why = {};         // why it was not clean at the last look
  bool done = false;
  bool fenced = false;
};

struct GpuCheck::Check {
  std::uint64_t ticket = 0;
  std::int64_t deadline_ms = 0;
  std::vector<Gpu> gpus;
};

GpuCheck::GpuCheck(GpuCheckOptions options) : options_(std::move(options)), answers_(std::make_shared<Answers>()) {
  answers_->wake = options_.wake;
}

GpuCheck::~GpuCheck() {
  const std::lock_guard guard(answers_->mutex);
  answers_->wake = {};
}

void GpuCheck::begin(std::uint64_t ticket, std::vector<std::string> gpus, std::int64_t now_ms) {
  Check check{ticket, now_ms + options_.patience_ms, {}};
  for (std::string& uuid : gpus) check.gpus.push_back({std::move(uuid)});
  for (Gpu& gpu : check.gpus) {
    gpu.done = planted(Bug::kGpuUnchecked);
    if (!gpu.done) ask(ticket, gpu);
  }
  checks_.push_back(std::move(check));
}

void GpuCheck::ask(std::uint64_t ticket, Gpu& gpu) {
  gpu.asked = true;
  const auto work = [answers = answers_, look = options_.look, ticket, uuid = gpu.uuid] {
    GpuLook seen = look(uuid);
    const std::lock_guard guard(answers->mutex);
    if (!answers->wake) return;
    answers->come.insert_or_assign({ticket, uuid}, std::move(seen));
    answers->wake();
  };
  try {
    std::thread(work).detach();
  } catch (const std::system_error& refused) {
    const std::lock_guard guard(answers_->mutex);
    answers_->come.insert_or_assign({ticket, gpu.uuid}, GpuLook{{}, {}, std::string("no thread: ") + refused.what()});
  }
}

// Takes the answer for one GPU of a check, if it has come, and asks again if the time is there.
void GpuCheck::attend(const Check& check, Gpu& gpu, std::int64_t now_ms) {
  std::optional<GpuLook> look;
  if (gpu.asked) {
    const std::lock_guard guard(answers_->mutex);
    const auto come = answers_->come.find({check.ticket, gpu.uuid});
    if (come != answers_->come.end()) {
      look = std::move(come->second);
      answers_->come.erase(come);
    }
  }
  if (look) {
    gpu.asked = false;
    std::vector<ProcessOwner> owners;
    if (look->processes) {
      for (const GpuLook::Process& process : *look->processes)
        owners.push_back(options_.owner_of(process.pid, gpu.uuid));
    }
    GpuVerdict verdict = judge_gpu(*look, owners, options_.has_holder(gpu.uuid));
    for (const executor::ProcessSeen& orphan : verdict.orphans) options_.kill(orphan);
    gpu.why = std::move(verdict.why);
    gpu.look_at_ms = now_ms + options_.pause_ms;
    gpu.fenced = verdict.what == GpuVerdict::What::kFence;
    gpu.done = gpu.fenced || verdict.what == GpuVerdict::What::kClean;
  }
  if (gpu.done) return;
  if (now_ms >= check.deadline_ms) {
    const std::string within = " within " + std::to_string(options_.patience_ms) + " ms";
    if (gpu.asked && gpu.why.empty()) gpu.why = "the driver did not answer for it" + within;
    gpu.fenced = gpu.done = true;
  } else if (!gpu.asked && now_ms >= gpu.look_at_ms) {
    ask(check.ticket, gpu);
  }
}

std::vector<GpuCheck::Checked> GpuCheck::poll(std::int64_t now_ms) {
  std::vector<Checked> ended;
  for (Check& check : checks_) {
    for (Gpu& gpu : check.gpus) {
      if (!gpu.done) attend(check, gpu, now_ms);
    }
    if (std::any_of(check.gpus.begin(), check.gpus.end(), [](const Gpu& gpu) { return !gpu.done; })) continue;
    Checked one{check.ticket, {}};
    for (const Gpu& gpu : check.gpus) {
      if (gpu.fenced) one.faults.push_back({gpu.uuid, gpu.why});
    }
    ended.push_back(std::move(one));
  }
  std::erase_if(checks_, [&](const Check& check) {
    return std::any_of(ended.begin(), ended.end(), [&](const Checked& one) { return one.ticket == check.ticket; });
  });
  return ended;
}

std::int64_t GpuCheck::next_look_ms(std::int64_t now_ms, std::int64_t most_ms) const {
  std::int64_t next = most_ms;
  for (const Check& check : checks_) {
    next = std::min(next, check.deadline_ms - now_ms);
    for (const Gpu& gpu : check.gpus) {
      if (gpu.done) next = std::min<std::int64_t>(next, 0);
      if (!gpu.done && !gpu.asked) next = std::min(next, gpu.look_at_ms - now_ms);
    }
  }
  return std::max<std::int64_t>(next, 0);
}

}  // namespace berth::backend
