#include "executor/tree_walk.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "executor/descriptor.h"
#include "executor/executor_fixture.h"

namespace berth::executor {

namespace {

// Makes `levels` directories, one in the other, each of which a path could not name at the end.
void nest(const std::string& top, int levels) {
  std::filesystem::create_directories(top);
  Descriptor here(::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; level < levels; ++level) {
    REQUIRE(::mkdirat(here.get(), "d", 0700) == 0);
    here = Descriptor(::openat(here.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(here.is_open());
  }
}

// Until its end this process may have few descriptors.
class FewDescriptors {
 public:
  FewDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit few{64, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE_FIXTURE(ExecutorFixture, "a tree is removed however deep it is, with few descriptors") {
  nest(path("deep"), 3'000);
  std::ofstream(path("deep/file")) << "x";
  std::ofstream(path("kept")) << "x";
  std::filesystem::create_symlink(path("kept"), path("deep/link"));
  const FewDescriptors few;
  CHECK(bytes_below(path("deep")) > 0);
  const auto removed = remove_tree(path("deep"));
  CHECK_MESSAGE(removed.has_value(), (removed ? "" : removed.error().message));
  CHECK_FALSE(std::filesystem::exists(path("deep")));
  CHECK(std::filesystem::exists(path("kept")));
}

TEST_CASE_FIXTURE(ExecutorFixture, "what is not there is removed already, and a link is removed itself") {
  CHECK(remove_tree(path("never")).has_value());
  std::filesystem::create_directories(path("other/in"));
  std::filesystem::create_directory_symlink(path("other"), path("link"));
  CHECK(remove_tree(path("link")).has_value());
  CHECK_FALSE(std::filesystem::is_symlink(path("link")));
  CHECK(std::filesystem::exists(path("other/in")));
}

TEST_CASE_FIXTURE(ExecutorFixture, "a walk ends where a directory that it is in was moved elsewhere") {
  std::filesystem::create_directories(path("top/a/b"));
  std::filesystem::create_directories(path("elsewhere"));
  std::ofstream(path("elsewhere/kept")) << "x";
  const Descriptor root(::open(path("top").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::ofstream(path("top/a/b/file")) << "x";
  TreeVisit visit;
  visit.on_entry = [&](int, const char*) { std::filesystem::rename(path("top/a/b"), path("elsewhere/b")); };
  visit.on_left = [](int parent, const char* name) { ::unlinkat(parent, name, AT_REMOVEDIR); };
  const auto walked = walk_tree(root.get(), visit);
  REQUIRE_FALSE(walked.has_value());
  CHECK(walked.error().code == ErrorCode::kUnavailable);
  CHECK(std::filesystem::exists(path("elsewhere/kept")));
}

}  // namespace berth::executor
