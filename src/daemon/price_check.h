#pragma once
// What keeps a price book from being put in force: a bill of a month that is not closed could not be made by it.

#include <vector>

#include "base/timestamp.h"
#include "billing/meter.h"
#include "model/price_book.h"
#include "state/state.h"

namespace berth::daemon {

// Returns the mistakes of control::price_mistakes(), and those of entries without a price of a GPU model that was there
// while they are in force, in a month that is not closed.
std::vector<PriceMistake> price_mistakes(const state::State& state, const billing::Meter& meter, const PriceBook& book,
                                         Timestamp now);

}  // namespace berth::daemon
