#pragma once
// How a server ends by itself, in the words of sysexits.h.

namespace berth::daemon {

inline constexpr int kExitIoError = 74;  // EX_IOERR: the event log cannot be written, or is damaged

}  // namespace berth::daemon
