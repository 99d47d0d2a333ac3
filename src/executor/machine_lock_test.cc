#include "executor/machine_lock.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

namespace berth::executor {

TEST_CASE("a lock of the machine has one holder, and is free again when that one is gone") {
  std::string directory = "/tmp/berth-lock-test-XXXXXX";
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  ::setenv("BERTH_LOCK_DIR", directory.c_str(), 1);
  {
    auto first = MachineLock::open();
    REQUIRE(first);
    CHECK(first->take(lock_of_uid(50'000)));
    CHECK(first->take(lock_of_uid(50'000)));
    CHECK(first->take(lock_of_directory("a")));
    const auto second = MachineLock::open();
    REQUIRE(second);
    CHECK_FALSE(second->take(lock_of_uid(50'000)));
    CHECK_FALSE(second->take(lock_of_directory("a"), 20));
    CHECK(second->take(lock_of_uid(50'001)));
    CHECK(second->take(lock_of_directory("b")));
    { const MachineLock gone = std::move(*first); }
    CHECK(second->take(lock_of_uid(50'000)));
    CHECK(second->take(lock_of_directory("a")));
  }
  ::unsetenv("BERTH_LOCK_DIR");
  std::filesystem::remove_all(directory);
}

}  // namespace berth::executor
