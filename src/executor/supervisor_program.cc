#include "executor/supervisor_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace berth::executor {

SupervisorProgram find_supervisor_program() {
  const std::string self = "/proc/self/exe";
  const std::string name = "berth-supervise";
  std::error_code error;
  const auto running = std::filesystem::read_symlink(self, error);
  if (error) return {self, {"berth", "supervise"}, {}};
  const std::string beside = running.parent_path() / name;
  Descriptor file(::open(beside.c_str(), O_PATH | O_CLOEXEC));
  if (!file.is_open() || ::access(beside.c_str(), X_OK) != 0) return {self, {"berth", "supervise"}, {}};
  // The child has closed the descriptor when it executes, so the path names the one of this process.
  const std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file.get());
  return {path, {name}, std::move(file)};
}

}  // namespace berth::executor
