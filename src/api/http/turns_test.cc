#include "api/http/turns.h"

#include <doctest/doctest.h>

#include <string>

namespace berth::http {

TEST_CASE("clients take turns, and what one has waits in order") {
  Turns<int> turns;
  CHECK(turns.empty());
  for (const int item : {1, 2, 3}) turns.add("mallory", item);
  turns.add("ann", 10);
  CHECK(turns.size() == 4);
  CHECK(turns.waiting_of("mallory") == 3);
  CHECK(turns.waiting_of("zoe") == 0);
  std::string order;
  while (!turns.empty()) order += std::to_string(turns.take()) + " ";
  CHECK(order == "1 10 2 3 ");
  CHECK(turns.waiting_of("mallory") == 0);
}

}  // namespace berth::http
