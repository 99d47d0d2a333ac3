#include "store/shim_vfs.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <new>

#include "base/check.h"

namespace berth::store {

namespace {

// SQLite allocates szOsFile bytes per file: this, followed by the real VFS's own file object.
struct ShimFile {
  sqlite3_file base;  // first member, because SQLite treats a ShimFile as one
  Disk* disk;
  std::string* path;
  sqlite3_file* real;
};

ShimFile& shim(sqlite3_file* file) { return *reinterpret_cast<ShimFile*>(file); }
sqlite3_file* real(sqlite3_file* file) { return shim(file).real; }
const sqlite3_io_methods& below(sqlite3_file* file) { return *shim(file).real->pMethods; }

sqlite3_vfs* system_vfs() {
  static sqlite3_vfs* const vfs = sqlite3_vfs_find("unix");
  BERTH_CHECK(vfs != nullptr);
  return vfs;
}

int noted(sqlite3_file* file, int code, const char* doing) {
  if (code == SQLITE_OK) return code;
  const int error_number = code == SQLITE_FULL ? ENOSPC : system_vfs()->xGetLastError(system_vfs(), 0, nullptr);
  shim(file).disk->note_failure(io_error(*shim(file).path, doing, error_number).message);
  return code;
}

int shim_close(sqlite3_file* file) {
  const int code = below(file).xClose(real(file));
  delete shim(file).path;
  return code;
}

int shim_read(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  shim(file).disk->count_read();
  return below(file).xRead(real(file), out, amount, offset);
}

void remember_replaced(sqlite3_file* file, sqlite3_int64 offset, std::size_t amount) {
  sqlite3_int64 size = 0;
  BERTH_CHECK(below(file).xFileSize(real(file), &size) == SQLITE_OK);
  std::string replaced(amount, '\0');
  const int code = below(file).xRead(real(file), replaced.data(), static_cast<int>(amount), offset);
  BERTH_CHECK(code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ);
  shim(file).disk->remember(*shim(file).path, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(size),
                            std::move(replaced));
}

int shim_write(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset) {
  Disk& disk = *shim(file).disk;
  if (disk.undoes()) remember_replaced(file, offset, static_cast<std::size_t>(amount));
  switch (disk.next_write(*shim(file).path)) {
    case DiskStep::kGo:
      return noted(file, below(file).xWrite(real(file), bytes, amount, offset), "write");
    case DiskStep::kFail:
      return SQLITE_IOERR_WRITE;
    case DiskStep::kFull:
      return SQLITE_FULL;
    case DiskStep::kHalfThenFail:
      below(file).xWrite(real(file), bytes, amount / 2, offset);
      return SQLITE_IOERR_WRITE;
    case DiskStep::kHalfThenDie:
      below(file).xWrite(real(file), bytes, amount / 2, offset);
      disk.die();
  }
  return SQLITE_IOERR_WRITE;
}

int shim_truncate(sqlite3_file* file, sqlite3_int64 size) {
  Disk& disk = *shim(file).disk;
  if (disk.failed()) return SQLITE_IOERR_TRUNCATE;
  sqlite3_int64 before = 0;
  if (disk.undoes() && below(file).xFileSize(real(file), &before) == SQLITE_OK && before > size) {
    remember_replaced(file, size, static_cast<std::size_t>(before - size));
  }
  return noted(file, below(file).xTruncate(real(file), size), "truncate");
}

int shim_sync(sqlite3_file* file, int flags) {
  Disk& disk = *shim(file).disk;
  const DiskStep step = disk.next_sync(*shim(file).path);
  if (step == DiskStep::kHalfThenDie) disk.die();
  if (step != DiskStep::kGo) return SQLITE_IOERR_FSYNC;
  const int code = noted(file, below(file).xSync(real(file), flags), "sync");
  if (code == SQLITE_OK && disk.undoes()) disk.forget(*shim(file).path);
  return code;
}

int shim_file_size(sqlite3_file* file, sqlite3_int64* size) { return below(file).xFileSize(real(file), size); }
int shim_lock(sqlite3_file* file, int level) { return below(file).xLock(real(file), level); }
int shim_unlock(sqlite3_file* file, int level) { return below(file).xUnlock(real(file), level); }
int shim_check_lock(sqlite3_file* file, int* out) { return below(file).xCheckReservedLock(real(file), out); }
int shim_control(sqlite3_file* file, int what, void* argument) {
  return below(file).xFileControl(real(file), what, argument);
}
int shim_sector_size(sqlite3_file* file) { return below(file).xSectorSize(real(file)); }
int shim_device(sqlite3_file* file) { return below(file).xDeviceCharacteristics(real(file)); }
int shim_shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  return below(file).xShmMap(real(file), page, size, extend, out);
}
int shim_shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return below(file).xShmLock(real(file), offset, count, flags);
}
void shim_shm_barrier(sqlite3_file* file) { below(file).xShmBarrier(real(file)); }
int shim_shm_unmap(sqlite3_file* file, int remove) { return below(file).xShmUnmap(real(file), remove); }

