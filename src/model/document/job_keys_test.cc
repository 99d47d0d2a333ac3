// The table of keys, and the page that shows it.

#include "model/document/job_keys.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>  // allowed: a test reads the page, and writes it where that is asked
#include <set>

#include "model/document/job_document.h"
#include "support/file_text.h"

namespace berth::document {
namespace {

constexpr const char* kPage = "docs/jobs.md";
constexpr const char* kRewrite = "BERTH_REWRITE_PAGE=1 build/dev/src/model/model_test -tc='docs/jobs.md*'";

// The tables of the page: the comment that opens each, and the keys that it shows.
struct Table {
  std::string_view opening;
  std::string_view prefix;
};
constexpr Table kTables[] = {
    {"<!-- keys of a job: ", ""},
    {"<!-- keys of a task group: ", kGroupKeys},
    {"<!-- keys of a checkpoint: ", "checkpoint."},
};
constexpr std::string_view kEnd = "<!-- end -->\n";

// A key is shown in the table with the longest prefix.
const Table& table_of(const JobKey& key) {
  const Table* best = &kTables[0];
  for (const Table& table : kTables) {
    if (key.path.starts_with(table.prefix) && table.prefix.size() >= best->prefix.size()) best = &table;
  }
  return *best;
}

std::string rows_of(const Table& table) {
  std::string text = "| key | is | default |\n|---|---|---|\n";
  for (const JobKey& key : job_keys()) {
    if (&table_of(key) != &table) continue;
    text += "| `" + std::string(key.path.substr(table.prefix.size())) + "` | " + meaning_of(key) + " | " +
            std::string(key.absent) + " |\n";
  }
  return text;
}

// The page with each table as the rows of the keys say.
std::string with_tables(std::string page) {
  for (const Table& table : kTables) {
    const std::size_t opening = page.find(table.opening);
    REQUIRE_MESSAGE(opening != std::string::npos, "there is no ", std::string(table.opening));
    const std::size_t begin = page.find('\n', opening) + 1;
    const std::size_t end = page.find(kEnd, begin);
    REQUIRE_MESSAGE(end != std::string::npos, "there is no end of ", std::string(table.opening));
    page.replace(begin, end - begin, rows_of(table));
  }
  return page;
}

std::string first_difference(const std::string& is, const std::string& should_be) {
  std::istringstream left(is);
  std::istringstream right(should_be);
  for (std::string a, b;;) {
    const bool more_left = static_cast<bool>(std::getline(left, a));
    const bool more_right = static_cast<bool>(std::getline(right, b));
    if (!more_left && !more_right) return "";
    if (a != b || more_left != more_right) return "is        " + a + "\nshould be " + b;
  }
}

}  // namespace

TEST_CASE("docs/jobs.md has the rows of the keys") {
  const std::string page = text_of_file(kPage);
  const std::string fresh = with_tables(page);
  if (std::getenv("BERTH_REWRITE_PAGE") != nullptr) {
    std::ofstream(kPage) << fresh;  // allowed: the same
    return;
  }
  CHECK_MESSAGE(page == fresh, kPage, " differs from src/model/document/job_keys.cc:\n", first_difference(page, fresh),
                "\nto write it anew: ", kRewrite);
}

TEST_CASE("each key has a path of its own, and all that its row needs") {
  std::set<std::string_view> paths;
  std::set<std::string_view> flags;
  for (const JobKey& key : job_keys()) {
    CAPTURE(key.path);
    CHECK(paths.insert(key.path).second);
    CHECK_FALSE(key.is.empty());
    CHECK_FALSE(key.absent.empty());
    CHECK_FALSE(key.is.ends_with('.'));
    CHECK((key.is.ends_with(':') ? key.form.kind == KeyKind::kWord : true));
    const bool walked = key.form.kind == KeyKind::kMap || key.form.kind == KeyKind::kGroups;
    CHECK((key.form.read == nullptr) == walked);
    CHECK((key.form.write == nullptr) == walked);
    if (key.form.kind == KeyKind::kMap) CHECK_FALSE(keys_in(std::string(key.path) + ".").empty());
    if (key.form.kind == KeyKind::kInteger || key.form.kind == KeyKind::kIntegers) CHECK(key.form.low < key.form.high);
    for (const KeyFlag& flag : {key.flag, key.wish_flag}) {
      if (flag.name.empty()) continue;
      CHECK(flags.insert(flag.name).second);
      CHECK((flag.value_name.empty() == (key.form.kind == KeyKind::kBool || key.form.kind == KeyKind::kWord)));
    }
    // A key in a map comes behind the map.
    const std::size_t dot = key.path.rfind('.');
    if (dot != std::string_view::npos && !key.path.substr(0, dot).ends_with("[]"))
      CHECK(paths.count(key.path.substr(0, dot)) == 1);
  }
}

TEST_CASE("a description is plain text, with the range or the words") {
  CHECK(plain_text("see [x](y.md#z) and `a`") == "see x and a");
  CHECK(description_of(job_key("groups[].tasks")) ==
        "How many tasks; of a service, replicas; 1 to 65536. If absent: 1.");
  CHECK(description_of(job_key("class")) == "What it is for: training, inference, dev, batch. If absent: training.");
  for (const JobKey& key : job_keys()) CHECK(description_of(key).find_first_of("`[]") == std::string::npos);
}

}  // namespace berth::document
