#include "daemon/disk_reserve.h"

#include <doctest/doctest.h>

namespace berth::daemon {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

TEST_CASE("the reserve is 1 % of the disk, within 64 MiB and 1 GiB, and at most a quarter of a small disk") {
  CHECK(disk_reserve(100 * kMib) == 25 * kMib);
  CHECK(disk_reserve(1'000 * kMib) == 64 * kMib);
  CHECK(disk_reserve(20'000 * kMib) == 200 * kMib);
  CHECK(disk_reserve(4'000'000 * kMib) == 1'024 * kMib);
}

TEST_CASE("a disk that cannot be asked, and one with room, admit jobs") {
  CHECK(check_disk_reserve("/no/such/directory"));
  CHECK(check_disk_reserve("/proc"));
}

}  // namespace berth::daemon