// Version 2 has shared memory for the WAL, but no memory-mapped pages, which would bypass the Disk.
constexpr sqlite3_io_methods kMethods = {2,
                                         shim_close,
                                         shim_read,
                                         shim_write,
                                         shim_truncate,
                                         shim_sync,
                                         shim_file_size,
                                         shim_lock,
                                         shim_unlock,
                                         shim_check_lock,
                                         shim_control,
                                         shim_sector_size,
                                         shim_device,
                                         shim_shm_map,
                                         shim_shm_lock,
                                         shim_shm_barrier,
                                         shim_shm_unmap,
                                         nullptr,
                                         nullptr};

int open_file(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  auto* const opened = new (file) ShimFile{};
  opened->disk = static_cast<Disk*>(vfs->pAppData);
  opened->real = reinterpret_cast<sqlite3_file*>(opened + 1);
  const int code = system_vfs()->xOpen(system_vfs(), path, opened->real, flags, flags_out);
  // Without methods SQLite does not call close, so nothing may be left open here.
  if (opened->real->pMethods == nullptr) return code;
  opened->path = new std::string(path == nullptr ? "temporary file" : path);
  opened->base.pMethods = &kMethods;
  return code;
}

int delete_file(sqlite3_vfs* vfs, const char* path, int sync_directory) {
  if (static_cast<Disk*>(vfs->pAppData)->failed()) return SQLITE_IOERR_DELETE;
  return system_vfs()->xDelete(system_vfs(), path, sync_directory);
}
int access_file(sqlite3_vfs*, const char* path, int flags, int* out) {
  return system_vfs()->xAccess(system_vfs(), path, flags, out);
}
int full_path(sqlite3_vfs*, const char* path, int size, char* out) {
  return system_vfs()->xFullPathname(system_vfs(), path, size, out);
}
int randomness(sqlite3_vfs*, int size, char* out) { return system_vfs()->xRandomness(system_vfs(), size, out); }
int sleep_for(sqlite3_vfs*, int us) { return system_vfs()->xSleep(system_vfs(), us); }
int current_time(sqlite3_vfs*, double* out) { return system_vfs()->xCurrentTime(system_vfs(), out); }
int last_error(sqlite3_vfs*, int size, char* out) { return system_vfs()->xGetLastError(system_vfs(), size, out); }
int current_time_ms(sqlite3_vfs*, sqlite3_int64* out) { return system_vfs()->xCurrentTimeInt64(system_vfs(), out); }

std::string unused_name() {
  static std::atomic<unsigned> made = 0;
  return fmt::format("berth-{}", ++made);
}

}  // namespace

ShimVfs::ShimVfs(Disk& disk) : name_(unused_name()), vfs_{} {
  vfs_.iVersion = 2;
  vfs_.szOsFile = static_cast<int>(sizeof(ShimFile)) + system_vfs()->szOsFile;
  vfs_.mxPathname = system_vfs()->mxPathname;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = &disk;
  vfs_.xOpen = open_file;
  vfs_.xDelete = delete_file;
  vfs_.xAccess = access_file;
  vfs_.xFullPathname = full_path;
  vfs_.xRandomness = randomness;
  vfs_.xSleep = sleep_for;
  vfs_.xCurrentTime = current_time;
  vfs_.xGetLastError = last_error;
  vfs_.xCurrentTimeInt64 = current_time_ms;
  BERTH_CHECK(sqlite3_vfs_register(&vfs_, 0) == SQLITE_OK);
}

ShimVfs::~ShimVfs() { sqlite3_vfs_unregister(&vfs_); }

}  // namespace berth::store
