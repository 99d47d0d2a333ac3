#include "store/postgres_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "store/data_directory.h"
#include "store/disk.h"

namespace berth::store {

Result<std::optional<PostgresMark>> read_postgres_mark(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kPostgresMark;
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) {
    if (failure) return io_error(path.string(), "look for", failure.value());
    return std::optional<PostgresMark>();
  }
  std::ifstream in(path);
  std::string word;
  PostgresMark mark;
  if (!(in >> word >> mark.log_id >> mark.shown) || word != "berth-log")
    return Error{ErrorCode::kIo, path.string() +
                                     " cannot be read, or is damaged: it says which database has the log of "
                                     "this directory. Its one line is berth-log ID ADDRESS"};
  return std::optional(mark);
}

Result<void> write_postgres_mark(const std::filesystem::path& directory, const PostgresMark& mark) {
  const std::filesystem::path path = directory / kPostgresMark;
  const std::filesystem::path fresh = directory / "log.postgres.new";
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return io_error(fresh.string(), "make", errno);
  Disk disk(std::nullopt, 0);
  auto done = disk.write(file, fresh.string(), 0, "berth-log " + mark.log_id + " " + mark.shown + "\n");
  if (done) done = disk.sync(file, fresh.string());
  ::close(file);
  if (done) done = disk.rename(fresh.string(), path.string());
  return done ? sync_directory(directory) : done;
}

Result<void> remove_postgres_mark(const std::filesystem::path& directory) {
  for (const char* name : {kPostgresHead, kPostgresMark}) {
    const std::filesystem::path path = directory / name;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return io_error(path.string(), "remove", errno);
  }
  return sync_directory(directory);
}

}  // namespace berth::store
