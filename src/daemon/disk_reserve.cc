#include "daemon/disk_reserve.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "store/event_codec.h"

namespace berth::daemon {

namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

// A new command has to say here what it is.
struct MayUseReserve {
  // What ends something.
  bool operator()(const CancelJob&) const { return true; }
  bool operator()(const RevokeToken&) const { return true; }
  bool operator()(const BlockSubject& one) const { return one.blocked; }
  bool operator()(const BindRole& one) const { return !one.bound; }
  // Of operators and administrators alone.
  bool operator()(const ApplyConfig&) const { return true; }
  bool operator()(const CordonNode&) const { return true; }
  bool operator()(const FenceNode&) const { return true; }
  bool operator()(const LiftGpuFence&) const { return true; }
  bool operator()(const ConfirmClock&) const { return true; }
  bool operator()(const PlanMaintenance&) const { return true; }
  bool operator()(const CancelMaintenance&) const { return true; }
  bool operator()(const CreateToken&) const { return true; }
  // Reports of jobs, nodes and the server itself.
  bool operator()(const ReportCheckpoint&) const { return true; }
  bool operator()(const RegisterNode&) const { return true; }
  bool operator()(const ReportNodeStatus&) const { return true; }
  bool operator()(const ReportGpuHealth&) const { return true; }
  bool operator()(const ReportNodeImages&) const { return true; }
  bool operator()(const ReportForeignUse&) const { return true; }
  bool operator()(const ReportTaskStarted&) const { return true; }
  bool operator()(const ReportTaskExited&) const { return true; }
  bool operator()(const MarkBudget&) const { return true; }
  bool operator()(const NoteDenials&) const { return true; }
  bool operator()(const NoteSignIns&) const { return true; }
  bool operator()(const NoteRestore&) const { return true; }
  bool operator()(const NoteShell& noted) const { return std::holds_alternative<ShellEnded>(noted.shell); }
  // What users ask for.
  bool operator()(const SubmitJob&) const { return false; }
  bool operator()(const HoldJob&) const { return false; }
  bool operator()(const PrioritizeJob&) const { return false; }
  bool operator()(const MoveJob&) const { return false; }
  bool operator()(const SignalJob&) const { return false; }
  bool operator()(const SetQueue&) const { return false; }
  bool operator()(const UndoQueueChange&) const { return false; }
  bool operator()(const SetRules&) const { return false; }
  bool operator()(const NoteLogRead&) const { return false; }
  bool operator()(const ApplyPrices&) const { return false; }
  bool operator()(const CloseMonth&) const { return false; }
  bool operator()(const CorrectBill&) const { return false; }
  bool operator()(const ReportQuantities&) const { return false; }
};

}  // namespace

bool may_use_reserve(const Command& command) { return std::visit(MayUseReserve(), command); }

std::uint64_t disk_reserve(std::uint64_t total) {
  return std::min(std::clamp(total / 100, 64 * kMib, 1024 * kMib), total / 4);
}

Result<void> check_disk_reserve(const std::string& directory) {
  struct statvfs disk {};
  if (::statvfs(directory.c_str(), &disk) != 0) return {};
  const std::uint64_t block = disk.f_frsize;
  const std::uint64_t left = disk.f_bavail * block;
  const std::uint64_t reserve = disk_reserve(disk.f_blocks * block);
  if (left >= reserve) return {};
  return Error{ErrorCode::kUnavailable,
               "no job or change is taken: the disk of " + directory + " has " + std::to_string(left / kMib) +
                   " MiB left, and the last " + std::to_string(reserve / kMib) +
                   " MiB are kept for the jobs that run and for stops; free some space and try again"};
}

std::uint64_t log_cost(const Command& command) {
  if (may_use_reserve(command)) return 0;
  const auto* submitted = std::get_if<SubmitJob>(&command);
  if (submitted == nullptr) return kBytesOfAChange;
  EventRecord record;
  JobSubmitted event;
  event.spec = submitted->spec;
  record.event = std::move(event);
  const std::uint64_t document = store::to_record(record, 0).payload.size();
  const JobSpec& spec = submitted->spec;
  const bool has_replicas = spec.kind == JobKind::kService && spec.groups.size() == 1;
  const auto elements = std::clamp(spec.array_size, 0, kMaxArraySize);
  const auto replicas = has_replicas ? std::clamp<std::int64_t>(spec.groups.front().count, 0, kMaxTasksPerJob) : 0;
  return (document + kBytesOfAJob) * (static_cast<std::uint64_t>(elements) + static_cast<std::uint64_t>(replicas) + 1);
}

}  // namespace berth::daemon
