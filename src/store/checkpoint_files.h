#pragma once
// Checkpoints as files beside the database: `checkpoint-<seq>`. Each is written under another name, synced and then
// renamed, so a file of that name is complete or damaged, but never half-written. They are files and not rows because
// they are large, because another thread writes them, and because they are worthless once newer ones exist.
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
  static constexpr std::size_t kOlder = 12;  // besides, for reads of the past: a start does not need them

  CheckpointFiles(std::filesystem::path directory, Disk& disk) : directory_(std::move(directory)), disk_(&disk) {}

  // Saves a checkpoint, then removes one if there are more than the newest kKept and kOlder before them: of these the
  // one whose neighbours are nearest to each other, so that the rest covers the log evenly.
  Result<void> save(std::uint64_t seq, const Hash& head_hash, std::string_view bytes);
  // Error kCorrupt: the checksum is wrong.
  Result<Checkpoint> load(std::uint64_t seq) const;
  // Returns the sequence numbers of the checkpoints, newest first.
  std::vector<std::uint64_t> list() const;

 private:
  std::filesystem::path path_of(std::uint64_t seq) const;
  Result<void> sync_names();
  Result<void> write_whole(const std::filesystem::path& path, std::string_view header, std::string_view bytes);

  std::filesystem::path directory_;
  Disk* disk_;
};

// Requires more than the newest kKept. Returns the index of an older one, whose neighbours are nearest to each other.
std::size_t most_dispensable(const std::vector<std::uint64_t>& newest_first);

}  // namespace berth::store
