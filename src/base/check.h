#pragma once
// BERTH_CHECK: a condition that holds unless berth itself is wrong. It stays on in production: a control plane that
// would go on with a broken invariant does more harm than one that stops, because a restart folds the log again. Never
// for user input, which gets a Result. One condition each, so that the message names what broke.

namespace berth {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace berth

#define BERTH_CHECK(condition)                               \
  do {                                                       \
    if (!(condition)) [[unlikely]] {                         \
      ::berth::check_failed(#condition, __FILE__, __LINE__); \
    }                                                        \
  } while (false)
