#include "model/sharing.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace berth {

namespace {

constexpr const char* kSharingPage = "docs/sharing.md";
constexpr const char* kRewriteSharing = "BERTH_REWRITE_PAGE=1 build/dev/src/model/model_test -tc='docs/sharing.md*'";
constexpr const char* kTableBegin = "<!-- the table of src/model/sharing.h -->\n";
constexpr const char* kTableEnd = "<!-- end -->\n";

template <class Each>
void each_cell(Each&& each) {
  for (std::size_t level = 0; level < EnumNames<GpuLevel>::kNames.size(); ++level)
    for (std::size_t sharers = 0; sharers < EnumNames<Sharers>::kNames.size(); ++sharers)
      for (std::size_t need = 0; need < EnumNames<GpuNeed>::kNames.size(); ++need)
        each(static_cast<Sharers>(sharers), static_cast<GpuNeed>(need), static_cast<GpuLevel>(level));
}

std::string table_text() {
  std::ostringstream text;
  text << "| level | shared by |";
  for (const auto need : EnumNames<GpuNeed>::kNames) text << " " << need << " |";
  text << "\n|---|---|---|---|---|---|---|\n";
  each_cell([&](Sharers sharers, GpuNeed need, GpuLevel level) {
    if (need == GpuNeed::kTraining) text << "| `" << name_of(level) << "` | " << name_of(sharers) << " |";
    text << " " << name_of(sharing_of(sharers, need, level)) << " |";
    if (need == GpuNeed::kLatencyCritical) text << "\n";
  });
  text << "\n| level | keeps apart |\n|---|---|\n";
  for (const auto level : {GpuLevel::kWhole, GpuLevel::kMig, GpuLevel::kMps, GpuLevel::kTimeSlice}) {
    std::string isolation(isolation_text(level));
    for (std::size_t at = isolation.find(" | "); at != std::string::npos; at = isolation.find(" | "))
      isolation.replace(at, 3, ", ");
    text << "| `" << name_of(level) << "` | " << isolation << " |\n";
  }
  text << "\n| refused | because |\n|---|---|\n";
  std::string last;
  each_cell([&](Sharers sharers, GpuNeed need, GpuLevel level) {
    const std::string why(why_refused(sharers, need, level));
    if (why.empty() || why == last) return;
    last = why;
    text << "| `" << name_of(level) << "`, " << name_of(sharers)
         << (need == GpuNeed::kLatencyCritical ? ", latency-critical" : "") << " | " << why << " |\n";
  });
  return text.str();
}

}  // namespace

// The rules in words, cell by cell, by code that does not read the table.
TEST_CASE("each cell of the table of sharing follows from the rules") {
  int cells = 0;
  each_cell([&](Sharers sharers, GpuNeed need, GpuLevel level) {
    ++cells;
    CAPTURE(name_of(sharers));
    CAPTURE(name_of(need));
    CAPTURE(name_of(level));
    const bool apart = level == GpuLevel::kWhole || level == GpuLevel::kMig;
    const bool refused = sharing_of(sharers, need, level) == Sharing::kRefused;
    // Two trust domains share a GPU by MIG alone; a job with a latency objective shares with none; the daemon of MPS
    // serves one user.
    const bool must = !apart && (sharers == Sharers::kStrangers || need == GpuNeed::kLatencyCritical ||
                                 (level == GpuLevel::kMps && sharers != Sharers::kOneUser));
    CHECK(refused == must);
    CHECK(why_refused(sharers, need, level).empty() == !refused);
    // Untrusted or latency-critical: whole or MIG. Trusted batch: MPS. Notebooks and spiky inference: time-slice.
    const bool preferred = sharing_of(sharers, need, level) == Sharing::kPreferred;
    if (need == GpuNeed::kLatencyCritical) CHECK(preferred == apart);
    if (level == GpuLevel::kMps) CHECK(preferred == (sharers == Sharers::kOneUser && need == GpuNeed::kBatch));
    if (level == GpuLevel::kTimeSlice)
      CHECK(preferred == (sharers != Sharers::kStrangers && (need == GpuNeed::kDev || need == GpuNeed::kInference)));
    CHECK(isolation_of(level).faults_isolated == apart);
  });
  CHECK(cells == 60);
}

TEST_CASE("those that trust each other more may never share less") {
  each_cell([](Sharers sharers, GpuNeed need, GpuLevel level) {
    if (sharers == Sharers::kStrangers) return;
    const auto less = static_cast<Sharers>(static_cast<int>(sharers) - 1);
    if (sharing_of(less, need, level) != Sharing::kRefused)
      CHECK(sharing_of(sharers, need, level) != Sharing::kRefused);
  });
}

TEST_CASE("the level of a request is that of its form, or of the model that a cluster offers") {
  TaskRequest request;
  CHECK_FALSE(level_of(request).has_value());
  request.gpus = 2;
  CHECK(level_of(request) == GpuLevel::kWhole);
  request.gpus = 1;
  request.gpu_milli = 250;
  CHECK(level_of(request) == GpuLevel::kTimeSlice);
  request.mig_profile = "1g.10gb";
  CHECK(level_of(request) == GpuLevel::kMig);
  request = {};
  request.gpus = 1;
  request.gpu_models = {"nvidia.com/mig-1g.5gb"};
  CHECK(level_of(request) == GpuLevel::kMig);
  request.gpu_models = {"nvidia.com/gpu", "nvidia.com/gpu.shared"};
  CHECK(level_of(request) == GpuLevel::kTimeSlice);
  JobSpec spec;
  spec.groups.emplace_back();
  CHECK_FALSE(weakest_level(spec).has_value());
  spec.exclusive = true;  // it asks for no GPU, and gets all of its node
  CHECK(weakest_level(spec) == GpuLevel::kWhole);
}

TEST_CASE("docs/sharing.md has the table that decides") {
  std::ifstream in(kSharingPage);
  std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::size_t begin = page.find(kTableBegin);
  const std::size_t end = page.find(kTableEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  std::string wanted = page;
  wanted.replace(begin, end - begin, kTableBegin + ("\n" + table_text()) + "\n");
  if (std::getenv("BERTH_REWRITE_PAGE") != nullptr) {
    std::ofstream(kSharingPage) << wanted;
    page = wanted;
  }
  CHECK_MESSAGE(page == wanted, "the page is out of date; run " << kRewriteSharing);
}

}  // namespace berth
