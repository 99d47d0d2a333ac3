#include "store/log_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "store/checkpoint_files.h"
#include "store/disk.h"
#include "store/head_file.h"
#include "store/sqlite_connection.h"
#include "store/sqlite_schema.h"

namespace berth::store {

namespace {

constexpr std::size_t kCopyChunk = std::size_t{1} << 20U;
constexpr int kInstructionsBetweenLooks = 20'000;  // of SQLite's machine: some milliseconds

class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, int flags) : file_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~OpenFile() {
    if (file_ >= 0) ::close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return file_; }

 private:
  int file_;
};

Error cannot_read(const std::filesystem::path& path) {
  const int error_number = errno;
  Error error = io_error(path.string(), "read", error_number);
  if (error_number == ENOENT) error.code = ErrorCode::kNotFound;
  return error;
}

// Hands the content of the file to `visit`, chunk by chunk.
template <class Visit>
Result<void> read_chunks(const std::filesystem::path& path, Visit&& visit) {
  const OpenFile in(path, O_RDONLY);
  struct stat status {};
  if (in.get() < 0 || ::fstat(in.get(), &status) != 0) return cannot_read(path);
  if (!S_ISREG(status.st_mode)) return invalid(path.string() + " is no regular file");
  std::string chunk(kCopyChunk, '\0');
  while (true) {
    const ssize_t length = ::read(in.get(), chunk.data(), chunk.size());
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return cannot_read(path);
    if (length == 0) return {};
    if (Result<void> seen = visit(std::string_view(chunk.data(), static_cast<std::size_t>(length))); !seen) return seen;
  }
}

Result<void> sync_file(const std::filesystem::path& path) {
  const OpenFile file(path, O_RDONLY);
  if (file.get() < 0 || ::fsync(file.get()) != 0) return io_error(path.string(), "sync", errno);
  return {};
}

Error in_database(const std::filesystem::path& path, const Error& error) {
  return {error.code, path.string() + ": " + error.message};
}

}  // namespace

Result<void> keep_owner(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::geteuid() != 0) return {};
  struct stat status {};
  if (::stat(from.c_str(), &status) != 0) return cannot_read(from);
  if (::lchown(to.c_str(), status.st_uid, status.st_gid) != 0) return io_error(to.string(), "chown", errno);
  return {};
}

