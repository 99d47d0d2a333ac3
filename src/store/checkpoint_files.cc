#include "store/checkpoint_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include "store/data_directory.h"
#include "store/hash_chain.h"

namespace berth::store {

namespace {

constexpr std::string_view kMagic = "berthcp1";
constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kUnfinished = "unfinished-checkpoint";
constexpr std::size_t kHeadHashAt = 16;
constexpr std::size_t kSizeAt = kHeadHashAt + sizeof(Hash);
constexpr std::size_t kHeaderChecksumAt = kSizeAt + 8;
constexpr std::size_t kHeaderSize = kHeaderChecksumAt + sizeof(Hash);

std::string to_bytes(std::uint64_t value) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8)
    bytes += static_cast<char>(static_cast<std::uint8_t>(value >> shift));
  return bytes;
}

std::uint64_t integer_at(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = (value << 8U) | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

std::string to_bytes(const Hash& hash) { return {hash.begin(), hash.end()}; }

// Header fields and state are hashed one after the other: joining them would copy the state.
Hash checksum_of(std::string_view fields, std::string_view bytes) {
  return sha256(std::string(fields) + to_bytes(sha256(bytes)));
}

std::string header_of(std::uint64_t seq, const Hash& head_hash, std::string_view bytes) {
  const std::string fields = std::string(kMagic) + to_bytes(seq) + to_bytes(head_hash) + to_bytes(bytes.size());
  return fields + to_bytes(checksum_of(fields, bytes));
}

}  // namespace

std::size_t most_dispensable(const std::vector<std::uint64_t>& newest_first) {
  std::size_t found = CheckpointFiles::kKept;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = CheckpointFiles::kKept; i < newest_first.size(); ++i) {
    const std::uint64_t before = i + 1 < newest_first.size() ? newest_first[i + 1] : 0;
    if (newest_first[i - 1] - before < least) {
      least = newest_first[i - 1] - before;
      found = i;
    }
  }
  return found;
}

std::filesystem::path CheckpointFiles::path_of(std::uint64_t seq) const {
  return directory_ / fmt::format("{}{:020}", kPrefix, seq);
}

Result<void> CheckpointFiles::write_whole(const std::filesystem::path& path, std::string_view header,
                                          std::string_view bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return io_error(path.string(), "make", errno);
  auto done = disk_->write(file, path.string(), 0, header);
  if (done) done = disk_->write(file, path.string(), header.size(), bytes);
  if (done) done = disk_->sync(file, path.string());
  ::close(file);
  return done;
}

Result<void> CheckpointFiles::sync_names() {
  const int directory = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return io_error(directory_.string(), "open", errno);
  auto done = disk_->sync(directory, directory_.string());
  ::close(directory);
  return done;
}

Result<void> CheckpointFiles::save(std::uint64_t seq, const Hash& head_hash, std::string_view bytes) {
  const std::filesystem::path unfinished = directory_ / kUnfinished;
  if (auto ok = write_whole(unfinished, header_of(seq, head_hash, bytes), bytes); !ok) return ok;
  if (auto ok = disk_->rename(unfinished.string(), path_of(seq).string()); !ok) return ok;
  if (auto ok = sync_names(); !ok) return ok;
  std::vector<std::uint64_t> kept = list();
  std::error_code ignored;  // a remaining old file only takes space
  while (kept.size() > kKept + kOlder) {
    const std::size_t gone = most_dispensable(kept);
    std::filesystem::remove(path_of(kept[gone]), ignored);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(gone));
  }
  return {};
}

Result<Checkpoint> CheckpointFiles::load(std::uint64_t seq) const {
  const auto damaged = [&](std::string_view what) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: {}", path_of(seq).string(), what)};
  };
  std::ifstream in(path_of(seq), std::ios::binary | std::ios::ate);
  if (!in) return damaged("cannot be opened");
  const auto length = static_cast<std::size_t>(in.tellg());
  if (length < kHeaderSize) return damaged("is shorter than its header");
  std::string header(kHeaderSize, '\0');
  Checkpoint checkpoint;
  checkpoint.bytes.resize(length - kHeaderSize);
  in.seekg(0);
  in.read(header.data(), static_cast<std::streamsize>(header.size()));
  in.read(checkpoint.bytes.data(), static_cast<std::streamsize>(checkpoint.bytes.size()));
  if (!in) return damaged("cannot be read");
  if (integer_at(header, kSizeAt) != checkpoint.bytes.size()) return damaged("has another size than it says");
  checkpoint.seq = integer_at(header, kMagic.size());
  std::copy_n(header.begin() + kHeadHashAt, checkpoint.head_hash.size(), checkpoint.head_hash.begin());
  if (header != header_of(seq, checkpoint.head_hash, checkpoint.bytes)) return damaged("its checksum does not hold");
  return checkpoint;
}

std::vector<std::uint64_t> CheckpointFiles::list() const {
  std::vector<std::uint64_t> seqs;
  const auto names = names_in(directory_);
  if (!names) return seqs;
  for (const std::string& name : *names) {
    if (!name.starts_with(kPrefix)) continue;
    std::uint64_t seq = 0;
    const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), seq);
    if (error == std::errc() && end == name.data() + name.size()) seqs.push_back(seq);
  }
  std::sort(seqs.rbegin(), seqs.rend());
  return seqs;
}

}  // namespace berth::store
