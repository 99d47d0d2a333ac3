#include "base/socket_table.h"

#include <doctest/doctest.h>

namespace berth {

TEST_CASE("the kernel's table says who listens on which address and port, in either family") {
  const auto rows = parse_socket_table(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:18EC 00000000:0000 0A 00000000:00000000 00:00000000 00000000 50003        0 4021 1 0 100 0 0 10 "
      "0\n"
      "   1: 0100007F:18EC 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4022 1 0 20 4 30 10 "
      "-1\n"
      "   2: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 "
      "00:00000000 00000000     0        0 77 1 0 100 0 0 10 0\n"
      "   3: nonsense\n");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].local == mapped_address({127, 0, 0, 1}));
  CHECK(rows[0].local_port == 6380);
  CHECK(rows[0].listens);
  CHECK(rows[0].uid == 50003);
  CHECK_FALSE(rows[1].listens);
  CHECK(rows[1].remote_port == 50000);
  CHECK(rows[1].uid == 1000);
  SocketAddress loopback{};
  loopback[15] = 1;
  CHECK(rows[2].local == loopback);
  CHECK(rows[2].local_port == 8080);
  CHECK(parse_socket_table("").empty());
}

TEST_CASE("a listener is reached by its own address, and one on all addresses by each") {
  const SocketAddress here = mapped_address({127, 0, 0, 1});
  CHECK(is_reached_by(here, here));
  CHECK(is_reached_by(mapped_address({0, 0, 0, 0}), here));
  CHECK(is_reached_by(SocketAddress{}, here));
  CHECK_FALSE(is_reached_by(mapped_address({127, 0, 0, 2}), here));
}

}  // namespace berth
