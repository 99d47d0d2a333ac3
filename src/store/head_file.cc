#include "store/head_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <utility>

#include "store/hash_chain.h"

namespace berth::store {

namespace {

// "head 00000000000000000017 <64 hex digits> <16 hex digits of the SHA-256 over all before them>\n": always as long, so
// that a write replaces the line whole.
constexpr std::size_t kSeqAt = 5;
constexpr std::size_t kSeqDigits = 20;
constexpr std::size_t kHashAt = kSeqAt + kSeqDigits + 1;
constexpr std::size_t kChecksumDigits = 16;
constexpr std::size_t kChecksumAt = kHashAt + 2 * sizeof(Hash) + 1;
constexpr std::size_t kLength = kChecksumAt + kChecksumDigits + 1;

std::string to_text(const HeadFile::Line& line) {
  const std::string text = fmt::format("head {:020} {} ", line.seq, to_hex(line.hash));
  return text + to_hex(sha256(text)).substr(0, kChecksumDigits) + "\n";
}

}  // namespace

Result<HeadFile> HeadFile::open(const std::filesystem::path& path, Disk& disk) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return io_error(path.string(), "open", errno);
  return HeadFile(file, path.string(), disk);
}

HeadFile::~HeadFile() {
  if (file_ >= 0) ::close(file_);
}

HeadFile::HeadFile(HeadFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)), disk_(other.disk_) {}

HeadFile& HeadFile::operator=(HeadFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  std::swap(disk_, other.disk_);
  return *this;
}

Result<void> HeadFile::write(const Line& line) { return disk_->write(file_, path_, 0, to_text(line)); }

Result<void> HeadFile::sync() { return disk_->sync(file_, path_); }

std::optional<HeadFile::Line> read_head_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kLength, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(text.size()))) return std::nullopt;
  const std::string checked = text.substr(0, kChecksumAt);
  if (text.substr(kChecksumAt, kChecksumDigits) != to_hex(sha256(checked)).substr(0, kChecksumDigits))
    return std::nullopt;
  HeadFile::Line line;
  std::from_chars(text.data() + kSeqAt, text.data() + kSeqAt + kSeqDigits, line.seq);
  for (std::size_t i = 0; i < line.hash.size(); ++i) {
    const char* const digits = text.data() + kHashAt + 2 * i;
    std::from_chars(digits, digits + 2, line.hash[i], 16);
  }
  return line;
}

}  // namespace berth::store
