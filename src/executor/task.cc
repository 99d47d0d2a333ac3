#include "executor/task.h"

#include <charconv>

namespace berth::executor {

namespace {

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return true;
}

bool take_dot(std::string_view& text) {
  if (!text.starts_with('.')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string to_string(const TaskKey& key) {
  return std::to_string(key.job) + "." + std::to_string(key.attempt) + "." + std::to_string(key.task) + "." +
         std::to_string(key.incarnation);
}

std::optional<TaskKey> parse_task_key(std::string_view text) {
  TaskKey key;
  const bool whole = take_number(text, key.job) && take_dot(text) && take_number(text, key.attempt) && take_dot(text) &&
                     take_number(text, key.task) && take_dot(text) && take_number(text, key.incarnation) &&
                     text.empty();
  if (!whole) return std::nullopt;
  return key;
}

const char* name_of(ExitReason reason) {
  switch (reason) {
    case ExitReason::kExited:
      return "exited";
    case ExitReason::kSignalled:
      return "signalled";
    case ExitReason::kTimeLimit:
      return "time_limit";
    case ExitReason::kOutOfMemory:
      return "out_of_memory";
    case ExitReason::kKilled:
      return "killed";
    case ExitReason::kStartFailed:
      return "start_failed";
    case ExitReason::kSupervisorLost:
      return "supervisor_lost";
    case ExitReason::kLeaseExpired:
      return "lease_expired";
  }
  return "?";
}

}  // namespace berth::executor
