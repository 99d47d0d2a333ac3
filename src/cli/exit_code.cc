#include "cli/exit_code.h"

namespace berth::cli {

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kTooLarge:
    case ErrorCode::kUnsupported:
      return kUsage;
    case ErrorCode::kNotFound:
      return kNotFound;
    case ErrorCode::kConflict:
      return kConflict;
    case ErrorCode::kUnavailable:
      return kUnreachable;
    case ErrorCode::kDenied:
      return kDenied;
    case ErrorCode::kCorrupt:
    case ErrorCode::kIo:
      return kFailed;
  }
  return kFailed;
}

}  // namespace berth::cli
