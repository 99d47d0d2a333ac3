#pragma once
// BERTH_CHECK: a condition that is false only if berth has a bug; then the process stops. It stays on in production. A
// control plane that continues with a broken invariant does more harm than one that stops, because a restart computes
// the state from the log again. Never use it for user input, which gets a Result. One condition each, so that the
// message names what broke.

namespace berth {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace berth

#define BERTH_CHECK(condition)                               \
  do {                                                       \
    if (!(condition)) [[unlikely]] {                         \
      ::berth::check_failed(#condition, __FILE__, __LINE__); \
    }                                                        \
  } while (false)
