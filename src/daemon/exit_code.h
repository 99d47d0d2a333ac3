#pragma once
// The exit codes of the server and of `verify`: those of every command (docs/cli.md), and one of their own from
// <sysexits.h>.

#include "base/result.h"

namespace berth::daemon {

inline constexpr int kExitIoError = 74;  // EX_IOERR: the event log cannot be written, or is damaged

inline int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kTooLarge:
    case ErrorCode::kUnsupported:
      return 2;
    case ErrorCode::kNotFound:
      return 3;
    case ErrorCode::kConflict:
      return 4;
    case ErrorCode::kUnavailable:
      return 5;
    case ErrorCode::kDenied:
      return 6;
    case ErrorCode::kCorrupt:
    case ErrorCode::kIo:
      return 1;
  }
  return 1;
}

}  // namespace berth::daemon
