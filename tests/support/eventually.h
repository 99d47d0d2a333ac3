#pragma once
// Waits for a fact that another thread or process brings about, with the patience of a busy machine.

#include <doctest/doctest.h>
#include <unistd.h>

namespace berth::support {

// Asks again and again until `fact` returns true, for a minute at most; then the test fails and says `what`.
template <class Fact>
void eventually(const char* what, Fact fact) {
  constexpr int kTurns = 60'000;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (fact()) return;
    ::usleep(1'000);
  }
  FAIL("not within a minute: " << what);
}

}  // namespace berth::support
