#pragma once
// Checkpoints as files beside the database: `checkpoint-<seq>`, written under another name, synced, and then renamed,
// so that a file of that name is whole or damaged but never half-written. They are files and not rows because they are
// large, are written by another thread than the log, and are worth nothing once a newer one exists.
//
//   magic "berthcp1" | seq: 8 bytes | head hash: 32 | size: 8 | SHA-256 over all else: 32 | the state's bytes
//
// Integers are little-endian.

#include <filesystem>
#include <vector>

#include "store/disk.h"

namespace berth::store {

class CheckpointFiles {
 public:
  static constexpr std::size_t kKept = 2;

  CheckpointFiles(std::filesystem::path directory, Disk& disk) : directory_(std::move(directory)), disk_(&disk) {}

  // Then removes all but the newest kKept.
  Result<void> save(std::uint64_t seq, const Hash& head_hash, std::string_view bytes);
  // kCorrupt where the checksum does not hold.
  Result<Checkpoint> load(std::uint64_t seq) const;
  // Newest first.
  std::vector<std::uint64_t> list() const;

 private:
  std::filesystem::path path_of(std::uint64_t seq) const;
  Result<void> sync_names();
  Result<void> write_whole(const std::filesystem::path& path, std::string_view header, std::string_view bytes);

  std::filesystem::path directory_;
  Disk* disk_;
};

}  // namespace berth::store
