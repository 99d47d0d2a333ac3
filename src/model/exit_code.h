#pragma once
// Exit codes that a machine gives to tasks that no program of theirs has ended, beside the ExitReason. They are those
// of <sysexits.h>, and are told apart from a program's own by the reason.

#include <cstdint>

namespace berth {

// With supervisor-lost: the supervisor died while its machine went on. A task can bring that about itself.
inline constexpr std::int32_t kSupervisorDiedCode = 70;

// With start-failed: the machine had no process ids, memory or descriptors left to start it. The job is not to blame.
inline constexpr std::int32_t kNodeShortCode = 75;

// With start-failed: neither the job nor the node is to blame, such as for an API server that does not answer.
inline constexpr std::int32_t kNotStartedCode = 69;

}  // namespace berth
