// How fast the durable log takes records of 400 bytes, in batches of 1, 8 and 64, and how fast it gives them back.
// Prints one JSON object. What a batch costs is its sync, so that the figures are the disk's as much as ours: the same
// disk's bare write-and-sync rate is measured beside them. An argument names the directory to measure in (default: the
// temporary one).

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/check.h"
#include "store/sqlite_log.h"

namespace {

using berth::store::Record;
using berth::store::SqliteLog;
using berth::store::SqliteOptions;

constexpr std::size_t kPayload = 400;
constexpr double kSecondsEach = 3;

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::vector<Record> batch_at(std::uint64_t epoch, std::uint64_t first_seq, std::uint64_t count) {
  std::vector<Record> batch;
  for (std::uint64_t seq = first_seq; seq < first_seq + count; ++seq) {
    batch.push_back(
        {seq, epoch, {static_cast<std::int64_t>(seq)}, 1, 1, std::string(kPayload, static_cast<char>(seq))});
  }
  return batch;
}

struct Rate {
  double appends_per_s;
  double fsyncs_per_append;
};

Rate append_rate(const std::filesystem::path& directory, std::uint64_t batch_size, const SqliteOptions& options) {
  const auto log = std::move(SqliteLog::open(directory, options).value());
  const std::uint64_t epoch = log->take_epoch().value();
  const auto before = log->counters();
  const Stopwatch watch;
  while (watch.seconds() < kSecondsEach) {
    const std::uint64_t first_seq = log->last().seq + 1;
    BERTH_CHECK(log->append(epoch, first_seq, batch_at(epoch, first_seq, batch_size)).has_value());
  }
  const double seconds = watch.seconds();
  const auto after = log->counters();
  const auto appends = static_cast<double>(after.appends - before.appends);
  return {appends / seconds, static_cast<double>(after.fsyncs - before.fsyncs) / appends};
}

// What the disk allows: a file that grows by one record and is synced, over and over.
double bare_sync_rate(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  BERTH_CHECK(file >= 0);
  const std::string record(kPayload, 'x');
  int written = 0;
  const Stopwatch watch;
  for (; watch.seconds() < kSecondsEach; ++written) {
    BERTH_CHECK(::write(file, record.data(), record.size()) == static_cast<ssize_t>(record.size()));
    BERTH_CHECK(::fdatasync(file) == 0);
  }
  ::close(file);
  return written / watch.seconds();
}

struct ReadBack {
  std::uint64_t records;
  double open_s;
  double records_per_s;
  double bytes_per_record;
};

ReadBack read_back(const std::filesystem::path& directory) {
  const Stopwatch opening;
  const auto log = std::move(SqliteLog::open(directory).value());
  const double open_s = opening.seconds();
  const Stopwatch watch;
  const auto report = verify_chain(*log, {});
  BERTH_CHECK(report.has_value());
  const auto records = static_cast<double>(report->records);
  const auto bytes = static_cast<double>(std::filesystem::file_size(directory / "log.db"));
  return {report->records, open_s, records / watch.seconds(), bytes / records};
}

double checkpoint_seconds(const std::filesystem::path& directory, std::size_t bytes) {
  const auto log = std::move(SqliteLog::open(directory).value());
  const std::string state(bytes, 's');
  const Stopwatch watch;
  BERTH_CHECK(log->save_checkpoint(log->last().seq, state).has_value());
  return watch.seconds();
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path parent =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  std::string root = (parent / "berth-store-bench-XXXXXX").string();
  BERTH_CHECK(::mkdtemp(root.data()) != nullptr);
  const std::filesystem::path directory(root);
  std::string json = fmt::format("{{\n  \"bare_syncs_per_s\": {:.0f}", bare_sync_rate(directory / "bare"));
  for (const std::uint64_t size : {1U, 8U, 64U}) {
    const Rate rate = append_rate(directory / "log", size, {});
    json += fmt::format(",\n  \"appends_per_s_batch_{}\": {:.0f},\n  \"records_per_s_batch_{}\": {:.0f}", size,
                        rate.appends_per_s, size, rate.appends_per_s * static_cast<double>(size));
    json += fmt::format(",\n  \"fsyncs_per_append_batch_{}\": {:.3f}", size, rate.fsyncs_per_append);
  }
  const Rate slow = append_rate(directory / "slow", 64, {.fsync_delay_ms = 2});
  json += fmt::format(",\n  \"records_per_s_batch_64_fsync_2ms\": {:.0f}", slow.appends_per_s * 64);
  const ReadBack read = read_back(directory / "log");
  json += fmt::format(",\n  \"read_records\": {},\n  \"open_s\": {:.3f},\n  \"read_records_per_s\": {:.0f}",
                      read.records, read.open_s, read.records_per_s);
  json += fmt::format(",\n  \"file_bytes_per_record\": {:.0f}", read.bytes_per_record);
  json += fmt::format(",\n  \"checkpoint_64mib_s\": {:.3f}", checkpoint_seconds(directory / "log", 64U << 20U));
  std::printf("%s\n}\n", json.c_str());
  std::filesystem::remove_all(directory);
  return 0;
}
