// Tokens: which are good, and what each may do.

#include "state/state.h"

namespace berth::state {

void State::on(const TokenCreated& event) {
  const auto [known, fresh] = tokens_.emplace(event.name, Token{event, now_});
  BERTH_CHECK(fresh);
}

void State::on(const TokenRevoked& event) { BERTH_CHECK(tokens_.erase(event.name) == 1); }

}  // namespace berth::state
