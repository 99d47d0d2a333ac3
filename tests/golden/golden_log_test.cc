// Data directories that b270a98 wrote, folded by today's code: the same state, the same facts field by field, and
// nothing different but the words that were renamed since.

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include "daemon/history_codec.h"
#include "daemon/verify.h"
#include "golden/facts.h"
#include "store/sqlite_log.h"
#include "store/temporary_directory.h"

namespace berth::golden {
namespace {

const std::filesystem::path kGolden = "tests/golden/b270a98";
constexpr std::size_t kKinds = 37;  // that b270a98 knew

struct Renaming {
  std::string_view before;
  std::string_view now;
  std::string_view where = "";  // only in lines that have this
};
constexpr Renaming kRenamings[] = {
    // Kinds of events.
    {"start-held", "reservation-made"},
    {"start-hold-dropped", "reservation-dropped"},
    {"move-promised", "move-nominated"},
    // Keys of the configuration, and their fields.
    {"apart", "trust_domain_isolation"},
    {"backfill_holds", "backfill_reservations"},
    {"hold_after", "backfill_after"},
    {"hold_after_s", "backfill_after_s"},
    {"holds", "backfill_reservations", "config "},
    {"mass_loss", "max_unreachable_percent"},
    {"mass_loss_percent", "max_unreachable_percent"},
    {"moves_per_hour", "consolidations_per_hour"},
    {"use_or_lose", "guarantee_decay"},
    {"use_or_lose_s", "guarantee_decay_s"},
    // Fields of events and jobs.
    {"claimant", "preemptor"},
    {"claims_from", "evicts_from"},
    {"held", "reserved", "starts-sought"},
    {"held_start", "reserved_start"},
    {"let_off_at", "eviction_cancelled_at"},
    {"lost_promises", "lost_nominations"},
    {"start_hold", "reservation"},
};

std::string renamed(const std::string& line, const std::string& word) {
  for (const Renaming& one : kRenamings) {
    if (one.before == word && line.find(one.where) != std::string::npos) return std::string(one.now);
  }
  return word;
}

std::string with_todays_words(const std::string& line) {
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at;
    while (end < line.size() && in_word(line[end])) ++end;
    text += renamed(line, line.substr(at, end - at));
    if (end < line.size()) text += line[end++];
    at = end;
  }
  return text;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(with_todays_words(line));
  return lines;
}

// A configuration as a document leaves out what is the default. Best fit was the default score then, and the score by
// fragmentation is today: the logs mean the one that they meant.
void leave_out_what_was_the_default(std::vector<std::string>& facts, std::vector<std::string>& expected) {
  const auto then = std::find(expected.begin(), expected.end(), "config   score: fragmentation");
  const auto now = std::find(facts.begin(), facts.end(), "config   score: best-fit");
  REQUIRE((then == expected.end()) != (now == facts.end()));
  if (then != expected.end()) expected.erase(then);
  if (now != facts.end()) facts.erase(now);
}

// A copy: opening a log may touch its directory.
class GoldenLog {
 public:
  explicit GoldenLog(const std::string& name) : expected(lines_of(kGolden / name / "facts.txt")) {
    std::filesystem::create_directories(copy_.path());
    for (const auto& file : std::filesystem::directory_iterator(kGolden / name)) {
      if (file.path().filename() != "facts.txt") std::filesystem::copy_file(file, path() / file.path().filename());
    }
    auto opened = store::SqliteLog::open_read_only(path());
    REQUIRE_MESSAGE(opened, opened.error().message);
    log_ = std::move(*opened);
  }

  std::filesystem::path path() const { return copy_.path(); }
  const store::SqliteLog& log() const { return *log_; }

  std::vector<std::string> expected;

 private:
  store::TemporaryDirectory copy_;
  std::unique_ptr<store::SqliteLog> log_;
};

}  // namespace

TEST_CASE("a log of b270a98 folds to the state that b270a98 folded it to, field by field") {
  for (const char* name : {"served", "simulated", "images"}) {
    CAPTURE(name);
    GoldenLog golden(name);
    auto facts = facts_of(golden.log());
    REQUIRE_MESSAGE(facts, facts.error().message);
    REQUIRE(golden.expected.size() > 10);
    leave_out_what_was_the_default(*facts, golden.expected);
    CHECK_EQ(facts->size(), golden.expected.size());
    for (std::size_t i = 0; i < std::min(facts->size(), golden.expected.size()); ++i)
      CHECK_EQ((*facts)[i], golden.expected[i]);
  }
}

TEST_CASE("a log of b270a98 is sound to berth verify, and its checkpoint is the state that its events fold to") {
  const GoldenLog golden("served");
  const auto report = daemon::verify_directory(golden.path());
  REQUIRE_MESSAGE(report, report.error().message);
  CHECK(report->warnings.empty());
  CHECK(report->checkpoint_compared);
}

// A simulated cluster writes no history, so that only a server's log has the rows that `berth verify` wants.
TEST_CASE("the chain of hashes of a simulated log of b270a98 holds") {
  for (const char* name : {"simulated", "images"}) {
    CAPTURE(name);
    const GoldenLog golden(name);
    const auto report = store::verify_chain(golden.log(), {});
    REQUIRE_MESSAGE(report, report.error().message);
    CHECK(report->records > 100);
  }
}

TEST_CASE("finished jobs of b270a98 are read from its history") {
  const GoldenLog golden("served");
  const auto rows = golden.log().history({});
  REQUIRE(rows);
  CHECK_EQ(rows->size(), 27);
  for (const store::HistoryRow& row : *rows) {
    const auto retired = daemon::to_finished_job(row);
    REQUIRE_MESSAGE(retired, retired.error().message);
    CHECK_EQ(daemon::to_history(*retired).bytes, row.bytes);
  }
}

TEST_CASE("the logs of b270a98 have every kind of event that it knew") {
  std::set<std::uint16_t> kinds;
  for (const char* name : {"served", "simulated", "images"}) {
    const GoldenLog golden(name);
    const auto read = golden.log().read(1, [&](const store::Record& record) -> Result<bool> {
      kinds.insert(record.kind);
      return true;
    });
    REQUIRE(read);
  }
  for (std::uint16_t kind = 0; kind < kKinds; ++kind) CHECK_MESSAGE(kinds.contains(kind), "kind " << kind);
}

}  // namespace berth::golden
