#include "executor/workers.h"

#include <algorithm>
#include <set>

namespace berth::executor {

namespace {

constexpr const char* kRankVariable = "LOCAL_RANK";  // as every launcher of PyTorch sets it

}  // namespace

std::vector<ProcessSeen> find_workers(pid_t launcher) {
  auto below = descendants_of(launcher, see_all_processes());
  std::erase_if(below,
                [](const ProcessSeen& process) { return !has_environment_variable(process.pid, kRankVariable); });
  std::set<pid_t> marked;
  for (const auto& process : below) marked.insert(process.pid);
  std::erase_if(below, [&](const ProcessSeen& process) { return marked.contains(process.parent); });
  return below;
}

bool is_alive(const ProcessSeen& process) {
  const auto now = see_process(process.pid);
  return now && now->start_ticks == process.start_ticks && now->state != 'Z' && now->state != 'X';
}

}  // namespace berth::executor
