#pragma once
// The file `head` beside the database: sequence number and hash of the last acknowledged record, in one line. SQLite
// takes a damaged end of its write-ahead log for the rest of a crash and drops it silently. This line, written after
// each commit, shows at open that acknowledged records are gone.
//
// The file is not synced with each commit. After a power cut it may name an earlier record, or be torn and name none;
// it never names more than was acknowledged.

#include <filesystem>
#include <optional>

#include "store/disk.h"

namespace berth::store {

class HeadFile {
 public:
  struct Line {
    std::uint64_t seq = 0;
    Hash hash{};
  };

  // Creates the file if it is missing.
  static Result<HeadFile> open(const std::filesystem::path& path, Disk& disk);
  HeadFile() = default;
  ~HeadFile();
  HeadFile(HeadFile&& other) noexcept;
  HeadFile& operator=(HeadFile&& other) noexcept;

  Result<void> write(const Line& line);
  Result<void> sync();

 private:
  HeadFile(int file, std::string path, Disk& disk) : file_(file), path_(std::move(path)), disk_(&disk) {}
  int file_ = -1;
  std::string path_;
  Disk* disk_ = nullptr;
};

// Returns nullopt if there is no such file, or if it is torn.
std::optional<HeadFile::Line> read_head_file(const std::filesystem::path& path);

}  // namespace berth::store