Result<void> copy_database(const std::filesystem::path& directory, const std::filesystem::path& target,
                           const CopyProgress& go_on) {
  const std::filesystem::path from = directory / "log.db";
  const std::filesystem::path to = target / "log.db";
  std::error_code failure;
  if (!std::filesystem::exists(from, failure)) {
    if (failure) return io_error(from.string(), "look for", failure.value());
    return not_found(directory.string() + " holds no log");
  }
  auto source = Connection::open(from.string(), SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  if (!source) return source.error();
  if (auto ok = prepare_reader(*source); !ok) return in_database(from, ok.error());
  // The source is open for reading only; this lets VACUUM write the other file.
  if (auto ok = source->execute("PRAGMA query_only = OFF"); !ok) return in_database(from, ok.error());
  const auto stops = [](void* asked) { return (*static_cast<const CopyProgress*>(asked))() ? 0 : 1; };
  CopyProgress asked = go_on;
  if (asked) sqlite3_progress_handler(source->raw(), kInstructionsBetweenLooks, stops, &asked);
  {
    // SQLite makes the file 0644, so it is made before: empty, which VACUUM accepts.
    const OpenFile made(to, O_WRONLY | O_CREAT | O_EXCL);
    if (made.get() < 0) return io_error(to.string(), "make", errno);
  }
  auto vacuum = source->prepare("VACUUM INTO CAST(?1 AS TEXT)");
  if (!vacuum) return in_database(from, vacuum.error());
  const std::string to_text = to.string();
  const auto copied = vacuum->bind_bytes(1, to_text).run();
  if (!copied && asked && !asked()) return Error{ErrorCode::kUnavailable, "the copy was given up before its end"};
  if (!copied) return in_database(from, copied.error());
  if (auto ok = sync_file(to); !ok) return ok;
  return keep_owner(from, to);
}

Result<std::vector<std::string>> copy_checkpoints(const std::filesystem::path& directory,
                                                  const std::filesystem::path& target, std::uint64_t last) {
  Disk disk(std::nullopt, 0);
  const CheckpointFiles from(directory, disk);
  std::vector<std::string> damaged;
  for (const std::uint64_t seq : from.list()) {
    if (seq > last) continue;
    const std::string name = fmt::format("checkpoint-{:020}", seq);
    if (auto copied = copy_plain_file(directory / name, target / name); !copied) {
      if (copied.error().code == ErrorCode::kNotFound) continue;  // the server has removed it meanwhile
      return copied.error();
    }
    const auto loaded = CheckpointFiles(target, disk).load(seq);
    if (loaded) continue;
    damaged.push_back((directory / name).string() + " is damaged, and left out");
    std::error_code ignored;
    std::filesystem::remove(target / name, ignored);
  }
  return damaged;
}

Result<void> copy_plain_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::access(from.c_str(), R_OK) != 0) return cannot_read(from);
  const OpenFile out(to, O_WRONLY | O_CREAT | O_EXCL);
  if (out.get() < 0) return io_error(to.string(), "make", errno);
  const auto copied = read_chunks(from, [&](std::string_view rest) -> Result<void> {
    while (!rest.empty()) {
      const ssize_t written = ::write(out.get(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return io_error(to.string(), "write", written < 0 ? errno : ENOSPC);
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  });
  if (!copied) return copied;
  if (::fsync(out.get()) != 0) return io_error(to.string(), "sync", errno);
  return keep_owner(from, to);
}

namespace {

Result<Extent> extent_ending_with(Connection& database, std::uint64_t seq) {
  auto select = database.prepare(kSelectExtent);
  if (!select) return select.error();
  auto extent = load_extent(*select);
  if (!extent) return extent;
  if (seq <= extent->anchor_seq || seq > extent->head.seq)
    return not_in_log(seq, extent->anchor_seq + 1, extent->head.seq);
  auto record = database.prepare("SELECT hash FROM records WHERE seq = ?1");
  if (!record) return record.error();
  const auto row = record->bind(1, seq).step();
  if (!row) return row.error();
  const auto hash = *row ? to_hash(record->bytes(0)) : std::nullopt;
  if (!hash) return corrupt_record(seq, "missing, or its hash is damaged");
  extent->head.seq = seq;
  extent->head.hash = *hash;
  return extent;
}

Result<void> drop_after(Connection& database, const Extent& end, std::span<const std::uint64_t> finished_later) {
  auto records = database.prepare("DELETE FROM records WHERE seq > ?1");
  if (!records) return records.error();
  if (auto ok = records->bind(1, end.head.seq).run(); !ok) return ok;
  auto row = database.prepare("DELETE FROM history WHERE job_id = ?1");
  if (!row) return row.error();
  for (const std::uint64_t job : finished_later) {
    if (auto ok = row->bind(1, job).run(); !ok) return ok;
  }
  auto extent = database.prepare("UPDATE extent SET head_seq = ?1, head_hash = ?2, checksum = ?3 WHERE id = 1");
  if (!extent) return extent.error();
  const Hash checksum = checksum_of(end);
  return extent->bind(1, end.head.seq).bind_bytes(2, bytes_of(end.head.hash)).bind_bytes(3, bytes_of(checksum)).run();
}

Result<void> cut_database(Connection& database, std::uint64_t seq, std::span<const std::uint64_t> finished_later) {
  const auto end = extent_ending_with(database, seq);
  if (!end) return end.error();
  if (auto ok = database.execute("BEGIN IMMEDIATE"); !ok) return ok;
  if (auto ok = drop_after(database, *end, finished_later); !ok) return ok;  // closing the connection rolls it back
  if (auto ok = database.execute("COMMIT"); !ok) return ok;
  return database.execute("VACUUM");  // what was dropped is gone from the file as well
}

}  // namespace

Result<void> cut_after(const std::filesystem::path& directory, std::uint64_t seq,
                       std::span<const std::uint64_t> finished_later) {
  const std::filesystem::path path = directory / "log.db";
  {
    auto database = Connection::open(path.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    if (!database) return database.error();
    sqlite3_db_config(database->raw(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    if (auto ok = cut_database(*database, seq, finished_later); !ok) return in_database(path, ok.error());
  }
  Disk disk(std::nullopt, 0);
  for (const std::uint64_t checkpoint : CheckpointFiles(directory, disk).list()) {
    if (checkpoint <= seq) continue;
    const std::filesystem::path file = directory / fmt::format("checkpoint-{:020}", checkpoint);
    if (::unlink(file.c_str()) != 0) return io_error(file.string(), "remove", errno);
  }
  return sync_file(path);
}

Result<void> write_head(const std::filesystem::path& directory, const Head& head) {
  Disk disk(std::nullopt, 0);
  auto file = HeadFile::open(directory / "head", disk);
  if (!file) return file.error();
  if (auto ok = file->write({head.seq, head.hash}); !ok) return ok;
  if (auto ok = file->sync(); !ok) return ok;
  return keep_owner(directory / "log.db", directory / "head");
}

Result<Hash> sha256_of_file(const std::filesystem::path& path) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  BERTH_CHECK(digest != nullptr);
  BERTH_CHECK(EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) == 1);
  const auto read = read_chunks(path, [&](std::string_view chunk) -> Result<void> {
    BERTH_CHECK(EVP_DigestUpdate(digest.get(), chunk.data(), chunk.size()) == 1);
    return {};
  });
  if (!read) return read.error();
  Hash hash{};
  BERTH_CHECK(EVP_DigestFinal_ex(digest.get(), hash.data(), nullptr) == 1);
  return hash;
}

}  // namespace berth::store
